"""FALKON: Nyström kernel ridge regression by preconditioned conjugate gradient.

Rudi, Carratino, Rosasco 2017. An estimator, the linear system that it solves, the system's
preconditioner, and conjugate gradient for several columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf
from sklearn.exceptions import ConvergenceWarning

from semiparam_dynamics.arrays import Array, Indices
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
    validation_rows,
)
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import Centers, choose_centers, uniform
from semiparam_dynamics.learning.conjugate_gradient import Follow, Solution, conjugate_gradient
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.losses import Loss, as_loss
from semiparam_dynamics.learning.newton import LogisticNewton
from semiparam_dynamics.learning.products import KernelRows, kernel_rows
from semiparam_dynamics.learning.rows import Rows, training_rows

FAR = 0.1  # a relative residual that says that the estimate is not yet the objective's minimiser
PATIENCE = 50  # iterations without a smaller residual: rounding lets no more be gained
BLOCK = 512  # rows of features at a time

FALKON_LOSSES = ("square", "logistic")

Predictor = Callable[[Array], Array]
Curvature = Callable[[Array], Array]  # features (k, q) -> what each row counts by, (k,)


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

    With ``loss="logistic"``, for targets -1 and 1, it minimises the mean of log(1 + exp(-y f(x)))
    plus penalty / 2 times the squared norm, by Newton steps (:class:`~.newton.LogisticNewton`):
    scikit-learn's LogisticRegression on Nyström features with C = 1 / (penalty n) and without an
    intercept. Each step solves such a system, with one preconditioner for each output. Device
    arrays are converted to NumPy's then, and Dask's chunks read through this process.
    :class:`KernelClassifier` makes labels and probabilities of it.

    Parameters
    ----------
    kernel : a kernel, or a function of two matrices of rows; None: ``Gaussian(1.0)``.
    penalty : lambda; the objective is the mean squared error plus lambda times the squared norm.
    n_centers : M; all rows where there are no more.
    centers : "uniform", "leverage_scores" or the centres, (M, d).
    max_iter : iterations at most; with the logistic loss, Newton steps.
    tolerance : end when the preconditioned residual is this small in relation to the first; the
        inputs' precision bounds it. With the logistic loss, when the gradient's norm by the
        preconditioner is: half of its square is about what the objective can still fall by.
    random_state : seed or generator of the centres' choice.
    memory_limit : bytes for kernel matrices; None: a quarter of what is free.
    preconditioner_rows : rows, drawn uniformly, that the preconditioner sees beside the centres,
        in time O(rows M^2) and with one more matrix (M, M); None: the centres alone, as in the
        paper.
    callback : called with an :class:`Iteration` after each; a true answer ends the fit.
    verbose : whether to draw a progress bar.
    loss : "square" or "logistic".

    Attributes
    ----------
    centers_ : (q, d), without those that the ones before them explain to rounding.
    coef_ : (q,), or (q, T) where y had two dimensions.
    n_iter_ : iterations done, t.
    residuals_ : (t,), what is compared with the tolerance, after each iteration, the outputs'
        largest.
    validation_errors_ : (t,), mean squared errors, or logistic losses, after each, if there were
        validation data.
    n_features_in_ : d.
    """

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
    loss: str = "square"

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Of the square loss `penalty` and `max_iter`, of the logistic one `penalty` alone."""
        return ("penalty",) if self.loss == "logistic" else ("penalty", "max_iter")

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
        loss = self._loss()
        rows = training_rows(self, X, y, sample_weight, on_device=loss.name == "square")
        held_out = None
        if validation_data is not None:
            held_out = validation_rows(self, validation_data, rows).whole()
            loss.check(held_out.Y)
        system = self._system(rows, held_out is not None)
        predictor = None if held_out is None else self._predictor(system, held_out.X)

        def done(number: int, coefficients: Callable[[], Array]) -> bool:
            if predictor is None or held_out is None:
                return log.done(number)
            predicted = predictor(coefficients()).astype(float)
            return log.done(number, float(loss.error(held_out.Y, predicted).mean()))

        with IterationLog(max_iter, self.callback, self.verbose, "FALKON") as log:
            if loss.name == "logistic":
                newton = LogisticNewton(system)
                coefficients, residuals = newton.solve(
                    penalty,
                    max_iter,
                    self._enough(rows),
                    newton.start(),
                    lambda number, found: done(number, lambda: found),
                )
            else:
                B = system.preconditioner(penalty)
                solution = system.solve(
                    B,
                    penalty,
                    max_iter,
                    self.tolerance,
                    lambda number, beta: done(number, lambda: system.coefficients(B, beta)),
                )
                coefficients, residuals = system.coefficients(B, solution.x), solution.residuals
        self._keep(rows, system.data.centers, coefficients)
        self.n_iter_ = len(residuals)
        self.residuals_ = np.max(residuals, axis=1, initial=0.0)
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
        asked = chosen.get("max_iter", [])
        loss = self._loss()
        system = self._system(rows, True)
        predictor = self._predictor(system, X_validation)
        if loss.name == "logistic":
            yield from self._logistic_path(LogisticNewton(system), rows, chosen, predictor)
            return
        for penalty in chosen["penalty"]:
            predictions = self._run(system, penalty, asked, predictor)
            for iterations in asked:
                setting = {"penalty": penalty, "max_iter": iterations}
                yield setting, predictions[iterations]

    def _logistic_path(
        self, newton: LogisticNewton, rows: Rows, chosen: dict[str, list[Any]], predictor: Predictor
    ) -> Path:
        """From the largest penalty down, each from the solution before it."""
        max_iter = positive_count(self.max_iter, "max_iter")
        at = newton.start()
        for penalty in sorted(chosen["penalty"], reverse=True):
            coefficients, _ = newton.solve(penalty, max_iter, self._enough(rows), at)
            yield {"penalty": penalty}, predictor(coefficients)

    def _loss(self) -> Loss:
        if self.loss not in FALKON_LOSSES:
            raise ConfigurationError(
                f"loss must be one of {', '.join(FALKON_LOSSES)}, not {self.loss!r}: SGM and "
                f"NystromSGM have others."
            )
        return as_loss(self.loss)

    def _enough(self, rows: Rows) -> float:
        """The tolerance, or the data's precision, below which a residual says nothing."""
        return max(self.tolerance, float(np.finfo(rows.dtype).eps))

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
        if self.loss == "logistic":
            return FalkonSystem(rows, kernel, centers, limit, sample, KernelRows)
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
        products: Callable[..., Any] = kernel_rows,
    ) -> None:
        self.basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
        # A kernel that is zero on all centres keeps none: the first stands for the zero function.
        used = self.basis.kept if self.basis.n_features else np.zeros(1, dtype=np.intp)
        self.data = products(rows, kernel, self.basis.centers[used], memory_limit)
        self.importance = _importance(rows, centers)
        self._sampled = None
        if sample is not None and self.basis.n_features:
            self._sampled = partial(_sampled_moments, rows, self.basis, centers, sample)
        self._moments: Array | None = None
        self._targets: Array | None = None
        self._n = rows.total_weight

    def preconditioner(self, penalty: float) -> Preconditioner:
        """That of one penalty; the one before should be gone by then, for it is as large."""
        if self._sampled is not None and self._moments is None:
            self._moments = self._sampled()
        return Preconditioner(self.basis, penalty, self.importance, self._moments)

    def reweighted_preconditioner(self, penalty: float, curvature: Curvature) -> Preconditioner:
        """That of (Phi' W C Phi / n + penalty I), C diagonal: `curvature` of the features."""
        importance = curvature(self.basis.expansion)
        if self.importance is not None:
            importance = importance * self.importance
        moments = None if self._sampled is None else self._sampled(curvature)
        return Preconditioner(self.basis, penalty, importance, moments)

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

        def product(beta: Array, _: Indices) -> Array:
            weights = B.to_features(beta)
            gradient = self.data.normal(B.to_coefficients(weights))
            gradient = B.from_coefficients(gradient) / self._n + penalty * weights
            return B.from_features(gradient)

        if self._targets is None:
            self._targets = self.data.targets()[: self.basis.n_features]
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


def _sampled_moments(
    rows: Rows,
    basis: NystromBasis,
    centers: Centers,
    sample: Centers,
    curvature: Curvature | None = None,
) -> Array:
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
        return mean_products(basis, share, sample.points.astype(float), curvature)
    own, first = np.unique(centers.indices, return_index=True)
    moments = mean_products(basis, w[own], centers.points[first].astype(float), curvature)
    other = ~np.isin(sample.indices, own)
    if other.any():
        share = w[sample.indices[other]] * (rows.n_samples - len(own)) / other.sum()
        moments += mean_products(basis, share, sample.points[other].astype(float), curvature)
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


def mean_products(
    basis: NystromBasis, share: Array, X: Array | None = None, curvature: Curvature | None = None
) -> Array:
    """Phi' diag(share) Phi, its upper half, (q, q), of the features of the centres or of X.

    With `curvature` a row also counts by that of its features.
    """
    q = basis.n_features
    gram = np.zeros((q, q), order="F")
    for i in range(0, len(share), BLOCK):
        here = slice(i, i + BLOCK)
        phi = basis.expansion[here] if X is None else basis.transform(X[here])
        each = share[here] if curvature is None else share[here] * curvature(phi)
        scaled = phi * np.sqrt(each)[:, None]
        gram = dsyrk(1.0, scaled.T, beta=1.0, c=gram, lower=0, overwrite_c=1)
    return gram
