"""The files that a message, an array and a bag pass, as CONTRIBUTING.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

from .forks import run_program

ROOT = Path(__file__).resolve().parents[2]


def blocks(text: str) -> dict[str, set[str]]:
    """The files listed under each title."""
    found: dict[str, set[str]] = {}
    for title, rows in re.findall(r"^ *(\w[^:\n]+): \d+ files,.*\n((?: +\d+  .*\n)+)", text, re.M):
        found[title] = set(re.findall(r"\d+  (\S+)", rows))
    return found


DESCRIBED = blocks((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def test_the_files_that_are_described_are_there() -> None:
    assert len(DESCRIBED) == 4
    for files in DESCRIBED.values():
        assert all((ROOT / "semiparam_dynamics" / name).is_file() for name in files)


def test_the_paths_are_the_ones_that_are_described(ros_environment, tmp_path: Path) -> None:
    tool = f"import runpy; runpy.run_path({str(ROOT / 'tools/sample_path.py')!r}, None, '__main__')"
    code, told = run_program(tmp_path / "log", tool, "message", "falkon")
    found = blocks(told)
    assert code == 0 and len(found) == 3, told
    for title, files in found.items():
        # Changes are looked for in some messages only, and in the thread at times of its own.
        differing = {n for n in files ^ DESCRIBED[title] if not n.startswith("changes/")}
        assert len(differing) <= 3, (title, differing)
