"""What the kernel estimators have in common: f(x) = sum_j K(x, c_j) coef_j."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compatibility import validate_data
from semiparam_dynamics.learning.dask_products import predict_chunks
from semiparam_dynamics.learning.device_products import DeviceKernelRows
from semiparam_dynamics.learning.device_rows import DeviceRows
from semiparam_dynamics.learning.devices import Device, device_of, is_dask
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import Rows


class KernelRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators whose function is a sum of kernels at centres.

    A subclass has the parameters `kernel` and `memory_limit`, and its `fit` ends in `_keep`.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,), or (m, T) where y had two dimensions.
    n_features_in_ : d.
    """

    kernel: Any
    memory_limit: int | None
    centers_: Array
    coef_: Array

    def predict(self, X: Any) -> Array:
        """f(x), (n,) or (n, T) as y was, of inputs X (n, d), a block of rows at a time.

        Of an array of another library, with scikit-learn's `array_api_dispatch`, one of its own;
        of a Dask array a Dask array, in the same chunks of rows.
        """
        check_is_fitted(self)
        if is_dask(X):
            chunks: Array = predict_chunks(
                X, as_kernel(self.kernel), self.centers_, self.coef_, self.memory_limit
            )
            return chunks
        there = device_of(X)
        if there is not None:
            X = validate_data(self, X, dtype=there.float_dtypes(), reset=False)
            there_too: Array = self._predict_there(X, there)
            return there_too
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return kernel_sum(X, as_kernel(self.kernel), self.centers_, self.coef_, self.memory_limit)

    def _predict_there(self, X: Any, there: Device) -> Any:
        """f(x) of inputs on a device, as an array of that device, in the centres' precision."""
        X = there.array(X, self.centers_.dtype)
        rows = DeviceRows(X, np.zeros(X.shape[0]), None, there)
        kernel = as_kernel(self.kernel)
        data = DeviceKernelRows(rows, kernel, self.centers_, self.memory_limit, keep=False)
        columns = self.coef_.reshape(len(self.coef_), -1)
        result = there.xp.concat(list(data.multiply_there(columns)))
        return result[:, 0] if self.coef_.ndim == 1 else result

    def _keep(self, rows: Rows, centers: Array, coefficients: Array) -> None:
        """Store centres (m, d) and coefficients (m, T) as fitted attributes."""
        self.centers_ = np.asarray(centers, dtype=rows.dtype)
        self.coef_ = coefficients[:, 0] if rows.one_output else coefficients


def kernel_sum(
    X: Array, kernel: Any, centers: Array, coefficients: Array, memory_limit: int | None = None
) -> Array:
    """sum_j K(x, c_j) coefficients_j: (n,) or (n, T), as the coefficients are (m,) or (m, T).

    In the centres' precision, so that it depends on the fit and not on how X came.
    """
    rows = Rows.from_arrays(X, np.zeros(len(X)), dtype=centers.dtype)
    data = KernelRows(rows, kernel, centers, memory_limit, keep=False)
    columns = coefficients.reshape(len(coefficients), -1)
    result = np.concatenate(list(data.multiply(columns)))
    return result[:, 0] if coefficients.ndim == 1 else result
