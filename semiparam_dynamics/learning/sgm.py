"""The stochastic gradient method in an RKHS (thesis chapter 6; Lin, Camoriano, Rosasco 2016).

With all rows as centres, or within the span of Nyström centres on mini-batches (Lin, Rosasco 2017).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import product
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError, positive_count
from semiparam_dynamics.learning.base import (
    Callback,
    HeldOut,
    IterationLog,
    KernelRegressor,
    Path,
    RegularisationPath,
    hold_out,
    validation_rows,
)
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import choose_centers
from semiparam_dynamics.learning.descents import (
    BLOCKS_SHARE,
    Descent,
    KernelDescent,
    NystromDescent,
    Steps,
)
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.losses import Loss, as_loss
from semiparam_dynamics.learning.products import KernelRows, largest_diagonal
from semiparam_dynamics.learning.rows import ArrayRows, Rows, memory_budget, training_rows

DIVERGED = 1e9  # times the largest target: beyond that, a path's predictions are cut off
UNWEIGHTED = "Rows are drawn uniformly here: sample weights have no place. Use Falkon or NYTRO."


class StochasticRegressor(RegularisationPath, KernelRegressor):
    """Base of the stochastic gradient estimators, with the parameters of :class:`SGM`.

    Attributes
    ----------
    n_iter_ : the pass whose function is kept.
    validation_errors_ : (passes,), where there were validation data.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("step", "decay", "max_iter")

    def __init__(
        self,
        kernel: Any = None,
        loss: str = "square",
        step: float | None = None,
        decay: float = 0.0,
        max_iter: int = 10,
        average: bool = False,
        epsilon: float = 0.1,
        validation: float | None = None,
        tolerance: float = 0.0,
        patience: int | None = None,
        random_state: Any = None,
        memory_limit: int | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.step = step
        self.decay = decay
        self.max_iter = max_iter
        self.average = average
        self.epsilon = epsilon
        self.validation = validation
        self.tolerance = tolerance
        self.patience = patience
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, validation_data: Any = None) -> Any:
        """Learn from inputs X (n, d) and outputs y (n,) or (n, T); X may be Rows, without y.

        With validation data (X, y), or a share held out by the parameter `validation`, the
        function of the pass with the smallest validation error is kept. Raises LearningError
        where the steps diverge, and for sample weights, which uniform draws don't have.
        """
        passes = positive_count(self.max_iter, "max_iter")
        rows = training_rows(self, X, y)
        loss = self._loss(rows)
        draw = check_random_state(self.random_state)
        held = None
        if validation_data is not None:
            held = validation_rows(self, validation_data, rows)
        elif self.validation is not None:
            rows, held = hold_out(rows, self.validation, draw)
        budget = memory_budget(self.memory_limit)
        descent = self._descent(rows, loss, [(self.step, self.decay)], passes, draw, budget)
        check = None
        if held is not None:
            kernel, rest = as_kernel(self.kernel), _rest(budget, descent)
            check = HeldOut(held, kernel, descent.centers, loss.error, rest)
        patience = None if self.patience is None else positive_count(self.patience, "patience")
        log = IterationLog(passes, self.callback, self.verbose, "passes", self.tolerance, patience)
        with log:
            for number in range(1, passes + 1):
                _run_pass(descent)
                coefficients = descent.coefficients(self.average)
                self._check_finite(coefficients)
                error = None if check is None else check.mean_error(coefficients)
                stop = log.done(number, error)
                if check is None or log.improved:
                    self.n_iter_ = number
                    used = descent.used()
                    self._keep(rows, descent.centers[used], coefficients[used])
                if stop:
                    break
        if check is not None:
            self.validation_errors_ = np.array(log.errors)
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """All step sizes advance together, from the same draws, and share each block of the kernel
        matrix; passes come in increasing order. The predictions are those of fits without
        validation data. A step that diverges gives predictions far beyond all targets.
        """
        counts = sorted(set(chosen["max_iter"]))
        settings = list(product(chosen["step"], chosen["decay"]))
        loss = self._loss(rows)
        asked = ArrayRows(X_validation.astype(rows.dtype, copy=False))
        draw = check_random_state(self.random_state)
        budget = memory_budget(self.memory_limit)
        passes = counts[-1]
        descent = self._descent(rows, loss, settings, passes, draw, budget)
        rest, kernel = _rest(budget, descent), as_kernel(self.kernel)
        data = KernelRows(asked, kernel, descent.centers, rest, keep=len(counts) > 1)
        limit = DIVERGED * max(1.0, max(float(np.abs(b.Y).max()) for b in rows.blocks(2**16)))
        T = rows.n_outputs
        for number in range(1, passes + 1):
            _run_pass(descent)
            if number not in counts:
                continue
            coefficients = np.nan_to_num(descent.coefficients(self.average), nan=np.inf)
            finite = np.clip(coefficients, -limit, limit)
            predicted = np.concatenate(list(data.multiply(finite)))
            diverged = (np.abs(coefficients) > limit).any(axis=0)
            predicted[:, diverged] = limit
            for s, (step, decay) in enumerate(settings):
                setting = {"step": step, "decay": decay, "max_iter": number}
                yield setting, predicted[:, s * T : (s + 1) * T]

    def _loss(self, rows: Rows) -> Loss:
        """The loss, for which the rows' outputs must be fit."""
        loss = as_loss(self.loss, self.epsilon)
        if rows.weighted:
            raise LearningError(UNWEIGHTED)
        for block in rows.blocks(2**16):
            loss.check(block.Y)
        return loss

    def _check_finite(self, coefficients: Array) -> None:
        if not np.isfinite(coefficients).all():
            raise LearningError(
                f"The iteration diverged with step={self.step}: take a smaller step. With the "
                f"square loss any step below 2 / max K(x, x) is safe; None chooses one."
            )

    @abstractmethod
    def _descent(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[tuple[float | None, float]],
        passes: int,
        draw: np.random.RandomState,
        budget: int,
    ) -> Descent:
        """The descents of all settings, before their first pass."""


class SGM(StochasticRegressor):
    """Stochastic gradient steps from zero, on one row at a time, drawn uniformly.

    w <- w - step t^-decay l'(y_j, f(x_j)) K(x_j, .) at the t-th draw j (thesis 6.3). There is no
    penalty: the step size and the number of passes regularise. One pass with a tuned step is the
    thesis' SGM; a fixed step with the number of passes tuned, by `validation` or
    `validation_data`, is its SIGM: step=None, or step=0.25 with decay=0.5.

    Parameters
    ----------
    kernel : a kernel or a function; None: Gaussian(1.0).
    loss : "square", "hinge", "logistic", "absolute" or "epsilon_insensitive"; for "hinge" and
        "logistic" y is -1 or 1, and the sign of a prediction is the class.
    step : the first step size; None: 1 / (kappa^2 sqrt(n)) with kappa^2 = max K(x, x).
    decay : the exponent theta of the step sizes, 0 or more; 0: they are constant.
    max_iter : passes, of n draws with replacement each.
    average : False: the last iterate; True: the mean of the iterates that the draws met,
        weighted by the step sizes (thesis 6.4).
    epsilon : of the loss "epsilon_insensitive".
    validation : a share of the rows, held out to choose the pass whose function is kept.
    tolerance, patience : stop when the validation error hasn't fallen by the relative
        `tolerance` for `patience` passes; None: run all passes.
    random_state : of the draws.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free. The
        n x n matrix is kept where it fits and there is more than one pass.
    callback, verbose : called after each pass; whether to show a progress bar.

    Attributes
    ----------
    centers_ : (m, d), the rows that were drawn, in the order of their first draw.
    coef_ : (m,) or (m, T).
    n_iter_ : the pass whose function is kept.
    validation_errors_ : (passes,), mean losses (for "square", mean squared errors), where there
        were validation data.
    """

    def _descent(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[tuple[float | None, float]],
        passes: int,
        draw: np.random.RandomState,
        budget: int,
    ) -> KernelDescent:
        kernel = as_kernel(self.kernel)
        n = rows.n_samples
        steps = Steps.of(settings, universal_step(n, 1, largest_diagonal(rows, kernel)))
        block = rows.whole()
        return KernelDescent(block.X, block.Y, kernel, loss, steps, passes, draw, budget)


class NystromSGM(StochasticRegressor):
    """Stochastic gradient steps within the span of m kernels, on mini-batches drawn uniformly.

    beta <- beta - (eta_t / b) sum_i l'(y_i, phi_i' beta) phi_i over the b rows of a batch, with
    eta_t = step t^-decay and phi = S'K(C, x), S S' = K(C, C)^+ (Lin, Rosasco 2017, 2.2 and 2.3).
    With no penalty, the step, the batch and the number of passes regularise. With m of the
    order of sqrt(n) log n centres one pass is optimal for b = 1 with a step of 1 / sqrt(n), and
    for b = sqrt(n) with a step of 1 (theorem 3.1), in units of 1 / kappa^2, kappa^2 = max K(x, x):
    these are batch_size=1 and batch_size=None, each with step=None. Where the target is less
    smooth than that theorem asks for, more passes help: choose them on validation data.

    Parameters
    ----------
    kernel : a kernel or a function; None: Gaussian(1.0).
    n_centers : m; all rows if there are no more.
    centers : "uniform", "leverage_scores", or the centres themselves, (m, d).
    loss : "square", or another of :class:`SGM`'s.
    step : the first step size; None: min(b / sqrt(n), 1) / kappa^2.
    decay : the exponent of the step sizes, 0 or more; 0: they are constant.
    batch_size : b; None: sqrt(n), rounded.
    max_iter : passes, of n / b batches each, rounded up; rows are drawn with replacement.
    average : False: the last iterate; True: the mean of the iterates that the batches met,
        weighted by the step sizes.
    epsilon, validation, tolerance, patience, random_state, callback, verbose : as in
        :class:`SGM`.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free. The
        n x m matrix is kept where it fits and there is more than one pass.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T).
    n_iter_, validation_errors_ : as in :class:`SGM`.
    """

    def __init__(
        self,
        kernel: Any = None,
        n_centers: int = 1000,
        centers: Any = "uniform",
        loss: str = "square",
        step: float | None = None,
        decay: float = 0.0,
        batch_size: int | None = None,
        max_iter: int = 10,
        average: bool = False,
        epsilon: float = 0.1,
        validation: float | None = None,
        tolerance: float = 0.0,
        patience: int | None = None,
        random_state: Any = None,
        memory_limit: int | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            loss,
            step,
            decay,
            max_iter,
            average,
            epsilon,
            validation,
            tolerance,
            patience,
            random_state,
            memory_limit,
            callback,
            verbose,
        )
        self.n_centers = n_centers
        self.centers = centers
        self.batch_size = batch_size

    def _descent(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[tuple[float | None, float]],
        passes: int,
        draw: np.random.RandomState,
        budget: int,
    ) -> NystromDescent:
        kernel, n = as_kernel(self.kernel), rows.n_samples
        batch = self.batch_size
        batch = round(np.sqrt(n)) if batch is None else positive_count(batch, "batch_size")
        steps = Steps.of(settings, universal_step(n, batch, largest_diagonal(rows, kernel)))
        centers = choose_centers(
            self.centers, rows, self.n_centers, kernel, 1.0 / np.sqrt(n), draw, budget
        )
        basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
        if not basis.n_features:
            raise LearningError("The kernel is zero on every centre: there is nothing to learn.")
        return NystromDescent(rows, basis, loss, steps, batch, passes, draw, budget)


def universal_step(n: int, batch: int, squared_norm: float) -> float:
    """b / (kappa^2 sqrt(n)), and at most 1 / kappa^2, for batches of b rows.

    kappa^2 is `squared_norm`. For b = 1 it is 1 / sqrt(n), for b = sqrt(n) it is 1, both in units
    of 1 / kappa^2: the two choices that are optimal after one pass over n rows (Lin, Rosasco
    2017, theorem 3.1).
    """
    return min(batch / math.sqrt(n), 1.0) / (squared_norm or 1.0)


def _rest(budget: int, descent: Descent) -> int:
    return int(budget * (1.0 - BLOCKS_SHARE)) - descent.memory


def _run_pass(descent: Descent) -> None:
    """A pass whose overflow is no warning: what has diverged is found afterwards."""
    with np.errstate(over="ignore", invalid="ignore"):
        descent.run_pass()
