"""Large matrices by all cores, a block of rows at a time: kernel products and Cholesky factors.

K(rows, centres) is kept when it fits into the memory limit, and computed anew for each product
when it doesn't (Rudi, Carratino, Rosasco 2017, section 3).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, singledispatch
from typing import Any, TypeVar

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf
from threadpoolctl import ThreadpoolController

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.learning.kernels import (
    NOT_FINITE,
    Bound,
    GaussianBlocks,
    Kernel,
    add_rows,
    as_inputs,
    in_rows,
    is_sparse,
    weight_columns,
)
from semiparam_dynamics.learning.rows import Block, Rows, memory_budget, rows_within

# -------------------------------------------------------------------------------------------------
# The cores that blocks of rows share: one thread each, and products inside on one.

T = TypeVar("T")
S = TypeVar("S")
_this = threading.local()


def n_threads() -> int:
    """The cores that this process may use; 1 within :func:`one_thread`.

    At most OMP_NUM_THREADS, where that is set: it bounds NumPy's products as well.
    """
    if getattr(_this, "alone", False):
        return 1
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    most = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # of the outer level
    return min(cores, int(most)) if most.isdecimal() and int(most) else cores


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which this thread starts no others, for it is one of several already."""
    before, _this.alone = getattr(_this, "alone", False), True
    try:
        yield
    finally:
        _this.alone = before


def map_in_order(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """function(item) of each item, in order, computed by as many threads as there are cores.

    At most two items a thread are read ahead. Products inside run on one thread each: NumPy's
    elementwise functions use one core only, so the blocks share the cores, not the products.
    """
    threads = n_threads()
    if threads == 1:
        yield from map(function, items)
        return
    with _alone, ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[T]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def for_each(function: Callable[[S], None], items: Iterable[S]) -> None:
    """function(item) of each item, for what it changes, as by :func:`map_in_order`."""
    for _ in map_in_order(function, items):
        pass


class _OneThreadInProducts:
    """The context of BLAS on one thread, for any number of maps at once.

    Its number of threads is the process': the first map notes and changes it, the last one puts it
    back. Each for itself would put back what another had set, and leave it at one for good.
    """

    def __init__(self) -> None:
        self._lock, self._maps = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._maps:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._maps += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._maps -= 1
            if not self._maps:
                self._limit.restore_original_limits()


_alone = _OneThreadInProducts()


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds: once, not for every product."""
    return ThreadpoolController()


# -------------------------------------------------------------------------------------------------
# Products with the kernel matrix.

CACHE_BYTES = 2**22  # a block's kernel stays in the processor's cache between the steps on it
# How much faster products of matrices are, by operation, than matrix times vector.
MATRIX_SPEEDUP = 20.0
TASK_ENTRIES = 2**22  # of the kernel, a block's where none is stored: some milliseconds
# Up to so many columns, by the bytes of a number, one after the other takes less time than matrix
# products: for one, two thirds of it in double precision and a quarter in single.
COMPILED_COLUMNS = {4: 8, 8: 3}


def evaluate_into(bound: Bound, X: Array, out: Array) -> None:
    """out = K(X, centres), (n, m), by all cores where there is enough work for them."""
    if out.nbytes <= CACHE_BYTES:
        out[:] = bound(X)
        return
    size = max(64, CACHE_BYTES // max(out[:1].nbytes, 1))

    def fill(i: int) -> None:
        out[i : i + size] = bound(X[i : i + size])

    for_each(fill, range(0, X.shape[0], size))


# Of products, their first argument (a block's kernel or inputs), the block, its place in the rows.
OfBlock = Callable[[Any, Array, Block, slice], Array]


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
        self._fused_rows = max(self.block_rows, min(left // 2 // light, TASK_ENTRIES // m))
        if isinstance(self._bound, GaussianBlocks):
            self._bound.cached_rows = min(self._bound.cached_rows, share)
        self._kept: list[tuple[Array, Block]] | None = None

    def multiply(self, B: Array) -> Iterator[Array]:
        """K B for B (m, T), a block of rows (k, T) at a time."""
        B = np.ascontiguousarray(B, dtype=float)
        for part in self._each(B.shape[1], lambda of, A, *_: of.multiply(A, B)):
            yield part.astype(self.rows.dtype, copy=False)

    def normal(self, B: Array, with_outputs: bool = False) -> Array:
        """K' W (K B - Y) for B (m, T), with W the sample weights, in float64; Y is zero unless
        `with_outputs`.
        """
        B = np.asarray(B, dtype=float)
        return self._sum(
            B.shape[1],
            lambda of, A, b, _: of.normal(A, B, b.Y if with_outputs else None, b.weights),
        )

    def weighted_normal(self, B: Array, weights: Array) -> Array:
        """K' W_t K b_t for each column of B (m, T), with weights (n, T) of its own, in place of
        the sample weights: (m, T) in float64.
        """
        B = np.asarray(B, dtype=float)
        return self._sum(B.shape[1], lambda of, A, _, part: of.normal(A, B, None, weights[part]))

    def transposed(self, S: Array) -> Array:
        """K' S for S (n, T): (m, T) in float64."""
        return self._sum(S.shape[1], lambda of, A, _, part: of.transposed(A, S[part]))

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""
        T = self.rows.n_outputs
        return self._sum(T, lambda of, A, b, _: of.transposed(A, _weighted(b.Y, b.weights)))

    def _fused(self, n_columns: int = 1) -> GaussianBlocks | None:
        """The kernel's products without a stored K, where they take less time; or None."""
        few = n_columns <= COMPILED_COLUMNS[self.rows.dtype.itemsize]
        if few and not self.fits and isinstance(self._bound, GaussianBlocks):
            return self._bound
        return None

    def _each(self, n_columns: int, function: OfBlock) -> Iterator[Array]:
        """function(products, A, block, part) for each block, in order, by several threads.

        The products' methods take A first: the block's inputs where `n_columns` need no stored K,
        and else K. `part` is the block's place among the rows.
        """
        fused = self._fused(n_columns)

        def of_block(item: tuple[Array | None, Block, int]) -> Array:
            K, block, end = item
            part = slice(end - len(block), end)
            if fused is not None:
                return function(fused, block.X, block, part)
            K = self._bound(block.X) if K is None else K
            return function(StoredProducts, K, block, part)

        pending = self._pending(self.block_rows if fused is None else self._fused_rows)
        ends = 0
        numbered = ((K, block, ends := ends + len(block)) for K, block in pending)
        yield from map_in_order(of_block, numbered)

    def _sum(self, n_columns: int, function: OfBlock) -> Array:
        total = np.zeros((self.centers.shape[0], n_columns))
        for part in self._each(n_columns, function):
            total += part
        return total

    def _pending(self, size: int) -> Iterator[tuple[Array | None, Block]]:
        """Blocks of rows, and their kernels where these are kept."""
        if self.fits and self._kept is None:
            self._kept = list(map_in_order(self._keep, self.rows.blocks(self.block_rows)))
        if self._kept is not None:
            yield from self._kept
            return
        for block in self.rows.blocks(size):
            yield None, block

    def _keep(self, block: Block) -> tuple[Array, Block]:
        """Kernel of a block without the inputs: those read from files would stay in memory."""
        K = self._bound(block.X)
        return K, Block(np.empty((len(block), 0), K.dtype), block.Y, block.weights)


@singledispatch
def kernel_rows(
    rows: Rows,
    kernel: Kernel,
    centers: Array,
    memory_limit: int | None = None,
    keep: bool = True,
) -> Any:
    """:class:`KernelRows`, or what a back end registers for its kind of rows.

    That has `rows`, `centers`, `normal` and `targets`; `multiply` where :meth:`Rows.like` gives
    rows of this kind.
    """
    return KernelRows(rows, kernel, centers, memory_limit, keep)


def largest_diagonal(rows: Rows, kernel: Kernel) -> float:
    """kappa^2 = max K(x, x) over the rows whose weight isn't zero.

    Raises LearningError for a value that is not finite.
    """
    largest = 0.0
    for block in rows.blocks(4096):
        X = block.X if block.weights is None else block.X[block.weights > 0.0]
        if X.shape[0]:
            with np.errstate(over="ignore"):
                here = float(kernel.diagonal(X).max())
            if not np.isfinite(here):
                raise LearningError(NOT_FINITE)
            largest = max(largest, here)
    return largest


class StoredProducts:
    """Products with a block's kernel K (k, m), as :class:`GaussianBlocks` has them of inputs."""

    @staticmethod
    def multiply(K: Array, B: Array) -> Array:
        """K B, (k, T) in float64, for B (m, T) in float64."""
        k, T = len(K), B.shape[1]
        if K.dtype == float or T > COMPILED_COLUMNS[K.itemsize]:
            return _wide(K) @ B
        S, none = np.zeros((k, T)), np.empty((0, T))
        _add_products(K, B.T, none, none, S, none[:, :0])
        return S

    @staticmethod
    def normal(K: Array, B: Array, Y: Array | None, weights: Array | None) -> Array:
        """K' W (K B - Y), (m, T) in float64, with weights (k,) or (k, T); Y None: zero."""
        k, T = len(K), B.shape[1]
        if T > COMPILED_COLUMNS[K.itemsize]:
            K = _wide(K)
            return K.T @ _weighted(K @ B if Y is None else K @ B - Y, weights)
        S, out = np.zeros((k, T)), np.zeros((T, K.shape[1]))
        Y = np.zeros((k, T)) if Y is None else Y
        _add_products(K, B.T, Y, weight_columns(weights, k, T), S, out)
        return out.T

    @staticmethod
    def transposed(K: Array, S: Array) -> Array:
        """K' S, (m, T) in float64, for S (k, T)."""
        return _wide(K).T @ S


def _add_products(K: Array, B: Array, Y: Array, w: Array, S: Array, out: Array) -> None:
    """:func:`~.kernels.add_rows` with a stored K (k, m)."""
    _add_stored(np.ascontiguousarray(K), in_rows(B), in_rows(Y), in_rows(w), S, out)


@compiled
def _add_stored(K: Array, B: Array, Y: Array, w: Array, S: Array, out: Array) -> None:
    for i in range(0, len(K), 4):
        add_rows(K[i : i + 4], B, Y, w, S, out, i)


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
# Cholesky factors in their matrices' place, and products, also of large ones.
#
# OpenBLAS' own, of more than about 15 000 rows, ends the process on two cores: what a thread of
# `syrk` multiplies outgrows its buffer (0.3.31). Above MAX_BLAS_ROWS rows these work in panels.

MAX_BLAS_ROWS = 12_000
PANEL_COLUMNS = 4096  # whose copies are small relative to the matrix, and products fast
PANEL_ROWS = 1024
TRIANGLE_COLUMNS = 256  # at most, of a product of triangles: fewer multiply fewer zeros


def upper_factor(A: Array, clean: bool = False) -> bool:
    """Make A its factor R, with R'R = A: of A, column-wise, (n, n), the upper half is read. The
    lower half holds nothing afterwards; with `clean`, zeros.

    False if there is none, as of a matrix that isn't positive definite; A is lost then. SciPy's
    function copies A and clears the other half column by column: at 5000 rows it takes four times
    as long as the factorisation.
    """
    assert A.flags.f_contiguous and A.dtype == float  # another one would be copied
    done = _factorise_at_once(A) if len(A) <= MAX_BLAS_ROWS else _factorise_panels(A)
    if done and clean:
        for i in range(len(A) - 1):
            A[i + 1 :, i] = 0.0
    return done


def _factorise_at_once(A: Array) -> bool:
    failed: int = dpotrf(A, lower=0, clean=0, overwrite_a=1)[1] if len(A) else 0
    return not failed


def _factorise_panels(A: Array) -> bool:
    n, L = len(A), A.T  # L L' = A, row by row
    for first in range(0, n, PANEL_COLUMNS):
        last = min(first + PANEL_COLUMNS, n)
        known = L[first:last, :first]

        def reduce(i: int, known: Array = known, first: int = first, last: int = last) -> None:
            end = min(i + PANEL_ROWS, last)
            L[i:end, first:end] -= L[i:end, :first] @ known[: end - first].T

        if first:
            for_each(reduce, range(first, last, PANEL_ROWS))
        R, failed = dpotrf(L[first:last, first:last].T, lower=0, clean=0)
        if failed:
            return False
        L[first:last, first:last] = R.T

        def solve(i: int, R: Array = R, known: Array = known, first: int = first) -> None:
            rows = L[i : i + PANEL_ROWS, first : first + len(R)]
            rest = rows - L[i : i + PANEL_ROWS, :first] @ known.T
            rows[:] = dtrsm(1.0, R, rest.T, lower=0, trans_a=1, overwrite_b=1).T

        for_each(solve, range(last, n, PANEL_ROWS))
    return True


def add_products(gram: Array, A: Array) -> Array:
    """gram + A'A, its upper half, in gram's place, (q, q), column-wise, for A (k, q)."""
    q = len(gram)
    if q <= MAX_BLAS_ROWS:
        result: Array = dsyrk(1.0, A.T, beta=1.0, c=gram, lower=0, overwrite_c=1)
        return result
    for first in range(0, q, PANEL_ROWS):
        here = slice(first, first + PANEL_ROWS)
        gram.T[here, : first + PANEL_ROWS] += A[:, here].T @ A[:, : first + PANEL_ROWS]
    return gram


def triangle_products(L: Array, weights: Array) -> Array:
    """L' diag(weights) L, its upper half, column-wise, (n, n), of a lower triangle L, row by row,
    whose upper half is zero, by a third of the multiplications that `add_products` takes.
    """
    # LAPACK's lauum reaches half of the matrix products' speed. What a thread writes first, it
    # also asks the system for, which on a virtual machine takes as long as a third of the product.
    n = len(L)
    if n <= TRIANGLE_COLUMNS:  # threads would take longer to begin
        return ((L * weights[:, None]).T @ L).T
    result, columns = np.empty((n, n)), min(TRIANGLE_COLUMNS, max(16, n // 64))

    def part(first: int) -> None:
        last = min(first + columns, n)
        weighted = L[first:, first:last] * weights[first:, None]
        np.matmul(weighted.T, L[first:, :last], out=result[first:last, :last])

    # The largest first, so that all cores end together.
    for_each(part, sorted(range(0, n, columns), key=lambda i: -(n - i) * (i + columns)))
    return result.T
