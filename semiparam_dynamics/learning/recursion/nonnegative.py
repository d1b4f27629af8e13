"""Least squares with some unknowns that are never negative, from a triangular factor.

Minimise |R x - u|^2 with x_i >= 0 for some i by block principal pivoting (Portugal, Judice and
Vicente 1994; Kim and Park 2011, "Fast nonnegative matrix factorization", section 3): the unknowns
that are zero are guessed, the others solved for, and those that are wrong exchanged, all at once as
long as that leaves fewer of them.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.jit import compiled_as_written

FREE, NONNEGATIVE = range(2)  # how an unknown is bounded
MAX_EXCHANGES = 3  # of all that are wrong, before one at a time, which always comes to an end
GRADIENT_ROUNDING = 1e-12  # of a gradient, relative to its terms
MIN_PIVOT = 1e-14  # of an unknown's square: what is left below it is rounding


@compiled_as_written
def normal_equations(R: Array, u: Array, first: int, work: Array) -> None:
    """Prepare :func:`solve_nonnegative` for R (>=n, >=n), upper triangular, and u (n,)."""
    m = work.shape[1]
    H, g = work[:m], work[2 * m]
    for i in range(m):
        g[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for k in range(m):
        row, value = R[first + k, first : first + m], u[first + k]
        for i in range(k, m):
            factor, out = row[i], H[i]
            g[i] += factor * value
            for j in range(k, i + 1):
                out[j] += factor * row[j]
    for i in range(m):
        for j in range(i):
            H[j, i] = H[i, j]


@compiled_as_written
def solve_nonnegative(
    R: Array, u: Array, first: int, kinds: Indices, held: Mask, work: Array, x: Array
) -> None:
    """The minimum x (n,) where only x[first:] is bounded, after :func:`normal_equations`.

    kinds : (m,) of x[first:], m = n - first. held : (m,) which of them were zero in the last
        solution, to begin with; filled with those of this one.
    work : (2 m + 3, m), the working memory.
    """
    n, m = len(x), len(x) - first
    H, L = work[:m], work[m : 2 * m]
    g, gradient, y = work[2 * m], work[2 * m + 1], work[2 * m + 2]
    for i in range(m):
        held[i] = kinds[i] == NONNEGATIVE and held[i]
    least, chances = m + 1, MAX_EXCHANGES
    for _ in range(100 * m):
        _solve_free(H, L, g, held, y)
        wrong, last = 0, -1
        for i in range(m):
            gradient[i] = 0.0
            if kinds[i] != NONNEGATIVE:
                continue
            if held[i]:
                size = abs(g[i])
                total = -g[i]
                for j in range(m):
                    total += H[i, j] * y[j]
                    size += abs(H[i, j] * y[j])
                gradient[i] = total if total < -GRADIENT_ROUNDING * size else 0.0
            else:
                gradient[i] = min(y[i], 0.0)
            if gradient[i] < 0.0:
                wrong += 1
                last = i
        if wrong == 0:
            break
        if wrong < least:
            least, chances = wrong, MAX_EXCHANGES
        else:
            chances -= 1
        for i in range(m):
            if gradient[i] < 0.0 and (chances >= 0 or i == last):
                held[i] = not held[i]
    for i in range(m):
        x[first + i] = y[i]
    for i in range(first - 1, -1, -1):
        total = u[i]
        for j in range(i + 1, n):
            total -= R[i, j] * x[j]
        x[i] = total / R[i, i]


@compiled_as_written
def _solve_free(H: Array, L: Array, g: Array, held: Mask, y: Array) -> None:
    """y (m,) with H y = g where it isn't held, 0 where it is; L gets the Cholesky factor."""
    m = len(g)
    for i in range(m):
        y[i] = 0.0
        if held[i]:
            continue
        for j in range(i + 1):
            if held[j]:
                continue
            total = H[i, j]
            for k in range(j):
                if not held[k]:
                    total -= L[i, k] * L[j, k]
            if i == j:  # two that are the same but for rounding
                total = max(total, MIN_PIVOT * H[i, i])
            L[i, j] = np.sqrt(total) if i == j else total / L[j, j]
        total = g[i]
        for k in range(i):
            if not held[k]:
                total -= L[i, k] * y[k]
        y[i] = total / L[i, i]
    for i in range(m - 1, -1, -1):
        if held[i]:
            continue
        total = y[i]
        for k in range(i + 1, m):
            if not held[k]:
                total -= L[k, i] * y[k]
        y[i] = total / L[i, i]
