"""The cores that blocks of rows share: one thread each, and products inside on one."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
S = TypeVar("S")
_this = threading.local()


def n_threads() -> int:
    """The cores that this process may use; 1 within :func:`one_thread`.

    At most OMP_NUM_THREADS, where that is set: it bounds NumPy's products as well.
    """
    if getattr(_this, "alone", False):
        return 1
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    most = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # of the outer level
    return min(cores, int(most)) if most.isdecimal() and int(most) else cores


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which this thread starts no others, for it is one of several already."""
    before, _this.alone = getattr(_this, "alone", False), True
    try:
        yield
    finally:
        _this.alone = before


def map_in_order(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """function(item) of each item, in order, computed by as many threads as there are cores.

    At most two items a thread are read ahead. Products inside run on one thread each: NumPy's
    elementwise functions use one core only, so the blocks share the cores, not the products.
    """
    threads = n_threads()
    if threads == 1:
        yield from map(function, items)
        return
    with _alone, ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[T]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def for_each(function: Callable[[S], None], items: Iterable[S]) -> None:
    """function(item) of each item, for what it changes, as by :func:`map_in_order`."""
    for _ in map_in_order(function, items):
        pass


class _OneThreadInProducts:
    """The context of BLAS on one thread, for any number of maps at once.

    Its number of threads is the process': the first map notes and changes it, the last one puts it
    back. Each for itself would put back what another had set, and leave it at one for good.
    """

    def __init__(self) -> None:
        self._lock, self._maps = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._maps:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._maps += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._maps -= 1
            if not self._maps:
                self._limit.restore_original_limits()


_alone = _OneThreadInProducts()


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds: once, not for every product."""
    return ThreadpoolController()
