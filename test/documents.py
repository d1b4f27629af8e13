"""The repository's documents, and the commands that they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = {
    path.name: path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
}


def commands(program: str) -> list[tuple[str, list[str], bool]]:
    """Document, words after the program, and whether it is a line of its own, of each command.

    A command in a sentence may leave out what must be given. Brackets and dots are left out.
    """
    pattern = rf"^    ({program} .*)$|`({program} [^`]+)`"
    found = []
    for name, text in DOCUMENTS.items():
        for block, inline in re.findall(pattern, text, re.MULTILINE):
            words = shlex.split((block or inline).rstrip("\\"), comments=True)[1:]
            words = [word.strip("[]") for word in words if word.strip("[].")]
            found.append((name, words, bool(block)))
    return found
