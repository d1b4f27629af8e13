"""The thesis' figure of three models' errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from figure84 import plot_experiment
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.page import LOOKS

TIMES = np.arange(1, 31) * 3.0
LEVELS = {"rigid_body": 2.5, "nonparametric": 1.2, "semiparametric": 0.9}


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


def test_svg_names_units_and_models(tmp_path: Path) -> None:
    plot_experiment(TIMES, curves(1e-3), tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    for words in (
        "Force RMSE (N)",
        "Torque RMSE (N m)",
        "Time (s)",
        "SP: semiparametric",
        "P: rig",
    ):
        assert words in text


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere"):
        plot_experiment(TIMES, curves(), tmp_path / "nowhere" / "figure.png")
    with pytest.raises(StorageError, match="figure.xyz"):
        plot_experiment(TIMES, curves(), tmp_path / "figure.xyz")
