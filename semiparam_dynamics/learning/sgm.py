"""The stochastic gradient method in an RKHS (thesis chapter 6; Lin, Camoriano, Rosasco 2016).

With all rows as centres, or within the span of Nyström centres on mini-batches (Lin, Rosasco 2017).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, positive_count
from semiparam_dynamics.learning.base import (
    Callback,
    HeldOut,
    IterationLog,
    Path,
    StoppedEarly,
    StoppingRule,
)
from semiparam_dynamics.learning.centers import basis_of
from semiparam_dynamics.learning.descents import Descent, KernelDescent, NystromDescent, Steps, Task
from semiparam_dynamics.learning.kernels import FAR_ROWS, as_kernel
from semiparam_dynamics.learning.losses import Loss, as_loss
from semiparam_dynamics.learning.products import KernelRows, largest_diagonal
from semiparam_dynamics.learning.rows import ArrayRows, Rows, memory_budget, training_rows

DIVERGENCE_FACTOR = 1e9  # times the largest target: beyond that, a path's predictions are cut off
UNWEIGHTED = "Rows are drawn uniformly here: sample weights have no place. Use Falkon or NYTRO."
FIXED = "fixed"  # the replacement that is none, in one order


class StochasticRegressor(StoppedEarly):
    """Base of the stochastic gradient estimators, with the parameters of :class:`SGM`."""

    loss: str
    step: float | None
    decay: float
    replacement: bool | str
    average: bool
    epsilon: float
    path_parameters: ClassVar[tuple[str, ...]] = ("step", "decay", "max_iter")

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
        rows, held = self._split(rows, validation_data, draw)
        if held is not None and validation_data is not None:  # else they are of the rows
            _check_targets(held, loss)
        log = IterationLog(
            passes,
            self.callback,
            self.verbose,
            "passes",
            self.tolerance,
            self.patience,
            self.stopping,
            squared=self.loss == "square",
        )
        task = self._task(rows, loss, [(self.step, self.decay)], passes, draw)
        descent, check = self._descent(task), None
        if held is not None:
            check = HeldOut(held, task.kernel, descent.centers, loss.error, descent.rest)

        def iterates() -> Iterator[tuple[Array, Any]]:
            for coefficients in descent.iterates(self.average):
                if not np.isfinite(coefficients).all():
                    raise LearningError(self._diverged())
                yield coefficients, descent.used()

        coefficients, used = self._best(iterates(), log, check, itemgetter(0))
        self._keep(rows, descent.centers[used], coefficients[used])
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """All step sizes advance together, from the same draws, and share each block of the kernel
        matrix; passes come in increasing order. The predictions are those of fits without
        validation data. A step that diverges gives predictions far beyond all targets.
        """
        counts = sorted(set(chosen["max_iter"]))
        settings = list(product(chosen["step"], chosen["decay"]))
        asked = ArrayRows(X_validation.astype(rows.dtype, copy=False))
        draw = check_random_state(self.random_state)
        task = self._task(rows, self._loss(rows), settings, counts[-1], draw)
        descent = self._descent(task)
        keep = len(counts) > 1
        data = KernelRows(asked, task.kernel, descent.centers, descent.rest, keep=keep)
        limit = DIVERGENCE_FACTOR * max(
            1.0, max(float(np.abs(b.Y).max()) for b in rows.blocks(2**16))
        )
        T = rows.n_outputs
        for number, found in enumerate(descent.iterates(self.average), 1):
            if number not in counts:
                continue
            coefficients = np.nan_to_num(found, nan=np.inf)
            finite = np.clip(coefficients, -limit, limit)
            predicted = np.concatenate(list(data.multiply(finite)))
            diverged = (np.abs(coefficients) > limit).any(axis=0)
            predicted[:, diverged] = limit
            for s, (step, decay) in enumerate(settings):
                setting = {"step": step, "decay": decay, "max_iter": number}
                yield setting, predicted[:, s * T : (s + 1) * T]

    def _diverged(self) -> str:
        advice = "take a smaller step. With the square loss any below 2 / max K(x, x) is safe"
        if self.step is not None:
            advice += "; None chooses one"
        return f"The iteration diverged with step={self.step}: {advice}. {FAR_ROWS}"

    def _loss(self, rows: Rows) -> Loss:
        """The loss, for which the rows' outputs must be fit."""
        loss = as_loss(self.loss, self.epsilon)
        if rows.weighted:
            raise LearningError(UNWEIGHTED)
        _check_targets(rows, loss)
        return loss

    def _task(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[tuple[float | None, float]],
        passes: int,
        draw: np.random.RandomState,
    ) -> Task:
        """Problem that the descents of all settings have in common."""
        if not (isinstance(self.replacement, bool | np.bool_) or self.replacement == FIXED):
            raise ConfigurationError(
                f'replacement must be True, False or "{FIXED}", not {self.replacement!r}.'
            )
        kernel, n = as_kernel(self.kernel), rows.n_samples
        default = universal_step(n, self._batch(n), largest_diagonal(rows, kernel))
        steps, budget = Steps.of(settings, default), memory_budget(self.memory_limit)
        return Task(rows, kernel, loss, steps, passes, draw, budget, self.replacement)

    def _batch(self, n: int) -> int:
        """The number of rows in a step, of n."""
        return 1

    @abstractmethod
    def _descent(self, task: Task) -> Descent:
        """The descents, before their first pass."""


@dataclass(eq=False, repr=False)
class SGM(StochasticRegressor):
    """Stochastic gradient steps from zero, on one row at a time, drawn uniformly.

    w <- w - step t^-decay l'(y_j, f(x_j)) K(x_j, .) at the t-th draw j (thesis 6.3). There is no
    penalty: the step size and the number of passes regularise. One pass with a tuned step is the
    thesis' SGM; a fixed step with the number of passes tuned, by `validation` or
    `validation_data`, is its SIGM: step=None, or step=0.25 with decay=0.5.

    Parameters
    ----------
    kernel : a kernel or a function; None: Gaussian(1.0).
    loss : "square", "hinge", "logistic", "absolute", "epsilon_insensitive" or "exponential"; for
        "hinge", "logistic" and "exponential" y is -1 or 1, and a prediction's sign is the class.
    step : the first step size; None: 1 / (kappa^2 sqrt(n)) with kappa^2 = max K(x, x).
    decay : the exponent theta of the step sizes, 0 or more; 0: they are constant.
    max_iter : passes, of n draws each.
    average : False: the last iterate; True: the mean of the iterates that the draws met,
        weighted by the step sizes (thesis 6.4).
    epsilon : of the loss "epsilon_insensitive".
    replacement : True: rows are drawn with it, independently; False: each once a pass, in an order
        that is drawn anew; "fixed": each once, in one order that is drawn once and kept (the
        three of the thesis' experiments).
    validation : a share of the rows, held out to choose the pass whose function is kept.
    tolerance, patience : stop when the validation error hasn't fallen by the relative
        `tolerance` for `patience` passes; None: run all passes.
    stopping : a rule in their place: an :class:`ErrorSlope`, or a function of the validation
        errors so far (for "square" their roots) that is true where to stop.
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

    kernel: Any = None
    loss: str = "square"
    step: float | None = None
    decay: float = 0.0
    max_iter: int = 10
    average: bool = False
    epsilon: float = 0.1
    replacement: bool | str = True
    validation: float | None = None
    tolerance: float = 0.0
    patience: int | None = None
    stopping: StoppingRule | None = None
    random_state: Any = None
    memory_limit: int | None = None
    callback: Callback | None = None
    verbose: bool = False

    def _descent(self, task: Task) -> KernelDescent:
        return KernelDescent(task)


@dataclass(eq=False, repr=False)
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
    max_iter : passes, of n / b batches each, rounded up.
    average : False: the last iterate; True: the mean of the iterates that the batches met,
        weighted by the step sizes.
    replacement : as in :class:`SGM`. Without it the last batch of a pass has the rows that are
        left.
    epsilon, validation, tolerance, patience, stopping, random_state, callback, verbose : as in
        :class:`SGM`.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free. The
        n x m matrix is kept where it fits and there is more than one pass.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T).
    n_iter_, validation_errors_ : as in :class:`SGM`.
    """

    kernel: Any = None
    n_centers: int = 1000
    centers: Any = "uniform"
    loss: str = "square"
    step: float | None = None
    decay: float = 0.0
    batch_size: int | None = None
    max_iter: int = 10
    average: bool = False
    epsilon: float = 0.1
    replacement: bool | str = True
    validation: float | None = None
    tolerance: float = 0.0
    patience: int | None = None
    stopping: StoppingRule | None = None
    random_state: Any = None
    memory_limit: int | None = None
    callback: Callback | None = None
    verbose: bool = False

    def _batch(self, n: int) -> int:
        batch = self.batch_size
        return round(np.sqrt(n)) if batch is None else positive_count(batch, "batch_size")

    def _descent(self, task: Task) -> NystromDescent:
        basis = basis_of(self, task.rows, task.draw, task.budget)
        return NystromDescent(task, basis, self._batch(task.rows.n_samples))


def _check_targets(rows: Rows, loss: Loss) -> None:
    """Raise LearningError where the loss has no meaning for one of the rows' outputs."""
    if loss.labels:  # a pass over the data otherwise, for nothing
        for block in rows.blocks(2**16):
            loss.check(block.Y)


def universal_step(n: int, batch: int, squared_norm: float) -> float:
    """b / (kappa^2 sqrt(n)), and at most 1 / kappa^2, for batches of b rows.

    kappa^2 is `squared_norm`. For b = 1 it is 1 / sqrt(n), for b = sqrt(n) it is 1, both in units
    of 1 / kappa^2: the two choices that are optimal after one pass over n rows (Lin, Rosasco
    2017, theorem 3.1).
    """
    return min(batch / math.sqrt(n), 1.0) / (squared_norm or 1.0)
