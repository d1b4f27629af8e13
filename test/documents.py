"""The repository's documents, and the commands that they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
PATHS = {
    **{name: ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")},
    **{path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))},
    **{f"results/{path.name}": path for path in sorted(RESULTS.glob("*.md"))},
}
DOCUMENTS = {name: path.read_text(encoding="utf-8") for name, path in PATHS.items()}


def commands(program: str) -> list[tuple[str, list[str], bool]]:
    """Document, words after the program, and whether it is a line of its own, of each command.

    A command in a sentence may leave out what must be given. Brackets and dots are left out.
    """
    pattern = rf"^ {{4,}}(?:\w+=\S+ )*({program} .*)$|`(?:\w+=\S+ )*({program} [^`]+)`"
    found = []
    for name, text in DOCUMENTS.items():
        for block, inline in re.findall(pattern, text, re.MULTILINE):
            text_of = re.sub(r" >>? \S+$", "", (block or inline).rstrip("\\"))
            words = shlex.split(text_of, comments=True)[1:]
            words = [word.strip("[]") for word in words if word.strip("[].")]
            found.append((name, words, bool(block)))
    return found
