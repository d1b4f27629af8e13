"""Leaving messages out when they come faster than they can be answered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

LATE = "messages came faster than they could be answered"
FRESH = 0.1  # of the limit: until no more wait, messages are left out


class Tasks(Protocol):
    """What runs a function behind everything that waits: an executor."""

    def create_task(self, callback: Callable[[], None]) -> Any:
        """Have it run."""


class Lag:
    """Tells which messages to leave out, so that not ever more of them wait.

    EventsExecutor notes each message that comes, in one queue with timers and services, and keeps
    the note when DDS has long dropped the message (ros2/rclcpp, issue 3213; rclpy is the same).
    With a callback of 3 ms at 1 kHz that took 100 kB a second for ever, and a timer of 0.5 s fired
    three times in 30 s.

    So now and then a mark is put at the queue's end. When more messages than the limit came up
    before it, all are left out until hardly any waits: those that are answered then are recent, and
    in one piece, as filters need them. What a stall had waiting is answered, as long as DDS had
    room for it. Executors that keep no notes, as SingleThreadedExecutor, run the mark at once, and
    nothing is left out.

    Parameters
    ----------
    limit: how many messages may wait: what DDS holds, those beyond are lost anyway.
    lost: where those left out are counted, under `LATE`.
    """

    def __init__(self, limit: int, lost: Counter[str]) -> None:
        self._limit = limit
        self._lost = lost
        self._taken = 0
        self._due = 1  # the message with which the next mark is put
        self._marked_at: int | None = None
        self._before = math.inf  # how many messages came before the last mark
        self._catching_up = False

    def too_late(self, tasks: Tasks | None) -> bool:
        """Whether to leave out the message that came up; `tasks` is its node's executor."""
        if tasks is None:
            return False
        self._taken += 1
        if self._marked_at is None and self._taken >= self._due:
            self._marked_at = self._taken
            tasks.create_task(self._came_up)
        self._lost[LATE] += self._catching_up
        return self._catching_up

    def _came_up(self) -> None:
        waited = self._taken - (self._marked_at or 0)
        self._marked_at = None
        if self._catching_up:
            # As long as it helps: where even this is too slow, some answers are better than none.
            self._catching_up = self._limit * FRESH < waited < self._before
            self._before = waited
        else:
            self._catching_up = waited > self._limit
            self._before = math.inf
        self._due = self._taken + (1 if self._catching_up else max(1, self._limit // 4))
