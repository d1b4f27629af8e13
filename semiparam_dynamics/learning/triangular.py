"""Triangular solves and products of a few hundred rows, made of matrix products.

OpenBLAS 0.3.31 solves for a few hundred at a third of the speed of its products or less (AVX-512).
So blocks on the diagonal are inverted, which costs little, and all else is products.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning import blas

SIZE = 64  # of the blocks on the diagonal
SMALL = 128  # a product's factors that aren't divided any more
# A block whose inverse could lose more digits than this is solved with instead.
MOST_CONDITION = 1e4


def solve_right(rows: Array, R: Array) -> Array:
    """B R^-1 (k, n) for rows B (k, n) and an upper-triangular R (n, n) with adjacent columns."""
    result = np.array(rows, dtype=np.float64, order="C")
    n = len(R)
    for start in range(0, n, SIZE):
        part = slice(start, min(start + SIZE, n))
        left = result[:, part]
        if start:
            blas.subtract_product(left, result[:, :start], R[:start, part])
        block = R[part, part]
        inverse = block.copy()
        blas.invert(inverse)
        if np.abs(block).max() * np.abs(inverse).max() < MOST_CONDITION:
            blas.multiply_right(left, inverse)
        else:
            blas.divide_right(left, block)
    return result


def multiply_triangular(C: Array, R: Array) -> None:
    """R (n, n) becomes C R, both upper triangular with adjacent columns."""
    n = len(C)
    if n <= SMALL:
        blas.multiply_left(C, R)
        return
    half = n // 2
    multiply_triangular(C[:half, :half], R[:half, :half])
    blas.multiply_left(C[:half, :half], R[:half, half:])
    blas.add_product(R[:half, half:], C[:half, half:], R[half:, half:])
    multiply_triangular(C[half:, half:], R[half:, half:])
