"""Long work: spread over processes of this machine, and its progress on a terminal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import TextIO

from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.extras import require

LINE_PERIOD = 30.0  # s between lines where the output is no terminal


class ProgressBar:
    """A bar on a terminal, removed at the end of the context; a line each 30 s on other outputs.

    Call it with the share done, between 0 and 1. Raises MissingExtraError without tqdm.
    """

    def __init__(self, label: str, stream: TextIO) -> None:
        require("a progress bar", "learning")
        from tqdm import tqdm

        period = 0.1 if stream.isatty() else LINE_PERIOD
        tqdm.monitor_interval = 0  # no thread that redraws
        self._bar = tqdm(
            total=1.0,
            desc=label,
            file=stream,
            leave=False,
            mininterval=period,
            delay=0.0 if stream.isatty() else LINE_PERIOD,
            bar_format="{desc} {percentage:3.0f}% |{bar:40}| {remaining} left",
        )

    def __call__(self, share: float) -> None:
        """Show the share done."""
        self._bar.update(share - self._bar.n)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()


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
        os._exit(1)  # without a traceback: no process reads results
