"""A solver of LAPACK's, called without the interpreter's lock.

SciPy's own keep it: a node whose learner solves for some hundred weights would not answer a message
for the milliseconds that takes. ctypes gives it up for each call.
"""

from __future__ import annotations

import ctypes

import numpy as np
from numba.extending import get_cython_function_address
from scipy.linalg import LinAlgError

from semiparam_dynamics.base.arrays import Array

_dposv = ctypes.CFUNCTYPE(None)(get_cython_function_address("scipy.linalg.cython_lapack", "dposv"))


def solve_positive(A: Array, B: Array) -> Array:
    """A^-1 B for a symmetric positive definite A (n, n), which is used up, and B (n,) or (n, k).

    Raises LinAlgError where A is not positive definite.
    """
    A = np.ascontiguousarray(A)
    X = np.array(B.T, dtype=np.float64, order="C", ndmin=2)  # LAPACK has columns
    k, n, info = ctypes.c_int(len(X)), ctypes.c_int(len(A)), ctypes.c_int()
    a, x = (ctypes.c_void_p(array.ctypes.data) for array in (A, X))
    rows = ctypes.byref(n)
    _dposv(b"U", rows, ctypes.byref(k), a, rows, x, rows, ctypes.byref(info))
    if info.value:
        raise LinAlgError(f"a matrix that is not positive definite (LAPACK's info {info.value})")
    return X.T.reshape(B.shape)
