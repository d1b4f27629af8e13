"""`semiparam evaluate` on real bags."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics import inferred_kernel as kernel
from semiparam_dynamics.dynamics import rigid_body
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import FEW_CENTERS, URDF, measurements, small_arm

pytestmark = pytest.mark.usefixtures("no_figures")

# With what is inferred as seldom as here, and without figures.
EVALUATE = """
import sys
from semiparam_dynamics.dynamics import inferred_kernel as kernel, rigid_body
from semiparam_dynamics.offline.evaluation import prediction_plots
prediction_plots.draw = lambda *given: "<svg></svg>"
rigid_body.EVIDENCE_GROWTH, kernel.SOLUTION_GROWTH, kernel.CHOICE_GROWTH = {}
from semiparam_dynamics.offline.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
SETTING = ["--set", "nystrom.window=1", "--set", "nystrom.max_centers=60"]
SETTING += ["--set", "nystrom.wide_max_centers=20"]


@pytest.fixture(scope="module")
def evaluated(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bag's evaluation."""
    out = tmp_path_factory.mktemp("evaluated") / "out"
    assert main(["evaluate", str(bag), *SETTING, "--out", str(out)]) == 0
    return out


def scores(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results.json").read_text())["scores"])


def test_a_bag_gives_the_numbers_of_the_learner(bag: Path, evaluated: Path) -> None:
    results = json.loads((evaluated / "results.json").read_text())
    config = load_yaml(evaluated / "params.yaml", InverseDynamicsConfig)
    assert config.estimator.nystrom.window == 1.0
    model = small_arm()
    learner = InverseDynamicsLearner(model, replace(config, comparison=True))
    for m in measurements(model, 6.0, extra=2.0):
        if (step := learner.predict(m)) is not None:
            learner.update(learner.admit(step))
    for name in ("rigid_body", "nonparametric", "semiparametric"):
        found = results["scores"]["sequential"][name]
        np.testing.assert_allclose(found["rmse"], learner.scores.rmse(name), rtol=1e-9)
        np.testing.assert_allclose(found["nmse"], learner.scores.nmse(name), rtol=1e-9)
    assert results["samples"] == learner.scores.samples == 598
    assert results["skipped"] == {}
    assert results["target"] == "effort" and results["axes"] == list(model.joint_names)
    page = (evaluated / "report.html").read_text()
    origin = results["origin"]
    (tested,) = origin["tested"]
    assert tested["path"] == str(bag) and tested["measurements"] > 598 and not origin["trained"]
    assert origin["urdf"] and origin["urdf_sha256"] == model.urdf_sha256
    assert results["run"]["command"].startswith("semiparam evaluate ")
    assert datetime.fromisoformat(results["run"]["date"]).tzinfo is not None
    assert f"judged: {bag.name}</title>" in page and "semiparam evaluate" in page


def test_twice_the_same_bytes_but_for_the_timing(bag, evaluated, tmp_path) -> None:
    # The order of sets and of what is hashed is another in each process.
    growths = (rigid_body.EVIDENCE_GROWTH, kernel.SOLUTION_GROWTH, kernel.CHOICE_GROWTH)
    command = [sys.executable, "-c", EVALUATE.format(growths), "evaluate", str(bag), *SETTING]
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    subprocess.run([*command, "--out", str(tmp_path)], env=environment, check=True)
    found = []
    for out in (tmp_path, evaluated):
        text = (out / "results.json").read_bytes()
        without, times = re.subn(rb'  "(timing_us|run)": \{[^{}]*\},?\n', b"", text)
        assert times == 2
        found.append((without, (out / "params.yaml").read_bytes()))
    assert found[0] == found[1]
    assert b'"semiparametric"' in found[0][0] and b"timing" not in found[0][0]


def test_training_bags_are_learned_first(bag: Path, tmp_path: Path) -> None:
    options = ["--train", str(bag), *SETTING, "--out", str(tmp_path)]
    assert main(["evaluate", str(bag), *options]) == 0
    found = scores(tmp_path)
    assert set(found) == {"sequential", "delayed", "frozen"}
    trained, of_urdf = (
        np.mean(found["frozen"][name]["rmse"]) for name in ("semiparametric", "urdf")
    )
    assert trained < 0.9 * of_urdf
    assert found["frozen"]["urdf"] == found["sequential"]["urdf"]  # the whole bag is tested on


def test_joints_that_only_the_urdf_has_stand_still(tmp_path, capsys) -> None:
    names = small_arm().joint_names[:2]
    model = small_arm(joints=names)
    path = tmp_path / "two"
    write_measurements(path, names, measurements(model, 3.0), "effort")
    options = ["--urdf", str(URDF), "--out", str(tmp_path / "out")]
    assert main(["evaluate", str(path), *options]) == 0
    assert "the bag 2 of them, which are learned: slew, lift" in capsys.readouterr().err
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["axes"] == list(names)
    assert results["parameters"]["joints"] == list(names)


def test_a_saved_model_brings_its_parameters_and_may_have_seen_the_motion(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, out = tmp_path / "arm.npz", tmp_path / "out"
    config = replace(InverseDynamicsConfig(), **{"filter.cutoff": 8.0} | FEW_CENTERS)
    InverseDynamicsLearner(small_arm(), config).save(saved)
    command = ["evaluate", str(bag), "--model", str(saved), "--out", str(out)]
    assert main([*command, "--set", "filter.cutoff=6"]) == 0
    used = load_yaml(out / "params.yaml", InverseDynamicsConfig)
    assert used.filter.cutoff == 6.0 and used.estimator == config.estimator
    assert "not seen" not in " ".join(capsys.readouterr().out.split())
    page = (out / "report.html").read_text()
    assert "The models had learned what is in arm.npz before." in page


def test_changes_are_looked_for_where_the_parameters_say_so(bag, tmp_path, capsys) -> None:
    options = ["--set", "changes.detect=true", "--table", "--out", str(tmp_path)]
    assert main(["evaluate", str(bag), *options, *SETTING]) == 0
    assert capsys.readouterr().out.count("noticed: ") == 1
    results = json.loads((tmp_path / "results.json").read_text())
    assert "changes" in results and "delayed" not in results["scores"]


def test_what_rerun_shows_has_the_errors_of_the_results(bag, tmp_path, capsys) -> None:
    out, file = tmp_path / "out", tmp_path / "out.rrd"
    command = ["evaluate", str(bag), *SETTING, "--out", str(out), "--rerun", str(file)]
    if importlib.util.find_spec("rerun") is None:
        assert main(command) == 2 and not out.exists()
        assert "pip install rerun-sdk" in capsys.readouterr().err
        pytest.skip("rerun-sdk is not installed")
    from rerun.chunk import RrdReader

    assert main(command) == 0
    chunks = [chunk for chunk in RrdReader(file).stream() if not chunk.is_static]
    curves = {c.entity_path: np.array(c.to_record_batch().column(2).to_pylist()) for c in chunks}
    for protocol in ("sequential", "delayed", "frozen"):
        found = scores(out)[protocol]["semiparametric"]["rmse"]
        for axis, rmse in zip(small_arm().axes, found, strict=True):
            of = f"/{protocol}/{axis}"
            errors = curves[f"{of}/Measured"] - curves[f"{of}/Semiparametric"]
            assert np.sqrt(np.mean(errors**2)) == pytest.approx(rmse)
            assert (curves[f"{of}/\\+2\\ deviations"] > curves[f"{of}/Semiparametric"]).all()
