"""Work that waits for a pause between messages."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """Work that waits until no message does; bounded, so that it never falls far behind.

    When it is full the oldest entry gives way: what is learned stays recent.

    Parameters
    ----------
    work: does an entry. capacity: how many may wait, which may be changed.
    patience: how long work may be kept waiting by messages that don't cease, s.
    spare: a piece of work for when nothing waits; returns whether there is more. It is called
        after each entry, and when `stir` was.
    """

    def __init__(
        self,
        work: Callable[[T], None],
        capacity: int,
        *,
        patience: float = math.inf,
        spare: Callable[[], bool] | None = None,
    ) -> None:
        self._work = work
        self._patience = patience
        self._spare = spare
        self._more = False
        self._since = 0.0  # when the entries that wait began to
        self._waiting: deque[T] = deque()
        self.capacity = capacity
        self.interruptions = 0  # messages taken; tells the loop whether one was waiting
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        """Whether there is anything to do, spare work included."""
        return self._more or bool(self._waiting)

    def stir(self) -> None:
        """Note that there may be spare work."""
        self._more = self._spare is not None

    def late(self) -> bool:
        """Whether an entry has waited long enough to go before messages."""
        return bool(self._waiting) and time.monotonic() - self._since >= self._patience

    def interrupted(self) -> None:
        """Note that a message was taken. Every message callback calls it first."""
        self.interruptions += 1

    def add(self, entry: T) -> None:
        """Put work in; drop and count the oldest where there is no room."""
        if not self._waiting:
            self._since = time.monotonic()
        while len(self._waiting) >= self.capacity:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(entry)

    def do_one(self) -> None:
        """Do the oldest piece of work, or a piece of the spare work where nothing waits."""
        if not self._waiting:
            self._more = self._spare is not None and self._spare()
            return
        self._work(self._waiting.popleft())
        self._since = time.monotonic()
        self.stir()

    def do_all(self) -> None:
        """Do everything that waits."""
        while self._waiting:
            self.do_one()

    def clear(self) -> None:
        """Forget the work that waits."""
        self._waiting.clear()
