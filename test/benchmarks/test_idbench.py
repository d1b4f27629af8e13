"""IDBench: what methods are given, what pages say, and that a user's command prints the same."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from arms import ARMS
from cases import Data, cases
from matplotlib.image import imread
from page import PAGES, PICTURE, digest, page, published
from PIL import Image
from protocols import Prepared, method_scores, package_scores, prepare
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main

from ..documents import RESULTS, ROOT
from .conftest import BENCHMARKS, command_line

FIGURES = json.loads((RESULTS / "idbench.json").read_text())
METHODS = sorted((BENCHMARKS / "idbench" / "methods").glob("*.py"))


@pytest.fixture(scope="module")
def seldom_inferred() -> None:
    """As often as for the figures that were published."""


@pytest.fixture(scope="module")
def prepared(simulator: None) -> Prepared:
    first, _ = cases(Path("DATA"), "sim_small", 12.0)
    return prepare(first, InverseDynamicsConfig())


def of_page() -> ModuleType:
    """The method that docs/benchmark.md shows."""
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "benchmark.md").read_text(), re.S)
    module = ModuleType("shown")
    exec(text, module.__dict__)  # the page's own words
    return module


def test_the_method_of_the_page_is_the_packages_persistence(prepared: Prepared) -> None:
    expected = {p: f for p, name, f in package_scores(prepared.evaluation) if name == "persistence"}
    found = {p: figures for p, figures, _ in method_scores(of_page().Method(), prepared)}
    assert found.keys() == expected.keys() == {"frozen", "delayed", "sequential"}
    # Of the half second in which the test begins a method has learned what comes before it; and
    # learning ends with a look at the evidence, after the package's last residual.
    for protocol, near in (("frozen", 0.05), ("sequential", 0.01), ("delayed", 0.05)):
        for name in ("nmse", "worst"):
            assert found[protocol][name] == pytest.approx(expected[protocol][name], near), protocol


@pytest.mark.parametrize(
    "values", [lambda y: np.zeros(len(y)), lambda y: y], ids=["another shape", "not finite"]
)
def test_what_cannot_be_scored_is_refused(values, prepared: Prepared) -> None:
    class Careless:
        def fit(self, train: Data) -> None:
            with pytest.raises(ValueError, match="read-only"):
                train.base += 0.0  # type: ignore[misc]

        def predict(self, test: Data) -> np.ndarray:
            return np.asarray(values(test.y))

    with pytest.raises(ConfigurationError, match="finite efforts of shape"):
        list(method_scores(Careless(), prepared))


def test_the_efforts_of_the_test_are_hidden_until_they_are_learned(prepared: Prepared) -> None:
    class Watching:
        learned = 0

        def fit(self, train: Data) -> None:
            assert train.choosing is not None and not np.array_equal(
                train.base, train.choosing.base
            )
            self.learned = 0

        def predict(self, test: Data) -> np.ndarray:
            assert np.isnan(test.y).all() and np.isfinite(test.inputs).all()
            return test.base

        def update(self, part: Data) -> None:
            assert np.isfinite(part.y).all()
            self.learned += len(part)

    method = Watching()
    found = {protocol: figures for protocol, figures, _ in method_scores(method, prepared)}
    rigid = {p: f for p, name, f in package_scores(prepared.evaluation) if name == "rigid_body"}
    assert method.learned == len(prepared.test)
    # Where others go on learning they begin with the evidence that is looked at where it ends.
    for protocol, near in (("frozen", 1e-6), ("delayed", 2e-3), ("sequential", 2e-3)):
        assert found[protocol]["nmse"] == pytest.approx(rigid[protocol]["nmse"], rel=near)


def test_settings_are_chosen_on_a_recording_that_was_not_learned(prepared: Prepared) -> None:
    data = prepared.train
    held = data.held_out()
    assert held[-1] and not held[0] and 0.15 < held[data.moving].mean() < 0.25
    half = np.repeat([0, 1], [len(data) // 2, len(data) - len(data) // 2])
    two = Data(
        data.times, half, *(getattr(data, n) for n in ("q", "dq", "ddq", "base", "y", "moving"))
    )
    assert np.array_equal(two.held_out(), half == 1)


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_each_method_fits_a_page_and_learns_something(path: Path, prepared: Prepared) -> None:
    assert len(path.read_text().splitlines()) <= 40
    try:
        method: Any = importlib.import_module(f"methods.{path.stem}").Method()
    except ImportError as error:
        pytest.skip(str(error))
    with threadpool_limits(1):
        (_, figures, seconds), *_ = method_scores(method, prepared)
    rigid = np.nanmean((prepared.test.base - prepared.test.y) ** 2 / prepared.test.y.var(axis=0))
    assert figures["nmse"] < 2.0 * rigid and seconds > 0.0


def test_pages_and_picture_say_what_the_figures_do(tmp_path: Path) -> None:
    assert page(FIGURES) == (RESULTS / "idbench.md").read_text()
    for name, ranges in PAGES.items():
        text = (ROOT / name).read_text()
        assert published(text, FIGURES, ranges) == text, name
    assert Image.open(ROOT / PICTURE).text["Description"] == digest(FIGURES)
    assert imread(ROOT / PICTURE)[..., :3].std() > 0.05


def test_methods_are_added_to_the_figures_of_others(tmp_path: Path, simulator: None) -> None:
    (tmp_path / "idbench.json").write_text(json.dumps(FIGURES))
    given = ["DATA", "--out", str(tmp_path), "--arms", "sim_small", "ur10", "--seconds", "6"]
    assert command_line("idbench").main([*given, "--methods", "boosting"]) == 0
    figures = json.loads((tmp_path / "idbench.json").read_text())
    contacts, before = figures["contacts"]["sim_small"], FIGURES["contacts"]["sim_small"]
    assert contacts["gru"] == before["gru"]
    for name in ("rigid_body", "semiparametric", "boosting"):
        assert 0.85 < contacts[name] < 1.0 and contacts[name] != before[name]
    assert figures["cases"]["ur10"] == FIGURES["cases"]["ur10"]  # there is no folder robots/ur10
    for name, before in FIGURES["cases"]["sim_small"].items():
        case = figures["cases"]["sim_small"][name]
        assert case["frozen"]["gru"] == before["frozen"]["gru"]
        for model in ("plain_rigid_body", "batch", "persistence", "boosting"):
            assert case["frozen"][model] != before["frozen"][model]
        assert "persistence" in case["sequential"] and "boosting" not in case["sequential"]
    assert "boosting on the rigid body" in (tmp_path / "idbench.md").read_text()


@pytest.mark.usefixtures("scores_alone")
# A bag of one recording, and three recordings that are converted.
@pytest.mark.parametrize("arm", ["ur10", "lwr4"])
def test_a_users_command_prints_the_figures(arm: str, data_folder: Path, tmp_path: Path) -> None:
    folder = data_folder / "robots" / arm
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    urdf, logs = folder / ARMS[arm].urdf, [folder / log for log in ARMS[arm].logs]
    *train, test = (log if log.suffix == ".db3" else tmp_path / log.stem for log in logs)
    for log, bag in zip(logs, (*train, test), strict=True):
        names = ["--names", ",".join(joints(arm, data_folder))]
        if bag != log:
            assert main(["convert", str(log), str(bag), "--urdf", str(urdf), *names]) == 0
    trained = ["--train", *map(str, train)] if train else []
    command = ["evaluate", str(test), *trained, "--urdf", str(urdf), "--out", str(tmp_path / "out")]
    assert main([*command, "--target", "effort"]) == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text())["scores"]
    name, figures = next(iter(FIGURES["cases"][arm].items()))
    assert name in ("first 60 % → rest", "1, 2 → 3")
    for protocol in ("frozen", "delayed", "sequential"):
        models = found.get(f"{protocol}_rest", found[protocol])
        for model in ("plain_rigid_body", "rigid_body", "semiparametric"):
            printed = float(np.mean(models[model]["nmse"]))
            assert printed == pytest.approx(figures[protocol][model]["nmse"], rel=1e-3), protocol


def joints(arm: str, data_folder: Path) -> tuple[str, ...]:
    """The names of the joints of an arm's logs."""
    first = next(cases(data_folder, arm))
    return first.test.names
