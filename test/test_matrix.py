"""The matrix of environments tells what failed from what others have not published."""

from __future__ import annotations

from pathlib import Path

import matrix
import pytest

WHEEL = Path("semiparam_dynamics-0.1.0-py3-none-any.whl")
PIP = "ERROR: No matching distribution found for idyntree>=12"
CONFLICT = "ERROR: ResolutionImpossible"


@pytest.mark.parametrize(
    ("command", "said", "failed", "told"),
    [
        ("none", "", False, "3 passed"),
        ("install", PIP, False, "no wheel of idyntree>=12"),
        ("install", CONFLICT, True, "not installed"),
        ("check", "pin 4.0 requires numpy, which is not installed.", True, "3 passed"),
        ("--version", "Traceback", True, "3 passed"),
        ("pytest>=7.4", CONFLICT, True, "the tests' tools are not installed"),
        ("pytest", "1 failed, 2 passed in 3.0s", True, "1 failed, 2 passed"),
    ],
)
def test_what_fails_fails_the_matrix(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    said: str,
    failed: bool,
    told: str,
) -> None:
    def run(self: matrix.Trial, *words: str) -> tuple[int, str]:
        return (1, said) if command in words else (0, "3 passed in 3.0s")

    monkeypatch.setattr(matrix.Trial, "run", run)
    monkeypatch.setattr(matrix, "interpreter", lambda version: "python")
    monkeypatch.setattr(matrix.subprocess, "run", lambda *words, **options: None)
    cell = matrix.Cell("3.12", "none")
    matrix.Trial(cell, tmp_path, tmp_path).make(WHEEL, "test/robot", None)
    assert cell.failed == failed and cell.tests.startswith(told)
