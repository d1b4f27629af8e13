"""Products with the kernel matrix K(rows, centres), block by block within a memory limit.

K is kept when it fits into the limit, and computed anew for each product when it doesn't
(Rudi, Carratino, Rosasco 2017, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol, TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled, take_widest_vectors
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.gaussian_blocks import GaussianBlocks, weight_columns
from semiparam_dynamics.learning.kernels import CACHE_BYTES, Bound, Kernel, evaluate_into
from semiparam_dynamics.learning.ridge import FeatureBlock, NestedRidge
from semiparam_dynamics.learning.rows import Block, Rows, memory_budget, on_host, rows_within
from semiparam_dynamics.learning.sparse import as_inputs, is_sparse
from semiparam_dynamics.learning.threads import map_in_order, n_threads

TASK_ENTRIES = 2**22  # of the kernel, a block's where none is stored: some milliseconds
# Up to so many columns, by the bytes of a number, one after the other takes less time than matrix
# products: for one, two thirds of it in double precision and a quarter in single.
COMPILED_COLUMNS = {4: 8, 8: 3}
Evaluated = tuple[Array, Block]  # K (k, m) of a block's rows, and the block; kept, without its X
Item = TypeVar("Item", bound="Evaluated | Block")


class KernelProducts(Protocol):
    """K(rows, centres) as a linear map, wherever the rows are."""

    rows: Rows
    centers: Array

    def multiply(self, B: Array) -> Iterator[Array]:
        """K B for B (m, T), a block of rows (k, T) at a time."""

    def normal(self, B: Array) -> Array:
        """K' W K B for B (m, T), with W the sample weights: (m, T) in float64."""

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""


class KernelRows:
    """K(rows, centres) as a linear map, computed by this process.

    With `keep` it is kept where it fits into the limit, which isn't worth it for a single product.
    A Gaussian kernel that isn't kept is never stored at all: see :class:`GaussianBlocks`.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        centers: Array,
        memory_limit: int | None = None,
        keep: bool = True,
    ) -> None:
        self.rows = rows
        self.centers = as_inputs(centers, rows.dtype)
        if not is_sparse(centers):
            self.centers = np.ascontiguousarray(self.centers)
        self._bound = kernel.bind(self.centers)
        budget = memory_budget(memory_limit)
        m = max(self.centers.shape[0], 1)
        row_bytes = m * rows.dtype.itemsize
        # Of one row in each thread: some kernels take four arrays of their values' size on the
        # way, in float64, and three of the inputs'.
        working = 8 * (4 * m + 3 * rows.row_numbers) * n_threads()
        kept = rows.n_samples * row_bytes
        self.fits = keep and kept + min(64, rows.n_samples) * working <= budget
        left = budget - kept if self.fits else budget
        share = rows_within(left, working, "A block of the kernel matrix")
        size = TASK_ENTRIES // m if self._fused(rows.n_outputs) else CACHE_BYTES // row_bytes
        self.block_rows = min(share, max(64, size))
        # Where none is stored, a row takes its inputs' copies, its outputs and its weights.
        light = 8 * (3 * rows.row_numbers + 3 * max(rows.n_outputs, 1)) * n_threads()
        self._fused_rows = max(self.block_rows, min(left // light, TASK_ENTRIES // m))
        self._kept: list[Evaluated] | None = None

    def blocks(self, function: Callable[[Array, Block], Array]) -> Iterator[Array]:
        """function(K, block) for each block of rows, in order, computed by several threads."""
        yield from map_in_order(lambda e: function(*self._evaluate(e)), self._pending())

    def multiply(self, B: Array) -> Iterator[Array]:
        """K B for B (m, T), a block of rows (k, T) at a time."""
        B = np.ascontiguousarray(B, dtype=float)
        dtype, fused = self.rows.dtype, self._fused(B.shape[1])
        if fused is not None:
            each = self._each(lambda block: fused.multiply(block.X, B))
        else:
            each = self.blocks(lambda K, block: product(K, B))
        yield from (part.astype(dtype, copy=False) for part in each)

    def normal(self, B: Array) -> Array:
        """K' W K B for B (m, T), with W the sample weights: (m, T) in float64."""
        return self.gradient(B, with_outputs=False)

    def weighted_normal(self, B: Array, weights: Array) -> Array:
        """K' W_t K b_t for each column of B (m, T), with weights (n, T) of its own, in place of
        the sample weights: (m, T) in float64.
        """
        B = np.asarray(B, dtype=float)
        fused = self._fused(B.shape[1])
        if fused is not None:
            numbered = self._numbered(self.rows.blocks(self._fused_rows))
            each = map_in_order(lambda p: fused.normal(p[0].X, B, None, weights[p[1]]), numbered)
        else:
            each = self._numbered_blocks(lambda K, part: _normal(K, B, None, weights[part]))
        return self._sum(each, B.shape[1])

    def transposed(self, S: Array) -> Array:
        """K' S for S (n, T): (m, T) in float64."""
        fused = self._fused(S.shape[1])
        if fused is not None:
            numbered = self._numbered(self.rows.blocks(self._fused_rows))
            each = map_in_order(lambda p: fused.transposed(p[0].X, S[p[1]]), numbered)
        else:
            each = self._numbered_blocks(lambda K, part: _wide(K).T @ S[part])
        return self._sum(each, S.shape[1])

    def gradient(self, B: Array, with_outputs: bool = True) -> Array:
        """K' W (K B - Y) for B (m, T), in float64; Y is zero unless `with_outputs`."""
        B = np.asarray(B, dtype=float)
        fused = self._fused(B.shape[1])

        def outputs(block: Block) -> Array | None:
            return block.Y if with_outputs else None

        if fused is not None:
            each = self._each(lambda b: fused.normal(b.X, B, outputs(b), b.weights))
        else:
            each = self.blocks(lambda K, b: _normal(K, B, outputs(b), b.weights))
        return self._sum(each, B.shape[1])

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""
        T = self.rows.n_outputs
        fused = self._fused(T)
        if fused is not None:
            each = self._each(lambda b: fused.transposed(b.X, _weighted(b.Y, b.weights)))
            return self._sum(each, T)
        each = self.blocks(lambda K, block: _wide(K).T @ _weighted(block.Y, block.weights))
        return self._sum(each, T)

    def _fused(self, n_columns: int = 1) -> GaussianBlocks | None:
        """The kernel's products without a stored K, where they take less time; or None."""
        few = n_columns <= COMPILED_COLUMNS[self.rows.dtype.itemsize]
        if few and not self.fits and isinstance(self._bound, GaussianBlocks):
            return self._bound
        return None

    def _each(self, function: Callable[[Block], Array]) -> Iterator[Array]:
        """function(block) for each block of rows, in order, computed by several threads."""
        yield from map_in_order(function, self.rows.blocks(self._fused_rows))

    def _numbered_blocks(self, function: Callable[[Array, slice], Array]) -> Iterator[Array]:
        """function(K, part) for each block of rows, with `part` its place among them, in order."""

        def of_item(numbered: tuple[Evaluated | Block, slice]) -> Array:
            return function(self._evaluate(numbered[0])[0], numbered[1])

        yield from map_in_order(of_item, self._numbered(self._pending()))

    def _numbered(self, items: Iterable[Item]) -> Iterator[tuple[Item, slice]]:
        start = 0
        for item in items:
            end = start + len(item if isinstance(item, Block) else item[1])
            yield item, slice(start, end)
            start = end

    def _sum(self, parts: Iterator[Array], n_columns: int) -> Array:
        total = np.zeros((self.centers.shape[0], n_columns))
        for part in parts:
            total += part
        return total

    def _pending(self) -> Iterator[Evaluated | Block]:
        if self.fits and self._kept is None:
            self._kept = list(map_in_order(self._keep, self.rows.blocks(self.block_rows)))
        yield from self.rows.blocks(self.block_rows) if self._kept is None else self._kept

    def _keep(self, block: Block) -> Evaluated:
        """What is kept of a block: inputs that are read from files would stay in memory with it."""
        K = self._bound(block.X)
        return K, Block(np.empty((len(block), 0), K.dtype), block.Y, block.weights)

    def _evaluate(self, item: Evaluated | Block) -> Evaluated:
        return (self._bound(item.X), item) if isinstance(item, Block) else item


@singledispatch
def kernel_rows(
    rows: Rows,
    kernel: Kernel,
    centers: Array,
    memory_limit: int | None = None,
    keep: bool = True,
) -> KernelProducts:
    """:class:`KernelRows`, or those that a back end registers for its kind of rows."""
    return KernelRows(rows, kernel, centers, memory_limit, keep)


def largest_diagonal(rows: Rows, kernel: Kernel) -> float:
    """kappa^2 = max K(x, x) over the rows whose weight isn't zero."""
    largest = 0.0
    for block in rows.blocks(4096):
        X = block.X if block.weights is None else block.X[block.weights > 0.0]
        if X.shape[0]:
            largest = max(largest, float(kernel.diagonal(X).max()))
    return largest


def product(K: Array, B: Array) -> Array:
    """K B of one block, (k, T) in float64, for B (m, T) in float64."""
    k, T = len(K), B.shape[1]
    if K.dtype == float or T > COMPILED_COLUMNS[K.itemsize]:
        wide: Array = _wide(K) @ B
        return wide
    K, result = np.ascontiguousarray(K), np.empty((T, k))
    for t in range(T):
        _multiply(K, np.ascontiguousarray(B[:, t]), result[t])
    return result.T


@compiled
def _multiply(K: Array, b: Array, out: Array) -> None:
    """out (k,) = K b for K (k, m) in single precision and b (m,), as in :func:`_add_normal`."""
    # With the products of four rows as a function that both call, both take a tenth longer.
    take_widest_vectors()
    k, m = K.shape
    for i in range(0, k - 3, 4):
        r0, r1, r2, r3 = K[i], K[i + 1], K[i + 2], K[i + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(m):
            bj = b[j]
            s0 += r0[j] * bj
            s1 += r1[j] * bj
            s2 += r2[j] * bj
            s3 += r3[j] * bj
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
    for i in range(k - k % 4, k):
        row, s0 = K[i], 0.0
        for j in range(m):
            s0 += row[j] * b[j]
        out[i] = s0


def _normal(K: Array, B: Array, Y: Array | None, weights: Array | None) -> Array:
    """K' W (K B - Y) of one block, (m, T) in float64, with weights (k,) or (k, T); Y None: zero."""
    k, T = len(K), B.shape[1]
    if T > COMPILED_COLUMNS[K.itemsize]:
        K = _wide(K)
        return K.T @ _weighted(K @ B if Y is None else K @ B - Y, weights)
    K = np.ascontiguousarray(K)
    each = weight_columns(weights, k, T)
    result = np.zeros((T, K.shape[1]))
    for t in range(T):
        w = np.ascontiguousarray(each[:, t])
        y = np.zeros(k) if Y is None else Y[:, t].astype(float)
        _add_normal(K, np.ascontiguousarray(B[:, t]), y, w, result[t])
    return result.T


@compiled
def _add_normal(K: Array, b: Array, y: Array, w: Array, out: Array) -> None:
    """out += K' diag(w) (K b - y) for K (k, m), b (m,), y and w (k,), out (m,).

    K may be in single precision; everything else is in double, and so are all sums: in them
    coefficients of opposite signs, many times larger than the function, cancel. Four rows of K
    are used twice while they are in the processor's cache.
    """
    take_widest_vectors()
    k, m = K.shape
    for i in range(0, k - 3, 4):
        r0, r1, r2, r3 = K[i], K[i + 1], K[i + 2], K[i + 3]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(m):
            bj = b[j]
            s0 += r0[j] * bj
            s1 += r1[j] * bj
            s2 += r2[j] * bj
            s3 += r3[j] * bj
        s0 = (s0 - y[i]) * w[i]
        s1 = (s1 - y[i + 1]) * w[i + 1]
        s2 = (s2 - y[i + 2]) * w[i + 2]
        s3 = (s3 - y[i + 3]) * w[i + 3]
        for j in range(m):
            out[j] += r0[j] * s0 + r1[j] * s1 + r2[j] * s2 + r3[j] * s3
    for i in range(k - k % 4, k):
        row = K[i]
        s0 = 0.0
        for j in range(m):
            s0 += row[j] * b[j]
        s0 = (s0 - y[i]) * w[i]
        for j in range(m):
            out[j] += row[j] * s0


def _wide(K: Array) -> Array:
    """K in float64. The entries may be rounded to float32, their sums must not be: coefficients
    of opposite signs, many times larger than the function, cancel in them.
    """
    return K.astype(float, copy=False)


def _weighted(Y: Array, weights: Array | None) -> Array:
    if weights is None:
        return Y
    return Y * (weights[:, None] if weights.ndim == 1 else weights)


# -------------------------------------------------------------------------------------------------
# Features of the data, a large block of rows at a time.

BLOCK_BYTES = 2**27


@dataclass(frozen=True)
class FeatureMap:
    """x -> features (q,).

    `evaluate` makes of inputs (k, d) values (k, q), on blocks that the processor's cache holds.
    `finish` makes the features of them and uses them up; on large blocks, by BLAS.
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
    return FeatureMap(basis.n_features, basis.kernel.bind(centers), finish)


def feature_blocks(
    rows: Rows, features: FeatureMap, memory_limit: int | None = None, beside: int = 0
) -> Iterator[FeatureBlock]:
    """(A (k, q), Y (k, T), weights (k,) or None), as many rows at a time as the limit lets.

    `beside` is what the caller takes for each row of a block beside a few copies of A, in bytes.

    Small chunks of data are put together, since BLAS is fast on large blocks. The arrays are used
    again for the next block.
    """
    q = max(features.n_features, 1)
    # The values, their copy in double precision, and one in the other order.
    row_bytes = (
        q * (rows.dtype.itemsize + 16) + 8 * (rows.row_numbers + 2 * rows.n_outputs) + beside
    )
    size = rows_within(memory_budget(memory_limit), row_bytes, "A block of features")
    size = min(size, rows.n_samples, max(BLOCK_BYTES // row_bytes, 256))
    A = np.empty((size, features.n_features), rows.dtype)
    Y = np.empty((size, rows.n_outputs), rows.dtype)
    weights = np.empty(size, rows.dtype) if rows.weighted else None

    def ready(k: int) -> FeatureBlock:
        part = A[:k]
        if features.finish is not None and features.n_features:
            part = features.finish(part)
        return part, Y[:k], None if weights is None else weights[:k]

    filled = 0
    for block in map(on_host, rows.blocks(size)):
        for piece in _pieces(block, size - filled, size):
            end = filled + len(piece)
            if features.n_features:
                evaluate_into(features.evaluate, piece.X, A[filled:end])
            Y[filled:end] = piece.Y
            if weights is not None:
                weights[filled:end] = piece.weights
            filled = end
            if filled == size:
                yield ready(filled)
                filled = 0
    if filled:
        yield ready(filled)


@singledispatch
def second_moments(
    rows: Rows, features: FeatureMap, memory_limit: int | None, orthogonal: bool
) -> NestedRidge:
    """A'WA and A'WY of the rows' features A (n, q), or their triangular factor, in one pass.

    A back end may register its own for its kind of rows.
    """
    system = NestedRidge(features.n_features, rows.n_outputs, orthogonal)
    for A, Y, weights in feature_blocks(rows, features, memory_limit):
        system.add(A, Y, weights)
    return system


def _pieces(block: Block, room: int, size: int) -> Iterator[Block]:
    """The block in pieces: what fits into `room`, then at most `size` rows each."""
    if room < len(block):
        yield block[:room]
        block = block[room:]
    for i in range(0, len(block), size):
        yield block[i : i + size]
