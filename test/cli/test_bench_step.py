from __future__ import annotations

from pathlib import Path

from semiparam_dynamics.cli.main import main

SMALL = ["bench", "step", "--seconds", "0.01"]


def test_the_table_has_all_sizes_and_is_written(tmp_path: Path, capsys) -> None:
    out = tmp_path / "step.md"
    sizes = ["--sizes", "3", "20", "--outputs", "1", "9", "--out", str(out)]
    assert main([*SMALL, *sizes]) == 0
    told = capsys.readouterr()
    assert told.out == out.read_text() and "\r" not in told.err
    assert " cores, " in told.out and "numba" in told.out
    lines = told.out.splitlines()
    assert len(lines) == 4 + 8
    for n in (3, 20):
        for outputs in (1, 9):
            for dtype in ("float64", "float32"):
                assert told.out.count(f"| {n} | {outputs} | {dtype} |") == 1


def test_sizes_that_are_none_are_refused(capsys) -> None:
    assert main([*SMALL, "--sizes", "0"]) == 2
    assert "ask for more" in capsys.readouterr().err
