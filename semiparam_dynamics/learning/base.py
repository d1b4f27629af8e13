"""What the kernel estimators have in common: f(x) = sum_j K(x, c_j) coef_j."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, positive, positive_count
from semiparam_dynamics.learning.backends.dask_products import predict_chunks
from semiparam_dynamics.learning.backends.device_products import DeviceKernelRows
from semiparam_dynamics.learning.backends.device_rows import DeviceRows
from semiparam_dynamics.learning.backends.devices import Device, device_of, is_dask
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import Rows, training_rows, validate_data
from semiparam_dynamics.progress import ProgressBar

# -------------------------------------------------------------------------------------------------
# What an iterative learner tells while it runs, and when it stops.


@dataclass(frozen=True)
class Iteration:
    """What a callback gets after each iteration (for stochastic methods: each pass).

    Attributes
    ----------
    number, total : of this iteration, from 1, and of those asked for.
    seconds : since the fit began.
    validation_error : mean squared error, or what the estimator says, on the validation data;
        None without such data.
    """

    number: int
    total: int
    seconds: float
    validation_error: float | None


Callback = Callable[[Iteration], Any]  # a true answer ends the fit after this iteration


class IterationLog:
    """Follows a fit: validation errors, the best iteration, the user's callback, a bar.

    Use it as a context manager around the iterations, and call `done` after each.
    """

    def __init__(
        self,
        total: int,
        callback: Callback | None = None,
        verbose: bool = False,
        label: str = "iterations",
        tolerance: float = 0.0,
        patience: int | None = None,
    ) -> None:
        """`patience`: stop when the error hasn't fallen by the relative `tolerance` for so many
        iterations; None: never because of it.
        """
        self.total = total
        self.errors: list[float] = []
        self.best = 0
        self.improved = False
        self._reference = np.inf
        self._since = 0
        self._tolerance = tolerance
        self._patience = patience
        self._callback = callback
        self._bar = ProgressBar(label, sys.stderr) if verbose else None
        self._start = time.perf_counter()

    def done(self, number: int, error: float | None = None) -> bool:
        """Iteration `number` (from 1) ended with this validation error; True: stop here.

        `improved` then says whether the error is the smallest so far, and `best` is the
        iteration that it was reached in.
        """
        stop = False
        if error is not None:
            self.improved = not self.errors or error < min(self.errors)
            self.errors.append(error)
            if self.improved:
                self.best = number
            self._since += 1
            if error < self._reference * (1.0 - self._tolerance):
                self._reference, self._since = error, 0
            stop = self._patience is not None and self._since >= self._patience
        if self._bar is not None:
            self._bar(number / self.total)
        if self._callback is not None:
            seconds = time.perf_counter() - self._start
            stop |= bool(self._callback(Iteration(number, self.total, seconds, error)))
        return stop

    def __enter__(self) -> IterationLog:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)


def mean_squared_error(Y: Array, predicted: Array) -> float:
    """Mean over rows and outputs of (Y - predicted)^2."""
    return float(np.mean((Y - predicted) ** 2))


# -------------------------------------------------------------------------------------------------
# Regularisation paths: many settings of an estimator from one pass over the data, or one run.

Setting = dict[str, Any]
Path = Iterator[tuple[Setting, Array]]
Grid = Mapping[str, Sequence[Any]]
CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "max_iter": positive_count,
    "n_centers": positive_count,
    "n_features": positive_count,
    "penalty": positive,
}


class RegularisationPath(ABC):
    """Gives an estimator its `path`, from a `_path` that knows how settings share their work.

    Attributes
    ----------
    path_parameters : the parameters that a path may go over.
    """

    @property
    @abstractmethod
    def path_parameters(self) -> tuple[str, ...]:
        """The parameters whose values share one pass or one run."""

    def path(
        self, X: Any, y: Any, grid: Grid, X_validation: Any, *, sample_weight: Any = None
    ) -> Path:
        """(setting, predictions (k, T) at X_validation (k, d)) for every setting of the grid.

        They equal those of a fit for each setting to X (n, d), y (n,) or (n, T), and weights
        (n,), or to Rows with y=None. `grid` maps some of `path_parameters` to their values; the
        settings are all combinations, in an order of the estimator's own.
        Raises ConfigurationError for another name, and for one without values.
        """
        chosen = self._chosen(grid)
        rows = training_rows(self, X, y, sample_weight)
        dtypes = [np.float64, np.float32]
        X_validation = validate_data(self, X_validation, dtype=dtypes, reset=False)
        for setting, predicted in self._path(rows, chosen, X_validation):
            yield {name: setting[name] for name in grid}, predicted

    @abstractmethod
    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """The same, given a list of values for every one of the path's parameters."""

    def _chosen(self, grid: Grid) -> dict[str, list[Any]]:
        """The values of every one of the path's parameters, the estimator's own where not given."""
        names = self.path_parameters
        if not set(grid) <= set(names):
            raise ConfigurationError(
                f"The path of this {type(self).__name__} can only go over "
                f"{names or 'nothing'}, not over {tuple(grid)}."
            )
        chosen = {name: list(grid.get(name, [getattr(self, name)])) for name in names}
        for name, values in chosen.items():
            if not values:
                raise ConfigurationError(f"The grid has no values for {name}.")
            if name in CHECKS:
                chosen[name] = [CHECKS[name](value, name) for value in values]
        return chosen


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
