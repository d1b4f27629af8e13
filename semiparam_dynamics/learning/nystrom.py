"""Kernel ridge regression on Nyström centres, with its path over their number and the penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.base import (
    Grid,
    KernelRegressor,
    Path,
    RegularisationPath,
    fitted_rows,
    predictor,
)
from semiparam_dynamics.learning.centers import NystromBasis, basis_of, nystrom_map
from semiparam_dynamics.learning.ridge import (
    FeatureMap,
    NestedRidge,
    accumulate,
    feature_blocks,
    leave_one_out_predictions,
    second_moments,
)
from semiparam_dynamics.learning.rows import Rows


@dataclass(frozen=True)
class NystromProblem:
    """The centres' basis, its features of the rows, and their system A'WA, A'WY."""

    basis: NystromBasis
    features: FeatureMap
    system: NestedRidge

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: Rows,
        n_centers: int,
        penalty: float,
        random_state: Any,
    ) -> NystromProblem:
        """One pass over the rows, for an estimator's centres and penalties from `penalty` up."""
        basis = basis_of(estimator, rows, n_centers, random_state, estimator.memory_limit)
        features = nystrom_map(basis, rows.dtype)
        largest = float(basis.kernel.diagonal(basis.centers).max()) * rows.total_weight
        add_up = partial(second_moments, rows, features, estimator.memory_limit)
        return cls(basis, features, accumulate(add_up, penalty * rows.total_weight, largest))


@dataclass(eq=False, repr=False)
class NystromKRLS(RegularisationPath, KernelRegressor):
    """The minimiser of sum_i w_i (f(x_i) - y_i)^2 / n + penalty |f|^2 among sums of K(c_j, .).

    Its coefficients are (K_nm' W K_nm + penalty n K_mm)^+ K_nm' W Y (Rudi, Camoriano, Rosasco
    2015, equation 5; thesis 4.2), for a kernel matrix K_nm that is never in memory as a whole:
    O(n m^2 + m^3) time, O(m^2) memory in addition to the limit. With m = n it is exact kernel ridge
    regression.

    Of Dask arrays, or :class:`DaskRows`, a cluster's workers compute the second moments of their
    chunks, in `fit` and `path`; `leave_one_out` and ``centers="leverage_scores"`` read all chunks
    through this process.

    Parameters
    ----------
    kernel : as that of :class:`Falkon`.
    penalty : lambda. It multiplies n, or the sum of the sample weights; None: as in
        :class:`Falkon`.
    n_centers : m, at most as many as there are rows.
    centers : "uniform", "leverage_scores", or the centres themselves, (m, d).
    random_state : seed of the centres.
    memory_limit : bytes for blocks of features; None: a quarter of what is free.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T) like y; zero where the centres before explain a centre.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("n_centers", "penalty")

    kernel: Any = None
    penalty: float | None = None
    n_centers: int = 1000
    centers: Any = "uniform"
    random_state: Any = None
    memory_limit: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystromKRLS:
        """Fit to inputs X (n, d) and outputs y (n,) or (n, T), or to :class:`Rows` alone.

        Raises ConfigurationError for parameters out of range.
        """
        rows = fitted_rows(self, X, y, sample_weight)
        problem = self._problem(rows, self.n_centers, self.penalty_)
        beta = problem.system.factor(self.penalty_ * rows.total_weight).weights()
        self._keep(rows, problem.basis.centers, problem.basis.coefficients(beta))
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One pass over the data serves all numbers of centres and all penalties: the first centres
        of the largest number are those of a smaller one. Centres by leverage scores are drawn once,
        with the estimator's own penalty.
        """
        sizes, penalties = chosen["n_centers"], chosen["penalty"]
        problem = self._problem(rows, max(sizes), min(penalties))
        basis = problem.basis
        asked, T = rows.like(X_validation), rows.n_outputs
        predict = predictor(asked, basis.kernel, basis.centers, self.memory_limit)
        features = [basis.n_features_of(t) for t in sizes]
        for penalty in penalties:
            factor = problem.system.factor(penalty * rows.total_weight)
            alphas = np.hstack([basis.coefficients(factor.weights(t)) for t in features])
            predicted = predict(alphas)
            for i, size in enumerate(sizes):
                setting = {"n_centers": size, "penalty": penalty}
                yield setting, predicted[:, i * T : (i + 1) * T]

    def leave_one_out(self, X: Any, y: Any, grid: Grid, *, sample_weight: Any = None) -> Path:
        """(setting, predictions (n, T)) for every setting of the grid: of row i, by the others.

        What n fits to n - 1 rows each, with these same centres, would predict; from two passes
        over the data and one eigendecomposition for each number of centres.
        """
        other, rows, chosen = self._begun(X, y, grid, sample_weight)
        sizes, penalties = chosen["n_centers"], chosen["penalty"]
        if rows.n_samples < 2:
            raise LearningError("Leave-one-out needs at least two rows.")
        problem = other._problem(rows, max(sizes), min(penalties))
        features = [problem.basis.n_features_of(t) for t in sizes]
        stream = partial(feature_blocks, rows, problem.features, self.memory_limit)
        for i, predictions in leave_one_out_predictions(
            problem.system, rows, stream, features, penalties
        ):
            for penalty, predicted in zip(penalties, predictions, strict=True):
                setting = {"n_centers": sizes[i], "penalty": penalty}
                yield {name: setting[name] for name in grid}, predicted

    def _problem(self, rows: Rows, n_centers: int, penalty: float) -> NystromProblem:
        return NystromProblem.of(self, rows, n_centers, penalty, self.random_state)

    def _chosen(self, grid: Grid) -> dict[str, list[Any]]:
        chosen = super()._chosen(grid)
        if not isinstance(self.centers, str):
            if "n_centers" in grid:
                raise ConfigurationError("n_centers can't vary where the centres are given.")
            chosen["n_centers"] = [np.shape(self.centers)[0]]
        return chosen
