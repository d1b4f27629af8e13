"""Kernel ridge regression on Nyström centres, with its path over their number and the penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.metaestimators import available_if

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    positive_count,
)
from semiparam_dynamics.learning.base import (
    Grid,
    IterationLog,
    KernelRegressor,
    Path,
    RegularisationPath,
    StoppingRule,
    fitted_rows,
    kernel_sum,
    mean_squared_error,
    validation_rows,
)
from semiparam_dynamics.learning.centers import NystromBasis, choose_centers, nystrom_map
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.krls import filter_values, gradient_step, parameter_of
from semiparam_dynamics.learning.products import KernelRows, largest_diagonal
from semiparam_dynamics.learning.ridge import (
    QR_BELOW,
    FeatureBlock,
    FeatureMap,
    NestedFactor,
    NestedRidge,
    accumulate,
    feature_blocks,
    leave_one_out_predictions,
    second_moments,
)
from semiparam_dynamics.learning.rows import ArrayRows, Rows, memory_budget

# -------------------------------------------------------------------------------------------------
# Nyström kernel ridge regression whose centres grow, without starting again.

KEPT_FEATURES_SHARE = 0.5  # of the memory limit, for the features of all rows


class GrowingNystrom:
    """The system of rows and centres, to which blocks of centres can be appended in BLAS 3.

    Appending k centres to m costs O(n m k) where the rows' features fit into half of the memory
    limit, and are kept; elsewhere they are computed again, O(n m^2). The same holds for a penalty
    so small that Cholesky factors of A'A have too few digits (see ridge.py). The penalty is lambda,
    times the total weight; there will be at most `max_centers`.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        penalty: float,
        max_centers: int,
        memory_limit: int | None = None,
    ) -> None:
        self._rows, self._kernel, self._memory_limit = rows, kernel, memory_limit
        self._ridge = penalty * rows.total_weight
        self.basis: NystromBasis | None = None
        self._factor = NestedFactor(np.zeros((0, 0)), np.zeros((0, rows.n_outputs)))
        needed = rows.n_samples * max_centers * rows.dtype.itemsize
        fits = needed <= KEPT_FEATURES_SHARE * memory_budget(memory_limit)
        self._kept = np.empty((rows.n_samples, max_centers), rows.dtype) if fits else None

    def append(self, centers: Array) -> None:
        """Append centres (k, d)."""
        q = 0 if self.basis is None else self.basis.n_features
        if self.basis is None:
            self.basis = NystromBasis(self._kernel, centers, dtype=self._rows.dtype)
        else:
            self.basis.extend(centers)
        k = self.basis.n_features - q
        if not k:
            return
        largest = self._kernel.diagonal(self.basis.centers).max() * self._rows.total_weight
        if self._kept is None or self._ridge < QR_BELOW * largest:
            self._start_again(self.basis)
            return
        cross, own = np.zeros((q, k)), self._ridge * np.eye(k)
        moments = np.zeros((k, self._rows.n_outputs))
        for block in self._blocks(self.basis, self._kept, q):
            _add_products(*block, cross, own, moments)
        try:
            self._factor.append(cross, own, moments)
        except np.linalg.LinAlgError:
            self._start_again(self.basis)

    def coefficients(self) -> Array:
        """Coefficients of K(x, c_j), (m, T)."""
        if self.basis is None:
            return np.zeros((0, self._rows.n_outputs))
        return self.basis.coefficients(self._factor.weights())

    def _blocks(self, basis: NystromBasis, kept: Array, known: int) -> Iterator[FeatureBlock]:
        """The rows' features, of which the first `known` were kept."""
        L = basis.factor[known:].astype(self._rows.dtype)
        new = FeatureMap(
            len(L), self._kernel.bind(basis.centers[basis.kept[known:]].astype(self._rows.dtype))
        )
        start = 0
        rest = int((1.0 - KEPT_FEATURES_SHARE) * memory_budget(self._memory_limit))
        for K, Y, weights in feature_blocks(self._rows, new, rest, extra_bytes=8 * known):
            A = kept[start : start + len(K), : known + len(L)]
            # phi_new = L22^-1 (K_new - L21 phi_known)
            K -= A[:, :known] @ L[:, :known].T
            A[:, known:] = solve_triangular(L[:, known:], K.T, lower=True, overwrite_b=True).T
            start += len(K)
            yield A, Y, weights

    def _start_again(self, basis: NystromBasis) -> None:
        features = nystrom_map(basis, self._rows.dtype)
        self._kept = None  # it lacks these centres' features
        add_up = partial(second_moments, self._rows, features, self._memory_limit)
        self._factor = accumulate(add_up, self._ridge, largest=np.inf).factor(self._ridge)


def _add_products(
    A: Array, Y: Array, weights: Array | None, cross: Array, own: Array, moments: Array
) -> None:
    """Add A1'WA2, A2'WA2 and A2'WY of a block of rows, with A2 the features after the first q."""
    known, new = (part.astype(float, copy=False) for part in np.hsplit(A, [len(cross)]))
    weighted = new if weights is None else new * weights[:, None]
    cross += known.T @ weighted
    own += new.T @ weighted
    moments += weighted.T @ Y


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
    chunks, in `fit` and `path`; `grow`, `leave_one_out` and ``centers="leverage_scores"`` read
    all chunks through this process.

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
    validation_errors_ : after `grow`, (steps,), the mean squared error after each step.
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
        self.__dict__.pop("validation_errors_", None)  # of `grow`
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

    @available_if(lambda self: self.filter == "tikhonov")  # type: ignore[untyped-decorator]
    def grow(
        self,
        X: Any,
        y: Any = None,
        *,
        validation_data: tuple[Any, Any],
        step: int = 100,
        tolerance: float = 0.0,
        patience: int = 1,
        stopping: StoppingRule | None = None,
        sample_weight: Any = None,
    ) -> NystromKRLS:
        """Fit with `step` centres, then as many more at a time while the validation error falls.

        Each step costs what its new centres cost, O(n m step) (thesis algorithm 1), and is not
        another fit. It ends when the mean squared error on `validation_data`, (X, y) or Rows,
        hasn't fallen by the relative `tolerance` for `patience` steps, or at `n_centers`; the fit
        with the smallest error is kept. `stopping`, an :class:`ErrorSlope` or a function of the
        root mean squared errors so far, takes the place of tolerance and patience.
        """
        step, rows = positive_count(step, "step"), fitted_rows(self, X, y, sample_weight)
        kernel = self.kernel_
        points = centers_of(self, rows, self.n_centers, self.random_state)
        m = points.shape[0]
        growing = GrowingNystrom(rows, kernel, self.penalty_, m, self.memory_limit)
        held_out = validation_rows(self, validation_data, rows).whole()
        log = IterationLog(
            m, tolerance=tolerance, patience=patience, stopping=stopping, squared=True
        )
        for start in range(0, m, step):
            growing.append(points[start : start + step])
            alpha, centers = growing.coefficients(), points[: start + step]
            predicted = kernel_sum(held_out.X, kernel, centers, alpha, self.memory_limit)
            error = mean_squared_error(held_out.Y, predicted, held_out.weights)
            stop = log.done(centers.shape[0], error)
            if log.improved:
                self.n_iter_ = 1
                self._keep(rows, centers.copy(), alpha)  # given ones are the caller's
            if stop:
                break
        self.validation_errors_ = np.array(log.errors)
        return self

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
