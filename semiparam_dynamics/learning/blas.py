"""BLAS 3 on parts of C-ordered matrices, in place, while other Python threads go on.

SciPy's own wrappers copy what isn't contiguous and let no other thread run; these call the same
library by the addresses that `scipy.linalg.cython_blas` and `cython_lapack` publish. To BLAS,
whose matrices lie in columns, one in rows is its transpose: so "lower" stands here for upper.
All arrays are float64 with adjacent columns; nothing is checked.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba.extending import get_cython_function_address

from semiparam_dynamics.arrays import Array

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
