"""Learning in one thread beside the messages, behind a bounded queue."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Event, Thread, current_thread
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_HOLD_S = 0.05  # for which messages that go first may keep entries waiting
TURN_S = 0.003  # for which one part of an entry's work may wait for the end of a message's


class LearnerThread(Generic[T]):
    """A thread that works off the entries of a queue in order.

    When the queue is full the oldest entry is dropped: what is learned stays recent. It is worth it
    where the work releases the interpreter's lock, as compiled loops do. While it is :attr:`held`
    it works off an entry every `MAX_HOLD_S` only. If the work raises an exception, the thread
    drops what waits and all that comes, until :meth:`restart`; `idle` is still called.

    Parameters
    ----------
    work: called with the oldest entry. capacity: the size of all that may wait, but for a larger
        entry alone; it may be changed.
    size: of an entry.
    idle: called after work when no entry waits, and nobody for the end of the work; returns the
        seconds after which it is to be called again unless entries come, or None.

    Attributes
    ----------
    held: may be set, to leave the processor to others; a minimum of work goes on.
    dropped: size of the entries that were dropped because the queue was full.
    problem: the exception that stopped the work, as a sentence; empty while it goes on.
    """

    def __init__(
        self,
        work: Callable[[T], None],
        capacity: int,
        *,
        size: Callable[[T], int] = lambda entry: 1,
        idle: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._work, self._size = work, size
        self._idle = idle
        self._queue: deque[tuple[T, int]] = deque()  # entries and their sizes
        self._waiting = 0  # the sum of these
        self._answered = Event()
        self._changed = Condition()  # guards all that follows
        self._thread: Thread | None = None
        self._working = self._idling = self._closing = False
        self._pauses = 0
        self._drains = 0
        self._ended = 0.0  # when work did last, monotonic s
        self._idle_due: float | None = None  # when `idle` is to be called, monotonic s
        self._count = 0  # entries that were put
        self._room = self._room_until = 0  # see `put`, and the number of the entry it is for
        self.held = False
        self.capacity = capacity
        self.dropped = 0
        self.problem = ""

    def __len__(self) -> int:
        """The size of all that waits."""
        return self._waiting

    @property
    def working(self) -> bool:
        """True if an entry is being worked off, or `idle`."""
        return self._working

    @property
    def busy(self) -> bool:
        """True if an entry waits or is being worked off, or `idle`."""
        return self._working or bool(self._queue)

    @property
    def behind(self) -> bool:
        """The same without `idle`, which works off nothing."""
        return bool(self._queue) or (self._working and not self._idling)

    def put(self, *entries: T, room: int = 0) -> None:
        """Append entries; the first one starts the thread.

        room: until the last of these is worked off so much more than `capacity` may wait: they were
            held back elsewhere, and come together.
        """
        with self._changed:
            if self.problem:
                return
            if self._count - len(self._queue) >= self._room_until:  # so many are worked off
                self._room = 0
            for entry in entries:
                self._queue.append((entry, size := self._size(entry)))
                self._waiting += size
            self._count += len(entries)
            if room:
                self._room, self._room_until = max(self._room, room), self._count
            while len(self._queue) > 1 and self._waiting > self.capacity + self._room:
                self.dropped += self._take()[1]
            self._start()

    def give_turn(self) -> None:
        """Have the next part of the work begin: a message was answered, no other is due yet."""
        self._answered.set()

    def wait_for_turn(self) -> None:
        """Within the work: wait until :meth:`give_turn`, so that no message meets the next part.

        A thread that is woken while another one computes may wait for milliseconds until the system
        lets it. It does not wait for longer than `TURN_S`, nor where entries wait, nor in another
        thread than its own.
        """
        if self._thread is not current_thread():
            return
        self._answered.clear()
        if not (self._queue or self._drains or self._pauses or self._closing):
            self._answered.wait(TURN_S)

    def call_idle(self) -> None:
        """Have `idle` called as soon as no entry waits."""
        with self._changed:
            self._idle_due = 0.0
            self._start()

    def do(self, entry: T) -> None:
        """Work an entry off in the caller's thread, after those that wait."""
        with self.paused(drained=True):
            if not self.problem:
                self._attempt(self._work, entry)

    @contextmanager
    def paused(self, *, drained: bool = False) -> Iterator[None]:
        """Nothing is worked off meanwhile. It begins when the work under way has ended.

        With `drained`, when no entry waits any more. Within the work itself it does nothing.
        """
        if self._thread is current_thread():
            yield
            return
        with self._changed:
            if drained:
                self._drains += 1
                self._answered.set()
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self.busy)
                self._drains -= 1
            self._pauses += 1
            self._answered.set()
            self._changed.wait_for(lambda: not self._working)
        try:
            yield
        finally:
            with self._changed:
                self._pauses -= 1
                self._changed.notify_all()

    def clear(self) -> None:
        """Drop what waits, uncounted."""
        with self._changed:
            self._drop_all()
            self._changed.notify_all()

    def restart(self) -> None:
        """Continue after a :attr:`problem`."""
        self.problem = ""

    def close(self) -> None:
        """Work off what waits and end the thread; a later :meth:`put` starts another one."""
        with self._changed:
            thread, self._closing = self._thread, True
            self._answered.set()
            self._changed.notify_all()
        if thread is not None:
            thread.join()
        self._thread, self._closing = None, False

    def _start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="learner", daemon=True)
            self._thread.start()
        self._answered.set()
        self._changed.notify_all()

    def _run(self) -> None:
        while (entries := self._next()) is not None:
            pause = self._attempt(self._work if entries else self._idle, *entries)
            with self._changed:
                self._working, self._ended = False, time.monotonic()
                if entries or pause is not None:
                    self._idle_due = self._ended + (pause or 0.0)
                self._changed.notify_all()

    def _next(self) -> list[T] | None:
        """The entry to work off now, none to call `idle`; None: the thread is to end."""
        with self._changed:
            while True:
                now, left = time.monotonic(), None  # left: s until there is something to do
                if self._pauses:
                    pass
                elif self._queue:
                    left = self._ended + MAX_HOLD_S - now if self.held else 0.0
                    if left <= 0.0 or self._drains or self._closing:
                        self._idling, self._working = False, True
                        return [self._take()[0]]
                elif self._closing:
                    return None
                elif self._idle_due is not None and not self._drains:
                    left = self._idle_due - now
                    if left <= 0.0:
                        self._idling, self._working, self._idle_due = True, True, None
                        return []
                self._changed.wait(left)

    def _take(self) -> tuple[T, int]:
        """The oldest entry and its size, which no longer wait."""
        entry, size = self._queue.popleft()
        self._waiting -= size
        return entry, size

    def _drop_all(self) -> None:
        self._queue.clear()
        self._waiting = 0

    def _attempt(self, work: Callable[..., float | None], *entries: T) -> float | None:
        try:
            return work(*entries)
        except Exception as error:  # MemoryError, too: predictions can still be made
            with self._changed:
                if self.problem:  # of `idle`, which goes on: the first one tells what stopped it
                    return None
                self.problem = f"{type(error).__name__}: {error}".rstrip(": ")
                self._drop_all()
            return None
