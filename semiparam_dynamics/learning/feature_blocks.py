"""Features of the data, a large block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.kernels import Bound
from semiparam_dynamics.learning.memory import memory_budget, rows_within
from semiparam_dynamics.learning.products import CACHE_BYTES, evaluate_into
from semiparam_dynamics.learning.rows import Block, Rows

BLOCK_BYTES = 2**27


@dataclass(frozen=True)
class FeatureMap:
    """x -> features (q,).

    Attributes
    ----------
    n_features : q.
    evaluate : inputs (k, d) -> (k, q); it runs on blocks that the processor's cache holds.
    finish : what makes the features (k, q) from those values, and uses them up; on large blocks,
        by BLAS.
    """

    n_features: int
    evaluate: Bound
    finish: Callable[[Array], Array] | None = None


def nystrom_map(basis: NystromBasis, dtype: np.dtype) -> FeatureMap:
    """The features of a Nyström basis, computed in `dtype`."""
    L = np.asfortranarray(basis.factor, dtype=dtype)

    def finish(K: Array) -> Array:
        phi: Array = solve_triangular(L, K.T, lower=True, overwrite_b=True, check_finite=False)
        return phi.T

    centers = basis.centers[basis.kept].astype(dtype)
    return FeatureMap(len(centers), basis.kernel.bind(centers), finish)


def feature_blocks(
    rows: Rows, features: FeatureMap, memory_limit: int | None = None, beside: int = 0
) -> Iterator[tuple[Array, Array, Array | None]]:
    """(A (k, q), Y (k, T), weights (k,) or None), as many rows at a time as the limit lets.

    `beside` is what the caller takes for each row of a block beside a few copies of A, in bytes.

    Small chunks of data are put together, since BLAS is fast on large blocks. The arrays are used
    again for the next block.
    """
    q = max(features.n_features, 1)
    # The values, their copy in double precision, and one in the other order.
    row_bytes = q * (rows.dtype.itemsize + 16) + 8 * (rows.n_features + 2 * rows.n_outputs) + beside
    size = rows_within(memory_budget(memory_limit), row_bytes, "A block of features")
    size = min(size, rows.n_samples, max(BLOCK_BYTES // row_bytes, 256))
    A = np.empty((size, features.n_features), rows.dtype)
    Y = np.empty((size, rows.n_outputs), rows.dtype)
    weights = np.empty(size, rows.dtype) if rows.weighted else None

    def ready(k: int) -> tuple[Array, Array, Array | None]:
        part = A[:k]
        if features.finish is not None and features.n_features:
            part = features.finish(part)
        return part, Y[:k], None if weights is None else weights[:k]

    filled = 0
    for block in rows.blocks(size):
        for piece in _pieces(block, size - filled, size):
            end = filled + len(piece.X)
            if features.n_features:
                _evaluate(features.evaluate, piece.X, A[filled:end])
            Y[filled:end] = piece.Y
            if weights is not None:
                weights[filled:end] = piece.weights
            filled = end
            if filled == size:
                yield ready(filled)
                filled = 0
    if filled:
        yield ready(filled)


def _evaluate(evaluate: Bound, X: Array, out: Array) -> None:
    """out = evaluate(X), by all cores where there is enough work for them."""
    if out.nbytes <= CACHE_BYTES:
        out[:] = evaluate(X)
    else:
        evaluate_into(evaluate, X, out)


def _pieces(block: Block, room: int, size: int) -> Iterator[Block]:
    """The block in pieces: what fits into `room`, then at most `size` rows each."""
    if room < len(block.X):
        yield block[:room]
        block = block[room:]
    for i in range(0, len(block.X), size):
        yield block[i : i + size]


def coefficients(basis: NystromBasis, beta: Array) -> Array:
    """What multiplies K(x, c_j), (M, T), for weights (t, T) of the basis' first t features."""
    if not len(beta):  # a kernel that is zero at every centre
        return np.zeros((len(basis.centers), beta.shape[1]))
    return basis.coefficients(beta)
