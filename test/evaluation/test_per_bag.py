"""Bags evaluated each for itself are evaluated as if alone, by whatever process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from semiparam_dynamics.cli.main import main
from semiparam_dynamics.samples.bag_writer import write_measurements

from ..dynamics.arms import URDF, measurements, small_arm

SETTINGS = ["--set", "nystrom.window=0.5", "--set", "nystrom.max_centers=30"]


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Three bags, two of one name."""
    model = small_arm()
    paths = []
    for folder, name, seconds in (("a", "run", 3.0), ("b", "run", 2.0), ("b", "long", 4.0)):
        path = tmp_path_factory.mktemp(folder) / name
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
    found = dict(json.loads((path / "results.json").read_text()))
    found.pop("timing_us")
    return found


def test_each_is_evaluated_as_if_alone(bags: list[str], tmp_path: Path) -> None:
    out = tmp_path / "each"
    assert main(["evaluate", *bags, "--each", "--jobs", "2", *SETTINGS, "--out", str(out)]) == 0
    folders = ["run", "run.2", "long"]
    for bag, folder in zip(bags, folders, strict=True):
        alone = tmp_path / "alone" / folder
        assert main(["evaluate", bag, *SETTINGS, "--out", str(alone)]) == 0
        assert results(out / folder) == results(alone)
        assert (out / folder / "params.yaml").read_text() == (alone / "params.yaml").read_text()
    summary = json.loads((out / "bags.json").read_text())
    assert [(entry["bag"], entry["folder"]) for entry in summary] == list(
        zip(bags, folders, strict=True)
    )
    nmse = results(out / "long")["scores"]["delayed"]["semiparametric"]["nmse"]
    assert summary[2]["mean_nmse"]["delayed"]["semiparametric"] == pytest.approx(
        sum(nmse) / len(nmse)
    )
    page = (out / "report.html").read_text()
    assert all(f'href="{folder}/report.html"' in page for folder in folders)


def test_a_cluster_gives_the_same(bags: list[str], tmp_path: Path, scheduler: str) -> None:
    command = ["evaluate", *bags, "--each", *SETTINGS, "--out"]
    assert main([*command, str(tmp_path / "one"), "--jobs", "1"]) == 0
    assert main([*command, str(tmp_path / "two"), "--cluster", scheduler]) == 0
    for folder in ("run", "run.2", "long"):
        assert results(tmp_path / "one" / folder) == results(tmp_path / "two" / folder)


def test_all_go_on_from_the_same_model(bags: list[str], tmp_path: Path) -> None:
    assert main(["train", bags[2], *SETTINGS, "--out", str(tmp_path / "trained")]) == 0
    each, alone = tmp_path / "e", tmp_path / "alone"
    command = ["evaluate", *SETTINGS, "--model", str(tmp_path / "trained" / "model.npz")]
    assert main([*command, *bags[:2], "--each", "--jobs", "1", "--out", str(each)]) == 0
    assert main([*command, bags[1], "--out", str(alone)]) == 0
    assert results(each / "run.2") == results(alone)


def test_a_bag_that_can_t_be_read_stops_no_other(
    bags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(b"no bag")
    command = ["evaluate", str(broken), bags[1], "--each", "--jobs", "1", *SETTINGS]
    assert main([*command, "--out", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out" / "run" / "report.html").exists()
    assert "1 of 2 bags could not be evaluated" in (tmp_path / "out" / "report.html").read_text()
    assert "broken" in capsys.readouterr().out
    assert main(["evaluate", str(broken), "--each", "--jobs", "1", "--out", str(tmp_path / "o")])
    assert "none of the bags could be evaluated" in capsys.readouterr().err
