"""Leaving messages out when they come faster than they can be answered."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

LATE = "messages came faster than they could be answered"
PATIENCE = 1.0  # s
INTERVAL = 0.05  # s between a mark that came up and the next
MANY = 100  # messages, of which fewer are no reason: DDS keeps twice as many after a stall
FRESH = 20  # messages: as long as more wait, they are left out


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

    So now and then a mark is put at the queue's end. When it has not come up in time, nor after
    many messages, messages are left out until hardly any waits: those that are answered then are
    recent, and in one piece, as filters need them. Short of that every message is answered that DDS
    has kept.

    Parameters
    ----------
    lost: where those left out are counted, under `LATE`.
    patience: how long timers and services may be kept waiting, s; it may be changed, to infinity if
        every message is to be answered however late.
    clock: seconds that never go back.
    """

    def __init__(
        self,
        lost: Counter[str],
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience = patience
        self._lost = lost
        self._clock = clock
        self._taken = 0
        self._marked_at: int | None = None  # the message that the mark was put with
        self._since = 0.0  # when that was, or when the next one is due
        self._catching_up = False
        self._before = math.inf  # how many messages came up before the last mark

    def too_late(self, tasks: Tasks | None) -> bool:
        """Whether to leave out the message that came up; `tasks` is its node's executor."""
        if tasks is None:
            return False
        self._taken += 1
        now = self._clock()
        if self._marked_at is None:
            if self._catching_up or now >= self._since:
                self._marked_at, self._since = self._taken, now
                tasks.create_task(self._came_up)
        elif not self._catching_up and now - self._since > self.patience:
            self._catching_up = self._taken - self._marked_at >= MANY
            self._before = math.inf
        self._lost[LATE] += self._catching_up
        return self._catching_up

    def _came_up(self) -> None:
        waited = self._taken - (self._marked_at or 0)
        self._marked_at = None
        self._since = self._clock() + INTERVAL
        # As long as it helps: where even this is too slow, some answers are better than none.
        self._catching_up = self._catching_up and FRESH < waited < self._before
        self._before = waited
