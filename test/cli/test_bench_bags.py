from __future__ import annotations

from pathlib import Path

from semiparam_dynamics.cli.main import main

SMALL = ["bench", "bags", "--seconds", "3", "--rate", "50", "--features", "20"]


def test_the_table_has_all_configurations_and_is_written(tmp_path: Path, capsys) -> None:
    out = tmp_path / "bags.md"
    assert main([*SMALL, "--comparison", "both", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert told == out.read_text() and " cores, " in told
    lines = [line.strip("| ").split(" | ") for line in told.splitlines()[2:]]
    assert lines[0][-1] == "times real time" and len(lines) == 2 + 4
    assert [(line[0], line[2]) for line in lines[2:]] == [
        ("random_fourier", "no"),
        ("random_fourier", "yes"),
        ("nystrom", "no"),
        ("nystrom", "yes"),
    ]
    assert lines[2][1] == "20"
    assert all(float(number) >= 0.0 for line in lines[2:] for number in line[3:])  # 0.0: rounded


def test_a_bag_of_nothing_is_refused(capsys) -> None:
    assert main(["bench", "bags", "--seconds", "0.001"]) == 2
    assert "ask for more" in capsys.readouterr().err
