"""The thesis' algorithm 1: Nyström KRLS for 1, ..., m centres by rank-one Cholesky updates.

Kept for comparison: the package appends blocks to the factor (its `nested_factor` module).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning.kernels import Kernel

F = TypeVar("F")

if TYPE_CHECKING:

    def njit(function: F) -> F: ...

else:
    from numba import njit


@njit
def cholup(R: Array, x: Array, sign: float) -> bool:
    """R'R becomes R'R + sign x x'; R (t, t) is upper triangular, x (t,) is used up.

    False where the result isn't positive definite to rounding.
    """
    t = len(x)
    for k in range(t):
        square = R[k, k] ** 2 + sign * x[k] ** 2
        if not square > 0.0:
            return False
        r = np.sqrt(square)
        if R[k, k] == 0.0:  # the row that the bordered matrix has new
            for j in range(k, t):
                R[k, j] = x[j]
                x[j] = 0.0
            if R[k, k] < 0.0:
                R[k, k:] *= -1.0
            continue
        c, s = r / R[k, k], x[k] / R[k, k]
        R[k, k] = r
        for j in range(k + 1, t):
            R[k, j] = (R[k, j] + sign * s * x[j]) / c
            x[j] = c * x[j] - s * R[k, j]
    return True


def rank_one_path(
    X: Array,
    y: Array,
    kernel: Kernel,
    centers: Array,
    penalty: float,
    sizes: list[int],
    append: bool,
) -> list[Array | None]:
    """Coefficients (m,) for each m of `sizes`, from one factor that grows by a column at a time.

    By the thesis' update and downdate, or with `append` by one triangular solve a column. None
    from where the factor breaks down.
    """
    M, ridge = len(centers), penalty * len(X)
    A, B = kernel(X, centers), kernel(centers)
    R = np.zeros((M, M))
    moments = A.T @ y
    answers: list[Array | None] = []
    for t in range(M):
        a = np.ascontiguousarray(A[:, t])
        c = A[:, :t].T @ a + ridge * B[:t, t]
        gamma = float(a @ a + ridge * B[t, t])
        if append:
            column = solve_triangular(R[:t, :t], c, trans=1, check_finite=False) if t else c
            R[:t, t] = column
            pivot = gamma - float(column @ column)
            ok = pivot > 0.0
            R[t, t] = np.sqrt(max(pivot, 0.0))
        elif t == 0:
            R[0, 0], ok = np.sqrt(gamma), True
        else:
            g = np.sqrt(1.0 + gamma)
            u, v = np.append(c / (1.0 + g), g), np.append(c / (1.0 + g), -1.0)
            ok = cholup(R[: t + 1, : t + 1], u, 1.0) and cholup(R[: t + 1, : t + 1], v, -1.0)
        if not ok:
            break
        if t + 1 in sizes:
            half = solve_triangular(R[: t + 1, : t + 1], moments[: t + 1], trans=1)
            answers.append(solve_triangular(R[: t + 1, : t + 1], half))
    return answers + [None] * (len(sizes) - len(answers))
