"""Independent work in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def processes(jobs: int) -> Iterator[Executor | None]:
    """An executor of `jobs` processes; None where one is enough. 0: as many as cores."""
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
    """In a process of its own, products are not spread further."""
    threadpool_limits(limits=1)
