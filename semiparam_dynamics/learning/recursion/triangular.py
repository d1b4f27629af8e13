"""Triangular solves for a few hundred rows, made of matrix products.

OpenBLAS 0.3.31 solves for so many at a third of the speed of its products or less (AVX-512).
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled

SOLVE_COLUMNS = 48  # of the blocks on the diagonal, which are solved with


def solve_right(rows: Array, R: Array) -> Array:
    """B R^-1 (k, n) for rows B (k, n) and an upper-triangular R (n, n)."""
    result = np.array(rows, dtype=np.float64, order="C")
    n = len(R)
    for start in range(0, n, SOLVE_COLUMNS):
        part = slice(start, min(start + SOLVE_COLUMNS, n))
        if start:
            result[:, part] -= result[:, :start] @ R[:start, part]
        _solve_block(result, start, R[part, part].copy())  # of one layout: it is compiled once
    return result


@compiled
def _solve_block(rows: Array, start: int, R: Array) -> None:
    """B (k, n), of `rows` from column `start` on, becomes B R^-1 with an upper-triangular R."""
    k, n = len(rows), len(R)
    columns = np.empty((n, k))  # B' by rows, which are subtracted from each other in vectors
    for i in range(n):
        for j in range(k):
            columns[i, j] = rows[j, start + i]
    for i in range(n):
        solved, inverse = columns[i], 1.0 / R[i, i]
        for j in range(k):
            solved[j] *= inverse
        for later in range(i + 1, n):
            share, rest = R[i, later], columns[later]
            for j in range(k):
                rest[j] -= share * solved[j]
    for i in range(n):
        for j in range(k):
            rows[j, start + i] = columns[i, j]
