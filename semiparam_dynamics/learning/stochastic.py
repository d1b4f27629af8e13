"""What the stochastic gradient estimators share: passes, stopping, and paths over step sizes."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.utils import check_random_state

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError, positive, positive_count
from semiparam_dynamics.learning.base import (
    Callback,
    IterationLog,
    KernelRegressor,
    Path,
    RegularisationPath,
)
from semiparam_dynamics.learning.held_out import HeldOut, hold_out, validation_rows
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.losses import Loss, as_loss
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import (
    Rows,
    memory_budget,
    n_threads,
    rows_within,
    training_rows,
)

# -------------------------------------------------------------------------------------------------
# Step sizes of gradient methods (thesis 6.3; Lin, Rosasco 2017, section 3).

LOOK = 4096  # rows at a time, where only K(x, x) is wanted


@dataclass(frozen=True)
class Steps:
    """Polynomially decaying step sizes, step * t^-decay for t = 1, 2, ..., for S settings.

    Attributes
    ----------
    step, decay : (S,).
    """

    step: Array
    decay: Array

    @classmethod
    def of(cls, settings: list[tuple[Any, Any]], default: float) -> Steps:
        """From (step, decay) of each setting, where the step None is `default`.

        Raises ConfigurationError for a step that isn't positive, or a negative decay.
        """
        for step, decay in settings:
            if step is not None:
                positive(step, "step")
            if not (np.isfinite(decay) and decay >= 0.0):
                raise ConfigurationError(f"decay must not be negative, not {decay}.")
        return cls(
            np.array([default if step is None else step for step, _ in settings], dtype=float),
            np.array([decay for _, decay in settings], dtype=float),
        )

    def after(self, done: int, count: int) -> Array:
        """The sizes (count, S) of the `count` steps that follow the first `done`."""
        t = np.arange(done + 1.0, done + count + 1.0)[:, None]
        sizes: Array = self.step * t**-self.decay
        return sizes


def universal_step(n: int, batch: int, squared_norm: float) -> float:
    """b / (kappa^2 sqrt(n)), and at most 1 / kappa^2, for batches of b rows.

    kappa^2 is `squared_norm`. For b = 1 it is 1 / sqrt(n), for b = sqrt(n) it is 1, both in units
    of 1 / kappa^2: the two choices that are optimal after one pass over n rows (Lin, Rosasco
    2017, theorem 3.1).
    """
    return min(batch / math.sqrt(n), 1.0) / (squared_norm or 1.0)


def largest_diagonal(rows: Rows, kernel: Kernel) -> float:
    """kappa^2 = max K(x, x) over the rows whose weight isn't zero."""
    largest = 0.0
    for block in rows.blocks(LOOK):
        X = block.X if block.weights is None else block.X[block.weights > 0.0]
        if len(X):
            largest = max(largest, float(kernel.diagonal(X).max()))
    return largest


KEPT_SHARE = 0.75  # of the memory limit, at most, for a kernel matrix that is kept
BLOCKS_SHARE = 0.125  # for blocks of it that are in work; as much at least is for validation
DIVERGED = 1e9  # times the largest target: beyond that, a path's predictions are cut off

Setting = tuple[Any, Any]  # step and decay


class Descent(Protocol):
    """Gradient descents that advance together, one for each setting and output.

    Attributes
    ----------
    centers : (m, d).
    memory : bytes of the kernel matrix that is kept, or zero.
    """

    centers: Array
    memory: int

    def run_pass(self) -> None:
        """One pass: as many draws as there are rows."""

    def coefficients(self, average: bool) -> Array:
        """Of the kernels at the centres now, (m, S T), setting by setting."""

    def used(self) -> Any:
        """Which of the centres belong to the function: an index of them."""


class StochasticRegressor(RegularisationPath, KernelRegressor):
    """Base of the stochastic gradient estimators; they have this base's parameters and more.

    Attributes
    ----------
    n_iter_ : the pass whose function is kept.
    validation_errors_ : (passes,), where there were validation data.
    """

    path_parameters: ClassVar[tuple[str, ...]] = ("step", "decay", "max_iter")

    loss: str
    epsilon: float
    step: float | None
    decay: float
    max_iter: int
    average: bool
    validation: float | None
    tolerance: float
    patience: int | None
    random_state: Any
    callback: Callback | None
    verbose: bool

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
        asked = Rows.from_arrays(X_validation, np.zeros(len(X_validation)), dtype=rows.dtype)
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
        settings: list[Setting],
        passes: int,
        draw: np.random.RandomState,
        budget: int,
    ) -> Descent:
        """The descents of all settings, before their first pass."""


UNWEIGHTED = "Rows are drawn uniformly here: sample weights have no place. Use Falkon or NYTRO."


def block_rows(budget: int, row_bytes: int) -> int:
    """How many kernel rows of `row_bytes` a block may have, with a memory limit of `budget`.

    Two blocks a thread are in flight, and a block takes about twice its size in the making.
    """
    share = int(BLOCKS_SHARE * budget)
    return rows_within(share, 4 * n_threads() * row_bytes, "A block of kernel rows")


def _rest(budget: int, descent: Descent) -> int:
    return int(budget * (1.0 - BLOCKS_SHARE)) - descent.memory


def _run_pass(descent: Descent) -> None:
    """A pass whose overflow is no warning: what has diverged is found afterwards."""
    with np.errstate(over="ignore", invalid="ignore"):
        descent.run_pass()
