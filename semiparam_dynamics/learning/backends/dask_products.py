"""What the workers of a cluster compute of their chunks: products, second moments, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.backends.dask_rows import DaskRows, Part
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.products import FeatureMap, KernelRows, feature_blocks
from semiparam_dynamics.learning.ridge import NestedRidge
from semiparam_dynamics.learning.rows import one_thread


@dataclass(frozen=True)
class Products:
    """K(chunk, centres), for any chunk; sent to each worker once. (Dask would call a tuple.)"""

    kernel: Kernel
    centers: Array
    memory_limit: int | None

    def __call__(self, part: Part) -> KernelRows:
        """Of one chunk."""
        return KernelRows(part, self.kernel, self.centers, self.memory_limit, keep=False)


class DaskKernelRows:
    """:class:`KernelRows` of the chunks of a cluster. Kernel and centres are sent once.

    The workers compute K anew for each product, in blocks within `memory_limit` for a thread: of
    many rows it wouldn't fit, and a worker's memory is left to its chunks.
    """

    fits = False

    def __init__(
        self,
        rows: DaskRows,
        kernel: Kernel,
        centers: Array,
        memory_limit: int | None = None,
        keep: bool = True,
    ) -> None:
        self.rows = rows
        self.centers = np.ascontiguousarray(centers, dtype=rows.dtype)
        kernel.bind(self.centers)  # checks its parameters here
        self._products = rows.share(Products(kernel, self.centers, memory_limit))

    def multiply(self, B: Array) -> Iterator[Array]:
        """K B for B (m, T), a chunk of rows (k, T) at a time."""
        yield from self.rows.each(_multiply, self._products, self.rows.share(B))

    def normal(self, B: Array) -> Array:
        """K' W K B for B (m, T), with W the sample weights: (m, T) in float64."""
        result: Array = self.rows.total(_normal, self._products, self.rows.share(B))
        return result

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""
        result: Array = self.rows.total(_targets, self._products)
        return result


def second_moments(
    rows: DaskRows, features: FeatureMap, memory_limit: int | None, orthogonal: bool
) -> NestedRidge:
    """A'WA and A'WY, or the triangular factor, of the features (q) of all chunks' rows.

    The features' map, with its matrix (q, q), is sent to each worker once.
    """
    add = partial(_add_moments, memory_limit=memory_limit, orthogonal=orthogonal)
    result: NestedRidge = rows.total(add, rows.share(features), add=NestedRidge.merged)
    return result


def predict_chunks(
    X: Any, kernel: Kernel, centers: Array, coefficients: Array, memory_limit: int | None
) -> Any:
    """sum_j K(x, c_j) coefficients_j of a Dask array X (n, d), as one: (n,) or (n, T).

    Nothing is computed before the result is. Raises LearningError for another number of inputs.
    """
    from dask.delayed import delayed

    if X.ndim != 2 or X.shape[1] != centers.shape[1]:
        raise LearningError(f"X must be (rows, {centers.shape[1]}); found {X.shape}.")
    products = Products(kernel, centers, memory_limit)
    model = delayed(_Sum, pure=False)(products, coefficients)
    X = X.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1}
    if coefficients.ndim == 2:
        shape = {"chunks": (X.chunks[0], (coefficients.shape[1],))}
    meta = np.empty((0,) * coefficients.ndim, centers.dtype)
    return X.map_blocks(_predict, model=model, dtype=centers.dtype, meta=meta, **shape)


@dataclass(frozen=True)
class _Sum:
    """A fitted function, sent to each worker once."""

    products: Products
    coefficients: Array


def _predict(X: Array, model: _Sum) -> Array:
    coefficients, dtype = model.coefficients, model.products.centers.dtype
    if not len(X):
        return np.empty((0, *coefficients.shape[1:]), dtype)
    X = check_array(X, dtype=dtype)
    with one_thread():
        part = Part([(X, np.zeros(len(X)))], dtype)
        result = _multiply(part, model.products, coefficients.reshape(len(coefficients), -1))
    return result[:, 0] if coefficients.ndim == 1 else result


def _multiply(part: Part, products: Products, B: Array) -> Array:
    return np.concatenate(list(products(part).multiply(B)))


def _normal(part: Part, products: Products, B: Array) -> Array:
    return products(part).normal(B)


def _targets(part: Part, products: Products) -> Array:
    return products(part).targets()


def _add_moments(
    part: Part, features: FeatureMap, memory_limit: int | None, orthogonal: bool
) -> NestedRidge:
    system = NestedRidge(features.n_features, part.n_outputs, orthogonal)
    for A, Y, weights in feature_blocks(part, features, memory_limit):
        system.add(A, Y, weights)
    return system
