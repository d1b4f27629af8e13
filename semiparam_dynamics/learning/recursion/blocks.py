"""Many rows of a recursion at once, in matrix products: the numbers of one by one, to rounding.

Let R, U be the state before m rows Z (m, D) with targets Y (m, T), and

    V = R^-T Z',  K = V'V,  L L' = I + K,  E = L^-1 (Y - V'U).

Then V'U and diag(K) are the outputs and leverages with nothing of the block learned. I + K is the
covariance of the targets given what is known, in units of the noise, so that its Cholesky factor
gives each row given those before it: learned one by one, row i is predicted with the error
L_ii E_i and the leverage L_ii^2 - 1 (the innovations form of the Kalman filter; Anderson and
Moore 1979, Optimal Filtering, section 5.3). With C'C = I + V V' the state after it is
C R and C^-T (U + V Y).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

# The block's Cholesky factors lose as many digits as the sum of its leverages has: a larger one,
# as the first rows after a tiny ridge have, is halved, and few rows are rotated one by one.
MAX_BLOCK_LEVERAGE = 1e5
MIN_ROW_WEIGHT = 1e-12  # of a row
MAX_ROTATED_ROWS = 8  # rows
# The cost of rotating a number, and of a block's calls, in multiplications of matrix products.
ROTATION_COST, CALLS_COST = 8, 5e6


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """Predictions of m rows: before any of them was learned, and just before each row was.

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


def predict_block(core: RecursiveLeastSquares, rows: Array) -> tuple[Array, Array]:
    """Outputs (m, T) and leverages (m,) at rows (m, D), of which nothing is learned."""
    return _predict(core, rows)[1:]


def update_block(
    core: RecursiveLeastSquares, rows: Array, targets: Array, *, most: int = 512
) -> BlockAnswer:
    """Predict and learn rows (m, D) with `targets` (m, T).

    most : rows that are learned at once; a small D wants few, as each meets all others.
    core : without `forgetting`.
    """
    W, before, leverages = _predict(core, rows)
    learned = _update(core, rows, targets, most, W, before, leverages)
    return BlockAnswer(before, leverages, *learned)


def weighted_block(
    core: RecursiveLeastSquares, rows: Array, targets: Array, weights: Array, *, most: int = 512
) -> BlockAnswer:
    """:func:`update_block` of rows that count `weights` (m,) times."""
    roots = np.sqrt(np.maximum(weights, MIN_ROW_WEIGHT))[:, None]
    found = update_block(core, rows * roots, targets * roots, most=most)
    of_one = 1.0 / roots[:, 0] ** 2
    return BlockAnswer(
        found.before / roots,
        found.leverage_before * of_one,
        found.errors / roots,
        found.leverage * of_one,
    )


def _predict(core: RecursiveLeastSquares, rows: Array) -> tuple[Array, Array, Array]:
    """W = V' (m, D), outputs V'U (m, T) and leverages |V|^2 (m,)."""
    core.apply_pending()
    W = solve_right(rows, core.R)
    return W, W @ core.U, np.einsum("ij,ij->i", W, W)


def _update(
    core: RecursiveLeastSquares,
    rows: Array,
    targets: Array,
    most: int,
    W: Array,
    before: Array,
    leverages: Array,
) -> tuple[Array, Array]:
    """Errors and leverages of rows of which :func:`_predict` found the last three; learns them."""
    m = len(rows)
    if not _worth_it(core, m):
        return core.update_rows(rows, targets)
    if m <= most and leverages.sum() <= MAX_BLOCK_LEVERAGE:
        return _at_once(core, rows, targets, W, before, leverages)
    size = -(-m // max(-(-m // most), 2))
    first = slice(0, size)
    known = W[first], before[first], leverages[first]
    learned = [_update(core, rows[first], targets[first], most, *known)]
    for start in range(size, m, size):
        part = slice(start, start + size)
        known = _predict(core, rows[part])
        learned.append(_update(core, rows[part], targets[part], most, *known))
    errors, leverage = zip(*learned, strict=True)
    return np.concatenate(errors), np.concatenate(leverage)


def _worth_it(core: RecursiveLeastSquares, m: int) -> bool:
    """True where the block's products take less time than rotating its rows one by one."""
    if m <= MAX_ROTATED_ROWS:
        return False
    n, outputs = core.n_features, core.n_outputs
    rotations = m * n * (n + 2 * outputs)
    products = n**2 * (2 * m + 4 * n / 3) + m**2 * (n + m / 3)
    products += outputs * (4 * m * n + m**2 + n**2) + CALLS_COST
    return ROTATION_COST * rotations > products


def _at_once(
    core: RecursiveLeastSquares, rows: Array, targets: Array, W: Array, before: Array, own: Array
) -> tuple[Array, Array]:
    """Errors and leverages of rows of which W = V', V'U and |V|^2 are known; learns them."""
    try:
        C = _cholesky(W.T @ W)
        L, errors = innovations(W, targets - before)
    except np.linalg.LinAlgError:  # by rounding; never seen
        return core.update_rows(rows, targets)
    errors = errors * np.diagonal(L)[:, None]
    np.fill_diagonal(L, 0.0)
    leverage = own - np.einsum("ij,ij->i", L, L)  # L_ii^2 - 1, without the rounding of the one
    U = solve_right((core.U + W.T @ targets).T, C).T
    core.multiply(C, U)
    return errors, leverage


def innovations(W: Array, errors: Array) -> tuple[Array, Array]:
    """L (m, m) and E = L^-1 errors (m, T) of a block with W = V' (m, D), see the module.

    errors : (m, T), of the predictions before the block. Errors before any of the rows a to b, once
        those above them are learned, are L[a:b, a:b] E[a:b].
    """
    L = _cholesky(W @ W.T).T
    return L, solve_right(errors.T, L.T).T


def _cholesky(K: Array) -> Array:
    """Upper-triangular C (n, n), C-ordered, with C'C = I + K. Uses up K."""
    K.reshape(-1)[:: len(K) + 1] += 1.0
    # K' by columns, as LAPACK has it, is K by rows: nothing is copied.
    C: Array = cholesky(K.T, lower=True, overwrite_a=True, check_finite=False).T
    return C


# -------------------------------------------------------------------------------------------------
# Triangular solves for a few hundred rows, made of matrix products: OpenBLAS 0.3.31 solves for so
# many at a third of the speed of its products or less (AVX-512).

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
