"""CONTRIBUTING.md lists the files that a message, an array and a bag pass."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_paths_that_are_described_are_of_files_that_there_are() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^    \w.*: \d+ files, \d+ Python calls", text, re.MULTILINE)) == 4
    named = re.findall(r"^ +\d+  (\S+\.py)$", text, re.MULTILINE)
    assert len(named) > 60
    assert not [n for n in named if not (ROOT / "semiparam_dynamics" / n).is_file()]
