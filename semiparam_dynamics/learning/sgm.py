"""The stochastic gradient method in an RKHS (thesis chapter 6; Lin, Camoriano, Rosasco 2016)."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiparam_dynamics.errors import LearningError, positive_count
from semiparam_dynamics.learning.base import Callback
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import choose_centers
from semiparam_dynamics.learning.kernel_descent import KernelDescent, NystromDescent
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.losses import Loss
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.stochastic import (
    Setting,
    Steps,
    StochasticRegressor,
    largest_diagonal,
    universal_step,
)

# -------------------------------------------------------------------------------------------------
# Nyström stochastic gradient with mini-batches (Lin, Rosasco 2017).


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
        self.kernel = kernel
        self.n_centers = n_centers
        self.centers = centers
        self.loss = loss
        self.step = step
        self.decay = decay
        self.batch_size = batch_size
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

    def _descent(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[Setting],
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

    def _descent(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[Setting],
        passes: int,
        draw: np.random.RandomState,
        budget: int,
    ) -> KernelDescent:
        kernel = as_kernel(self.kernel)
        n = rows.n_samples
        steps = Steps.of(settings, universal_step(n, 1, largest_diagonal(rows, kernel)))
        blocks = list(rows.blocks(n))
        X = np.concatenate([block.X for block in blocks])
        Y = np.concatenate([block.Y for block in blocks])
        return KernelDescent(X, Y, kernel, loss, steps, passes, draw, budget)
