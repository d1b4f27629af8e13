"""Docstrings as the site's parser reads them, from those that are written for the source's reader.

There an argument is a line, `name : meaning`, with the type in the signature, and paragraphs may
follow the list; numpydoc has a type behind the colon and nothing behind the list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")
TITLE = re.compile(rf"^({'|'.join(SECTIONS)})\n-+\n", re.MULTILINE)
ITEM = re.compile(r"^([\w*]+(?:, [\w*]+)*) ?: (.*)$")
ROLE = re.compile(r":(?:mod|class|func|meth|attr):`~?([^`]+)`")


def numpydoc(text: str) -> str:
    """The docstring with its lists last, and each meaning on a line of its own."""
    head, *parts = TITLE.split(ROLE.sub(r"`\1`", text))
    paragraphs, sections = [head.rstrip()], []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        items = []
        for paragraph in body.strip("\n").split("\n\n"):
            if ITEM.match(paragraph.split("\n", 1)[0]):
                colon = "" if title == "Raises" else " :"
                lines = paragraph.split("\n")
                items += [ITEM.sub(rf"\1{colon}\n    \2", line) for line in lines]
            else:
                paragraphs.append(paragraph)
        sections.append("\n".join([title, "-" * len(title), *items]))
    return "\n\n".join(paragraphs + sections)


class Docstrings(griffe.Extension):
    """Rewrites each docstring as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = numpydoc(obj.docstring.value)
