"""Inner products of compressed sparse rows (scipy.sparse) with such centres.

Time and memory do not depend on how many columns there are, which may be tens of millions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.base.jit import compiled


class SparseCenters:
    """X -> X S C' for compressed rows X (k, d) and centres C (m, d), S diagonal: (k, m), float64.

    The centres are kept by columns, only those in which one of them has a number, so that a
    number of a row costs as many multiplications as there are centres with one in its column.
    scipy's product makes a sparse matrix first, and takes three to six times as long where a row
    shares columns with most centres.

    Parameters
    ----------
    C : centres (m, d), compressed rows.
    scale : S, for each column, (d,); None: ones.
    """

    def __init__(self, C: Any, scale: Array | None = None) -> None:
        self._m = C.shape[0]
        used, place = np.unique(C.indices, return_inverse=True)
        values = C.data.astype(float)
        if scale is not None:
            values *= scale[C.indices]
        by_column = csr_array((values, place, C.indptr), shape=(self._m, len(used))).tocsc()
        # Column 0 has no centre, and is that of all inputs in which none has a number.
        self._used = used
        self._starts = np.concatenate(([0], by_column.indptr)).astype(np.int64)
        self._centers = by_column.indices.astype(np.int32)
        self._values = by_column.data

    def __call__(self, X: Any) -> Array:
        """The products with rows X (k, d)."""
        out = np.zeros((X.shape[0], self._m))
        if not len(self._used):
            return out
        found = np.minimum(np.searchsorted(self._used, X.indices), len(self._used) - 1)
        places = np.where(self._used[found] == X.indices, found + 1, 0).astype(np.int32)
        centers = self._starts, self._centers, self._values
        add_products(X.indptr, places, X.data, *centers, out)
        return out


@compiled
def add_products(
    starts: Any,
    columns: Any,
    values: Array,
    column_starts: Any,
    centers: Any,
    center_values: Array,
    out: Array,
) -> None:
    """out += X C' for X (k, p) by rows and C (m, p) by columns, each compressed."""
    for i in range(len(out)):
        row = out[i]
        for p in range(starts[i], starts[i + 1]):
            column, value = columns[p], values[p]
            for q in range(column_starts[column], column_starts[column + 1]):
                row[centers[q]] += value * center_values[q]


def sparse_polynomial(C: Any, degree: int, scale: float, offset: float) -> Callable[[Any], Array]:
    """X -> (scale x'c + offset)^degree, (k, m), in the dtype of C."""
    product = SparseCenters(C)

    def block(X: Any) -> Array:
        K = product(X)
        K *= scale
        K += offset
        return np.power(K, degree, out=K).astype(C.dtype, copy=False)

    return block


def sparse_gaussian(C: Any, widths: Array) -> Callable[[Any], Array]:
    """X -> exp(-|x - c|^2 / 2 sigma^2), (k, m), in the dtype of C, with a width for each input.

    The square is |x|^2 - 2 x'c + |c|^2 in float64, from the origin, for a shift would fill in the
    zeros. Raises LearningError when squares of inputs divided by the widths overflow.
    """
    with np.errstate(over="ignore"):  # is found in the squares
        inverses = np.square(1.0 / (widths if widths.strides[0] else widths[:1]))
    scale = None if len(inverses) == 1 else inverses
    common = inverses[0] if scale is None else 1.0
    product = SparseCenters(C, scale)

    def halved_squares(X: Any) -> Array:
        weights = common if scale is None else scale[X.indices]
        with np.errstate(over="ignore"):
            values = np.square(X.data.astype(float)) * weights
        squares = csr_array((values, X.indices, X.indptr), X.shape)
        result: Array = 0.5 * np.asarray(squares.sum(axis=1)).ravel()
        if not np.isfinite(result).all():
            raise LearningError(
                "Inputs are so large relative to the kernel's length scale that their squares "
                "overflow: scale the inputs, or raise length_scale."
            )
        return result

    own = halved_squares(C)

    def block(X: Any) -> Array:
        K = product(X)
        K *= common
        K -= halved_squares(X)[:, None]
        K -= own
        np.minimum(K, 0.0, out=K)  # rounding
        return np.exp(K, out=K).astype(C.dtype, copy=False)

    return block
