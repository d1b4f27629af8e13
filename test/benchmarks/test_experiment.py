"""The thesis' experiment: its bookkeeping by hand, a short run on the iCub, and its figure."""

from __future__ import annotations

from pathlib import Path

import experiment
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import from_flat, to_flat
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig

from ..documents import ROOT
from ..dynamics.arms import measurements, samples, small_arm
from .conftest import command_line


def test_windows_are_means_over_thirty_samples() -> None:
    squares = np.random.default_rng(0).uniform(0.0, 4.0, (2, 100, 6))
    result = experiment.ExperimentResult({"rigid_body": squares}, 10.0)
    assert result.times()[0] == 3.0 and len(result.times()) == 71
    first = np.sqrt(squares[:, :30, :3].mean(axis=1)).mean(axis=1)
    np.testing.assert_allclose(result.curve("force", "rigid_body")[:, 0], first)
    later = np.sqrt(squares[:, 41:71, 3:].mean(axis=1)).mean(axis=1)
    np.testing.assert_allclose(result.curve("torque", "rigid_body")[:, 41], later)
    steady = np.sqrt(squares[:, 50:, 3:].mean(axis=1)).mean(axis=1)
    np.testing.assert_allclose(result.steady("torque", "rigid_body"), steady)


def test_each_part_begins_from_the_first_motion_alone() -> None:
    model = small_arm()
    values = {"filter.max_rate": 20.0, "nystrom.window": 1.0, "rigid_body.prior": "zero"}
    config = from_flat(InverseDynamicsConfig, values)
    first = list(measurements(model, 8.0, seed=0))
    second = list(measurements(model, 20.0, seed=1))
    size = experiment.ExperimentSize(train=100, parts=3, part=40)
    whole = experiment.thesis_experiment(model, config, first, second, size)
    # A single part over the first samples gives the same as the first of three.
    size = experiment.ExperimentSize(100, 1, 40)
    one = experiment.thesis_experiment(model, config, first, second, size)
    for residual, squares in whole.items():
        assert set(squares) == set(experiment.SHORT)
        for name, of_parts in squares.items():
            assert of_parts.shape == (3, 40, model.n_axes)
            np.testing.assert_array_equal(of_parts[0], one[residual][name][0])


def test_the_thesis_own_rigid_body_is_ridge_regression_of_all_rows() -> None:
    model = small_arm()
    block = SampleBlock.of(samples(model, 6.0, extra=0.3))
    rows, y = block.regressors[:120].reshape(-1, model.n_parameters), block.y[:120].ravel()
    found = np.linalg.solve(np.eye(model.n_parameters) + rows.T @ rows, rows.T @ y)
    parts = [block.rows(slice(100, 130))]
    squares = experiment.literal_squares(block.rows(slice(0, 100)), parts)[0]
    np.testing.assert_allclose(squares[20], (block.y[120] - block.regressors[120] @ found) ** 2)


def test_what_is_set_by_name_counts_even_where_it_is_the_default(tmp_path: Path) -> None:
    default = to_flat(InverseDynamicsConfig())["nystrom.length_scale"]
    assert experiment.SETTINGS["nystrom.length_scale"] != default
    parse = command_line("thesis").make_parser().parse_args
    named = experiment.settings(parse(["experiment", "--set", f"nystrom.length_scale={default}"]))
    assert named == experiment.SETTINGS | {"nystrom.length_scale": default}
    # The node's own file has all parameters, with defaults that nobody asked for.
    node = ROOT / "config" / "inverse_dynamics.yaml"
    assert experiment.settings(parse(["experiment", "--params", str(node)])) == experiment.SETTINGS


@pytest.mark.parametrize(("train", "part"), [(0, 30), (10, 29)])
def test_a_size_without_a_window_is_refused(train: int, part: int) -> None:
    with pytest.raises(ConfigurationError, match=f"30 in a part at least, not {train} and {part}"):
        experiment.ExperimentSize(train, 10, part)


@pytest.mark.usefixtures("simulator")
def test_the_semiparametric_model_leads_where_the_motion_is_new(
    thesis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--seeds", "1", "--train", "200", "--part", "30"]
    assert thesis(["experiment", *options, "--out", str(tmp_path)]) == 0
    said = (tmp_path / "experiment.md").read_text()
    assert said == capsys.readouterr().out and said.endswith("![Figure 8.4](figure84.png)\n")
    for line in said.split("| SP / NP")[1:]:
        force, torque = (float(cell.split()[0]) for cell in line.split("|")[1:3])
        assert force < 0.6 and torque < 0.8
    assert (tmp_path / "figure84.png").stat().st_size > 10_000


def test_png_shows_all_models_in_every_panel(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).uniform(0.8, 1.2, (3, 2, 90, 6))
    squares = {model: 0.3**k * noise for k, model in enumerate(experiment.SHORT)}
    result = experiment.ExperimentResult(squares, 10.0)
    experiment.plot_experiment(dict.fromkeys(experiment.RESIDUALS, result), tmp_path / "f.png")
    image = imread(tmp_path / "f.png")[..., :3]
    for model in experiment.SHORT:
        near = np.abs(image - np.array(to_rgb(experiment.LINES[model].color))).max(axis=2) < 0.02
        for half in np.array_split(near, 2):
            assert all(panel.sum() > 100 for panel in np.array_split(half, 2, axis=1))
