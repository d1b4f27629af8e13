"""Plain technical English: openings and phrases that no docstring, comment or message has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "semiparam_dynamics").rglob("*.py"))
OPENINGS = {"What", "How", "Why", "Which", "When", "Where", "Whether"}
PHRASES = re.compile(
    r"\b(be as if|of late|is told|are told|goes on from|would have a word|is no more)\b"
)


def docstrings(tree: ast.Module) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    return [text for text in found if text]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_docstring_begins_with_the_field_s_term_and_nothing_is_an_idiom(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    begun = [doc for doc in docstrings(ast.parse(text)) if doc.split()[0].strip(",:") in OPENINGS]
    assert not begun
    assert not [line for line in text.splitlines() if PHRASES.search(line)]
