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

import ctypes
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.recursion.rls import RecursiveLeastSquares

# -------------------------------------------------------------------------------------------------
# BLAS 3 on parts of C-ordered matrices, in place, while other Python threads go on.
#
# SciPy's own wrappers copy what isn't contiguous and let no other thread run; these call the same
# library by the addresses that `scipy.linalg.cython_blas` and `cython_lapack` publish. To BLAS,
# whose matrices lie in columns, one in rows is its transpose: so "lower" stands here for upper.
# All arrays are float64 with adjacent columns; nothing is checked.

_ZERO, _ONE, _MINUS_ONE = (ctypes.byref(ctypes.c_double(number)) for number in (0.0, 1.0, -1.0))


def _function(module: str, name: str) -> Any:
    address = get_cython_function_address(f"scipy.linalg.{module}", name)
    return ctypes.CFUNCTYPE(None)(address)


_dgemm = _function("cython_blas", "dgemm")
_dsyrk = _function("cython_blas", "dsyrk")
_dtrmm = _function("cython_blas", "dtrmm")
_dtrsm = _function("cython_blas", "dtrsm")
_dpotrf = _function("cython_lapack", "dpotrf")
_dtrtri = _function("cython_lapack", "dtrtri")


def _at(matrix: Array) -> tuple[Any, Any]:
    """Where a matrix is, and the distance of its rows."""
    return ctypes.c_void_p(matrix.ctypes.data), _int(matrix.strides[0] // matrix.itemsize)


def _int(number: int) -> Any:
    return ctypes.byref(ctypes.c_int(number))


def subtract_product(C: Array, A: Array, B: Array) -> None:
    """C -= A B, for C (m, n), A (m, k) and B (k, n)."""
    _add(C, A, B, _MINUS_ONE)


def add_product(C: Array, A: Array, B: Array) -> None:
    """C += A B, for C (m, n), A (m, k) and B (k, n)."""
    _add(C, A, B, _ONE)


def _add(C: Array, A: Array, B: Array, sign: Any) -> None:
    (m, n), k = C.shape, A.shape[1]
    size = _int(n), _int(m), _int(k)
    _dgemm(b"N", b"N", *size, sign, *_at(B), *_at(A), _ONE, *_at(C))


def gram_rows(W: Array, out: Array) -> None:
    """I + W W' of W (m, n) to the upper triangle of `out` (m, m); the rest stays as it is."""
    m, n = W.shape
    _dsyrk(b"L", b"T", _int(m), _int(n), _ONE, *_at(W), _ZERO, *_at(out))
    out.reshape(-1)[:: m + 1] += 1.0


def gram_columns(W: Array, out: Array) -> None:
    """I + W'W of W (m, n) to the upper triangle of `out` (n, n); the rest stays as it is."""
    m, n = W.shape
    _dsyrk(b"L", b"N", _int(n), _int(m), _ONE, *_at(W), _ZERO, *_at(out))
    out.reshape(-1)[:: n + 1] += 1.0


def factorise(S: Array) -> bool:
    """S (n, n) becomes C, upper triangular, with C'C = S; only its upper triangle is looked at.

    False where rounding leaves no answer.
    """
    failed = ctypes.c_int(0)
    _dpotrf(b"L", _int(len(S)), *_at(S), ctypes.byref(failed))
    return failed.value == 0


def invert(R: Array) -> None:
    """An upper-triangular R (n, n) becomes its inverse."""
    failed = ctypes.c_int(0)
    _dtrtri(b"L", b"N", _int(len(R)), *_at(R), ctypes.byref(failed))


def multiply_right(B: Array, R: Array) -> None:
    """B (m, n) becomes B R, for an upper-triangular R (n, n)."""
    m, n = B.shape
    _dtrmm(b"L", b"L", b"N", b"N", _int(n), _int(m), _ONE, *_at(R), *_at(B))


def multiply_left(C: Array, B: Array) -> None:
    """B (m, n) becomes C B, for an upper-triangular C (m, m)."""
    m, n = B.shape
    _dtrmm(b"R", b"L", b"N", b"N", _int(n), _int(m), _ONE, *_at(C), *_at(B))


def divide_right(B: Array, R: Array) -> None:
    """B (m, n) becomes B R^-1, for an upper-triangular R (n, n)."""
    m, n = B.shape
    _dtrsm(b"L", b"L", b"N", b"N", _int(n), _int(m), _ONE, *_at(R), *_at(B))


# -------------------------------------------------------------------------------------------------
# Triangular solves and products of a few hundred rows, made of matrix products.
#
# OpenBLAS 0.3.31 solves for a few hundred at a third of the speed of its products or less
# (AVX-512).
# So blocks on the diagonal are inverted, which costs little, and all else is products.

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
            subtract_product(left, result[:, :start], R[:start, part])
        block = R[part, part]
        inverse = block.copy()
        invert(inverse)
        if np.abs(block).max() * np.abs(inverse).max() < MOST_CONDITION:
            multiply_right(left, inverse)
        else:
            divide_right(left, block)
    return result


def multiply_triangular(C: Array, R: Array) -> None:
    """R (n, n) becomes C R, both upper triangular with adjacent columns."""
    n = len(C)
    if n <= SMALL:
        multiply_left(C, R)
        return
    half = n // 2
    multiply_triangular(C[:half, :half], R[:half, :half])
    multiply_left(C[:half, :half], R[:half, half:])
    add_product(R[:half, half:], C[:half, half:], R[half:, half:])
    multiply_triangular(C[half:, half:], R[half:, half:])


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


def update_block(
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


def predict_block(core: RecursiveLeastSquares, rows: Array) -> tuple[Array, Array]:
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
        return core.update_in_groups(rows, targets)
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
    gram_rows(W, upper)
    gram_columns(W, C)
    if not (factorise(upper) and factorise(C)):  # by rounding; never seen
        return core.update_in_groups(rows, targets)
    diagonal = np.diagonal(upper).copy()
    errors = solve_right((targets - before).T, upper).T * diagonal[:, None]
    np.fill_diagonal(upper, 0.0)
    leverage = own - np.einsum("ij,ij->j", upper, upper)  # L_ii^2 - 1, without the one's rounding
    R, U = core.R, core.U  # views of what is stored
    U[:n] = solve_right((U[:n] + W.T @ targets).T, C).T
    multiply_triangular(C, R[:n, :n])
    return errors, leverage
