"""Arrays of other libraries, on a GPU for instance, through the array API standard.

Off unless scikit-learn's `array_api_dispatch` is set (which needs the environment variable
SCIPY_ARRAY_API=1): then PyTorch's and CuPy's arrays, and others that keep to the standard, are
computed with where they are. What grows with the rows does; matrices of the centres stay in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _array_api

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.kernels import (
    CallableKernel,
    Gaussian,
    Kernel,
    Linear,
    Polynomial,
)


@dataclass(frozen=True)
class Device:
    """Where arrays are: their library's namespace, and its name of the device."""

    xp: Any
    device: Any

    def array(self, values: Any, dtype: Any = None) -> Any:
        """`values`, NumPy's or the library's own, there; `dtype` is NumPy's, None keeps theirs."""
        chosen = None if dtype is None else getattr(self.xp, np.dtype(dtype).name)
        if isinstance(values, np.ndarray):
            values = np.ascontiguousarray(values)
        return self.xp.asarray(values, dtype=chosen, device=self.device)

    def numpy(self, values: Any) -> Array:
        """The same in NumPy."""
        result: Array = _array_api._convert_to_numpy(values, self.xp)
        return result

    def float_dtypes(self) -> Any:
        """The precisions that there are, the library's own."""
        return _array_api.supported_float_dtypes(self.xp)


def device_of(X: Any) -> Device | None:
    """Where X is; None for NumPy's and Dask's arrays and lists, and for all if dispatch is off."""
    if isinstance(X, np.ndarray) or is_dask(X) or not hasattr(X, "dtype"):
        return None
    xp, dispatched = _array_api.get_namespace(X)
    if not dispatched or _array_api._is_numpy_namespace(xp):
        return None
    return Device(xp, _array_api.device(X))


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array: in chunks, on the workers of a cluster."""
    return type(X).__module__.startswith("dask.array")


def numpy_dtype(X: Any) -> np.dtype:
    """The dtype of X, a library's array, as NumPy has it."""
    return np.dtype(str(X.dtype).rpartition(".")[2])


def bind_there(kernel: Kernel, C: Array, there: Device) -> Callable[[Any], Any]:
    """The function X (k, d) -> K(X, C) (k, m) of arrays there, in the precision of C.

    Raises ConfigurationError for kernels whose distances have no function in the standard.
    """
    if isinstance(kernel, Gaussian):
        return _gaussian(kernel, C, there)
    if isinstance(kernel, Linear):
        kernel = Polynomial(1, 1.0, kernel.offset)
    centers = there.array(C)
    if isinstance(kernel, Polynomial):
        kernel.bind(C)  # checks its parameters
        scale, offset, degree = kernel.scale, kernel.offset, int(kernel.degree)
        return lambda X: (scale * (X @ centers.T) + offset) ** degree
    if isinstance(kernel, CallableKernel):
        function = kernel.function
        return lambda X: function(X, centers)
    raise ConfigurationError(
        f"{kernel!r} is for NumPy's arrays only: of other libraries' arrays take Gaussian, "
        f"Polynomial, Linear or a function of two of them, or turn array_api_dispatch off."
    )


def _gaussian(kernel: Gaussian, C: Array, there: Device) -> Callable[[Any], Any]:
    xp = there.xp
    blocks = kernel.bind(C)
    origin, scale = there.array(blocks.origin), there.array(blocks.scale)
    centers = (there.array(C) - origin) * scale
    transposed, norms = centers.T, 0.5 * xp.sum(centers * centers, axis=1)

    def block(X: Any) -> Any:
        X = (X - origin) * scale
        exponents = X @ transposed - 0.5 * xp.sum(X * X, axis=1)[:, None] - norms
        return xp.exp(xp.where(exponents < 0.0, exponents, xp.zeros_like(exponents)))

    return block
