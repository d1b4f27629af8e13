"""Learning that waits for a pause."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Backlog(Generic[T]):
    """Work that waits until no message does; bounded, so that it never falls far behind.

    When it is full the oldest entry gives way: what is learned stays recent.
    """

    def __init__(self, work: Callable[[T], None], capacity: int) -> None:
        self._work = work
        self._waiting: deque[T] = deque()
        self.capacity = capacity
        self.interruptions = 0  # messages taken; tells the loop whether one was waiting
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def interrupted(self) -> None:
        """Note that a message was taken. Every message callback calls it first."""
        self.interruptions += 1

    def add(self, entry: T) -> None:
        """Put work in; drop and count the oldest where there is no room."""
        if len(self._waiting) >= self.capacity:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(entry)

    def do_one(self) -> None:
        """Do the oldest piece of work."""
        self._work(self._waiting.popleft())

    def do_all(self) -> None:
        """Do everything that waits."""
        while self._waiting:
            self.do_one()

    def clear(self) -> None:
        """Forget the work that waits."""
        self._waiting.clear()
