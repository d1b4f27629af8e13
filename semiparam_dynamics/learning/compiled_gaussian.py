"""The compiled loops of products with a Gaussian kernel matrix that is never stored.

A tile of exponents comes from one matrix product, small enough that it needs no copy of its
factors and its result stays in the first-level cache; there it is exponentiated and multiplied.
Only `R` rows of the kernel are kept, in the second-level cache, until their sums are known.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled
from semiparam_dynamics.learning.exponential import BYTES, exponentiate


@compiled
def evaluate(X: Array, C: Array, E: Array, K: Array) -> None:
    """K = exp(X C), (k, m), for X (k, p) and the centres C in tiles (m / w, p, w).

    E (R, w) is working memory. The last tile may be wider than what is left of m.
    """
    for i in range(0, len(X), len(E)):
        here = min(len(E), len(X) - i)
        for t in range(len(C)):
            _exponents(X, C, E, i, here, t)
            _exponentiate(E, K, i, here, t * E.shape[1])


@compiled
def product(X: Array, C: Array, B: Array, E: Array, K: Array, out: Array) -> None:
    """out = exp(X C) B, (k, T), for B transposed (T, m); E (R, w) and K (R, m) are overwritten."""
    out[:] = 0.0
    for i in range(0, len(X), len(E)):
        here = min(len(E), len(X) - i)
        _forward(X, C, B, E, K, out, i, here)


@compiled
def add_normal_product(
    X: Array, C: Array, B: Array, Y: Array, w: Array, E: Array, K: Array, S: Array, out: Array
) -> None:
    """out += K' diag(w) (K B - Y), (T, m), with K = exp(X C), B (T, m), Y (k, T) and w (k,).

    E (R, w), K (R, m) and S (k, T) are working memory.
    """
    S[:] = 0.0
    for i in range(0, len(X), len(E)):
        here = min(len(E), len(X) - i)
        _forward(X, C, B, E, K, S, i, here)
        for r in range(i, i + here):
            for t in range(S.shape[1]):
                S[r, t] = (S[r, t] - Y[r, t]) * w[r]
        _backward(K, S, i, here, E.shape[1], out)


@compiled
def add_transposed_product(X: Array, C: Array, S: Array, E: Array, K: Array, out: Array) -> None:
    """out += K' S, (T, m), with K = exp(X C), for S (k, T); E (R, w) and K (R, m) are working
    memory.
    """
    for i in range(0, len(X), len(E)):
        here = min(len(E), len(X) - i)
        for t in range(len(C)):
            _exponents(X, C, E, i, here, t)
            _exponentiate(E, K, 0, here, t * E.shape[1])
        _backward(K, S, i, here, E.shape[1], out)


@compiled
def _exponents(X: Array, C: Array, E: Array, start: int, here: int, tile: int) -> None:
    np.dot(X[start : start + here], C[tile], E[:here])


@compiled
def _exponentiate(E: Array, K: Array, start: int, here: int, first: int) -> None:
    """K's rows from `start`, columns from `first`, from exponents E."""
    width = E.shape[1]
    size = BYTES // E.itemsize  # of a vector; the width is a multiple of it
    rest = K.shape[1] - first
    for r in range(here):
        exponents = E[r]
        if rest >= width:
            row = K[start + r, first : first + width]
            for j in range(0, width, size):
                exponentiate(exponents, j, row, j)
        else:
            for j in range(0, width, size):
                exponentiate(exponents, j, exponents, j)
            K[start + r, first:] = exponents[:rest]


@compiled
def _forward(
    X: Array, C: Array, B: Array, E: Array, K: Array, S: Array, start: int, here: int
) -> None:
    """K = exp(X C) of the rows from `start`, and S += K B there."""
    for tile in range(len(C)):
        first = tile * E.shape[1]
        last = min(first + E.shape[1], K.shape[1])
        _exponents(X, C, E, start, here, tile)
        _exponentiate(E, K, 0, here, first)
        for t in range(len(B)):
            b = B[t, first:last]
            for r in range(0, here - 3, 4):
                r0, r1 = K[r, first:last], K[r + 1, first:last]
                r2, r3 = K[r + 2, first:last], K[r + 3, first:last]
                s0 = s1 = s2 = s3 = 0.0
                for j in range(b.size):
                    bj = b[j]
                    s0 += r0[j] * bj
                    s1 += r1[j] * bj
                    s2 += r2[j] * bj
                    s3 += r3[j] * bj
                S[start + r, t] += s0
                S[start + r + 1, t] += s1
                S[start + r + 2, t] += s2
                S[start + r + 3, t] += s3
            for r in range(here - here % 4, here):
                row = K[r, first:last]
                s0 = 0.0
                for j in range(b.size):
                    s0 += row[j] * b[j]
                S[start + r, t] += s0


@compiled
def _backward(K: Array, S: Array, start: int, here: int, width: int, out: Array) -> None:
    """out += K' S of the rows from `start`, by tiles of `width` so that out's part stays near."""
    for first in range(0, K.shape[1], width):
        last = min(first + width, K.shape[1])
        for t in range(len(out)):
            o = out[t, first:last]
            for r in range(0, here - 3, 4):
                r0, r1 = K[r, first:last], K[r + 1, first:last]
                r2, r3 = K[r + 2, first:last], K[r + 3, first:last]
                s0, s1 = S[start + r, t], S[start + r + 1, t]
                s2, s3 = S[start + r + 2, t], S[start + r + 3, t]
                for j in range(o.size):
                    o[j] += r0[j] * s0 + r1[j] * s1 + r2[j] * s2 + r3[j] * s3
            for r in range(here - here % 4, here):
                row, s0 = K[r, first:last], S[start + r, t]
                for j in range(o.size):
                    o[j] += row[j] * s0
