from __future__ import annotations

from pathlib import Path

from semiparam_dynamics.cli.main import main

SMALL = ["bench", "falkon", "--inputs", "5", "--iterations", "3", "--repeats", "1"]


def test_the_tables_have_all_sizes_and_are_written(tmp_path: Path, capsys) -> None:
    out = tmp_path / "falkon.md"
    sizes = ["--rows", "1500", "2500", "--centers", "40", "70", "--kept", "--out", str(out)]
    assert main([*SMALL, *sizes, "--memory-limit", "100000"]) == 0
    told = capsys.readouterr()
    assert told.out == out.read_text() and "\r" not in told.err
    assert "5 inputs, float32, penalty 1e-06, 1 fits.\n" in told.out and " cores, " in told.out
    for n in (1500, 2500):
        for centers in (40, 70):
            for kernel in ("anew each time", "kept"):
                assert told.out.count(f"| {n} | {centers} | 3 | {kernel} |") == 1
    assert told.out.count("scikit-learn Nystroem + Ridge") == 1
    assert "n = 1500, M = 40\n" in told.out


def test_more_centres_than_rows_are_refused(capsys) -> None:
    assert main([*SMALL, "--rows", "50", "--centers", "60"]) == 2
    assert "ask for fewer" in capsys.readouterr().err
