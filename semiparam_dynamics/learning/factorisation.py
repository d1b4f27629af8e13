"""Cholesky factors in their matrices' place, and products, also of large ones.

OpenBLAS' own, of more than about 15 000 rows, ends the process on two cores: what a thread of
`syrk` multiplies outgrows its buffer (0.3.31). Above `LARGEST` rows these work in panels.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning.threads import for_each

LARGEST = 12_000
PANEL = 4096  # columns: copies of it are small beside the matrix, and its products fast
ROWS = 1024
PART = 256  # columns at most of a product of triangles: fewer multiply less that is zero


def upper_factor(A: Array, clean: bool = False) -> bool:
    """Make A its factor R, with R'R = A: of A, column-wise, (n, n), the upper half is read. The
    lower half holds nothing afterwards; with `clean`, zeros.

    False if there is none, as of a matrix that isn't positive definite; A is lost then. SciPy's
    function copies A and clears the other half column by column: at 5000 rows it takes four times
    as long as the factorisation.
    """
    assert A.flags.f_contiguous and A.dtype == float  # another one would be copied
    done = _factorise_at_once(A) if len(A) <= LARGEST else _factorise_panels(A)
    if done and clean:
        for i in range(len(A) - 1):
            A[i + 1 :, i] = 0.0
    return done


def _factorise_at_once(A: Array) -> bool:
    failed: int = dpotrf(A, lower=0, clean=0, overwrite_a=1)[1] if len(A) else 0
    return not failed


def _factorise_panels(A: Array) -> bool:
    n, L = len(A), A.T  # L L' = A, row by row
    for first in range(0, n, PANEL):
        last = min(first + PANEL, n)
        known = L[first:last, :first]

        def reduce(i: int, known: Array = known, first: int = first, last: int = last) -> None:
            end = min(i + ROWS, last)
            L[i:end, first:end] -= L[i:end, :first] @ known[: end - first].T

        if first:
            for_each(reduce, range(first, last, ROWS))
        R, failed = dpotrf(L[first:last, first:last].T, lower=0, clean=0)
        if failed:
            return False
        L[first:last, first:last] = R.T

        def solve(i: int, R: Array = R, known: Array = known, first: int = first) -> None:
            rows = L[i : i + ROWS, first : first + len(R)]
            rest = rows - L[i : i + ROWS, :first] @ known.T
            rows[:] = dtrsm(1.0, R, rest.T, lower=0, trans_a=1, overwrite_b=1).T

        for_each(solve, range(last, n, ROWS))
    return True


def add_products(gram: Array, A: Array) -> Array:
    """gram + A'A, its upper half, in gram's place, (q, q), column-wise, for A (k, q)."""
    q = len(gram)
    if q <= LARGEST:
        result: Array = dsyrk(1.0, A.T, beta=1.0, c=gram, lower=0, overwrite_c=1)
        return result
    for first in range(0, q, ROWS):
        here = slice(first, first + ROWS)
        gram.T[here, : first + ROWS] += A[:, here].T @ A[:, : first + ROWS]
    return gram


def triangle_products(L: Array, weights: Array) -> Array:
    """L' diag(weights) L, its upper half, column-wise, (n, n), of a lower triangle L, row by row,
    whose upper half is zero, by a third of the multiplications that `add_products` takes.
    """
    # LAPACK's lauum reaches half of the matrix products' speed. What a thread writes first, it
    # also asks the system for, which on a virtual machine takes as long as a third of the product.
    n = len(L)
    if n <= PART:  # threads would take longer to begin
        small: Array = ((L * weights[:, None]).T @ L).T
        return small
    result, columns = np.empty((n, n)), min(PART, max(16, n // 64))

    def part(first: int) -> None:
        last = min(first + columns, n)
        weighted = L[first:, first:last] * weights[first:, None]
        np.matmul(weighted.T, L[first:, :last], out=result[first:last, :last])

    # The largest first, so that all cores end together.
    for_each(part, sorted(range(0, n, columns), key=lambda i: -(n - i) * (i + columns)))
    return result.T
