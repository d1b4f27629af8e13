"""The files that one sample passes, as CONTRIBUTING.md lists them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_path_is_the_one_that_is_described(ros_environment) -> None:
    command = [sys.executable, str(ROOT / "tools" / "sample_path.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    entered = re.findall(r"^ +\d+  (\S+)$", done.stdout, re.MULTILINE)
    published = int(re.search(r"prediction, (\d+) files", done.stdout)[1])
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (way,) = re.findall(r"^1\. `nodes/managed.*?(?=^With)", text, re.MULTILINE | re.DOTALL)
    named = re.findall(r"`([\w/]+\.py)`", way)
    last = named.index("nodes/outputs.py") + 1
    for part, files in ((named[:last], entered[:published]), (named[last:], entered[published:])):
        for name in set(part) - {"evaluation/protocols.py"}:  # a recording's
            assert any(f"/{path}".endswith(f"/{name}") for path in files), name
