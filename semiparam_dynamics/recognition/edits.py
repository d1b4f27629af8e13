"""Changes of the classes, written as text: ``rename mug -> cup``."""

from __future__ import annotations

from typing import NamedTuple

from semiparam_dynamics.errors import RefusedError

ARROW = "->"
HOW = "write 'rename OLD -> NEW', 'merge LABEL -> INTO' or 'forget LABEL'"
LONGEST = 10000  # characters


class Edit(NamedTuple):
    """`action` is rename, merge or forget; `other` is the new name, or the class merged into."""

    action: str
    label: str
    other: str = ""


def parse_edit(text: str) -> Edit:
    """Read an edit. Raises RefusedError for any other text.

    Names may have blanks in them; one with an arrow in it can only be forgotten.
    """
    action, _, rest = text[:LONGEST].strip().partition(" ")
    rest = rest.strip()
    if action == "forget" and rest:
        return Edit(action, rest)
    parts = [part.strip() for part in rest.split(ARROW)]
    if action not in ("rename", "merge") or len(parts) != 2 or not all(parts):
        raise RefusedError(f"an edit is not understood: {HOW}", reason="edit not understood")
    return Edit(action, *parts)
