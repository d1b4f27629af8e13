"""The thesis' experiment: its bookkeeping by hand, a short run on the iCub, and its figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiment import (
    SETTINGS,
    ExperimentResult,
    ExperimentSize,
    plot_experiment,
    settings,
    thesis_experiment,
)
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import from_flat, to_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.page import LOOKS

from ..documents import ROOT
from ..dynamics.arms import measurements, small_arm
from .conftest import command_line

TIMES = np.arange(1, 31) * 3.0
LEVELS = {"rigid_body": 2.5, "nonparametric": 1.2, "semiparametric": 0.9}


def test_windows_are_means_over_thirty_samples() -> None:
    squares = np.random.default_rng(0).uniform(0.0, 4.0, (2, 100, 6))
    result = ExperimentResult({"rigid_body": squares}, 10.0)
    times, curves = result.curves()
    assert times[0] == 3.0 and len(times) == 71
    first = np.sqrt(squares[:, :30, :3].mean(axis=1)).mean(axis=1)
    np.testing.assert_allclose(curves["force"]["rigid_body"][:, 0], first)
    np.testing.assert_allclose(result.first_window("force", "rigid_body"), first)
    later = np.sqrt(squares[:, 41:71, 3:].mean(axis=1)).mean(axis=1)
    np.testing.assert_allclose(curves["torque"]["rigid_body"][:, 41], later)
    steady = np.sqrt(squares[:, 50:, 3:].mean(axis=1)).mean(axis=1)
    np.testing.assert_allclose(result.steady("torque", "rigid_body"), steady)


def test_each_part_begins_from_the_first_motion_alone() -> None:
    model = small_arm()
    values = {"filter.max_rate": 20.0, "nystrom.window": 1.0}
    config = from_flat(InverseDynamicsConfig, values)
    first = list(measurements(model, 8.0, seed=0))
    second = list(measurements(model, 20.0, seed=1))
    size = ExperimentSize(train=100, parts=3, part=40)
    whole = thesis_experiment(model, config, first, second, size)
    assert whole.squares["semiparametric"].shape == (3, 40, model.n_axes)
    # A single part over the first samples gives the same as the first of three.
    one = thesis_experiment(model, config, first, second, ExperimentSize(100, 1, 40))
    for name, squares in whole.squares.items():
        np.testing.assert_array_equal(squares[0], one.squares[name][0])


def test_what_is_set_by_name_counts_even_where_it_is_the_default(tmp_path: Path) -> None:
    default = to_flat(InverseDynamicsConfig())["nystrom.length_scale"]
    assert SETTINGS["nystrom.length_scale"] != default
    parse = command_line("thesis").make_parser().parse_args
    named = settings(parse(["experiment", "--set", f"nystrom.length_scale={default}"]))
    assert named == SETTINGS | {"nystrom.length_scale": default}
    # The node's own file has all parameters, with defaults that nobody asked for.
    node = ROOT / "config" / "inverse_dynamics.yaml"
    assert settings(parse(["experiment", "--params", str(node)])) == SETTINGS


@pytest.mark.parametrize(("train", "part"), [(0, 30), (10, 29)])
def test_a_size_without_a_window_is_refused(train: int, part: int) -> None:
    with pytest.raises(ConfigurationError, match=f"30 in a part at least, not {train} and {part}"):
        ExperimentSize(train, 10, part)


@pytest.mark.usefixtures("simulator")
def test_the_semiparametric_model_leads_where_the_motion_is_new(
    thesis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--train", "300", "--part", "30", "--residual", "random_fourier"]
    assert thesis(["experiment", *options, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    lines = {line.split(":")[0]: line for line in said.splitlines()}
    force, torque = (
        float(word.strip(",")) for word in lines["first window SP / NP"].split()[-3::2]
    )
    assert force < 0.6 and torque < 0.8
    assert (tmp_path / "figure84_random_fourier.png").stat().st_size > 10_000


def curves(factor: float = 1.0) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return {
        kind: {m: unit * v * rng.uniform(0.8, 1.2, (10, 30)) for m, v in LEVELS.items()}
        for kind, unit in (("force", 1.0), ("torque", 0.2 * factor))
    }


def test_png_shows_all_three_models_in_both_panels(tmp_path: Path) -> None:
    plot_experiment(TIMES, curves(), tmp_path / "figure.png")
    image = imread(tmp_path / "figure.png")[..., :3]
    half = len(image) // 2
    for model in LEVELS:
        near = np.abs(image - np.array(to_rgb(LOOKS[model].color))).max(axis=2) < 0.02
        assert near[half // 4 : half].sum() > 200
        assert near[half:].sum() > 200
