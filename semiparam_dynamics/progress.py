"""Long work: spread over processes of this machine, and its progress on a terminal."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from threadpoolctl import threadpool_limits


def duration(seconds: float) -> str:
    """Such as 40 s, 3 min or 1.5 h, of an estimate."""
    if seconds < 90.0:
        return f"{max(10.0 * round(seconds / 10.0), 5.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


class ProgressBar:
    """A bar on a terminal, drawn at most ten times a second; nothing on any other output.

    Call it with the share done; as a context it removes itself at the end.

    left : expected seconds to the end, of this and of what follows it; None: not told.
    """

    WIDTH = 40

    def __init__(self, label: str, stream: TextIO, left: float | None = None) -> None:
        self._label = label
        self._end = None if left is None else time.monotonic() + left
        self._stream = stream
        self._shown = stream.isatty()
        self._last = 0.0

    def __call__(self, share: float) -> None:
        """Show the share done, between 0 and 1."""
        now = time.monotonic()
        if not self._shown or now - self._last < 0.1:
            return
        self._last = now
        full = round(share * self.WIDTH)
        bar = "#" * full + "." * (self.WIDTH - full)
        left = "" if self._end is None else f", {duration(self._end - now)} left"
        self._stream.write(f"\r{self._label} [{bar}] {share:4.0%}{left:<15}")
        self._stream.flush()

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


@contextmanager
def processes(jobs: int) -> Iterator[Executor | None]:
    """An executor of `jobs` processes; None for one. 0: as many as cores."""
    jobs = jobs or len(os.sched_getaffinity(0))
    if jobs == 1:
        yield None
        return
    executor = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_one_thread
    )
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _one_thread() -> None:
    """Keep the matrix products of a process to one thread: the processes fill the cores."""
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401 - only libraries that are loaded can be limited

    threadpool_limits(limits=1)
