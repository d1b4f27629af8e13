"""FALKON: Nyström kernel ridge regression by preconditioned conjugate gradient.

Rudi, Carratino, Rosasco 2017. An estimator, the linear system that it solves, the system's
preconditioner, and conjugate gradient for several columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import (
    ConfigurationError,
    LearningError,
    positive_count,
    positive_penalty,
)
from semiparam_dynamics.learning.base import (
    Callback,
    IterationLog,
    KernelRegressor,
    Path,
    RegularisationPath,
    mean_squared_error,
    validation_rows,
)
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import Centers, choose_centers, uniform
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.products import kernel_rows
from semiparam_dynamics.learning.rows import Rows, training_rows

FAR = 0.1  # a relative residual that says that the estimate is not yet the objective's minimiser
PATIENCE = 50  # iterations without a smaller residual: rounding lets no more be gained
GROWTH = 1e3  # conjugate gradient's residuals may rise for a while, but hardly by so much
BLOCK = 512  # rows of features at a time

Predictor = Callable[[Array], Array]
Follow = Callable[[int, Array], bool]


@dataclass(eq=False, repr=False)
class Falkon(RegularisationPath, KernelRegressor):
    """Kernel ridge regression on Nyström centres, for many rows (Rudi, Carratino, Rosasco 2017).

    Solves (K_nM' W K_nM + penalty n K_MM) alpha = K_nM' W Y, with W the sample weights and n
    their sum (the number of rows without them), by conjugate gradient on features of the centres,
    preconditioned as in the paper's algorithm 1 and appendix A. With max_iter of the order of
    log n, penalty = 1 / sqrt(n) and n_centers = sqrt(n) log(n) the error is of the order of the
    exact estimator's (theorem 3). Where the penalty is far below 1 / n_centers the centres alone
    say too little about the rows, and many more iterations are needed, with a ConvergenceWarning.
    Then `preconditioner_rows`, four times n_centers for instance, saves most of them: an addition
    to the paper, in which the centres are the preconditioner's only sample of the data.

    Time O(n M t + M^3) for M centres and t iterations. Memory: kernel blocks, or all of K_nM if
    it fits, within `memory_limit`; beside them two matrices (M, M) of float64, and a third while
    the preconditioner is made of `preconditioner_rows` or of centres that some were left out of.

    PyTorch's and CuPy's arrays stay where they are, on a GPU for instance, if scikit-learn's
    `array_api_dispatch` is on: K_nM there, within `memory_limit` there (by default 1 GB), the
    (M, M) matrices and what is fitted in NumPy. Dask arrays, or
    :class:`~.backends.dask_arrays.DaskRows`, stay in their chunks on a cluster's workers, which
    compute the products of K_nM; ``centers="leverage_scores"`` reads them through this process.

    Parameters
    ----------
    kernel : a kernel, or a function of two matrices of rows; None: ``Gaussian(1.0)``.
    penalty : lambda; the objective is the mean squared error plus lambda times the squared norm.
    n_centers : M; all rows where there are no more.
    centers : "uniform", "leverage_scores" or the centres, (M, d).
    max_iter : iterations at most.
    tolerance : end when the preconditioned residual is this small in relation to the first; the
        inputs' precision bounds it.
    random_state : seed or generator of the centres' choice.
    memory_limit : bytes for kernel matrices; None: a quarter of what is free.
    preconditioner_rows : rows, drawn uniformly, that the preconditioner sees beside the centres,
        in time O(rows M^2) and with one more matrix (M, M); None: the centres alone, as in the
        paper.
    callback : called with an :class:`Iteration` after each; a true answer ends the fit.
    verbose : whether to draw a progress bar.

    Attributes
    ----------
    centers_ : (q, d), without those that the ones before them explain to rounding.
    coef_ : (q,), or (q, T) where y had two dimensions.
    n_iter_ : iterations done, t.
    residuals_ : (t,), the relative residual after each iteration, the outputs' largest.
    validation_errors_ : (t,), mean squared errors after each, if there were validation data.
    n_features_in_ : d.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("penalty", "max_iter")

    kernel: Any = None
    penalty: float = 1e-3
    n_centers: int = 1000
    centers: Any = "uniform"
    max_iter: int = 20
    tolerance: float = 1e-10
    random_state: Any = None
    memory_limit: int | None = None
    preconditioner_rows: int | None = None
    callback: Callback | None = None
    verbose: bool = False

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
    ) -> Falkon:
        """Fit to X (n, d) and y (n,) or (n, T), or to :class:`Rows` that bring y and weights.

        With `validation_data`, (X, y), the error there is computed after each iteration.
        Raises ConfigurationError for parameters out of range, LearningError for unusable data.
        """
        penalty = positive_penalty(self.penalty)
        max_iter = positive_count(self.max_iter, "max_iter")
        rows = training_rows(self, X, y, sample_weight, on_device=True)
        held_out = None
        if validation_data is not None:
            held_out = validation_rows(self, validation_data, rows).whole()
        system = self._system(rows, held_out is not None)
        preconditioner = system.preconditioner(penalty)
        predictor = None if held_out is None else self._predictor(system, held_out.X)

        def follow(number: int, beta: Array) -> bool:
            if predictor is None or held_out is None:
                return log.done(number)
            predicted = predictor(system.coefficients(preconditioner, beta))
            return log.done(number, mean_squared_error(held_out.Y, predicted))

        with IterationLog(max_iter, self.callback, self.verbose, "FALKON") as log:
            solution = system.solve(preconditioner, penalty, max_iter, self.tolerance, follow)
        self._keep(rows, system.data.centers, system.coefficients(preconditioner, solution.x))
        self.n_iter_ = solution.n_iter
        self.residuals_ = np.max(solution.residuals, axis=1, initial=0.0)
        self.validation_errors_ = np.array(log.errors)
        if self.n_iter_ == max_iter and self.residuals_[-1] > FAR:
            warnings.warn(
                f"After {max_iter} iterations the relative residual is {self.residuals_[-1]:.2g}: "
                f"set preconditioner_rows to {4 * len(self.centers_)}, or raise max_iter, or "
                f"n_centers towards 1 / penalty, or the penalty.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """All settings share the centres, their features and, where it fits, K_nM; those of one
        penalty share one run. Leverage scores are those of the estimator's own penalty.
        """
        asked = chosen["max_iter"]
        system = self._system(rows, True)
        predictor = self._predictor(system, X_validation)
        for penalty in chosen["penalty"]:
            predictions = self._run(system, penalty, asked, predictor)
            for iterations in asked:
                setting = {"penalty": penalty, "max_iter": iterations}
                yield setting, predictions[iterations]

    def _run(
        self, system: FalkonSystem, penalty: float, asked: Sequence[int], predictor: Predictor
    ) -> dict[int, Array]:
        """Predictions after each number of iterations that is asked for, of one run."""
        preconditioner = system.preconditioner(penalty)
        found: dict[int, Array] = {}

        def follow(number: int, beta: Array) -> bool:
            if number in asked:
                found[number] = predictor(system.coefficients(preconditioner, beta))
            return False

        solution = system.solve(preconditioner, penalty, max(asked), self.tolerance, follow)
        last = predictor(system.coefficients(preconditioner, solution.x))
        return {number: found.get(number, last) for number in asked}

    def _system(self, rows: Rows, validated: bool) -> FalkonSystem:
        kernel, limit = as_kernel(self.kernel), self.memory_limit
        if not self.tolerance >= 0.0:
            raise ConfigurationError(f"tolerance must not be negative, as {self.tolerance} is.")
        if limit is not None and validated:
            limit -= limit // 4  # a quarter is the validation data's
        centers = choose_centers(
            self.centers, rows, self.n_centers, kernel, self.penalty, self.random_state, limit
        )
        sample = None
        if self.preconditioner_rows is not None:
            sample = uniform(rows, self.preconditioner_rows, self.random_state)
        return FalkonSystem(rows, kernel, centers, limit, sample)

    def _predictor(self, system: FalkonSystem, X: Array) -> Predictor:
        """Coefficients -> predictions on held-out inputs, whose kernel is kept if it fits."""
        limit = None if self.memory_limit is None else max(self.memory_limit // 4, 1)
        rows, kernel = system.data.rows.like(X), as_kernel(self.kernel)
        data = kernel_rows(rows, kernel, system.data.centers, limit)
        return lambda coefficients: np.concatenate(list(data.multiply(coefficients)))


class FalkonSystem:
    """(Phi' W Phi / n + penalty I) w = Phi' W Y / n, for any number of penalties.

    Phi = K_nM L'^-1 are the rows' features (n, q), and the coefficients are L'^-1 w: the Nyström
    problem's H alpha = K_nM' W Y without the directions that rounding leaves undetermined. The
    preconditioner is made from the rows of `sample`, or from the centres where that is None.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        centers: Centers,
        memory_limit: int | None = None,
        sample: Centers | None = None,
    ) -> None:
        self.basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
        # A kernel that is zero on all centres keeps none: the first stands for the zero function.
        used = self.basis.kept if self.basis.n_features else np.zeros(1, dtype=np.intp)
        self.data = kernel_rows(rows, kernel, self.basis.centers[used], memory_limit)
        self.importance = _importance(rows, centers)
        self._moments = None
        if sample is not None and self.basis.n_features:
            self._moments = _sampled_moments(rows, self.basis, centers, sample)
        self._n = rows.total_weight
        self._targets = self.data.targets()[: self.basis.n_features]

    def preconditioner(self, penalty: float) -> Preconditioner:
        """That of one penalty; the one before should be gone by then, for it is as large."""
        return Preconditioner(self.basis, penalty, self.importance, self._moments)

    def solve(
        self,
        preconditioner: Preconditioner,
        penalty: float,
        max_iter: int,
        tolerance: float,
        follow: Follow | None = None,
    ) -> Solution:
        """Conjugate gradient on the unknowns beta = A w, to which `coefficients` belong."""
        B = preconditioner

        def product(beta: Array) -> Array:
            weights = B.to_features(beta)
            gradient = self.data.normal(B.to_coefficients(weights))
            gradient = B.from_coefficients(gradient) / self._n + penalty * weights
            return B.from_features(gradient)

        b = B.from_features(B.from_coefficients(self._targets) / self._n)
        return conjugate_gradient(
            product,
            b,
            max_iter=max_iter,
            # A residual below the kernel's rounding is one of the recurrence only.
            tolerance=max(tolerance, float(np.finfo(self.data.rows.dtype).eps)),
            patience=PATIENCE,
            follow=follow,
        )

    def coefficients(self, preconditioner: Preconditioner, beta: Array) -> Array:
        """Coefficients (q, T) of the kernels at ``data.centers``, for the solution beta (q, T)."""
        if not len(beta):
            return np.zeros((1, beta.shape[1]))
        return preconditioner.to_coefficients(preconditioner.to_features(beta))


def _sampled_moments(rows: Rows, basis: NystromBasis, centers: Centers, sample: Centers) -> Array:
    """An estimate of Phi' W Phi / n, its upper half, (q, q): all centres, and other rows' sample.

    A row that is a centre has features unlike those of other rows, so each of the two kinds is
    weighted by how many of it there are. Centres that aren't rows don't count.
    """
    weights = rows.weights()
    w = np.ones(rows.n_samples) if weights is None else weights.astype(float)
    w /= rows.total_weight
    assert sample.indices is not None
    if centers.indices is None:
        share = w[sample.indices] * rows.n_samples / len(sample.indices)
        return mean_products(basis, share, sample.points.astype(float))
    own, first = np.unique(centers.indices, return_index=True)
    moments = mean_products(basis, w[own], centers.points[first].astype(float))
    other = ~np.isin(sample.indices, own)
    if other.any():
        share = w[sample.indices[other]] * (rows.n_samples - len(own)) / other.sum()
        moments += mean_products(basis, share, sample.points[other].astype(float))
    return moments


def _importance(rows: Rows, centers: Centers) -> Array | None:
    """D^2 (M,), the centres' weights in the mean over the rows; None: all 1.

    A row of weight w, drawn with probability p, stands for w / (n p) rows, with n the weights'
    sum. Centres that aren't rows count 1 each.
    """
    if centers.indices is None:
        return None
    weights = rows.weights()
    if weights is None and centers.probabilities is None:
        return None
    result = np.full(len(centers.indices), 1.0 / rows.total_weight)
    if weights is not None:
        result *= weights[centers.indices]
    if centers.probabilities is None:
        return result * rows.n_samples
    return result / centers.probabilities


class Preconditioner:
    """The triangular maps of B = L'^-1 A^-1, with L L' = K_MM and
    A'A = Phi' D^2 Phi / M + penalty I (paper, equation (13) and appendix A, with T = L').

    Phi (M, q) holds the centres' features: ``basis.expansion``, L itself where no centre was
    left out. D_jj = (n p_j)^-1/2 for a centre that was drawn with probability p_j, so that A'A
    is in the mean (Phi_n' Phi_n + penalty n I) / n, the system's matrix in those coordinates.

    Two matrices (M, M) are alive while it is in use: the basis' and A. They are computed in
    place, and none is copied in a product. Time M^3 / 3 multiplications for
    A'A and half as many for A; each solve takes M^2 / 2 for a column.

    Parameters
    ----------
    basis : of the centres.
    penalty : lambda, beside the mean of the features' products.
    importance : (M,), D^2, with the centres' sample weights where there are any; None: ones.
    moments : (q, q), its upper half: a mean of features' products to take in place of that of
        the centres.
    """

    def __init__(
        self,
        basis: NystromBasis,
        penalty: float,
        importance: Array | None = None,
        moments: Array | None = None,
    ) -> None:
        M, q = basis.expansion.shape
        # BLAS wants columns: row-wise L is its transpose, column-wise, and isn't copied so.
        whole = q == M
        self._upper = np.ascontiguousarray(basis.expansion if whole else basis.factor).T
        if not q:
            self._A = np.empty((0, 0))
            return
        share = (np.ones(M) if importance is None else importance) / M
        extra = penalty
        for _ in range(20):
            if moments is not None:
                gram = moments.copy(order="F")
            else:
                gram = _triangular_gram(basis, share) if whole else mean_products(basis, share)
            gram.flat[:: q + 1] += extra
            self._A, failed = dpotrf(gram, lower=0, clean=0, overwrite_a=1)
            if not failed and np.isfinite(np.diagonal(self._A)).all():
                return
            # A penalty below the rounding: a larger one here costs iterations, not accuracy.
            scale = float(np.sum(share * np.einsum("ij,ij->i", basis.expansion, basis.expansion)))
            extra = max(10.0 * extra, np.finfo(float).eps * scale)
        raise LearningError(
            "The preconditioner has no Cholesky factor: are the kernel's values finite?"
        )

    def to_features(self, beta: Array) -> Array:
        """A^-1 beta, features' weights, of the preconditioned unknowns (q, T)."""
        return _solve(self._A, beta)

    def from_features(self, gradient: Array) -> Array:
        """A'^-1 gradient, with respect to beta, of that with respect to features' weights."""
        return _solve(self._A, gradient, transposed=True)

    def to_coefficients(self, weights: Array) -> Array:
        """L'^-1 weights, the kept centres' coefficients, of features' weights (q, T)."""
        return _solve(self._upper, weights)

    def from_coefficients(self, gradient: Array) -> Array:
        """L^-1 gradient, with respect to weights, of that with respect to coefficients (q, T)."""
        return _solve(self._upper, gradient, transposed=True)


def _solve(upper: Array, B: Array, transposed: bool = False) -> Array:
    """U^-1 B, or U'^-1 B, of a column-wise upper triangular U (q, q)."""
    if not B.size:
        return B
    result: Array
    if B.shape[1] == 1:  # the solver of matrices would copy U
        result = dtrsv(upper, B[:, 0], lower=0, trans=int(transposed))[:, None]
    else:
        result = dtrsm(1.0, upper, B, lower=0, trans_a=int(transposed))
    return result


def _triangular_gram(basis: NystromBasis, share: Array) -> Array:
    """Phi' diag(share) Phi of a triangular Phi, its upper half, in one matrix."""
    # LAPACK's lauum reaches half of the matrix products' speed. A block of rows needs only itself
    # and those below it, so that it can take its own place; a twentieth of the matrix at a time.
    gram = basis.expansion * np.sqrt(share)[:, None]
    rows = -(-len(gram) // 20)
    for start in range(0, len(gram), rows):
        end = min(start + rows, len(gram))
        gram[start:end, :end] = gram[start:, start:end].T @ gram[start:, :end]
    return gram.T


def mean_products(basis: NystromBasis, share: Array, X: Array | None = None) -> Array:
    """Phi' diag(share) Phi, its upper half, (q, q), of the features of the centres or of X."""
    q = basis.n_features
    gram = np.zeros((q, q), order="F")
    for i in range(0, len(share), BLOCK):
        here = slice(i, i + BLOCK)
        phi = basis.expansion[here] if X is None else basis.transform(X[here])
        scaled = phi * np.sqrt(share[here])[:, None]
        gram = dsyrk(1.0, scaled.T, beta=1.0, c=gram, lower=0, overwrite_c=1)
    return gram


@dataclass(frozen=True)
class Solution:
    """The result of conjugate gradient, after t products with the matrix."""

    x: Array  # (q, T), the solution of each column
    residuals: Array  # (t, T), relative to b; a column's last one once it stopped
    converged: Array  # (T,), whether the residual reached the tolerance

    @property
    def n_iter(self) -> int:
        """The products with the matrix, t."""
        return len(self.residuals)


def conjugate_gradient(
    product: Callable[[Array], Array],
    b: Array,
    *,
    max_iter: int,
    tolerance: float = 1e-8,
    patience: int | None = None,
    follow: Follow | None = None,
) -> Solution:
    """Solve H x = b for a symmetric positive-definite H (q, q) and b (q, T), beginning at zero.

    Each column has its own step sizes, so it gets what it would get alone, and stops alone; the
    columns still at work share each product (Hestenes and Stiefel 1952).

    Parameters
    ----------
    product : P (q, k) -> H P (q, k), k <= T.
    tolerance : a column stops when its residual's norm is at most this part of b's.
    patience : a column also stops when so many iterations brought no smaller residual, or one
        left a residual GROWTH times the smallest, and goes back to where that was; None: never.
        Rounding can make that necessary, for a product in float32 most of all.
    follow : called with the iteration's number, from 1, and x (q, T), which it must not change;
        a true answer ends all.

    A column also stops where H proves not to be positive definite to rounding, or gives values
    that are not finite, and keeps what it has. The result is finite if b is.
    """
    # Columns are scaled to norm 1, so that neither tiny nor huge ones leave the numbers' range.
    largest = np.max(np.abs(b), axis=0, initial=0.0)
    scale = np.where(largest > 0.0, largest, 1.0)
    scale = scale * np.maximum(np.linalg.norm(b / scale, axis=0), 1.0)
    r = b / scale
    x, p = np.zeros_like(r), r.copy()
    squared = np.sum(r * r, axis=0)
    relative = np.sqrt(squared)
    best, best_x, best_at = relative.copy(), x.copy(), np.zeros(r.shape[1], dtype=int)
    active = np.flatnonzero(relative > tolerance)
    residuals: list[Array] = []
    while len(active) and len(residuals) < max_iter:
        with np.errstate(over="ignore", invalid="ignore"):
            product_p = product(p[:, active])
            curvature = np.sum(p[:, active] * product_p, axis=0)
        usable = np.isfinite(product_p).all(axis=0) & np.isfinite(curvature) & (curvature > 0.0)
        active, product_p = active[usable], product_p[:, usable]
        step = squared[active] / curvature[usable]
        x[:, active] += step * p[:, active]
        r[:, active] -= step * product_p
        before = squared[active]
        squared[active] = np.sum(r[:, active] ** 2, axis=0)
        p[:, active] = r[:, active] + squared[active] / before * p[:, active]
        relative[active] = np.sqrt(squared[active])
        t = len(residuals) + 1
        if patience is not None:
            better = active[relative[active] < best[active]]
            best[better], best_at[better] = relative[better], t
            best_x[:, better] = x[:, better]
            waited = t - best_at[active] >= patience
            stuck = waited | (relative[active] > GROWTH * best[active])
            x[:, active[stuck]] = best_x[:, active[stuck]]
            relative[active[stuck]] = best[active[stuck]]
            active = active[~stuck]
        residuals.append(relative.copy())
        active = active[relative[active] > tolerance]
        if follow is not None and follow(t, x * scale):
            break
    history = np.array(residuals) if residuals else np.empty((0, r.shape[1]))
    return Solution(x * scale, history, relative <= tolerance)
