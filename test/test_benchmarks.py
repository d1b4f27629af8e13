"""The benchmarks still import what they measure, and the quick ones run on little data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted(
    path
    for path in (ROOT / "benchmarks").rglob("*.py")
    if '__name__ == "__main__"' in path.read_text()
)


def run(script: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_says_what_it_does(script: Path) -> None:
    assert "usage:" in run(script, "--help")


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("falkon_equalities", ["--sets", "pumadyn32nh", "--n", "300", "--exact-n", "100"], "KRLS"),
        ("equalities_nystrom", ["--rows", "400", "--centers", "60"], "cpuact"),
        ("table_4_3", ["--sets", "adult", "--n", "400", "--m", "50"], "NYTRO"),
    ],
)
def test_a_table_comes_out(name: str, arguments: list[str], shown: str, data_folder: Path) -> None:
    output = run(ROOT / "benchmarks" / "tables" / f"{name}.py", str(data_folder), *arguments)
    assert shown in output and "nan" not in output
