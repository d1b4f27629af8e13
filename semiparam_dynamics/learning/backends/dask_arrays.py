"""Dask arrays: each worker of a cluster keeps its chunks and computes with them.

The result of a chunk is a sum of the centres' size. The sums are added in a fixed order, so that
the total doesn't depend on which worker was quicker, or died and had its chunks read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, MissingExtraError
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.products import KernelRows, kernel_rows, one_thread
from semiparam_dynamics.learning.ridge import FeatureMap, NestedRidge, second_moments
from semiparam_dynamics.learning.rows import Block, Rows, as_numbers, noted

STAYS = True  # the workers' chunks are read one by one by estimators that don't compute there
SUM_FAN_IN = 4  # sums that are added at a time: few are waiting, and the tree is not deep
to_numpy = np.asarray


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> DaskRows:
    """Rows of the arguments of `fit`, checked; sets n_features_in_."""
    return noted(estimator, DaskRows(X, y, sample_weight))


def by_chunks(estimator: Any, method: str, X: Any) -> Any:
    """Results of a fitted estimator's method for the rows of a Dask array X (n, d), as one array.

    (n,) or (n, T); nothing is computed before the result is. Raises LearningError for another
    number of inputs.
    """
    from dask.delayed import delayed

    d = estimator.n_features_in_
    if X.ndim != 2 or X.shape[1] != d:
        raise LearningError(f"X must be (rows, {d}); found {X.shape}.")
    empty = getattr(estimator, method)(np.zeros((1, d), X.dtype))[:0]
    X = X.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1}
    if empty.ndim == 2:
        shape = {"chunks": (X.chunks[0], (empty.shape[1],))}
    model = delayed(_Method, pure=False)(estimator, method, empty)
    return X.map_blocks(_apply, model=model, dtype=empty.dtype, meta=empty, **shape)


class Part(Rows):
    """One chunk, on its worker; its weights may all be zero where others' aren't."""

    def _check_total(self) -> None:
        pass


class DaskRows(Rows):
    """Rows X (n, d), outputs (n,) or (n, T) and weights (n,): Dask arrays, or some of them NumPy's.

    A chunk of X's rows is the unit of work: one task, of one thread. Only single rows, the
    weights and sums come to this process, unless :meth:`blocks` is called, which reads all
    chunks through it, one after the other.

    Parameters
    ----------
    client : a ``distributed.Client``; None: the current one.
    dtype : float64 or float32; None: that of X if it is one of them, and else float64.

    Raises ConfigurationError where there is no client, MissingExtraError where the package
    distributed isn't installed, LearningError for arrays that don't fit or aren't finite.
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any = None, *, client: Any = None, dtype: Any = None
    ) -> None:
        import dask.array as da
        from dask.delayed import delayed

        if y is None:
            raise LearningError("Dask arrays of inputs X need their outputs y too.")
        self.client = _current_client() if client is None else client
        X, y = da.asarray(X), da.asarray(y)
        if X.ndim != 2 or y.ndim not in (1, 2):
            raise LearningError(f"X must be (rows, inputs); found {X.shape}, and y is {y.shape}.")
        if dtype is None:
            dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        self.dtype = np.dtype(dtype)
        self.weighted, self.one_output = sample_weight is not None, y.ndim == 1
        self.n_features = self.row_numbers = int(X.shape[1])
        self.n_outputs = 1 if self.one_output else int(y.shape[1])
        X = X.rechunk({1: -1})
        arrays = [X, _aligned(y, X, "y")]
        if self.weighted:
            arrays.append(_aligned(da.asarray(sample_weight), X, "sample_weight"))
        chunks = zip(*(array.to_delayed().ravel() for array in arrays), strict=True)
        make = delayed(_part, pure=False)
        parts = self.client.compute([make(self.dtype, *chunk) for chunk in chunks])
        sizes = self.client.gather(self.client.map(_size, parts, pure=False))
        self._parts = [part for part, (n, _) in zip(parts, sizes, strict=True) if n]
        self._starts = np.cumsum([0] + [n for n, _ in sizes if n])
        self.n_samples = int(self._starts[-1])
        self.total_weight = float(sum(weight for _, weight in sizes))
        self._check_total()

    def total(self, function: Callable[..., Any], *shared: Any, add: Any = None) -> Any:
        """The sum of function(chunk, *shared) over the chunks, in a tree of fixed form.

        The function gets a chunk as :class:`Rows`, and what :meth:`share` made of its arguments.
        `add` makes one of two results, without changing them; None: their arithmetic sum.
        """
        from dask.delayed import delayed

        compute, merge = delayed(_computed, pure=False), delayed(_added, pure=False)
        level = [compute(part, function, *shared) for part in self._parts]
        while len(level) > 1:
            level = [
                merge(level[i : i + SUM_FAN_IN], add) for i in range(0, len(level), SUM_FAN_IN)
            ]
        return self.client.compute(level[0]).result()

    def share(self, value: Any) -> Any:
        """`value` for the workers: sent once to the scheduler, which can give it out again.

        (Scattered data would be gone with the last worker that has them.)
        """
        import dask

        # Dask warns of graphs of 10 MB, to say that data should be read by the workers.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.submit(_same, value, pure=False)

    def pick(self, indices: Indices) -> Block:
        """See :class:`Rows`; only the chosen rows come here."""
        owners = np.searchsorted(self._starts, indices, side="right") - 1
        X = np.empty((len(indices), self.n_features), self.dtype)
        Y = np.empty((len(indices), self.n_outputs), self.dtype)
        asked = np.unique(owners)
        places = [np.flatnonzero(owners == k) for k in asked]
        numbers = [indices[here] - self._starts[k] for k, here in zip(asked, places, strict=True)]
        parts = [self._parts[k] for k in asked]
        found = self.client.gather(self.client.map(Part.pick, parts, numbers, pure=False))
        for here, rows in zip(places, found, strict=True):
            X[here], Y[here] = rows.X, rows.Y
        return Block(X, Y, None)

    def weights(self) -> Array | None:
        """See :class:`Rows`."""
        if not self.weighted:
            return None
        return np.concatenate(self.client.gather(self.client.map(Part.weights, self._parts)))

    def squared_outputs(self) -> Array:
        """See :class:`Rows`; the workers compute it."""
        total: Array = self.total(Part.squared_outputs)
        return total

    def _read(self) -> Iterator[Block]:
        for part in self._parts:
            yield from part.result()._read()


@dataclass(frozen=True)
class Products:
    """K(chunk, centres), for any chunk; sent to each worker once. (Dask would call a tuple.)"""

    kernel: Kernel
    centers: Array
    memory_limit: int | None

    def __call__(self, part: Rows) -> KernelRows:
        """Kernel products of one chunk."""
        return KernelRows(part, self.kernel, self.centers, self.memory_limit, keep=False)


class DaskKernelRows:
    """:class:`KernelRows` of the chunks of a cluster. Kernel and centres are sent once.

    The workers compute K anew for each product, in blocks within `memory_limit` for a thread: of
    many rows it wouldn't fit, and a worker's memory is left to its chunks, whatever `keep` says.
    """

    def __init__(
        self,
        rows: DaskRows,
        kernel: Kernel,
        centers: Array,
        memory_limit: int | None = None,
        keep: bool = False,
    ) -> None:
        self.rows: Rows = rows
        self._there = rows
        self.centers = np.ascontiguousarray(centers, dtype=rows.dtype)
        kernel.bind(self.centers)  # checks its parameters here
        self._products = rows.share(Products(kernel, self.centers, memory_limit))

    def normal(self, B: Array) -> Array:
        """K' W K B for B (m, T), with W the sample weights: (m, T) in float64."""
        result: Array = self._there.total(_product, self._products, "normal", self._there.share(B))
        return result

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""
        result: Array = self._there.total(_product, self._products, "targets")
        return result


kernel_rows.register(DaskRows, DaskKernelRows)


@second_moments.register
def _(
    rows: DaskRows, features: FeatureMap, memory_limit: int | None, orthogonal: bool
) -> NestedRidge:
    """The features' map, with its matrix (q, q), is sent to each worker once."""
    add = partial(second_moments, memory_limit=memory_limit, orthogonal=orthogonal)
    result: NestedRidge = rows.total(add, rows.share(features), add=NestedRidge.merged)
    return result


@dataclass(frozen=True)
class _Method:
    """A fitted estimator's method, and what it makes of no rows; sent to each worker once."""

    estimator: Any
    name: str
    empty: Array


def _apply(X: Array, model: _Method) -> Array:
    if not len(X):
        return model.empty
    with one_thread():
        result: Array = getattr(model.estimator, model.name)(X)
    return result


def _product(part: Rows, products: Products, name: str, *factors: Array) -> Array:
    result: Array = getattr(products(part), name)(*factors)
    return result


def _current_client() -> Any:
    try:
        from distributed import get_client
    except ImportError:
        raise MissingExtraError(
            "Learning from Dask arrays needs a cluster's client: "
            "pip install 'dask[array,distributed]'"
        ) from None
    try:
        return get_client()
    except ValueError:
        raise ConfigurationError(
            "Learning from Dask arrays needs a client: make one with distributed.Client(address), "
            "or distributed.Client() for processes on this machine."
        ) from None


def _aligned(values: Any, X: Any, name: str) -> Any:
    """`values` (n,) or (n, T) in chunks of the same rows as those of X."""
    if np.isnan(X.shape[0]) or np.isnan(values.shape[0]):  # chunks of unknown sizes
        if values.numblocks[0] != X.numblocks[0]:
            raise LearningError(
                f"X has {X.numblocks[0]} chunks of unknown sizes and {name} has "
                f"{values.numblocks[0]}: call compute_chunk_sizes() of both."
            )
        return values if values.ndim == 1 else values.rechunk({1: -1})
    if values.shape[0] != X.shape[0]:
        raise LearningError(f"X has {X.shape[0]} rows and {name} has {values.shape[0]}.")
    return values.rechunk((X.chunks[0], *((-1,) * (values.ndim - 1))))


def _part(dtype: np.dtype, *arrays: Any) -> Part | None:
    """A chunk's rows in `dtype`, checked; None where it has none."""
    named = zip(arrays, ("X", "y", "sample_weight"), strict=False)
    chunk = tuple(np.ascontiguousarray(as_numbers(array, dtype, name)) for array, name in named)
    return Part([chunk], dtype) if len(chunk[0]) else None


def _size(part: Part | None) -> tuple[int, float]:
    return (0, 0.0) if part is None else (part.n_samples, float(part.total_weight))


def _computed(part: Part, function: Callable[..., Any], *shared: Any) -> Any:
    with one_thread():  # the worker has as many of these at work as it has threads
        return function(part, *shared)


def _added(values: list[Any], add: Callable[[Any, Any], Any] | None) -> Any:
    result = values[0]
    for value in values[1:]:
        result = result + value if add is None else add(result, value)
    return result


def _same(value: Any) -> Any:
    return value
