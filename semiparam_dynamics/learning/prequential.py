"""The errors that a recursive ridge regression makes on the way, without going row by row.

A candidate's hyperparameters are judged by its errors on each row, or block of rows, before it has
learned it. Row by row that is one pass over a triangle for each row. Here many rows are taken at
once, by the same algebra and to the same result, at the speed of matrix products: before any of
them is learned, their errors E have the covariance I + V'V, V = R^-T Z' (thesis 8.2.4), in units
of the noise's. With L its Cholesky factor and w = L^-1 E, what is left of the errors of a block
when the rows above it have been learned is L_bb w_b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.learning.ridge import NestedRidge

LEAST_ROWS = 128  # taken at once; with more features as many rows as features


@dataclass
class PrequentialErrors:
    """Errors on n rows, T outputs."""

    block: Array  # (n, T), before any row of the same block was learned
    one_step: Array  # (n, T), before the row itself was learned, those above it having been


def prequential_errors(
    system: NestedRidge,
    Z: Array,
    Y: Array,
    edges: Indices,
    ridges: Sequence[float],
    sizes: Sequence[int],
) -> dict[tuple[float, int], PrequentialErrors]:
    """Errors of going on from `system` through feature rows Z (n, q) with outputs Y (n, T).

    edges : where the blocks begin, from 0, and n.
    ridges : plain ridges on the weights. sizes : leading features; each pair is one model.

    The system has learned the rows afterwards. Features that no row has shown yet (columns of
    zeros so far) predict nothing, so that one system serves features that are added on the way.
    """
    keys = [(ridge, size) for ridge in ridges for size in sizes]
    found = {key: PrequentialErrors(np.empty_like(Y), np.empty_like(Y)) for key in keys}
    start = 0
    for a, b in _chunks(edges, max(system.n_features, LEAST_ROWS)):
        inner = edges[(edges >= a) & (edges <= b)] - a
        z, y = Z[a:b], Y[a:b]
        for ridge in ridges:
            factor = system.factor(ridge)
            V = solve_triangular(factor.R, z.T, trans="T", check_finite=False)
            for size in sizes:
                errors = y - V[:size].T @ factor.U[:size]
                block, one_step = _one_after_the_other(V[:size], errors, inner)
                found[ridge, size].block[a:b] = block
                found[ridge, size].one_step[a:b] = one_step
        system.add(z, y)
        start = b
    assert start == len(Z)
    return found


def _one_after_the_other(V: Array, errors: Array, edges: Indices) -> tuple[Array, Array]:
    covariance = V.T @ V
    covariance[np.diag_indices_from(covariance)] += 1.0
    L = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
    whitened = solve_triangular(L, errors, lower=True, check_finite=False)
    block = np.empty_like(errors)
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        block[a:b] = L[a:b, a:b] @ whitened[a:b]
    return block, np.diag(L)[:, None] * whitened


def _chunks(edges: Indices, rows: int) -> list[tuple[int, int]]:
    """Whole blocks taken together, of about as many rows; a longer block stays whole."""
    chunks, start = [], 0
    for previous, edge in zip(edges[:-1], edges[1:], strict=True):
        if edge - start > rows and previous > start:
            chunks.append((start, int(previous)))
            start = int(previous)
    if edges[-1] > start:
        chunks.append((start, int(edges[-1])))
    return chunks
