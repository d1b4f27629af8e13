"""Kernel ridge regression on Nyström centres, with its path over their number and the penalty."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.base import KernelRegressor, kernel_sum
from semiparam_dynamics.learning.checks import positive_penalty
from semiparam_dynamics.learning.compatibility import validate_data
from semiparam_dynamics.learning.feature_blocks import coefficients, feature_blocks
from semiparam_dynamics.learning.growing import GrowingNystrom
from semiparam_dynamics.learning.iterations import mean_squared_error
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.nystrom_problem import NystromProblem, centers_of
from semiparam_dynamics.learning.paths import Grid, Path, RegularisationPath
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.ridge_leave_one_out import leave_one_out_predictions
from semiparam_dynamics.learning.rows import Rows, training_rows


class NystromKRLS(RegularisationPath, KernelRegressor):
    """The minimiser of sum_i w_i (f(x_i) - y_i)^2 / n + penalty |f|^2 among sums of K(c_j, .).

    Its coefficients are (K_nm' W K_nm + penalty n K_mm)^+ K_nm' W Y (Rudi, Camoriano, Rosasco
    2015, equation 5; thesis 4.2), for a kernel matrix K_nm that is never in memory as a whole:
    O(n m^2 + m^3) time, O(m^2) memory beside the limit. With m = n it is exact kernel ridge
    regression.

    Of Dask arrays, or :class:`DaskRows`, a cluster's workers compute the second moments of their
    chunks, in `fit` and `path`; `grow`, `leave_one_out` and ``centers="leverage_scores"`` read
    all chunks through this process.

    Parameters
    ----------
    kernel : a kernel, or a function of two matrices of rows; None: ``Gaussian(1.0)``.
    penalty : lambda. It multiplies n, or the sum of the sample weights.
    n_centers : m, at most as many as there are rows.
    centers : "uniform", "leverage_scores", or the centres themselves, (m, d).
    random_state : seed of the centres.
    memory_limit : bytes for blocks of features; None: a quarter of what is free.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T) like y; zero where the centres before explain a centre.
    validation_errors_ : after `grow`, the mean squared error after each step.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("n_centers", "penalty")

    def __init__(
        self,
        kernel: Any = None,
        penalty: float = 1e-3,
        n_centers: int = 1000,
        centers: Any = "uniform",
        random_state: Any = None,
        memory_limit: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.n_centers = n_centers
        self.centers = centers
        self.random_state = random_state
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystromKRLS:
        """Fit to inputs X (n, d) and outputs y (n,) or (n, T), or to :class:`Rows` alone."""
        penalty = positive_penalty(self.penalty)
        rows = training_rows(self, X, y, sample_weight)
        problem = self._problem(rows, self.n_centers, penalty)
        beta = problem.system.factor(penalty * rows.total_weight).weights()
        self._keep(rows, problem.basis.centers, coefficients(problem.basis, beta))
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One pass over the data serves all numbers of centres and all penalties: the first
        centres of the largest number are those of a smaller one. Centres by leverage scores are
        drawn once, with the estimator's own penalty.
        """
        sizes, penalties = chosen["n_centers"], chosen["penalty"]
        problem = self._problem(rows, max(sizes), min(penalties))
        basis = problem.basis
        held_out = Rows.from_arrays(X_validation, np.zeros(len(X_validation)), dtype=rows.dtype)
        K = KernelRows(held_out, problem.kernel, basis.centers, self.memory_limit)
        features = [basis.n_features_of(t) for t in sizes]
        ridges = [penalty * rows.total_weight for penalty in penalties]
        T = rows.n_outputs
        for penalty, betas in zip(penalties, problem.system.path(features, ridges), strict=True):
            alphas = np.hstack([coefficients(basis, beta) for beta in betas])
            predicted = np.concatenate(list(K.multiply(alphas)))
            for i, size in enumerate(sizes):
                setting = {"n_centers": size, "penalty": penalty}
                yield setting, predicted[:, i * T : (i + 1) * T]

    def leave_one_out(self, X: Any, y: Any, grid: Grid, *, sample_weight: Any = None) -> Path:
        """(setting, predictions (n, T)) for every setting of the grid: of row i, by the others.

        What n fits to n - 1 rows each, with these same centres, would predict; from two passes
        over the data and one eigendecomposition for each number of centres.
        """
        chosen = self._chosen(grid)
        sizes, penalties = chosen["n_centers"], chosen["penalty"]
        rows = training_rows(self, X, y, sample_weight)
        if rows.n_samples < 2:
            raise LearningError("Leave-one-out needs at least two rows.")
        problem = self._problem(rows, max(sizes), min(penalties))
        features = [problem.basis.n_features_of(t) for t in sizes]
        stream = partial(feature_blocks, rows, problem.features, self.memory_limit)
        for i, predictions in leave_one_out_predictions(
            problem.system, rows, stream, features, penalties
        ):
            for penalty, predicted in zip(penalties, predictions, strict=True):
                setting = {"n_centers": sizes[i], "penalty": penalty}
                yield {name: setting[name] for name in grid}, predicted

    def grow(
        self,
        X: Any,
        y: Any = None,
        *,
        validation_data: tuple[Any, Any],
        step: int = 100,
        tolerance: float = 0.0,
        patience: int = 1,
        sample_weight: Any = None,
    ) -> NystromKRLS:
        """Fit with `step` centres, then as many more at a time while the validation error falls.

        Each step costs what its new centres cost, O(n m step) (thesis algorithm 1), and is not
        another fit. It ends when the mean squared error on `validation_data`, (X, y), hasn't
        fallen by the relative `tolerance` for `patience` steps, or at `n_centers`; the fit with
        the smallest error is kept.
        """
        if step < 1 or patience < 1:
            raise ConfigurationError("step and patience must be at least 1.")
        penalty = positive_penalty(self.penalty)
        rows = training_rows(self, X, y, sample_weight)
        kernel = as_kernel(self.kernel)
        points = centers_of(self, rows, self.n_centers, self.random_state)
        growing = GrowingNystrom(rows, kernel, penalty, len(points), self.memory_limit)
        X_validation = validate_data(
            self, validation_data[0], dtype=[np.float64, np.float32], reset=False
        )
        Y_validation = np.asarray(validation_data[1], dtype=float).reshape(len(X_validation), -1)
        if Y_validation.shape[1] != rows.n_outputs:
            raise LearningError(
                f"The validation data have {Y_validation.shape[1]} outputs, y {rows.n_outputs}."
            )
        self.validation_errors_: list[float] = []
        reference, since = np.inf, 0
        for start in range(0, len(points), step):
            growing.append(points[start : start + step])
            alpha, centers = growing.coefficients(), points[: start + step]
            predicted = kernel_sum(X_validation, kernel, centers, alpha, self.memory_limit)
            error = mean_squared_error(Y_validation, predicted)
            if not self.validation_errors_ or error < min(self.validation_errors_):
                self._keep(rows, centers, alpha)
            self.validation_errors_.append(error)
            since += 1
            if error < reference * (1.0 - tolerance):
                reference, since = error, 0
            if since >= patience:
                break
        return self

    def _problem(self, rows: Rows, n_centers: int, penalty: float) -> NystromProblem:
        points = centers_of(self, rows, n_centers, self.random_state)
        return NystromProblem.of(rows, as_kernel(self.kernel), points, penalty, self.memory_limit)

    def _chosen(self, grid: Grid) -> dict[str, list[Any]]:
        chosen = super()._chosen(grid)
        if not isinstance(self.centers, str):
            if "n_centers" in grid:
                raise ConfigurationError("n_centers can't vary where the centres are given.")
            chosen["n_centers"] = [len(self.centers)]
        return chosen
