"""Joints matched by name, never by index: a message's order is its publisher's own business."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

MOST = 10_000  # names; what a message of more than that names is no robot
QUOTED = 60  # characters of a name that a sentence repeats


class JointMatcher:
    """Finds the wanted joints among a message's names.

    The answer for the last list of names is kept, since publishers hardly ever change theirs.
    Joints that aren't wanted are ignored, even where their names are doubled.

    Attributes
    ----------
    problem: why the last list of names was refused (``missing joint``, ``duplicate joint name``,
        ``too many joints``), empty where it was accepted.
    detail: the same as a sentence that names the joints.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self.problem = ""
        self.detail = ""
        self._seen: list[str] | None = None
        self._index: list[int] | None = None

    def match(self, names: Sequence[str]) -> list[int] | None:
        """Positions of the wanted joints in `names`, in the wanted order; None where refused."""
        if len(names) > MOST:
            # Before anything is made of them: a list of millions would be counted each time.
            self._seen, self.problem = None, "too many joints"
            self.detail = f"the message names {len(names)} joints; {MOST} are allowed"
            return None
        if self._seen is None or names != self._seen:
            self._seen = list(names)
            self._index = self._find(self._seen)
        return self._index

    def _find(self, names: list[str]) -> list[int] | None:
        self.problem = self.detail = ""
        count = Counter(names)
        missing = [name for name in self.joint_names if not count[name]]
        doubled = [name for name in self.joint_names if count[name] > 1]
        if missing:
            self.problem = "missing joint"
            there = ", ".join(name[:QUOTED] for name in names[:20]) or "none"
            self.detail = f"no {', '.join(missing)} among the message's joints: {there}"
            return None
        if doubled:
            self.problem = "duplicate joint name"
            self.detail = f"the message names {', '.join(doubled)} more than once"
            return None
        return [names.index(name) for name in self.joint_names]
