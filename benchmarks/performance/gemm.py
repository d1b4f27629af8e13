"""The time that a machine needs for a fit's multiplications alone, by NumPy's BLAS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.rows import map_in_order

BLOCKS = (64, 256, 1024)  # rows at a time, of which the fastest counts
ENTRIES = 2**28  # of the kernel at most, that are multiplied to learn the time of one
INNER = 1000  # of the factorisations' stand-in


@dataclass(frozen=True)
class GemmTimes:
    """Seconds of one pass over the n rows, and of the factorisations, both with all cores.

    Attributes
    ----------
    both : X C' (n x d by d x M), K v and K' u, a block of rows at a time: one iteration's.
    one : X C' and K' u: those of the right-hand side.
    factors : as many multiplications as two Cholesky factorisations and a product of triangles of
        (M, M) take, M^3 / 2, as a product of matrices in double precision.
    """

    both: float
    one: float
    factors: float

    def fit(self, iterations: int) -> float:
        """Those of a fit that evaluates the kernel anew in each iteration."""
        return iterations * self.both + self.one + self.factors


def gemm_times(X: Array, C: Array, repeats: int = 3) -> GemmTimes:
    """The least times of X (n, d) and centres C (M, d), in their precision.

    Timed on the first rows, and scaled, where n M is above ENTRIES.
    """
    rows = X[: max(max(BLOCKS), ENTRIES // len(C))]

    def fastest(both: bool) -> float:
        return min(_seconds(partial(_pass, rows, C, size, both), repeats) for size in BLOCKS)

    scale = len(X) / len(rows)
    M = len(C)
    inner = min(M, INNER)
    A, B = np.ones((M, inner)), np.ones((inner, -(-M // 2)))
    factors = _seconds(lambda: A @ B, repeats) * M / inner
    return GemmTimes(scale * fastest(True), scale * fastest(False), factors)


def _pass(X: Array, C: Array, size: int, both: bool) -> None:
    transposed = np.ascontiguousarray(C.T)
    v = np.full(len(C), 1e-3, X.dtype)
    own = threading.local()  # memory that is used again costs no page faults

    def block(i: int) -> Array:
        part = X[i : i + size]
        if not hasattr(own, "K"):
            own.K = np.empty((size, len(C)), X.dtype)
        K = np.matmul(part, transposed, out=own.K[: len(part)])
        u = K @ v if both else np.ones(len(K), X.dtype)
        result: Array = u @ K
        return result

    for _ in map_in_order(block, range(0, len(X), size)):
        pass


def _seconds(function: Callable[[], object], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats + 1):  # the first one warms up
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return float(best)
