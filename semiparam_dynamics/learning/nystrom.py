"""Kernel ridge regression on Nyström centres, with its path over their number and the penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, positive_count
from semiparam_dynamics.learning.base import (
    Grid,
    KernelRegressor,
    Path,
    RegularisationPath,
    fitted_rows,
)
from semiparam_dynamics.learning.centers import NystromBasis, choose_centers, nystrom_map
from semiparam_dynamics.learning.krls import filter_values, gradient_step, parameter_of
from semiparam_dynamics.learning.products import KernelRows, largest_diagonal
from semiparam_dynamics.learning.ridge import (
    FeatureMap,
    NestedRidge,
    accumulate,
    feature_blocks,
    leave_one_out_predictions,
    second_moments,
)
from semiparam_dynamics.learning.rows import ArrayRows, Rows

# -------------------------------------------------------------------------------------------------
# The ridge regression that Nyström KRLS is, in the orthonormal basis of its centres.


StepRule = Callable[[float], float]  # the second moments' largest eigenvalue -> gamma


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
        relative: bool = False,
    ) -> NystromProblem:
        """One pass over the rows, for an estimator's centres and penalties from `penalty` up.

        With `relative`, in units of the largest K(c, c).
        """
        kernel = estimator.kernel_
        centers = centers_of(estimator, rows, n_centers, random_state)
        basis = NystromBasis(kernel, centers, dtype=rows.dtype)
        features = nystrom_map(basis, rows.dtype)
        largest = float(kernel.diagonal(basis.centers).max()) * rows.total_weight
        ridge = penalty * (largest if relative else rows.total_weight)
        add_up = partial(second_moments, rows, features, estimator.memory_limit)
        return cls(basis, features, accumulate(add_up, ridge, largest))

    def filtered(
        self,
        rows: Rows,
        n_features: int,
        name: str,
        values: Sequence[Any],
        nu: float,
        step: StepRule | None,
    ) -> list[Array]:
        """For each value of the parameter of the filter `name`, its weights (t, T) of t features.

        beta = V g(Sigma) V' A'WY / n, with A'WA / n = V Sigma V' of the first t = `n_features`.
        As in :meth:`~.krls.Spectrum.coefficients`, directions of which no digit is known are left
        out where the filter would divide by their eigenvalue.
        """
        eigenvalues, vectors, projected = self.system.spectrum(n_features)
        if not n_features:
            return [np.zeros((0, rows.n_outputs)) for _ in values]
        largest = float(self.basis.kernel.diagonal(self.basis.centers).max())
        # Of a mean row's weight: the eigenvalues are sums by weights, of any scale.
        largest *= rows.total_weight / rows.n_samples
        noise = 10.0 * np.sqrt(rows.n_samples) * np.finfo(rows.dtype).eps * largest
        noise += n_features * np.finfo(float).eps * eigenvalues.sum()
        total = rows.total_weight
        sigma = eigenvalues / total
        gamma = None if step is None else step(float(sigma.max()))
        found = filter_values(name, sigma, values, nu, gamma)
        kept = [np.where(g * (noise / total) > 1.0, 0.0, g) / total for g in found]
        return [vectors @ (g[:, None] * projected) for g in kept]


def centers_of(estimator: Any, rows: Rows, n_centers: int, random_state: Any) -> Array:
    """The centres (m, d) that an estimator's parameters ask for."""
    return choose_centers(
        estimator.centers,
        rows,
        n_centers,
        estimator.kernel_,
        estimator.penalty_,
        random_state,
        estimator.memory_limit,
    ).points


@dataclass(eq=False, repr=False)
class NystromKRLS(RegularisationPath, KernelRegressor):
    """The minimiser of sum_i w_i (f(x_i) - y_i)^2 / n + penalty |f|^2 among sums of K(c_j, .).

    Its coefficients are (K_nm' W K_nm + penalty n K_mm)^+ K_nm' W Y (Rudi, Camoriano, Rosasco
    2015, equation 5; thesis 4.2), for a kernel matrix K_nm that is never in memory as a whole:
    O(n m^2 + m^3) time, O(m^2) memory in addition to the limit. With m = n it is exact kernel ridge
    regression.

    That is the filter "tikhonov". The others, of :class:`KRLS`, are beta = V g(Sigma) V' A'WY / n
    with A'WA / n = V Sigma V' the second moments of the Nyström features A = K_nm S, K_mm^+ = S S'
    (thesis 4.3.2 and chapter 3; "landweber" is :class:`NYTRO` in closed form): another
    eigendecomposition, O(m^3), and no pass over the rows more. With m = n they are those of KRLS
    but for "ols", where each of the two leaves out other directions as rounding.

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
    filter : "tikhonov"; "cutoff", which keeps the eigenvalues of the second moments that are
        `penalty` or more; "landweber" (gradient descent stopped early) and "nu" (the same,
        accelerated), regularised by `max_iter`; "ols" (none).
    max_iter : iterations of "landweber" and "nu".
    step : gamma of "landweber": "spectral", the inverse of the second moments' largest eigenvalue;
        "kernel", 1 / max K(x, x), which is never larger; or a number.
    nu : the nu-method's order.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T) like y; zero where the centres before explain a centre.
    n_iter_ : iterations; 1 for the filters that don't iterate.
    """

    kernel: Any = None
    penalty: float | None = None
    n_centers: int = 1000
    centers: Any = "uniform"
    random_state: Any = None
    memory_limit: int | None = None
    filter: str = "tikhonov"
    max_iter: int = 100
    step: Any = "spectral"
    nu: float = 1.0

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """`n_centers`, and the parameter that regularises the filter, if there is one."""
        parameter = parameter_of(self.filter)
        return ("n_centers",) if parameter is None else ("n_centers", parameter)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystromKRLS:
        """Fit to inputs X (n, d) and outputs y (n,) or (n, T), or to :class:`Rows` alone.

        Raises ConfigurationError for parameters out of range, LearningError for a step with which
        "landweber" diverges.
        """
        parameter = parameter_of(self.filter)
        count = positive_count(self.max_iter, "max_iter") if parameter == "max_iter" else None
        rows = fitted_rows(self, X, y, sample_weight)
        values: list[Any] = [self.penalty_ if parameter == "penalty" else count]
        problem = self._problem(rows, self.n_centers, values)
        if self.filter == "tikhonov":
            beta = problem.system.factor(values[0] * rows.total_weight).weights()
        else:
            (weights,) = self._weights(problem, rows, [problem.basis.n_features], values)
            (beta,) = weights
        self.n_iter_ = count or 1
        self._keep(rows, problem.basis.centers, problem.basis.coefficients(beta))
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One pass over the data serves all numbers of centres and all values of the filter's
        parameter: the first centres of the largest number are those of a smaller one. Centres by
        leverage scores are drawn once, with the estimator's own penalty.
        """
        sizes, parameter = chosen["n_centers"], parameter_of(self.filter)
        values = [None] if parameter is None else chosen[parameter]
        problem = self._problem(rows, max(sizes), values)
        basis = problem.basis
        held_out = ArrayRows(X_validation.astype(rows.dtype, copy=False))
        K = KernelRows(held_out, basis.kernel, basis.centers, self.memory_limit)
        T = rows.n_outputs
        weights = self._weights(problem, rows, [basis.n_features_of(t) for t in sizes], values)
        for value, betas in zip(values, weights, strict=True):
            alphas = np.hstack([basis.coefficients(beta) for beta in betas])
            predicted = np.concatenate(list(K.multiply(alphas)))
            for i, size in enumerate(sizes):
                setting = {"n_centers": size} | ({} if parameter is None else {parameter: value})
                yield setting, predicted[:, i * T : (i + 1) * T]

    def _weights(
        self, problem: NystromProblem, rows: Rows, features: Sequence[int], values: Sequence[Any]
    ) -> Iterator[Sequence[Array]]:
        """For each value of the filter's parameter, the weights of each number of features."""
        if self.filter == "tikhonov":
            yield from problem.system.path(features, [v * rows.total_weight for v in values])
            return
        step = self._step(rows)
        of_sizes = [problem.filtered(rows, q, self.filter, values, self.nu, step) for q in features]
        yield from zip(*of_sizes, strict=True)

    @available_if(lambda self: self.filter == "tikhonov")  # type: ignore[untyped-decorator]
    def leave_one_out(self, X: Any, y: Any, grid: Grid, *, sample_weight: Any = None) -> Path:
        """(setting, predictions (n, T)) for every setting of the grid: of row i, by the others.

        What n fits to n - 1 rows each, with these same centres, would predict; from two passes
        over the data and one eigendecomposition for each number of centres.
        """
        other, rows, chosen = self._begun(X, y, grid, sample_weight)
        sizes, penalties = chosen["n_centers"], chosen["penalty"]
        if rows.n_samples < 2:
            raise LearningError("Leave-one-out needs at least two rows.")
        problem = other._problem(rows, max(sizes), penalties)
        features = [problem.basis.n_features_of(t) for t in sizes]
        stream = partial(feature_blocks, rows, problem.features, self.memory_limit)
        for i, predictions in leave_one_out_predictions(
            problem.system, rows, stream, features, penalties
        ):
            for penalty, predicted in zip(penalties, predictions, strict=True):
                setting = {"n_centers": sizes[i], "penalty": penalty}
                yield {name: setting[name] for name in grid}, predicted

    def _step(self, rows: Rows) -> StepRule | None:
        """The rule of Landweber's step, which depends on the number of features."""
        if self.filter != "landweber":
            return None
        asked = isinstance(self.step, str) and self.step == "kernel"
        diagonal = largest_diagonal(rows, self.kernel_) if asked else 0.0
        return lambda largest: gradient_step(self.step, lambda: largest, lambda: diagonal)

    def _problem(self, rows: Rows, n_centers: int, values: Sequence[Any]) -> NystromProblem:
        """The system, with digits enough for the values of the filter's parameter."""
        relative = parameter_of(self.filter) != "penalty"
        if self.filter == "ols":
            penalty = 0.0
        elif relative:  # t steps do about what a penalty of 1 / t, or with "nu" 1 / t^2, does
            penalty = float(max(values)) ** (-2 if self.filter == "nu" else -1)
        else:
            penalty = min(values)
        return NystromProblem.of(self, rows, n_centers, penalty, self.random_state, relative)

    def _chosen(self, grid: Grid) -> dict[str, list[Any]]:
        chosen = super()._chosen(grid)
        if not isinstance(self.centers, str):
            if "n_centers" in grid:
                raise ConfigurationError("n_centers can't vary where the centres are given.")
            chosen["n_centers"] = [np.shape(self.centers)[0]]
        return chosen
