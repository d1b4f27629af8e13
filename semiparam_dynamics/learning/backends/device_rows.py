"""Training data on a device, as blocks of rows that stay there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.backends.devices import Device, numpy_dtype
from semiparam_dynamics.learning.rows import Block, Rows, validate_data


class DeviceRows(Rows):
    """Inputs X (n, d) on a device, and outputs (n,) or (n, T) and weights (n,), taken there.

    The blocks' arrays are the device's; single rows and the weights are also given in NumPy.
    Raises LearningError for outputs or weights that don't fit, or hold unusable values.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, there: Device) -> None:
        self.there = there
        self.dtype = numpy_dtype(X)
        self.n_samples, self.n_features = (int(size) for size in X.shape)
        Y = there.array(y, self.dtype)
        self.one_output, self.weighted = Y.ndim == 1, sample_weight is not None
        if Y.ndim not in (1, 2) or int(Y.shape[0]) != self.n_samples:
            raise LearningError(f"X has {self.n_samples} rows, and y is of shape {tuple(Y.shape)}.")
        if not bool(there.xp.all(there.xp.isfinite(Y))):
            raise LearningError("y holds values that are not finite.")
        weights = there.array(sample_weight, self.dtype) if self.weighted else None
        self._block = Block(X, there.xp.reshape(Y, (self.n_samples, -1)), weights)
        self.n_outputs = int(self._block.Y.shape[1])
        self.total_weight = float(self.n_samples)
        known = self.weights()
        if known is not None:
            if known.shape != (self.n_samples,) or not (np.isfinite(known) & (known >= 0.0)).all():
                raise LearningError("Sample weights must be one for each row, and not negative.")
            self.total_weight = float(known.sum())
            if self.total_weight <= 0.0:
                raise LearningError("The sample weights sum to zero: there is nothing to learn.")

    def take(self, indices: Indices) -> Array:
        """See :class:`Rows`."""
        numbers = self.there.array(indices)
        return self.there.numpy(self.there.xp.take(self._block.X, numbers, axis=0))

    def weights(self) -> Array | None:
        """See :class:`Rows`."""
        return None if self._block.weights is None else self.there.numpy(self._block.weights)

    def like(self, X: Any, y: Any) -> DeviceRows:
        """See :class:`Rows`."""
        return DeviceRows(self.there.array(X, self.dtype), y, None, self.there)

    def blocks(self, size: int) -> Iterator[Block]:
        """See :class:`Rows`."""
        for i in range(0, self.n_samples, size):
            yield self._block[i : min(i + size, self.n_samples)]


def device_training_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, there: Device
) -> DeviceRows:
    """What `fit` was given on a device, checked as scikit-learn does; sets n_features_in_."""
    X, y = validate_data(
        estimator, X, y, multi_output=True, y_numeric=True, dtype=there.float_dtypes()
    )
    return DeviceRows(X, y, sample_weight, there)
