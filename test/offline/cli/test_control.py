"""`semiparam control`: a table, a page and the same numbers as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.offline.cli import control
from semiparam_dynamics.offline.cli.main import main

from ...control.arm import EFFECTS, SEVEN

SETTINGS = {
    **EFFECTS,
    "joints": "joint1,joint2,joint3,joint4",
    "learner.nystrom.max_centers": 10,
    "learner.nystrom.joint_max_centers": 0,
}


@pytest.mark.usefixtures("simulator")
def test_table_page_and_json_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    options = ["--urdf", SEVEN, "--seconds", "7", "--since", "5", "--mass-error", "0.1", "0.3"]
    options += ["--out", str(out)]
    for name, value in {**SETTINGS, "learner.filter.max_rate": 50}.items():
        options += ["--set", f"{name}={value}"]
    assert main(["control", *options]) == 0
    printed = capsys.readouterr().out
    results = json.loads((out / "control.json").read_text())
    assert results["joints"] == ["joint1", "joint2", "joint3", "joint4"]
    runs = results["feedforward"]
    assert list(runs) == ["urdf", "rigid_body", "semiparametric"]
    means = {name: sum(run["rms"]) / 4 for name, run in runs.items()}
    assert means["semiparametric"] < 0.5 * means["urdf"]
    assert runs["urdf"]["learner_share"] == 0.0 and runs["semiparametric"]["learner_share"] > 0.5
    assert results["lost"] == [] and all(run["clipped"] == 0.0 for run in runs.values())
    assert "No command was clipped" in printed
    assert runs["semiparametric"]["late"] == 0
    page = (out / "control.html").read_text()
    for name, title in (("urdf", "URDF"), ("semiparametric", "Semiparametric")):
        assert f"{1e3 * means[name]:.3g}" in printed
        assert title in printed and title in page
    assert "masses wrong by 10 to 30 %" in page
    assert "<script" not in page and page.count("<svg") > 5
    assert main(["control", *options]) == 2
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.usefixtures("simulator")
def test_an_arm_that_falls_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--urdf", SEVEN, "--seconds", "2", "--since", "1", "--out", str(tmp_path)]
    weak = {**SETTINGS, "controller.bounds.effort": "[1.0]"}  # too little to hold its weight
    for name, value in weak.items():
        options += ["--set", f"{name}={value}"]
    assert main(["control", *options]) == 0
    printed = capsys.readouterr().out
    results = json.loads((tmp_path / "control.json").read_text())
    assert results["lost"] == sorted(results["feedforward"])
    for run in results["feedforward"].values():
        assert max(run["largest"]) > results["following_error"] and run["clipped"] > 0.5
    for text in (printed, (tmp_path / "control.html").read_text()):
        assert "The arm did not follow the motion" in text
        assert "instead of" not in text and "Commands clipped" in text


def configured(*options: str) -> list[object]:
    parser = argparse.ArgumentParser()
    control.add_arguments(parser)
    values = to_flat(control._config(parser.parse_args(options)))
    return [values[name] for name in control.DEFAULTS]


def test_set_counts_before_the_file_and_that_before_the_defaults(tmp_path: Path) -> None:
    assert configured() == [500.0, "exciting", 0, 100.0, "urdf"]
    file = tmp_path / "params.yaml"
    file.write_text(
        "motion: circle_xy\nlearner: {rigid_body: {prior: zero}, filter: {max_rate: 50}}\n"
    )
    given = ["--params", str(file), "--set", "learner.filter.max_rate=25", "--set", "seed=7"]
    assert configured(*given) == [500.0, "circle_xy", 7, 25.0, "zero"]


@pytest.mark.usefixtures("simulator")
def test_page_and_json_tell_what_was_set(tmp_path: Path) -> None:
    options = ["--urdf", SEVEN, "--seconds", "1", "--since", "0.5", "--out", str(tmp_path)]
    for name, value in {**SETTINGS, "seed": 7, "rate": 100}.items():
        options += ["--set", f"{name}={value}"]
    assert main(["control", *options]) == 0
    assert json.loads((tmp_path / "control.json").read_text())["seed"] == 7
    assert "at 100 Hz, seed 7;" in (tmp_path / "control.html").read_text()


@pytest.mark.usefixtures("simulator")
def test_nonsense_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["control", "--since", "40", "--out", str(tmp_path)]) == 2
    assert "--since must lie between 0 and --seconds" in capsys.readouterr().err
    assert main(["control", "--mass-error", "0.5", "0.1", "--out", str(tmp_path)]) == 2
    assert "masses can be wrong by" in capsys.readouterr().err
