"""Bags evaluated each for itself are evaluated as if alone, by whatever process."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.evaluation.comparison import _names
from semiparam_dynamics.offline.evaluation.verdict import USE_NAMES
from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import URDF, measurements, small_arm

pytestmark = pytest.mark.usefixtures("no_figures")

SETTINGS = ["--set", "nystrom.window=0.5", "--set", "nystrom.max_centers=30"]
SETTINGS += ["--set", "nystrom.wide_max_centers=10"]


@pytest.fixture(scope="module")
def seldom_inferred() -> None:
    """As in the processes that this is compared with."""


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two bags of one name."""
    model = small_arm()
    paths = []
    for folder, seconds in (("a", 3.0), ("b", 2.0)):
        path = tmp_path_factory.mktemp(folder) / "run"
        write_measurements(
            path,
            model.joint_names,
            measurements(model, seconds, extra=1.0),
            "effort",
            robot_description=URDF.read_text(),
        )
        paths.append(str(path))
    return paths


def results(path: Path) -> dict[str, Any]:
    """All but times, to nine digits: another process' last bits have been others, once."""
    text = (path / "results.json").read_text()
    found = dict(json.loads(text, parse_float=lambda number: float(f"{float(number):.9g}")))
    for when in ("timing_us", "run"):
        found.pop(when)
    return found


@pytest.fixture(scope="module")
def each(bags: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both bags' evaluations, by two processes."""
    out = tmp_path_factory.mktemp("each")
    assert main(["evaluate", *bags, "--each", "--jobs", "2", *SETTINGS, "--out", str(out)]) == 0
    return out


def test_every_bag_has_a_folder_of_its_own(tmp_path) -> None:
    assert _names(["a/run", "b/run", "c/run"]) == ["run", "run.2", "run.3"]
    assert _names(["a/run.2.mcap", "a/run.mcap", "b/run.mcap"]) == ["run.2", "run", "run.3"]
    assert _names(["a/run", "b/run", "c/run.2.mcap"]) == ["run", "run.3", "run.2"]
    assert _names(["a/run.2.db3.zstd", "b/run.2.db3"]) == ["run.2", "run.2.2"]
    (tmp_path / "2026-01-01.mcap").mkdir()  # a folder's name is kept whole
    assert _names([tmp_path / "2026-01-01.mcap"]) == ["2026-01-01.mcap"]


def test_each_is_evaluated_as_if_alone(bags: list[str], each: Path, tmp_path: Path) -> None:
    assert main(["evaluate", bags[1], *SETTINGS, "--out", str(tmp_path)]) == 0
    assert results(each / "run.2") == results(tmp_path) != results(each / "run")
    assert (each / "run.2" / "params.yaml").read_text() == (tmp_path / "params.yaml").read_text()
    summary = json.loads((each / "bags.json").read_text())
    found = [(entry["bag"], entry["folder"]) for entry in summary]
    assert found == [(bags[0], "run"), (bags[1], "run.2")]
    nmse = results(each / "run.2")["scores"]["delayed"]["semiparametric"]["nmse"]
    mean = summary[1]["mean_nmse"]["delayed"]["semiparametric"]
    assert mean == pytest.approx(sum(nmse) / len(nmse))
    page = (each / "report.html").read_text()
    uses = [results(each / folder)["verdict"]["use"] for folder in ("run", "run.2")]
    assert [entry["use"] for entry in summary] == uses
    assert "To be used: " in page and USE_NAMES[uses[0]] in page
    assert all(f'href="{folder}/report.html"' in page for folder in ("run", "run.2"))


def test_a_cluster_gives_the_same(bags: list[str], each, tmp_path, near_scheduler: str) -> None:
    command = ["evaluate", *bags, "--each", *SETTINGS, "--cluster", near_scheduler]
    assert main([*command, "--out", str(tmp_path)]) == 0
    for folder in ("run", "run.2"):
        assert results(each / folder) == results(tmp_path / folder)


def test_each_goes_on_from_a_saved_model(bags: list[str], tmp_path: Path) -> None:
    assert main(["train", bags[0], *SETTINGS, "--out", str(tmp_path / "trained")]) == 0
    command = ["evaluate", bags[1], *SETTINGS, "--model", str(tmp_path / "trained" / "model.npz")]
    assert main([*command, "--each", "--jobs", "1", "--out", str(tmp_path / "each")]) == 0
    assert main([*command, "--out", str(tmp_path / "alone")]) == 0
    assert results(tmp_path / "each" / "run") == results(tmp_path / "alone")


def test_a_bag_that_can_t_be_read_stops_no_other(bags: list[str], tmp_path, capsys) -> None:
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"no bag")
    command = ["evaluate", str(broken), bags[1], "--each", "--jobs", "1", "--table", *SETTINGS]
    assert main([*command, "--out", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out" / "run" / "report.html").exists()
    assert "1 of 2 bags could not be evaluated" in (tmp_path / "out" / "report.html").read_text()
    told = capsys.readouterr().out
    assert "broken" in told and f" {small_arm().axes[0]} " in told  # the table of the other's axes
    assert main(["evaluate", str(broken), "--each", "--jobs", "1", "--out", str(tmp_path / "o")])
    assert "none of the bags could be evaluated" in capsys.readouterr().err


def test_a_bag_s_faults_are_not_told_of_the_next(bags: list[str], tmp_path: Path) -> None:
    model, broken = small_arm(), tmp_path / "broken"
    given = [m for k, m in enumerate(measurements(model, 3.0, extra=1.0)) if not 60 <= k < 120]
    for k in range(8, len(given), 9):
        given[k] = dataclasses.replace(given[k], stamp=given[0].stamp)
    write_measurements(
        broken, model.joint_names, given, "effort", robot_description=URDF.read_text()
    )
    command = ["evaluate", str(broken), bags[1], "--each", "--jobs", "1", *SETTINGS]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    pages = [(tmp_path / "out" / name / "report.html").read_text() for name in ("broken", "run")]
    assert ["has faults" in page for page in pages] == [True, False]
