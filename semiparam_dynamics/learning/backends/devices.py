"""Arrays of other libraries, on a GPU for instance, through the array API standard.

Used only where scikit-learn's `array_api_dispatch` is set (which needs the environment variable
SCIPY_ARRAY_API=1): then PyTorch's and CuPy's arrays, and others that keep to the standard, are
computed with where they are. What grows with the rows does; matrices of the centres stay in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, MissingExtraError
from semiparam_dynamics.learning.kernels import (
    CallableKernel,
    Gaussian,
    GaussianBlocks,
    Kernel,
    Linear,
    Polynomial,
)
from semiparam_dynamics.learning.products import kernel_rows
from semiparam_dynamics.learning.rows import (
    Block,
    Rows,
    checked_weights,
    rows_within,
    validate_data,
)

try:
    import array_api_compat
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        "Learning from other libraries' arrays needs what they have in common: "
        "pip install array-api-compat"
    ) from missing

STAYS = False  # estimators that compute with NumPy only get the arrays converted
DEVICE_BYTES = 2**30  # bytes on the device where no limit is given: its free memory isn't known
DEVICE_BLOCK_BYTES = 2**28  # a block's kernel, large enough to keep a GPU busy


@dataclass(frozen=True)
class Device:
    """The library of some arrays, its namespace, and its name of the device where they are."""

    xp: Any
    device: Any

    def array(self, values: Any, dtype: Any = None) -> Any:
        """`values`, NumPy's or the library's own, there; `dtype` is NumPy's, None keeps theirs."""
        chosen = None if dtype is None else getattr(self.xp, np.dtype(dtype).name)
        if isinstance(values, np.ndarray):
            values = np.ascontiguousarray(values)
        return self.xp.asarray(values, dtype=chosen, device=self.device)

    def numpy(self, values: Any) -> Array:
        """Convert `values` to NumPy's array."""
        if array_api_compat.is_torch_array(values):
            return np.asarray(values.numpy(force=True))
        if array_api_compat.is_cupy_array(values):
            return np.asarray(values.get())
        shared: Any = np.from_dlpack(values)
        return np.asarray(shared)


def device_of(X: Any) -> Device | None:
    """The device of X; None for NumPy's arrays and for what keeps to no standard."""
    if array_api_compat.is_numpy_array(X) or not array_api_compat.is_array_api_obj(X):
        return None
    return Device(array_api_compat.array_namespace(X), array_api_compat.device(X))


def to_numpy(X: Any) -> Array:
    """An array on a device as NumPy's."""
    there = device_of(X)
    assert there is not None
    return there.numpy(X)


def like(X: Any, values: Array) -> Any:
    """NumPy's values as an array of the library and on the device of X."""
    there = device_of(X)
    assert there is not None
    return there.array(values)


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> DeviceRows:
    """Rows of the arguments of `fit`, checked as scikit-learn does; sets n_features_in_."""
    there = device_of(X)
    assert there is not None
    floats = [there.xp.float64, there.xp.float32]
    X, y = validate_data(estimator, X, y, multi_output=True, y_numeric=True, dtype=floats)
    return DeviceRows(there, X, y, sample_weight)


def predict(estimator: Any, X: Any) -> Any:
    """sum_j K(x, c_j) coef_j of a fitted kernel estimator, as an array of the device of X.

    In the centres' precision: (n,) or (n, T).
    """
    there = device_of(X)
    assert there is not None
    centers, coefficients = estimator.centers_, estimator.coef_
    X = validate_data(estimator, X, dtype=getattr(there.xp, centers.dtype.name), reset=False)
    kernel, rows = estimator.kernel_, DeviceRows(there, X)
    data = DeviceKernelRows(rows, kernel, centers, estimator.memory_limit, keep=False)
    columns = coefficients.reshape(len(coefficients), -1)
    result = there.xp.concat(list(data.multiply_there(columns)))
    return result[:, 0] if coefficients.ndim == 1 else result


class DeviceRows(Rows):
    """Checked inputs X (n, d) on a device; outputs (n,) or (n, T) and weights (n,) are taken there.

    The blocks' arrays are the device's; single rows and the weights are also given in NumPy.
    Raises LearningError for unusable weights.
    """

    def __init__(self, there: Device, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        self.there = there
        self.dtype = np.dtype(str(X.dtype).rpartition(".")[2])
        self.n_samples, self.n_features = (int(size) for size in X.shape)
        self.row_numbers = self.n_features
        Y = there.array(np.empty((self.n_samples, 0)) if y is None else y, self.dtype)
        self.one_output, self.weighted = Y.ndim == 1, sample_weight is not None
        weights = there.array(sample_weight, self.dtype) if self.weighted else None
        self.n_outputs = 1 if self.one_output else int(Y.shape[1])
        if y is not None and not bool(there.xp.all(there.xp.isfinite(Y))):
            raise LearningError(
                f"y has values that {self.dtype}, the precision of X, has no numbers for: "
                f"scale y, or pass X in float64."
            )
        Y = there.xp.reshape(Y, (self.n_samples, self.n_outputs))
        self._block = Block(X, Y, weights)
        self.total_weight = float(self.n_samples)
        known = self.weights()
        if known is not None:
            self.total_weight = float(checked_weights(known, self.n_samples, self.dtype).sum())
            self._check_total()

    def pick(self, indices: Indices) -> Block:
        """See :class:`Rows`; in NumPy."""
        numbers, there = self.there.array(indices), self.there
        X, Y = (there.xp.take(each, numbers, axis=0) for each in (self._block.X, self._block.Y))
        return Block(there.numpy(X), there.numpy(Y), None)

    def weights(self) -> Array | None:
        """See :class:`Rows`."""
        return None if self._block.weights is None else self.there.numpy(self._block.weights)

    def like(self, X: Array) -> DeviceRows:
        """See :class:`Rows`."""
        return DeviceRows(self.there, self.there.array(X, self.dtype))

    def blocks(self, size: int) -> Iterator[Block]:
        """See :class:`Rows`."""
        for i in range(0, self.n_samples, size):
            yield self._block[i : min(i + size, self.n_samples)]


class DeviceKernelRows:
    """:class:`KernelRows` of rows on a device: arguments and results are NumPy's."""

    def __init__(
        self,
        rows: DeviceRows,
        kernel: Kernel,
        centers: Array,
        memory_limit: int | None = None,
        keep: bool = True,
    ) -> None:
        self.rows: Rows = rows
        self.there = rows.there
        self.centers = np.ascontiguousarray(centers, dtype=rows.dtype)
        self._bound = bind_there(kernel, self.centers, self.there)
        budget = DEVICE_BYTES if memory_limit is None else memory_limit
        # Of a row: its kernel in its own precision, twice on the way, and in float64.
        m = max(len(centers), 1)
        working = (2 * rows.dtype.itemsize + 8) * m
        kept = rows.n_samples * m * rows.dtype.itemsize
        self.fits = keep and kept + min(64, rows.n_samples) * working <= budget
        left = budget - kept if self.fits else budget
        share = rows_within(left, working, "A block of the kernel matrix")
        self.block_rows = min(share, max(64, DEVICE_BLOCK_BYTES // working))
        self._kept: list[tuple[Any, Block]] | None = None

    def multiply(self, B: Array) -> Iterator[Array]:
        """K B for B (m, T), a block of rows (k, T) at a time."""
        yield from map(self.there.numpy, self.multiply_there(B))

    def multiply_there(self, B: Array) -> Iterator[Any]:
        """K B as :meth:`multiply`, in arrays of the device."""
        wide = self.there.array(B, float)
        for K, block in self._blocks():
            yield self.there.xp.astype(self._wide(K) @ wide, block.X.dtype)

    def normal(self, B: Array) -> Array:
        """K' W K B for B (m, T), with W the sample weights: (m, T) in float64."""
        wide = self.there.array(B, float)
        return self._sum(lambda K, block: K.T @ _weighted(K @ wide, block))

    def targets(self) -> Array:
        """K' W Y, (m, T) in float64."""
        return self._sum(lambda K, block: K.T @ _weighted(self._wide(block.Y), block))

    def _sum(self, function: Callable[[Any, Block], Any]) -> Array:
        total: Any = 0.0
        for K, block in self._blocks():
            total = total + function(self._wide(K), block)
        return self.there.numpy(total)

    def _blocks(self) -> Iterable[tuple[Any, Block]]:
        if self._kept is not None:
            return self._kept
        evaluated = ((self._bound(b.X), b) for b in self.rows.blocks(self.block_rows))
        if not self.fits:
            return evaluated
        self._kept = list(evaluated)
        return self._kept

    def _wide(self, values: Any) -> Any:
        """In float64, as all sums."""
        return self.there.xp.astype(values, self.there.xp.float64)


kernel_rows.register(DeviceRows, DeviceKernelRows)


def bind_there(kernel: Kernel, C: Array, there: Device) -> Callable[[Any], Any]:
    """The function X (k, d) -> K(X, C) (k, m) of arrays there, in the precision of C.

    Raises ConfigurationError for kernels whose distances have no function in the standard.
    """
    xp = there.xp
    if isinstance(kernel, Linear):
        kernel = Polynomial(1, 1.0, kernel.offset)
    if isinstance(kernel, Gaussian):
        blocks = kernel.bind(C)
        assert isinstance(blocks, GaussianBlocks)
        origin, scale = there.array(blocks.origin), there.array(blocks.scale)
        zero = there.array(np.zeros((), C.dtype))

        def with_norms(X: Any) -> tuple[Any, Any, Any]:
            X = (X - origin) * scale
            norms = -0.5 * xp.sum(X * X, axis=1)[:, None]
            return X, norms, xp.ones_like(norms)

        # As in GaussianBlocks: exponents of one product, since each step on them is one more pass
        # through the device's memory.
        c, norms, ones = with_norms(there.array(C))
        transposed = xp.concat((c, ones, norms), axis=1).T

        def gaussian(X: Any) -> Any:
            exponents = xp.concat(with_norms(X), axis=1) @ transposed
            return xp.exp(xp.where(exponents < 0.0, exponents, zero))

        return gaussian
    centers = there.array(C)
    if isinstance(kernel, Polynomial):
        kernel.bind(C)  # checks its parameters
        factor, offset, degree = kernel.scale, kernel.offset, int(kernel.degree)
        return lambda X: (factor * (X @ centers.T) + offset) ** degree
    if isinstance(kernel, CallableKernel):
        function = kernel.function
        return lambda X: function(X, centers)
    raise ConfigurationError(
        f"{kernel!r} is for NumPy's arrays only: of other libraries' arrays take Gaussian, "
        f"Polynomial, Linear or a function of two of them, or turn array_api_dispatch off."
    )


def _weighted(Y: Any, block: Block) -> Any:
    return Y if block.weights is None else Y * block.weights[:, None]
