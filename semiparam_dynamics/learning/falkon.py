"""FALKON: Nyström kernel machines by preconditioned conjugate gradient, the estimator.

Rudi, Carratino, Rosasco 2017.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    not_negative,
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
from semiparam_dynamics.learning.centers import choose_centers, uniform
from semiparam_dynamics.learning.falkon_system import FalkonSystem, sample_by_weight
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.losses import Loss, as_loss
from semiparam_dynamics.learning.newton import LogisticNewton
from semiparam_dynamics.learning.products import KernelRows, kernel_rows
from semiparam_dynamics.learning.rows import (
    Rows,
    backend_of,
    chunk_by_chunk,
    training_rows,
)

FALKON_LOSSES = ("square", "logistic")

Predictor = Callable[[Array], Array]
Solver = FalkonSystem | LogisticNewton


@dataclass(eq=False, repr=False)
class Falkon(RegularisationPath, KernelRegressor):
    """Kernel ridge regression on Nyström centres, for many rows (Rudi, Carratino, Rosasco 2017).

    Solves (K_nM' W K_nM + penalty n K_MM) alpha = K_nM' W Y, with W the sample weights and n
    their sum (the number of rows without them), by conjugate gradient on features of the centres,
    preconditioned as in the paper's algorithm 1 and appendix A. With max_iter of the order of
    log n, penalty = 1 / sqrt(n) and n_centers = sqrt(n) log(n) the error is of the order of the
    exact estimator's (theorem 3). Where the penalty is far below 1 / n_centers the centres alone
    say too little about the rows, and many more iterations are needed. A ConvergenceWarning says
    where, by estimate, a tenth of the objective could still be gained after the last.
    Then `preconditioner_rows`, four times n_centers for instance, saves most of them: an addition
    to the paper, in which the centres are the preconditioner's only sample of the data. So are rows
    of weights that differ: as many as there are centres, if these are not given, are drawn for it.

    Time O(n M t + M^3) for M centres and t iterations. Memory: kernel blocks, or all of K_nM if
    it fits, within `memory_limit`; in addition two matrices (M, M) of float64, and a third with
    `preconditioner_rows`, weights that differ, or centres that some were left out of.

    PyTorch's and CuPy's arrays stay where they are, on a GPU for instance, if scikit-learn's
    `array_api_dispatch` is on: K_nM there, within `memory_limit` there (by default 1 GB), the
    (M, M) matrices, ``centers="leverage_scores"`` and what is fitted in NumPy. Dask arrays, or
    :class:`~.backends.dask_arrays.DaskRows`, stay in their chunks on a cluster's workers, which
    compute the products of K_nM; ``centers="leverage_scores"`` reads them through this process.

    With ``loss="logistic"``, for targets -1 and 1, it minimises the mean of log(1 + exp(-y f(x)))
    plus penalty / 2 times the squared norm, by Newton steps (:class:`~.newton.LogisticNewton`):
    scikit-learn's LogisticRegression on Nyström features with C = 1 / (penalty n), without an
    intercept unless `fit_intercept` is true. Each step solves such a system, with one
    preconditioner for each output. Device arrays are converted to NumPy's then, and Dask's chunks
    read through this process. :class:`KernelClassifier` makes labels and probabilities of it.

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
    preconditioner_rows : rows, drawn uniformly or by their weights, that the preconditioner sees
        in addition to the centres, in time O(rows M^2) and with one more matrix (M, M); None: the
        centres alone, as in the paper, or n_centers rows where weights differ.
    callback : called with an :class:`Iteration` after each; a true answer ends the fit.
    verbose : whether to draw a progress bar.
    loss : "square" or "logistic".
    fit_intercept : of the logistic loss: whether an offset without a penalty is added to f, so that
        far from all data the probability is not 1/2 but about the share of the class.

    Attributes
    ----------
    centers_ : (q, d), without those that the ones before them explain to rounding.
    coef_ : (q,), or (q, T) where y had two dimensions.
    intercept_ : a number, or (T,) where y had two dimensions; zero without `fit_intercept`.
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
    fit_intercept: bool = False

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """`penalty` and `max_iter` for the square loss, `penalty` alone for the logistic one."""
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

        With `validation_data`, (X, y) or Rows, the error there is computed after each iteration.
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
        system, solver = self._solver(rows, held_out is not None)
        predictor = None if held_out is None else self._predictor(system, held_out.X)

        def done(number: int, coefficients: Callable[[], Array]) -> bool:
            error = None
            if predictor is not None and held_out is not None:
                predicted = predictor(coefficients()).astype(float) + solver.offsets
                errors = loss.error(held_out.Y, predicted).mean(axis=1)
                error = float(np.average(errors, weights=held_out.weights))
            return log.done(number, error)

        with IterationLog(max_iter, self.callback, self.verbose, "FALKON") as log:
            found = solver.solve(penalty, max_iter, self.tolerance, done)
        self._keep(rows, system.data.centers, found.coefficients)
        self.intercept_: Any = float(solver.offsets[0]) if rows.one_output else solver.offsets
        self.n_iter_ = len(found.residuals)
        self.residuals_ = np.max(found.residuals, axis=1, initial=0.0)
        self.validation_errors_ = np.array(log.errors)
        if not log.ended:
            self._warn(found.far(), self.n_iter_ == max_iter)
        return self

    def _warn(self, far: str, whole: bool) -> None:
        """Warn of a fit that is far from the minimiser; `whole`: after all its iterations."""
        if not far:
            return
        ended = "" if whole else ", but rounding ended them"
        more, rows_needed = "max_iter, or " if whole else "", 4 * len(self.coef_)
        seen = self.preconditioner_rows or 0
        set_rows = f"set preconditioner_rows to {rows_needed}, or " * (seen < rows_needed)
        warnings.warn(
            f"After {self.n_iter_} iterations {far}{ended}: {set_rows}raise {more}n_centers "
            f"towards 1 / penalty, or the penalty.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """All settings share the centres, their features and, where it fits, K_nM; those of one
        penalty share one run. With the logistic loss they go from the largest penalty down, each
        from the solution before it. Leverage scores are those of the estimator's own penalty.
        """
        counts = chosen.get("max_iter") or [positive_count(self.max_iter, "max_iter")]
        penalties = chosen["penalty"]
        system, solver = self._solver(rows, True)
        predictor = self._predictor(system, X_validation)
        if solver is not system:
            penalties = sorted(penalties, reverse=True)
        for penalty in penalties:
            predictions = self._run(solver, penalty, counts, predictor)
            for count, predicted in zip(counts, predictions, strict=True):
                yield {"penalty": penalty, "max_iter": count}, predicted

    def _run(
        self, solver: Solver, penalty: float, counts: Sequence[int], predictor: Predictor
    ) -> list[Array]:
        """Predictions after each number of iterations that is asked for, of one run."""
        found: dict[int, Array] = {}

        def predict(coefficients: Array) -> Array:
            predicted = predictor(coefficients)
            return predicted + solver.offsets.astype(predicted.dtype)

        def follow(number: int, coefficients: Callable[[], Array]) -> bool:
            if number in counts:
                found[number] = predict(coefficients())
            return False

        solved = solver.solve(penalty, max(counts), self.tolerance, follow)
        last = predict(solved.coefficients)
        return [found.get(number, last) for number in counts]

    def _loss(self) -> Loss:
        if self.loss not in FALKON_LOSSES:
            raise ConfigurationError(
                f"loss must be one of {', '.join(FALKON_LOSSES)}, not {self.loss!r}: SGM and "
                f"NystromSGM have others."
            )
        if self.fit_intercept and self.loss != "logistic":
            raise ConfigurationError(
                "fit_intercept is of the logistic loss: with the square one centre y, or take a "
                "kernel with an offset."
            )
        return as_loss(self.loss)

    @chunk_by_chunk
    def predict(self, X: Any) -> Array:
        """See :class:`~.base.KernelRegressor`; the intercept is added where there is one."""
        predicted: Array = super().predict(X)
        if not np.any(self.intercept_):
            return predicted
        offsets, backend = self.intercept_, backend_of(X)
        if self.coef_.ndim == 2:
            offsets = offsets.astype(self.centers_.dtype)
            offsets = offsets if backend is None else backend.like(X, offsets)
        shifted: Array = predicted + offsets
        return shifted

    def _solver(self, rows: Rows, validated: bool) -> tuple[FalkonSystem, Solver]:
        """The system of the centres, and what solves it for the loss."""
        kernel, limit = as_kernel(self.kernel), self.memory_limit
        not_negative(self.tolerance, "tolerance")
        if limit is not None and validated:
            limit -= limit // 4  # a quarter is the validation data's
        n_rows = self.preconditioner_rows
        if n_rows is not None:
            n_rows = positive_count(n_rows, "preconditioner_rows")
        # One stream of draws: a seed used twice would draw the centres again, and no other rows.
        draw = check_random_state(self.random_state)
        centers = choose_centers(
            self.centers, rows, self.n_centers, kernel, self.penalty, draw, limit
        )
        # Uniform draws say too little of rows whose weights differ: what a heavy row adds that is
        # not drawn is missing, and so is what the centres of light ones share with other rows.
        sample = sample_by_weight(rows, centers, n_rows, draw)
        if sample is None and n_rows is not None:
            sample = uniform(rows, n_rows, draw)
        if self.loss == "logistic":
            system = FalkonSystem(rows, kernel, centers, limit, sample, KernelRows)
            return system, LogisticNewton(system, self.fit_intercept)
        system = FalkonSystem(rows, kernel, centers, limit, sample)
        return system, system

    def _predictor(self, system: FalkonSystem, X: Array) -> Predictor:
        """Coefficients -> predictions on held-out inputs, whose kernel is kept if it fits."""
        limit = None if self.memory_limit is None else max(self.memory_limit // 4, 1)
        rows, kernel = system.data.rows.like(X), as_kernel(self.kernel)
        data = kernel_rows(rows, kernel, system.data.centers, limit)
        return lambda coefficients: np.concatenate(list(data.multiply(coefficients)))
