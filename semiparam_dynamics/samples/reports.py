"""Reports of the stages on messages: counts by reason, and sentences that name joints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_LISTED = 8  # joints that a sentence names


@dataclass(frozen=True)
class Reports:
    """The reports of all stages of one stream.

    Attributes
    ----------
    names: of the joints that are read, in order.
    dropped: reason -> count.
    details: reason -> a sentence on the first message counted for it.
    news: sentences on what joints lack permanently, each to be given once.
    """

    names: Sequence[str] = ()
    dropped: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)

    def drop(self, reason: str, detail: str = "") -> None:
        """Count a message; `detail` is kept where it is the first with this reason."""
        self.dropped[reason] += 1
        if detail:
            self.details.setdefault(reason, detail)

    def take_back(self, reason: str) -> None:
        """Count one message less: what it lacked has come."""
        self.dropped[reason] -= 1
        if not self.dropped[reason]:
            del self.dropped[reason]
            self.details.pop(reason, None)

    def told(self, quantity: str, wrong: Sequence[tuple[int, float]]) -> str:
        """A sentence on the values of a quantity that are wrong, each with its joint's index."""
        told = [f"the {quantity} of {self.names[k]} is {value:g}" for k, value in wrong]
        more = len(wrong) - MAX_LISTED
        return "; ".join(told[:MAX_LISTED]) + (f"; and of {more} more joints" if more > 0 else "")

    def listed(self, joints: Sequence[int]) -> str:
        """The names of the joints with these indices."""
        names = [self.names[k] for k in joints]
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        return ", ".join(names[:MAX_LISTED]) + more
