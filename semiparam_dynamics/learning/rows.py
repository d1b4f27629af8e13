"""Training data as blocks of rows: arrays, memory maps, folders of files, or any chunks.

Methods that read the data in blocks take a :class:`Rows` in place of X, and never hold all of it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
from sklearn.utils.validation import _check_sample_weight, check_array
from threadpoolctl import ThreadpoolController

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.backends.devices import device_of, is_dask

# -------------------------------------------------------------------------------------------------
# What scikit-learn's versions name differently: 1.4 is Ubuntu 24.04's, 1.6 moved validation.

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6 it was a method of every estimator

    def validate_data(estimator: Any, *args: Any, **settings: Any) -> Any:
        """Check and convert the data as scikit-learn does, and remember the inputs' number."""
        return estimator._validate_data(*args, **settings)


__all__ = ["validate_data"]


# -------------------------------------------------------------------------------------------------
# How much memory a computation may take, and in what blocks it therefore runs.

FRACTION = 0.25  # of the memory that is free when a limit isn't given


def memory_budget(limit: int | None) -> int:
    """The bytes that kernel matrices may take: `limit`, or by default a quarter of what is free.

    Raises ConfigurationError for a limit that isn't positive.
    """
    if limit is None:
        return int(FRACTION * psutil.virtual_memory().available)
    if limit <= 0:
        raise ConfigurationError(f"memory_limit must be a positive number of bytes, not {limit}.")
    return int(limit)


def rows_within(budget: int, row_bytes: int, what: str) -> int:
    """How many rows of `row_bytes` fit into `budget` bytes.

    Raises LearningError, naming `what`, when not even one does.
    """
    rows = budget // max(row_bytes, 1)
    if rows < 1:
        raise LearningError(
            f"{what} needs at least {row_bytes} bytes and memory_limit leaves {budget}: "
            f"raise the limit or use fewer centres."
        )
    return rows


def require(budget: int, needed: int, what: str) -> None:
    """Raise LearningError, naming `what`, when it needs more bytes than the budget has."""
    if needed > budget:
        raise LearningError(
            f"{what} needs {needed / 1e9:.3g} GB and the limit is {budget / 1e9:.3g} GB: raise "
            f"memory_limit, or use NystromKRLS or Falkon, which need less."
        )


# -------------------------------------------------------------------------------------------------
# Work on blocks of rows by several threads, with results in the blocks' order.

T = TypeVar("T")
S = TypeVar("S")
_this = threading.local()


def n_threads() -> int:
    """The cores that this process may use; 1 within :func:`one_thread`."""
    if getattr(_this, "alone", False):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """What this thread does in here, it does alone: it is one of several that share the cores."""
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
    with _controller().limit(limits=1), ThreadPoolExecutor(threads) as pool:
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


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries takes milliseconds: once, not for every product."""
    return ThreadpoolController()


Chunk = tuple[Any, ...]  # (X, y) or (X, y, sample_weight)


@dataclass(frozen=True)
class Block:
    """Rows X (k, d), their outputs Y (k, T), and their weights (k,) if they have any."""

    X: Array
    Y: Array
    weights: Array | None

    def __getitem__(self, rows: slice) -> Block:
        weights = None if self.weights is None else self.weights[rows]
        return Block(self.X[rows, ...], self.Y[rows, ...], weights)


class Rows:
    """Rows that can be read block by block, again and again.

    Parameters
    ----------
    chunks : chunks (X, y) or (X, y, sample_weight); something that can be gone through more
        than once, such as a list, or a function that returns a new iterator each time.
    dtype : float64 or float32, the precision of what is computed from them.

    The first look at the data counts the rows and checks them. Raises LearningError for a chunk
    that doesn't fit the others or holds values that are not finite.
    """

    def __init__(
        self, chunks: Iterable[Chunk] | Callable[[], Iterable[Chunk]], dtype: Any = np.float64
    ) -> None:
        if not callable(chunks) and iter(chunks) is chunks:
            raise LearningError(
                "The data are read more than once, and an iterator gives them only once: "
                "pass a list of chunks, or a function that makes the iterator."
            )
        self._chunks = chunks
        self.dtype = np.dtype(dtype)
        self.n_samples = 0
        self.total_weight = 0.0
        self.one_output = True
        first = True
        for block in self._read():
            if first:
                self.n_features, self.n_outputs = block.X.shape[1], block.Y.shape[1]
                self.weighted = block.weights is not None
                first = False
            self._check(block)
            self.n_samples += len(block.X)
            self.total_weight += len(block.X) if block.weights is None else block.weights.sum()
        self._check_total()

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None, dtype: Any = None) -> Rows:
        """Slices of arrays or memory maps; nothing is copied but the slice in use."""
        if not hasattr(X, "dtype"):  # lists, and tables of several columns
            X = np.asarray(X)
        if dtype is None:
            dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        if len(X) != len(y):
            raise LearningError(f"X has {len(X)} rows and y has {len(y)}.")
        size = max(1, 2**26 // max(X[:1].nbytes, 1))

        def chunks() -> Iterator[Chunk]:
            for i in range(0, len(X), size):
                part = slice(i, i + size)
                weights = () if sample_weight is None else (sample_weight[part],)
                yield (X[part], y[part], *weights)

        return cls(chunks, dtype)

    @classmethod
    def from_folder(cls, folder: str | Path, dtype: Any = np.float64) -> Rows:
        """A folder of .npz files, each a chunk with arrays X, y and perhaps sample_weight; or
        one with X.npy, y.npy and perhaps sample_weight.npy, which are memory-mapped.
        """
        folder = Path(folder)
        if (folder / "X.npy").exists():
            found = {
                name: np.load(folder / f"{name}.npy", mmap_mode="r")
                for name in ("X", "y", "sample_weight")
                if (folder / f"{name}.npy").exists()
            }
            if "y" not in found:
                raise LearningError(f"{folder} has X.npy and no y.npy.")
            return cls.from_arrays(found["X"], found["y"], found.get("sample_weight"), dtype)
        files = sorted(folder.glob("*.npz"))
        if not files:
            raise LearningError(f"{folder} has neither X.npy and y.npy nor any .npz file.")

        def chunks() -> Iterator[Chunk]:
            for path in files:
                with np.load(path) as arrays:
                    if not {"X", "y"} <= set(arrays.files):
                        raise LearningError(f"{path} needs arrays X and y; it has {arrays.files}.")
                    weights = "sample_weight" in arrays.files
                    yield (arrays["X"], arrays["y"], *([arrays["sample_weight"]] * weights))

        return cls(chunks, dtype)

    def like(self, X: Any, y: Any) -> Rows:
        """Other rows at the same place and in the same precision."""
        return Rows.from_arrays(X, y, dtype=self.dtype)

    def blocks(self, size: int) -> Iterator[Block]:
        """The rows in order, at most `size` at a time."""
        for block in self._read():
            for i in range(0, len(block.X), size):
                yield block[i : i + size]

    def take(self, indices: Indices) -> Array:
        """The inputs (k, d) at the given row numbers, in their order; one pass over the data."""
        result = np.empty((len(indices), self.n_features), self.dtype)
        start = 0
        for block in self._read():
            here = np.flatnonzero((indices >= start) & (indices < start + len(block.X)))
            result[here] = block.X[indices[here] - start]
            start += len(block.X)
        return result

    def weights(self) -> Array | None:
        """All sample weights, (n,), if there are any."""
        if not self.weighted:
            return None
        return np.concatenate([b.weights for b in self._read() if b.weights is not None])

    def _read(self) -> Iterator[Block]:
        for chunk in self._chunks() if callable(self._chunks) else self._chunks:
            if not 2 <= len(chunk) <= 3:
                raise LearningError("A chunk must be (X, y) or (X, y, sample_weight).")
            X, Y = (np.asarray(part, dtype=self.dtype) for part in chunk[:2])
            if X.ndim != 2 or Y.ndim not in (1, 2) or len(Y) != len(X):
                raise LearningError(
                    f"A chunk's X must be (rows, inputs) with as many rows as y; "
                    f"found {X.shape} and {Y.shape}."
                )
            if not len(X):
                continue
            self.one_output &= Y.ndim == 1
            weights = np.asarray(chunk[2], dtype=self.dtype) if len(chunk) == 3 else None
            yield Block(X, Y.reshape(len(Y), -1), weights)

    def _check_total(self) -> None:
        if not self.n_samples:
            raise LearningError("There are no rows to learn from.")
        if self.total_weight <= 0.0:
            raise LearningError("The sample weights sum to zero: there is nothing to learn from.")

    def _check(self, block: Block) -> None:
        found = (block.X.shape[1], block.Y.shape[1], block.weights is not None)
        if found != (self.n_features, self.n_outputs, self.weighted):
            raise LearningError(
                f"A chunk has {found[0]} inputs and {found[1]} outputs where the first had "
                f"{self.n_features} and {self.n_outputs}, or only one of them has weights."
            )
        try:
            check_array(block.X, input_name="X")
            check_array(block.Y, input_name="y")
        except ValueError as problem:
            raise LearningError(str(problem)) from None
        if block.weights is not None and (
            block.weights.shape != (len(block.X),)
            or not np.isfinite(block.weights).all()
            or (block.weights < 0.0).any()
        ):
            raise LearningError("Sample weights must be one for each row, and not negative.")


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Rows:
    """What an estimator's `fit` was given, checked as scikit-learn does; sets n_features_in_."""
    if isinstance(X, Rows):
        if y is not None or sample_weight is not None:
            raise LearningError("Rows bring their y and weights; pass nothing beside them.")
        estimator.n_features_in_ = X.n_features
        return X
    if is_dask(X):
        from semiparam_dynamics.learning.backends.dask_rows import DaskRows

        rows = DaskRows(X, y, sample_weight)
        estimator.n_features_in_ = rows.n_features
        return rows
    if isinstance(X, np.memmap) and y is not None:
        estimator.n_features_in_ = X.shape[1]
        return Rows.from_arrays(X, y, sample_weight)
    there = device_of(X)
    if there is not None:  # for estimators that compute in NumPy only
        X, y = there.numpy(X), there.numpy(y)
    X, y = validate_data(
        estimator, X, y, multi_output=True, y_numeric=True, dtype=[np.float64, np.float32]
    )
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=X.dtype)
    return Rows.from_arrays(X, y, sample_weight, X.dtype)
