"""The compiled inner loops: plain arrays in, plain arrays changed in place, no allocation.

Everything that runs once per sample and grows with the number of features is here. All arrays
are C-ordered float64; `n` says how many leading rows and columns are in use, so that a learner
whose features grow needs no reallocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

F = TypeVar("F")

if TYPE_CHECKING:

    def _compiled(function: F) -> F: ...

else:
    import numba

    # nogil: a node may learn in one thread while another one serves messages.
    # "reassoc" lets the dot products vectorise; NaN and infinity keep their meaning.
    _compiled = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})

Array = np.ndarray[Any, np.dtype[np.float64]]


@_compiled
def rotate_row(R: Array, U: Array, z: Array, y: Array, n: int) -> None:
    """Givens-rotate the row [z y] into [R U] (thesis 8.2.4). `z` and `y` are used up.

    R: (>=n, >=n) upper triangular; U: (>=n, T); z: (>=n,); y: (T,).
    """
    outputs = U.shape[1]
    for i in range(n):
        zi = z[i]
        if zi == 0.0:
            continue
        rii = R[i, i]
        radius = np.sqrt(rii * rii + zi * zi)
        c = rii / radius
        s = zi / radius
        R[i, i] = radius
        for j in range(i + 1, n):
            rij = R[i, j]
            R[i, j] = c * rij + s * z[j]
            z[j] = c * z[j] - s * rij
        for t in range(outputs):
            uit = U[i, t]
            U[i, t] = c * uit + s * y[t]
            y[t] = c * y[t] - s * uit


@_compiled
def solve_transposed(R: Array, z: Array, v: Array, n: int) -> None:
    """v = R^-T z, by rows of R so that memory is read in order. `z` is kept."""
    for i in range(n):
        v[i] = z[i]
    for i in range(n):
        vi = v[i] / R[i, i]
        v[i] = vi
        for j in range(i + 1, n):
            v[j] -= R[i, j] * vi


@_compiled
def solve_upper(R: Array, B: Array, n: int) -> None:
    """B <- R^-1 B in place; B: (>=n, T)."""
    outputs = B.shape[1]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            rij = R[i, j]
            for t in range(outputs):
                B[i, t] -= rij * B[j, t]
        for t in range(outputs):
            B[i, t] /= R[i, i]


@_compiled
def project(U: Array, v: Array, y: Array, n: int) -> None:
    """y = v^T U over the first n rows."""
    outputs = U.shape[1]
    for t in range(outputs):
        y[t] = 0.0
    for i in range(n):
        vi = v[i]
        for t in range(outputs):
            y[t] += vi * U[i, t]


@_compiled
def gaussian_row(C: Array, x: Array, gamma: float, k: Array, n: int) -> None:
    """k_i = exp(-gamma |x - C_i|^2) for the first n rows of C."""
    d = x.shape[0]
    for i in range(n):
        distance = 0.0
        for j in range(d):
            delta = x[j] - C[i, j]
            distance += delta * delta
        k[i] = np.exp(-gamma * distance)


@_compiled
def solve_lower(L: Array, k: Array, phi: Array, n: int) -> float:
    """phi = L^-1 k for a lower-triangular L; returns |phi|^2."""
    total = 0.0
    for i in range(n):
        value = k[i]
        for j in range(i):
            value -= L[i, j] * phi[j]
        value /= L[i, i]
        phi[i] = value
        total += value * value
    return total


@_compiled
def lowpass_step(u: Array, s1: Array, s2: Array, out: Array, g: float) -> None:
    """One step of a second-order Butterworth low-pass in state-variable form.

    Trapezoidal integration, g = tan(pi f_c dt): equal to the bilinear Butterworth filter at a
    constant step, and stable for any sequence of steps.
    """
    k = np.sqrt(2.0)
    a = 1.0 / (1.0 + g * (g + k))
    for i in range(u.shape[0]):
        v1 = a * (s1[i] + g * (u[i] - s2[i]))
        v2 = s2[i] + g * v1
        s1[i] = 2.0 * v1 - s1[i]
        s2[i] = 2.0 * v2 - s2[i]
        out[i] = v2
