"""The files that a message, an array and a bag pass, as CONTRIBUTING.md lists them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_the_paths_are_the_ones_that_are_described(ros_environment) -> None:
    command = [sys.executable, str(ROOT / "tools" / "sample_path.py"), "message", "falkon"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    found = blocks(done.stdout)
    assert done.returncode == 0 and len(found) == 3, (done.stdout, done.stderr)
    for title, files in found.items():
        # Changes are looked for in some messages only, and in the thread at times of its own.
        differing = {n for n in files ^ DESCRIBED[title] if not n.startswith("changes/")}
        assert len(differing) <= 3, (title, differing)
