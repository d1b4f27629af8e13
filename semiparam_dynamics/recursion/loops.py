"""The compiled inner loops: plain arrays in, plain arrays changed in place, no allocation.

What runs once per sample and grows with the number of features is here and, for the recursions,
in :mod:`compiled_step`. All arrays are C-ordered float64; `n` says how many leading rows and
columns are in use, so that a learner whose features grow needs no reallocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semiparam_dynamics.arrays import Array

F = TypeVar("F")

if TYPE_CHECKING:

    def compiled(function: F) -> F:
        """The function, compiled by numba when it is first called."""
        return function

    def compiled_as_written(function: F) -> F:
        """The function, compiled with every operation rounded as it stands there."""
        return function

else:
    import numba

    # nogil: a node may learn in one thread while another one serves messages.
    # "reassoc" lets the dot products vectorise; NaN and infinity keep their meaning.
    compiled = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
    # x / 0 is infinity here: a check that raises would keep loops from vector instructions.
    compiled_as_written = numba.njit(cache=True, nogil=True, error_model="numpy")


@compiled
def rotate_row(R: Array, U: Array, z: Array, y: Array, n: int) -> None:
    """Givens-rotate the row [z y] into [R U] (thesis 8.2.4). `z` and `y` are used up.

    R: (>=n, >=n) upper triangular; U: (>=n, T); z: (>=n,); y: (T,). Four rotations at a time
    sweep the columns, so that z and y are read and written once for four rows of R and U.
    """
    c = np.empty(4)
    s = np.empty(4)
    for i in range(0, n, 4):
        block = min(4, n - i)
        for k in range(block):
            row = i + k
            radius = np.sqrt(R[row, row] * R[row, row] + z[row] * z[row])
            c[k] = R[row, row] / radius
            s[k] = z[row] / radius
            R[row, row] = radius
            for j in range(row + 1, i + block):
                rij = R[row, j]
                R[row, j] = c[k] * rij + s[k] * z[j]
                z[j] = c[k] * z[j] - s[k] * rij
        if block == 4:
            _sweep(R, i, i + 4, z[:n], c, s)
            _sweep(U, i, 0, y, c, s)
        else:
            for k in range(block):
                for t in range(y.size):
                    uit = U[i + k, t]
                    U[i + k, t] = c[k] * uit + s[k] * y[t]
                    y[t] = c[k] * y[t] - s[k] * uit


@compiled
def _sweep(A: Array, i: int, first: int, row: Array, c: Array, s: Array) -> None:
    """Rotate rows i to i + 3 of A, one after the other, against `row`, from entry `first` on."""
    c0, c1, c2, c3 = c[0], c[1], c[2], c[3]
    s0, s1, s2, s3 = s[0], s[1], s[2], s[3]
    end = row.size
    r0, r1, r2, r3 = A[i, first:end], A[i + 1, first:end], A[i + 2, first:end], A[i + 3, first:end]
    z = row[first:]
    for j in range(z.size):
        x = z[j]
        old = r0[j]
        r0[j] = c0 * old + s0 * x
        x = c0 * x - s0 * old
        old = r1[j]
        r1[j] = c1 * old + s1 * x
        x = c1 * x - s1 * old
        old = r2[j]
        r2[j] = c2 * old + s2 * x
        x = c2 * x - s2 * old
        old = r3[j]
        r3[j] = c3 * old + s3 * x
        z[j] = c3 * x - s3 * old


@compiled
def solve_transposed(R: Array, z: Array, v: Array, n: int) -> None:
    """v = R^-T z, by rows of R so that memory is read in order. `z` is kept."""
    v[:n] = z[:n]
    for i in range(n):
        vi = v[i] / R[i, i]
        v[i] = vi
        row = R[i, i + 1 : n]
        rest = v[i + 1 : n]
        for j in range(rest.size):
            rest[j] -= row[j] * vi


@compiled
def solve_back(R: Array, v: Array, n: int) -> None:
    """v <- R^-1 v in place, by rows of R so that memory is read in order."""
    for i in range(n - 1, -1, -1):
        row = R[i, i + 1 : n]
        rest = v[i + 1 : n]
        dot = 0.0
        for j in range(row.size):
            dot += row[j] * rest[j]
        v[i] = (v[i] - dot) / R[i, i]


@compiled
def solve_upper(R: Array, B: Array, n: int) -> None:
    """B <- R^-1 B in place; B: (>=n, T)."""
    for i in range(n - 1, -1, -1):
        bi = B[i]
        for j in range(i + 1, n):
            rij = R[i, j]
            bj = B[j]
            for t in range(bi.size):
                bi[t] -= rij * bj[t]
        for t in range(bi.size):
            bi[t] /= R[i, i]


@compiled
def gaussian_row(C: Array, x: Array, gamma: float, k: Array, n: int) -> None:
    """k_i = exp(-gamma |x - C_i|^2) for the first n rows of C."""
    for i in range(n):
        centre = C[i]
        distance = 0.0
        for j in range(x.size):
            delta = x[j] - centre[j]
            distance += delta * delta
        k[i] = np.exp(-gamma * distance)


@compiled
def solve_lower(L: Array, k: Array, phi: Array, n: int) -> float:
    """phi = L^-1 k for a lower-triangular L; returns |phi|^2."""
    total = 0.0
    for i in range(n):
        row = L[i, :i]
        dot = 0.0
        for j in range(row.size):
            dot += row[j] * phi[j]
        value = (k[i] - dot) / L[i, i]
        phi[i] = value
        total += value * value
    return total


@compiled_as_written
def lowpass_step(u: Array, s1: Array, s2: Array, out: Array, g: float) -> None:
    """One step of a second-order Butterworth low-pass in state-variable form.

    Trapezoidal integration, g = tan(pi f_c dt): equal to the bilinear Butterworth filter at a
    constant step, and stable for any sequence of steps. Rounded as it stands here, so that the
    functions that it becomes part of give the same numbers.
    """
    k = np.sqrt(2.0)
    a = 1.0 / (1.0 + g * (g + k))
    for i in range(u.size):
        v1 = a * (s1[i] + g * (u[i] - s2[i]))
        v2 = s2[i] + g * v1
        s1[i] = 2.0 * v1 - s1[i]
        s2[i] = 2.0 * v2 - s2[i]
        out[i] = v2
