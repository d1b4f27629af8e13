"""Keeping a simulation at the wall clock's pace without ever skipping a step."""

from __future__ import annotations


class Pacer:
    """Says how long to wait before the next step.

    After a short stall it catches up; what it is behind beyond `patience` is given up, so that the
    simulation runs slower instead of racing.

    Parameters
    ----------
    period: wall time of one step, s.
    patience: the longest time that is caught up, s.
    """

    def __init__(self, period: float, patience: float = 0.1) -> None:
        self._period = period
        self._patience = patience
        self._due: float | None = None
        self.given_up = 0.0  # s, in all

    def delay(self, now: float) -> float:
        """Seconds until the next step is due, at the clock reading `now`; 0 when it is late."""
        if self._due is None:
            self._due = now
        behind = now - self._due
        if behind > self._patience:
            self.given_up += behind
            self._due = now
        return max(0.0, self._due - now)

    def stepped(self) -> None:
        """Note that the step was made."""
        if self._due is not None:
            self._due += self._period
