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
from semiparam_dynamics.learning.falkon_system import FalkonSystem, Solution, sample_by_weight
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

MAX_GAIN_LEFT = 0.1  # of the objective, still to be gained: the estimate is not yet the minimiser
# of the outputs' mean square: their predictions' error is below a thousandth then
NEGLIGIBLE_GAIN = 1e-6
MAX_DECREMENT = 0.1  # Newton's, with which 0.005 of the logistic loss is still to be gained

FALKON_LOSSES = ("square", "logistic")

Predictor = Callable[[Array], Array]


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
        system = self._system(rows, held_out is not None)
        predictor = None if held_out is None else self._predictor(system, held_out.X)
        offsets = np.zeros(rows.n_outputs)

        ended_by_callback = False

        def done(number: int, coefficients: Callable[[], Array]) -> bool:
            nonlocal ended_by_callback
            error = None
            if predictor is not None and held_out is not None:
                predicted = predictor(coefficients()).astype(float) + offsets
                errors = loss.error(held_out.Y, predicted).mean(axis=1)
                error = float(np.average(errors, weights=held_out.weights))
            ended_by_callback = log.done(number, error)
            return ended_by_callback

        with IterationLog(max_iter, self.callback, self.verbose, "FALKON") as log:
            if loss.name == "logistic":
                newton = LogisticNewton(system, self.fit_intercept)
                start = newton.start()
                offsets = start.offsets  # which the steps move
                coefficients, residuals = newton.solve(
                    penalty,
                    max_iter,
                    self._enough(rows),
                    start,
                    lambda number, found: done(number, lambda: found),
                )
                left = np.max(residuals[-1:], initial=0.0)
                far = f"Newton's decrement is still {left:.2g}" if left > MAX_DECREMENT else ""
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
                far = _far(system, solution)
        self._keep(rows, system.data.centers, coefficients)
        self.intercept_: Any = float(offsets[0]) if rows.one_output else offsets
        self.n_iter_ = len(residuals)
        self.residuals_ = np.max(residuals, axis=1, initial=0.0)
        self.validation_errors_ = np.array(log.errors)
        if far and not ended_by_callback:
            whole = self.n_iter_ == max_iter
            ended = "" if whole else ", but rounding ended them"
            more, rows_needed = "max_iter, or " if whole else "", 4 * len(coefficients)
            seen = self.preconditioner_rows or 0
            set_rows = f"set preconditioner_rows to {rows_needed}, or " * (seen < rows_needed)
            warnings.warn(
                f"After {self.n_iter_} iterations {far}{ended}: {set_rows}raise {more}n_centers "
                f"towards 1 / penalty, or the penalty.",
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
            newton = LogisticNewton(system, self.fit_intercept)
            yield from self._logistic_path(newton, rows, chosen, predictor)
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
            predicted = predictor(coefficients)
            yield {"penalty": penalty}, predicted + at.offsets.astype(predicted.dtype)

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
            return FalkonSystem(rows, kernel, centers, limit, sample, KernelRows)
        return FalkonSystem(rows, kernel, centers, limit, sample)

    def _predictor(self, system: FalkonSystem, X: Array) -> Predictor:
        """Coefficients -> predictions on held-out inputs, whose kernel is kept if it fits."""
        limit = None if self.memory_limit is None else max(self.memory_limit // 4, 1)
        rows, kernel = system.data.rows.like(X), as_kernel(self.kernel)
        data = kernel_rows(rows, kernel, system.data.centers, limit)
        return lambda coefficients: np.concatenate(list(data.multiply(coefficients)))


def _far(system: FalkonSystem, solution: Solution) -> str:
    """Sentence on the part of the objective still to be gained, if it is large for any output.

    The preconditioned residual doesn't show that: its norm has no scale of predictions' errors.
    """
    if solution.converged.all():
        return ""
    gain = np.where(solution.converged, 0.0, solution.to_gain(system.least))
    if np.all(gain <= NEGLIGIBLE_GAIN * solution.gained):  # no pass over the data for it
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = system.data.rows.squared_outputs() / system.data.rows.total_weight
        now = np.maximum(outputs - solution.gained, 0.0)
        far = (gain > MAX_GAIN_LEFT * now) & (gain > NEGLIGIBLE_GAIN * outputs)
    if not far.any():
        return ""
    left = np.max(np.minimum(gain[far] / np.maximum(now[far], gain[far]), 1.0))
    return f"about {left:.0%} of the mean squared error, with the penalty, could still be gained"
