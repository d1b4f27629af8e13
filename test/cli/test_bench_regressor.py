from __future__ import annotations

from pathlib import Path

from semiparam_dynamics.cli.main import main

from ..dynamics.arms import URDF


def test_the_table_is_of_the_robot_and_written(tmp_path: Path, capsys) -> None:
    out = tmp_path / "regressor.md"
    options = ["--seconds", "0.01", "--urdf", str(URDF), "--out", str(out)]
    assert main(["bench", "regressor", *options]) == 0
    told = capsys.readouterr().out
    assert told == out.read_text() and "pin " in told
    lines = told.splitlines()[2:]
    assert "4 joints" in lines[0] and len(lines) == 2 + 5
    numbers = [[float(cell) for cell in line.strip("| ").split(" | ")[1:]] for line in lines[2:]]
    assert numbers[0][1] == 1.0 and all(time > 0.0 for time, _ in numbers)


def test_a_missing_robot_is_an_error(capsys) -> None:
    assert main(["bench", "regressor", "--urdf", "nowhere.urdf"]) == 2
    assert "nowhere.urdf" in capsys.readouterr().err
