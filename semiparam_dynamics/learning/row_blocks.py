"""Many rows of a recursion at once, in BLAS 3: what each would have met one by one, and their sum.

Let R, U be the state before m rows Z (m, D) with targets Y (m, T), and

    V = R^-T Z',  K = V'V,  L L' = I + K,  E = L^-1 (Y - V'U).

Then V'U and diag(K) are the outputs and leverages with nothing of the block learned. I + K is the
covariance of the targets given what is known, in units of the noise, so that its Cholesky factor
gives each row given those before it: learned one by one, row i is predicted with the error
L_ii E_i and the leverage L_ii^2 - 1 (the innovations form of the Kalman filter; Anderson and
Moore 1979, Optimal Filtering, section 5.3). With C'C = I + V V' the state after it is
C R and C^-T (U + V Y). These are the rotations' numbers, to rounding.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning import blas
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
from semiparam_dynamics.learning.triangular import multiply_triangular, solve_right

# The block's Cholesky factors lose as many digits as the sum of its leverages has: a larger one,
# as the first rows beside a tiny ridge have, is halved, and few rows are rotated one by one.
MOST_LEVERAGE = 1e5
FEW = 8  # rows
# What a rotated number costs, and a block's calls, in multiplications of matrix products.
ROTATION, CALLS = 8, 5e6


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """What was said of each of m rows before any of them, and before itself, was learned.

    Attributes
    ----------
    before : (m, T) outputs by what was known before the block.
    leverage_before : (m,) their leverages.
    errors : (m, T) targets minus outputs, once the rows before it were learned.
    leverage : (m,) then.
    """

    before: Array
    leverage_before: Array
    errors: Array
    leverage: Array


class _Squares(threading.local):
    """Matrices with zeros below the diagonal, kept for the next block: new memory is slow."""

    MOST = 8

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], Array] = {}

    def __call__(self, name: str, n: int) -> Array:
        """The (n, n) one of this thread and name; of the upper triangle anything may be left."""
        if (name, n) not in self._kept:
            if len(self._kept) >= self.MOST:
                self._kept.clear()
            self._kept[name, n] = np.zeros((n, n))
        return self._kept[name, n]


_squares = _Squares()


def learn_block(
    core: RecursiveLeastSquares, rows: Array, targets: Array, *, most: int = 512
) -> BlockAnswer:
    """Learn rows (m, D) with `targets` (m, T), and tell what was expected of them on the way.

    most : rows that are learned at once; a small D wants few, as each meets all others.
    core : without `forgetting`. An R in single precision learns row by row.
    """
    m, n = rows.shape
    if not m or not n:
        nothing = np.zeros((m, core.n_outputs))
        return BlockAnswer(nothing, np.zeros(m), targets - nothing, np.zeros(m))
    W, before, leverages = _ask(core, rows)
    learned = _learn(core, rows, targets, most, W, before, leverages)
    return BlockAnswer(before, leverages, *learned)


def ask_block(core: RecursiveLeastSquares, rows: Array) -> tuple[Array, Array]:
    """Outputs (m, T) and leverages (m,) at rows (m, D), of which nothing is learned."""
    if not len(rows) or not core.n_features:
        return np.zeros((len(rows), core.n_outputs)), np.zeros(len(rows))
    return _ask(core, rows)[1:]


def _ask(core: RecursiveLeastSquares, rows: Array) -> tuple[Array, Array, Array]:
    """W = V' (m, D), outputs (m, T) and leverages (m,)."""
    n = core.n_features
    W = solve_right(np.asarray(rows, dtype=np.float64), np.asarray(core.R[:n, :n], np.float64))
    return W, W @ core.U[:n], np.einsum("ij,ij->i", W, W)


def _worth_it(core: RecursiveLeastSquares, m: int) -> bool:
    """Whether the block's products take less time than rotating its rows one by one."""
    if m <= FEW:
        return False
    n, outputs = core.n_features, core.n_outputs
    rotations = m * n * (n + 2 * outputs)
    products = n**2 * (2 * m + 4 * n / 3) + m**2 * (n + m / 3)
    products += outputs * (4 * m * n + m**2 + n**2) + CALLS
    return ROTATION * rotations > products


def _learn(
    core: RecursiveLeastSquares,
    rows: Array,
    targets: Array,
    most: int,
    W: Array,
    before: Array,
    leverages: Array,
) -> tuple[Array, Array]:
    """Errors and leverages of rows of which what :func:`_ask` says is known; learns them."""
    m = len(rows)
    if core.R.dtype != np.float64 or not _worth_it(core, m):
        return core.learn_in_turn(rows, targets)
    if m <= most and leverages.sum() <= MOST_LEVERAGE:
        return _at_once(core, rows, targets, W, before, leverages)
    size = -(-m // max(-(-m // most), 2))
    first = slice(0, size)
    asked = W[first], before[first], leverages[first]
    learned = [_learn(core, rows[first], targets[first], most, *asked)]
    for start in range(size, m, size):
        part = slice(start, start + size)
        asked = _ask(core, rows[part])
        learned.append(_learn(core, rows[part], targets[part], most, *asked))
    errors, leverage = zip(*learned, strict=True)
    return np.concatenate(errors), np.concatenate(leverage)


def _at_once(
    core: RecursiveLeastSquares, rows: Array, targets: Array, W: Array, before: Array, own: Array
) -> tuple[Array, Array]:
    """Errors and leverages of rows of which W = V', V'U and |V|^2 are known; learns them."""
    n = W.shape[1]
    upper, C = _squares("rows", len(W)), _squares("columns", n)
    blas.gram_rows(W, upper)
    blas.gram_columns(W, C)
    if not (blas.factorise(upper) and blas.factorise(C)):  # by rounding; never seen
        return core.learn_in_turn(rows, targets)
    diagonal = np.diagonal(upper).copy()
    errors = solve_right((targets - before).T, upper).T * diagonal[:, None]
    np.fill_diagonal(upper, 0.0)
    leverage = own - np.einsum("ij,ij->j", upper, upper)  # L_ii^2 - 1, without the one's rounding
    R, U = core.R, core.U  # views of what is stored
    U[:n] = solve_right((U[:n] + W.T @ targets).T, C).T
    multiply_triangular(C, R[:n, :n])
    return errors, leverage
