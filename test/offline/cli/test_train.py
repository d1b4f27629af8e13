"""`semiparam train`: a start that the node's learner loads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.storage import saved_header
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.offline.cli.main import main

from ...dynamics.arms import URDF, measurements, small_arm

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.mark.parametrize(
    ("learner", "residual"), [("falkon", "nystrom"), ("random_features", "random_fourier")]
)
def test_a_node_starts_from_what_was_trained_and_learns_on(
    learner: str, residual: str, bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    options = ["--learner", learner, "--set", "nystrom.max_centers=100", "--out", str(out)]
    options += ["--set", "random_fourier.n_features=100"]
    assert main(["train", str(bag), str(bag), "--urdf", str(URDF), *options]) == 0
    table = capsys.readouterr().out
    assert "1196 samples" in table  # each bag's filters start anew
    assert all(name in table for name in small_arm().joint_names)
    config = load_yaml(out / "params.yaml", InverseDynamicsNodeConfig, "inverse_dynamics")
    assert Path(config.model_file) == out / "model.npz"
    assert config.learner.estimator.residual == residual
    session = Session(Path(config.urdf).read_text(), config)
    session.load(config.model_file)
    estimator = session.learner.estimator
    assert estimator.n_learned == 1196
    squares = []
    for m in measurements(small_arm(), 2.0, extra=2.0, start=10**11):
        step = session.learner.predict(m)
        if step is not None and step.y is not None:
            left = [step.y - step.prediction.rigid_body, step.y - step.prediction.semiparametric]
            squares.append(np.square(left))
            session.learner.update(session.learner.admit(step))
    rigid, both = np.sqrt(np.mean(squares, axis=(0, 2)))
    assert both < 0.6 * rigid
    assert estimator.n_learned == 1196 + len(squares)


def test_the_learner_follows_the_parameter_residual(bag: Path, tmp_path: Path) -> None:
    options = ["--set", "residual=random_fourier", "--set", "random_fourier.n_features=40"]
    options += ["--set", "joints=slew, lift, reach"]
    assert main(["train", str(bag), *options, "--out", str(tmp_path)]) == 0
    config = load_yaml(tmp_path / "params.yaml", InverseDynamicsNodeConfig, "inverse_dynamics")
    assert config.learner.estimator.residual == "random_fourier"
    assert config.urdf == ""  # the robot's description was the bag's
    # Where joints were locked is kept beside the model.
    _, parameters = saved_header(tmp_path / "model.npz")
    assert parameters["locked"].keys() == {"grip"}
    assert parameters["joints"] == ["slew", "lift", "reach"]


@pytest.fixture(scope="module")
def trained(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model that was trained on the bag."""
    out = tmp_path_factory.mktemp("trained")
    assert main(["train", str(bag), "--set", "nystrom.max_centers=150", "--out", str(out)]) == 0
    return out


def test_a_trained_model_is_evaluated_as_it_is_and_going_on(bag, trained, tmp_path, capsys) -> None:
    start = ["--params", str(trained / "params.yaml"), "--model", str(trained / "model.npz")]
    assert main(["evaluate", str(bag), *start, "--out", str(tmp_path)]) == 0
    assert "was learned under" not in capsys.readouterr().err
    scores = json.loads((tmp_path / "results.json").read_text())["scores"]
    assert set(scores) == {"sequential", "delayed", "frozen"}
    frozen = {
        name: np.mean(score["nmse"])
        for name, score in scores["frozen"].items()
        if name != "nonparametric"
    }  # no file has the baseline
    assert frozen["semiparametric"] < 0.1 * frozen["rigid_body"]  # it has learned this bag


def test_a_model_of_another_configuration_is_not_evaluated(bag, trained, tmp_path, capsys) -> None:
    options = ["--model", str(trained / "model.npz"), "--set", "nystrom.max_centers=150"]
    options += ["--set", "nystrom.novelty=0.7"]
    assert main(["evaluate", str(bag), *options, "--out", str(tmp_path / "on")]) == 2
    assert "nystrom.novelty is 0.5 there, 0.7 here" in capsys.readouterr().err


def test_a_filter_that_the_model_was_not_learned_under_is_told(
    bag: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["--model", str(trained / "model.npz")]
    # With a file the model's own parameters do not count.
    (tmp_path / "other.yaml").write_text("{nystrom: {max_centers: 150}, filter: {cutoff: 7.0}}")
    other = ["--params", str(tmp_path / "other.yaml")]
    assert main(["evaluate", str(bag), *start, *other, "--out", str(tmp_path / "other")]) == 0
    told = "model.npz was learned under filter.cutoff 5.0 (here 7.0)\n"
    assert capsys.readouterr().err.endswith(told)
