"""Work that messages need not wait for, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Worker(Generic[T]):
    """Does entries one after the other in a thread, while the one that puts them goes on.

    It is worth it where the work releases the interpreter's lock, as compiled loops do. The thread
    has the others' priority: with a lower one it would be kept from running while it has that lock,
    and all would wait for it. When too many wait the oldest gives way. What the work raises is
    raised again by the next :meth:`put` or :meth:`wait`.

    Parameters
    ----------
    work: does an entry. capacity: how many may wait, which may be changed.

    Attributes
    ----------
    dropped: how many entries gave way.
    """

    def __init__(self, work: Callable[[T], None], capacity: int) -> None:
        self._work = work
        self._waiting: SimpleQueue[T | Event | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self._put = self._done = self._discarded = 0  # entries; each is counted by one thread
        self._at_work = Lock()
        self._may_begin = Event()
        self._may_begin.set()
        self.capacity = capacity
        self.dropped = 0

    def __len__(self) -> int:
        return self._waiting.qsize()

    @property
    def busy(self) -> bool:
        """Whether anything waits or is being done."""
        return self._put != self._done + self._discarded

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is done meanwhile; it begins when the entry that is being done is over."""
        self._may_begin.clear()  # the lock alone would go to the thread that just had it
        try:
            with self._at_work:
                yield
        finally:
            self._may_begin.set()

    def put(self, entry: T) -> None:
        """Have an entry done; the thread begins with the first one."""
        self._raise()
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        while self._waiting.qsize() >= self.capacity:
            self.dropped += self._discard()
        self._put += 1
        self._waiting.put(entry)

    def wait(self) -> None:
        """Until all that was put is done; called by the work itself, not at all."""
        if self._thread is current_thread():
            return
        if self._thread is not None:
            done = Event()
            self._waiting.put(done)
            done.wait()
        self._raise()

    def clear(self) -> None:
        """Forget what waits; returns when nothing is done any more."""
        while self._discard():
            pass
        self.wait()

    def close(self) -> None:
        """Do what waits and end the thread; a later :meth:`put` begins another."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None
        self._raise()

    def _discard(self) -> int:
        """Take the oldest entry out; how many there were, 0 or 1."""
        try:
            self._waiting.get_nowait()
        except Empty:
            return 0
        self._discarded += 1
        return 1

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            if isinstance(entry, Event):
                entry.set()
                continue
            self._may_begin.wait()
            try:
                with self._at_work:
                    self._work(entry)
            except BaseException as error:  # told to the thread that puts entries
                self._error = error
            self._done += 1

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error
