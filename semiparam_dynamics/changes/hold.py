"""Which samples are learned, which wait for a verdict, and which are never learned."""

from __future__ import annotations

from collections import deque

LEARN, WAIT, DROP = "learn", "wait", "drop"
REMEMBERED = 256  # stretches that samples which come late are still kept out of


class LearningHold:
    """Verdicts on samples by their stamps (ns); samples may be asked about later, in any order.

    What looks like the beginning of a change waits. When it turns out to be one, nothing since its
    onset is learned; when it doesn't, all of it is.
    """

    def __init__(self) -> None:
        self._waits_from: int | None = None
        self._dropped_from: int | None = None
        self._stretches: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    @property
    def closed(self) -> bool:
        """Whether samples of now are not learned, or not yet."""
        return self._waits_from is not None or self._dropped_from is not None

    def wait(self, stamp: int) -> None:
        """From `stamp` on samples wait, if they don't already."""
        if self._waits_from is None:
            self._waits_from = stamp

    def clear(self) -> None:
        """What waits was nothing."""
        self._waits_from = None

    def drop(self, stamp: int) -> None:
        """From `stamp` on, or since samples wait, none is learned."""
        start = stamp if self._waits_from is None else min(stamp, self._waits_from)
        if self._dropped_from is None:
            self._dropped_from = start
        self._waits_from = None

    def resume(self, stamp: int) -> None:
        """Samples later than `stamp` are learned again."""
        if self._dropped_from is not None:
            self._stretches.append((self._dropped_from, stamp))
        self._dropped_from = None

    def restart(self, stamp: int) -> None:
        """The clock went back to `stamp`: stretches of before say nothing of later samples.

        What isn't learned now isn't from there on, either; what waited was nothing.
        """
        self._stretches.clear()
        self._waits_from = None
        if self._dropped_from is not None:
            self._dropped_from = stamp

    def verdict(self, stamp: int) -> str:
        """learn, wait or drop, as far as is known now."""
        if self._dropped_from is not None and stamp >= self._dropped_from:
            return DROP
        if any(start <= stamp <= end for start, end in self._stretches):
            return DROP
        if self._waits_from is not None and stamp >= self._waits_from:
            return WAIT
        return LEARN
