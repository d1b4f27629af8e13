"""Leave-one-out predictions of ridge regression on nested features, without n fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.ridge import NestedRidge
from semiparam_dynamics.learning.rows import Rows

Stream = Callable[[], Iterable[tuple[Array, Array, Array | None]]]


def leave_one_out_predictions(
    system: NestedRidge,
    rows: Rows,
    stream: Stream,
    sizes: Sequence[int],
    penalties: Sequence[float],
) -> Iterator[tuple[int, Array]]:
    """(number of a size, predictions (penalties, n, T)), by what is fitted to the other rows.

    y_i - (y_i - f_i) / (1 - h_i), with the leverage h_i = w_i a_i' (A'WA + r I)^-1 a_i of row i's
    features a_i. The fit without row i has the ridge r = penalty (n - w_i), and so have f_i and
    h_i here: with the eigenvectors of A'WA, another ridge for each row costs nothing.
    """
    for number, t in enumerate(sizes):
        values, vectors, projected = system.spectrum(t)
        result = np.empty((len(penalties), rows.n_samples, rows.n_outputs))
        start = 0
        for A, Y, weights in stream():
            P = A[:, :t].astype(float) @ vectors
            block = _smoothed(P, values, projected, rows.total_weight, weights, penalties)
            for i, (fitted, leverage) in enumerate(block):
                rest = np.maximum(1.0 - leverage, np.finfo(float).eps)
                result[i, start : start + len(P)] = Y - (Y - fitted) / rest[:, None]
            start += len(P)
        yield number, result


def _smoothed(
    P: Array,
    values: Array,
    projected: Array,
    total: float,
    weights: Array | None,
    penalties: Sequence[float],
) -> Iterator[tuple[Array, Array]]:
    """For each penalty, f_i (k, T) and h_i (k,) of rows with coordinates P (k, t)."""
    squares = P * P
    if weights is None:
        inverses = 1.0 / (values[:, None] + np.multiply(penalties, total - 1.0))
        yield from (
            (P @ (inverse[:, None] * projected), leverage)
            for inverse, leverage in zip(inverses.T, (squares @ inverses).T, strict=True)
        )
        return
    w = weights.astype(float)
    for penalty in penalties:
        ridge = penalty * (total - w)[:, None]
        # Without a ridge no other row has a weight, and their fit is zero.
        inverse = np.where(ridge > 0.0, 1.0 / np.where(ridge > 0.0, values + ridge, 1.0), 0.0)
        fitted = (P * inverse) @ projected
        yield fitted, w * np.einsum("ij,ij->i", squares, inverse)
