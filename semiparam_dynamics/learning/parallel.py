"""Work on blocks of rows by several threads, with results in the blocks' order."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
S = TypeVar("S")
_this = threading.local()


def n_threads() -> int:
    """The cores that this process may use; 1 within :func:`one_thread`."""
    if getattr(_this, "alone", False):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """What this thread does in here, it does alone: it is one of several that share the cores."""
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
    with _controller().limit(limits=1), ThreadPoolExecutor(threads) as pool:
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


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds: once, not for every product."""
    return ThreadpoolController()
