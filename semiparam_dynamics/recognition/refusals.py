"""What was refused, counted by reason."""

from __future__ import annotations

from collections import Counter

from semiparam_dynamics.errors import SemiparamError

LONGEST = 200  # characters kept of a message


class Refusals:
    """Counts refusals by their errors' `reason`, of which there are few, whatever comes in.

    counts: reason -> how many. details: reason -> the last one's sentence.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.details: dict[str, str] = {}

    def note(self, error: SemiparamError) -> None:
        """Count a refusal; an error without a reason counts by its class."""
        reason = str(getattr(error, "reason", type(error).__name__))
        self.counts[reason] += 1
        self.details[reason] = str(error)[:LONGEST]
