"""Formulas of the documentation as MathML, while mkdocs builds the site.

MathML is drawn by the browser itself: no script and no font has to be fetched.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas that pymdownx.arithmatex marked; raise ValueError at a broken one."""
    content = INLINE.sub(lambda found: _mathml(found[1], "inline"), content)
    return BLOCK.sub(_block, content)


def _block(found: re.Match[str]) -> str:
    return f'<div class="formula">{_mathml(found[1], "block")}</div>'


def _mathml(formula: str, display: str) -> str:
    return str(convert(html.unescape(formula.strip()), display=display))
