"""Show formulas, tables and links to results as a browser does best, while mkdocs builds the site.

MathML is drawn by the browser itself: no script and no font has to be fetched. What is short in a
table, numbers above all, stays on one line, for which site.css has the class: on a phone a browser
gives each column no more than its longest word, and a table scrolls anyway. Links to the results of
the benchmarks, which are no pages of the site, become their paths in the repository.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
CELL = re.compile(r"<(t[dh])([^>]*)>(.*?)</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
RESULT = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(benchmarks/[\w/]*\.md)[^)]*\)")
SHORT = 16  # letters that a cell of one line has at most


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the links to files of benchmarks/ by their paths."""
    return RESULT.sub(r"\1 (`\2`)", markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas that pymdownx.arithmatex marked, and mark the short cells of tables.

    Raises ValueError at a broken formula.
    """
    content = INLINE.sub(lambda found: _mathml(found[1], "inline"), content)
    return CELL.sub(_cell, BLOCK.sub(_block, content))


def _cell(found: re.Match[str]) -> str:
    kind, attributes, inner = found.groups()
    text = html.unescape(TAG.sub("", inner)).strip()
    if "class=" in attributes or len(text) > SHORT:
        return found[0]
    return f'<{kind} class="short"{attributes}>{inner}</{kind}>'


def _block(found: re.Match[str]) -> str:
    return f'<div class="formula">{_mathml(found[1], "block")}</div>'


def _mathml(formula: str, display: str) -> str:
    return str(convert(html.unescape(formula.strip()), display=display))
