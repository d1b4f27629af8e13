"""Long work: spread over processes of this machine, and its progress on a terminal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from types import TracebackType
from typing import TextIO

from threadpoolctl import threadpool_limits


def duration(seconds: float) -> str:
    """Such as 40 s, 3 min or 1.5 h, of an estimate."""
    if seconds < 90.0:
        return f"{max(10.0 * round(seconds / 10.0), 5.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


class ProgressBar:
    """A bar on a terminal, drawn at most ten times a second; a line each 30 s on other outputs.

    Call it with the share done; as a context it removes itself at the end.

    left : expected seconds to the end, of this and of what follows it; None: by the share done.
    """

    WIDTH = 40
    TOLD_AFTER = 3.0  # s: by a shorter time the rest cannot be told
    TOLD_FROM = 0.01  # share done: by less of the work neither
    LINE_PERIOD = 30.0  # s

    def __init__(self, label: str, stream: TextIO, left: float | None = None) -> None:
        self._label = label
        self._start = time.monotonic()
        self._end = None if left is None else self._start + left
        self._stream = stream
        self._shown = stream.isatty()
        self._last = self._start if not self._shown else 0.0

    def __call__(self, share: float) -> None:
        """Show the share done, between 0 and 1."""
        now = time.monotonic()
        if now - self._last < (0.1 if self._shown else self.LINE_PERIOD):
            return
        self._last = now
        end = self._expected_end(share, now)
        left = "" if end is None else f", {duration(end - now)} left"
        if not self._shown:
            self._stream.write(f"{self._label.rstrip()}: {share:.0%}{left}\n")
            self._stream.flush()
            return
        full = round(share * self.WIDTH)
        bar = "#" * full + "." * (self.WIDTH - full)
        self._stream.write(f"\r{self._label} [{bar}] {share:4.0%}{left:<15}")
        self._stream.flush()

    def _expected_end(self, share: float, now: float) -> float | None:
        early = share < self.TOLD_FROM or now - self._start < self.TOLD_AFTER
        if self._end is not None or early:
            return self._end
        return self._start + (now - self._start) / share

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class _Worker(SpawnProcess):
    """A process that Ctrl-C on its terminal, which reaches all of them, ends without a word."""

    def start(self) -> None:
        """Start with SIGINT blocked, until :func:`_prepare` has seen to what it does."""
        resource_tracker.ensure_running()  # which would unblock it
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Workers(SpawnContext):
    Process = _Worker


@contextmanager
def processes(jobs: int, most: int = 0) -> Iterator[Executor | None]:
    """An executor of `jobs` processes; None for one. 0: as many as cores.

    most: how many there is work for; 0: any number.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    jobs = min(jobs, most or jobs)
    if jobs == 1:
        yield None
        return
    executor = ProcessPoolExecutor(jobs, mp_context=_Workers(), initializer=_prepare)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _prepare() -> None:
    """Keep the matrix products of a process to one thread: the processes fill the cores.

    It ends with its parent, also where that was killed: it would wait for work for ever.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in a script's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401 - only libraries that are loaded can be limited

    threadpool_limits(limits=1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # nobody takes a result, nor a traceback
