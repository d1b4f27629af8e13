"""NYTRO: Nyström subsampling with early stopping (thesis 4.3; Camoriano et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive_count,
)
from semiparam_dynamics.learning.base import (
    HeldOut,
    Path,
    StoppedEarly,
    as_loss,
    fitted_rows,
    predictor,
)
from semiparam_dynamics.learning.centers import NystromBasis, basis_of, nystrom_map
from semiparam_dynamics.learning.kernels import NOT_FINITE
from semiparam_dynamics.learning.krls import gradient_step
from semiparam_dynamics.learning.products import MATRIX_SPEEDUP, KernelRows, largest_diagonal
from semiparam_dynamics.learning.ridge import second_moments
from semiparam_dynamics.learning.rows import Rows, memory_budget, require

# -------------------------------------------------------------------------------------------------
# The gradient of least squares in Nyström features, by the cheaper of two ways.


class Gradient:
    """A'W(A beta - Y) / sum w with A = K_nm S, the features of `basis`, for beta (q, T).

    Of `n_products` at most. `solver` is "direct", "gram" or "auto", as in :class:`NYTRO`. Raises
    LearningError where the Gram matrix was asked for and doesn't fit into the memory limit.
    """

    step: float  # of the descent that uses this

    def __init__(
        self,
        rows: Rows,
        basis: NystromBasis,
        n_products: int,
        solver: str,
        memory_limit: int | None,
    ) -> None:
        self.basis = basis
        self.centers = basis.centers[basis.kept].astype(rows.dtype)  # (q, d)
        self.n_outputs, self._total = rows.n_outputs, rows.total_weight
        q, budget = basis.n_features, memory_budget(memory_limit)
        gram_bytes = 8 * 2 * q * q
        # Features and their products, 3 n q^2, against K times a few columns, twice.
        pays_off = n_products > 3.0 * q / (4.0 * max(MATRIX_SPEEDUP, rows.n_outputs))
        by_gram = solver == "gram" or (solver == "auto" and pays_off and gram_bytes <= budget // 2)
        self._gram: Array | None = None
        if by_gram:
            require(budget, gram_bytes, f"The Gram matrix of {q} features")
            used = gram_bytes
            limit = budget - gram_bytes if budget > 2 * gram_bytes else budget
            system = second_moments(rows, nystrom_map(basis, rows.dtype), limit, False)
            gram, targets = system.second_moments()
            if not (np.isfinite(gram).all() and np.isfinite(targets).all()):
                raise LearningError(NOT_FINITE)
            self._gram, self._targets = gram / self._total, targets / self._total
        else:
            self._data = KernelRows(rows, basis.kernel, self.centers, budget)
            used = rows.n_samples * q * rows.dtype.itemsize if self._data.fits else 0
        self.rest = max(budget - used, budget // 8)  # of the limit, for validation

    def __call__(self, beta: Array) -> Array:
        """The gradient at beta (q, T)."""
        if self._gram is not None:
            return self._gram @ beta - self._targets
        gradient = self._data.normal(self.basis.to_coefficients(beta), with_outputs=True)
        return self.basis.from_coefficients(gradient) / self._total

    def largest_eigenvalue(self) -> float:
        """Largest eigenvalue of A'WA / sum w, by Lanczos' iteration from a fixed start."""
        q = self.basis.n_features

        def multiply(v: Array) -> Array:
            if self._gram is not None:
                return self._gram @ v
            normal = self._data.normal(self.basis.to_coefficients(v.reshape(q, 1)))
            product = self.basis.from_coefficients(normal[:, :1])[:, 0]
            return product / self._total

        if q == 1:
            return float(multiply(np.ones(1))[0])
        start = np.random.RandomState(0).standard_normal(q)
        if not multiply(start).any():  # no row is near a centre, which ARPACK has no answer for
            return 0.0
        operator = LinearOperator((q, q), matvec=multiply, dtype=float)
        # Gradient descent converges for any step below two over this: few digits will do.
        found = eigsh(operator, k=1, v0=start, tol=1e-6, return_eigenvectors=False)
        return float(found[0])


@dataclass(eq=False, repr=False)
class NYTRO(StoppedEarly):
    """Gradient descent for least squares within the span of m kernels, stopped early.

    beta_t = beta_{t-1} - (gamma / n) S'K_nm'(K_nm S beta_{t-1} - Y) from beta_0 = 0, and the
    coefficients S beta_t, with S S' = K_mm^+ (thesis 4.28 to 4.30). There is no penalty: the
    number of iterations t regularises, as the penalty 1 / (gamma t) would, and one run is a
    whole regularisation path. Time O(n m t + m^3), or O(n m^2 + m^2 t) where that is less.

    With validation data the iterate with the smallest validation error is kept. Iterations end
    when the validation RMSE has not fallen by the relative `tolerance` in `patience` of them.
    The thesis (4.3.4) stops when the error "ceases to be decreasing up to a given threshold", 5 %
    of the relative RMSE; a step of gradient descent hardly ever takes 5 % off the error, so the
    threshold is read as one for `patience` steps together. Its experiments stop by the slope of
    the last ten errors, with a threshold for each data set: ``stopping=ErrorSlope(10, threshold)``.

    Parameters
    ----------
    kernel : as that of :class:`Falkon`.
    n_centers : m; all rows if there are no more.
    centers : "uniform", "leverage_scores", or the centres themselves, (m, d).
    max_iter : t, or the most iterations where there are validation data.
    step : gamma: "spectral", n / ||K_nm S||^2, the inverse of the largest eigenvalue of
        S'K_nm'K_nm S / n; "kernel", 1 / max K(x, x), which is never larger, so that it needs more
        iterations; or a number. :class:`KRLS` has the same rule for early stopping on all rows.
    validation : a share of the rows, held out to choose t (the thesis takes 0.2).
    tolerance, patience : see above; patience=None: never stop before max_iter.
    stopping : a rule in their place: an :class:`ErrorSlope`, or a function of the validation RMSEs
        so far that is true where to stop.
    solver : "direct": two products with K_nm an iteration; "gram": with a q x q matrix, made
        once in O(n m^2); "auto": the cheaper one for max_iter.
    random_state : of the centres and the held-out share.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free.
    callback, verbose : called after each iteration; whether to show a progress bar.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T).
    n_iter_ : t of the function that is kept.
    step_ : gamma.
    validation_errors_ : (iterations,), mean squared errors, where there were validation data.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("max_iter",)

    kernel: Any = None
    n_centers: int = 1000
    centers: Any = "uniform"
    max_iter: int = 500
    step: Any = "spectral"
    solver: str = "auto"
    _: KW_ONLY
    tolerance: float = 0.05
    patience: int | None = 50

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, validation_data: Any = None
    ) -> NYTRO:
        """Learn from inputs X (n, d), outputs y (n,) or (n, T), and weights (n,).

        X may be Rows, without y. `validation_data` is (X, y), or Rows, and takes the place of
        the parameter `validation`. Weights take the place of 1 / n by their share of the sum.
        """
        total = positive_count(self.max_iter, "max_iter")
        rows = fitted_rows(self, X, y, sample_weight)
        draw = check_random_state(self.random_state)
        rows, held = self._split(rows, validation_data, draw)
        # A relative fall of the RMSE by the tolerance is this one of the mean squared error.
        tolerance = 1.0 - (1.0 - not_negative(self.tolerance, "tolerance")) ** 2
        log = self._log(total, "iterations", tolerance, True)
        descent = self._gradient(rows, total, draw)
        basis, check = descent.basis, None
        if held is not None:
            predict = predictor(held, basis.kernel, descent.centers, descent.rest)
            check = HeldOut(held, predict, as_loss("square").error)
        beta = self._best(self._iterates(descent, total), log, check, descent.basis.to_coefficients)
        self.step_ = descent.step
        self._keep(rows, basis.centers, basis.coefficients(beta))
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One run, without validation data, serves all; they come in increasing order."""
        counts = set(chosen["max_iter"])
        total = max(counts)
        descent = self._gradient(rows, total, check_random_state(self.random_state))
        asked, kernel, keep = rows.like(X_validation), self.kernel_, len(counts) > 1
        predict = predictor(asked, kernel, descent.centers, descent.rest, keep)
        for t, beta in enumerate(self._iterates(descent, total), 1):
            if t in counts:
                yield {"max_iter": t}, predict(descent.basis.to_coefficients(beta))

    def _gradient(self, rows: Rows, total: int, draw: np.random.RandomState) -> Gradient:
        """The operator of the iteration, and its step size."""
        if self.solver not in ("auto", "direct", "gram"):
            raise ConfigurationError(
                f'solver must be "auto", "direct" or "gram", not {self.solver!r}.'
            )
        basis = basis_of(self, rows, self.n_centers, draw, self.memory_limit)
        descent = Gradient(rows, basis, total, self.solver, self.memory_limit)
        descent.step = gradient_step(
            self.step, descent.largest_eigenvalue, lambda: largest_diagonal(rows, basis.kernel)
        )
        return descent

    def _iterates(self, descent: Gradient, total: int) -> Iterator[Array]:
        """beta_1, ..., beta_total, each (q, T)."""
        beta = np.zeros((descent.basis.n_features, descent.n_outputs))
        for _ in range(total):
            with np.errstate(over="ignore", invalid="ignore"):
                beta = beta - descent.step * descent(beta)
            if not np.isfinite(beta).all():
                raise LearningError(
                    f"The iteration diverged with step={self.step}: take a smaller step, or "
                    f'"spectral" or "kernel", which always converge.'
                )
            yield beta
