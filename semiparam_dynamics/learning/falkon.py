"""FALKON: Nyström kernel ridge regression by preconditioned conjugate gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.base import KernelRegressor
from semiparam_dynamics.learning.centers import choose_centers, uniform
from semiparam_dynamics.learning.checks import positive_count, positive_penalty
from semiparam_dynamics.learning.compatibility import validate_data
from semiparam_dynamics.learning.device_products import kernel_rows
from semiparam_dynamics.learning.device_rows import DeviceRows, device_training_rows
from semiparam_dynamics.learning.devices import device_of
from semiparam_dynamics.learning.falkon_system import FalkonSystem
from semiparam_dynamics.learning.iterations import Callback, IterationLog, mean_squared_error
from semiparam_dynamics.learning.kernels import as_kernel
from semiparam_dynamics.learning.paths import Path, RegularisationPath
from semiparam_dynamics.learning.rows import Rows, training_rows

FAR = 0.1  # a relative residual that says that the estimate is not yet the objective's minimiser

Predictor = Callable[[Array], Array]


class Falkon(RegularisationPath, KernelRegressor):
    """Kernel ridge regression on Nyström centres, for many rows (Rudi, Carratino, Rosasco 2017).

    Solves (K_nM' W K_nM + penalty n K_MM) alpha = K_nM' W Y, with W the sample weights and n
    their sum (the number of rows without them), by conjugate gradient on features of the centres,
    preconditioned as in the paper's algorithm 1 and appendix A. With max_iter of the order of
    log n, penalty = 1 / sqrt(n) and n_centers = sqrt(n) log(n) the error is of the order of the
    exact estimator's (theorem 3). Where the penalty is far below 1 / n_centers the centres alone
    say too little about the rows, and many more iterations are needed: a ConvergenceWarning tells.
    Then `preconditioner_rows`, four times n_centers for instance, saves most of them: an addition
    to the paper, in which the centres are the preconditioner's only sample of the data.

    Time O(n M t + M^3) for M centres and t iterations. Memory: kernel blocks, or all of K_nM if
    it fits, within `memory_limit`; beside them two matrices (M, M) of float64, and a third while
    the preconditioner is made of `preconditioner_rows` or of centres that some were left out of.

    PyTorch's and CuPy's arrays are computed with where they are, on a GPU for instance, if
    scikit-learn's `array_api_dispatch` is on: kernel blocks and their products there, within
    `memory_limit` there (by default 1 GB), the (M, M) matrices in NumPy. The fitted attributes are
    NumPy's; predictions come as the inputs do.

    Dask arrays, or :class:`DaskRows`, stay in their chunks on a cluster's workers, which compute
    the products of K_nM; centres and preconditioner are made here. ``centers="leverage_scores"``
    reads all chunks through this process.

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

    def __init__(
        self,
        kernel: Any = None,
        penalty: float = 1e-3,
        n_centers: int = 1000,
        centers: Any = "uniform",
        max_iter: int = 20,
        tolerance: float = 1e-10,
        random_state: Any = None,
        memory_limit: int | None = None,
        preconditioner_rows: int | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.n_centers = n_centers
        self.centers = centers
        self.max_iter = max_iter
        self.tolerance = tolerance
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.preconditioner_rows = preconditioner_rows
        self.callback = callback
        self.verbose = verbose

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
        there = device_of(X)
        if there is None:
            rows = training_rows(self, X, y, sample_weight)
        else:
            rows = device_training_rows(self, X, y, sample_weight, there)
        held_out = None if validation_data is None else self._held_out(rows, *validation_data)
        system = self._system(rows, held_out is not None)
        preconditioner = system.preconditioner(penalty)
        predictor = None if held_out is None else self._predictor(system, held_out)

        def follow(number: int, beta: Array) -> bool:
            if predictor is None or held_out is None:
                return log.done(number)
            predicted = predictor(system.coefficients(preconditioner, beta))
            return log.done(number, mean_squared_error(held_out[1], predicted))

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
        predictor = self._predictor(system, (X_validation, np.zeros((len(X_validation), 1))))
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

    def _predictor(self, system: FalkonSystem, held_out: tuple[Array, Array]) -> Predictor:
        """Coefficients -> predictions on held-out inputs, whose kernel is kept if it fits."""
        limit = None if self.memory_limit is None else max(self.memory_limit // 4, 1)
        rows = system.data.rows.like(*held_out)
        data = kernel_rows(rows, as_kernel(self.kernel), system.data.centers, limit)
        return lambda coefficients: np.concatenate(list(data.multiply(coefficients)))

    def _held_out(self, rows: Rows, X: Any, y: Any) -> tuple[Array, Array]:
        if isinstance(rows, DeviceRows):
            y = rows.there.numpy(y)
        Y = check_array(y, dtype=rows.dtype, ensure_2d=False, input_name="y").reshape(len(y), -1)
        X = self._inputs(X, rows)
        if X.shape[0] != len(Y) or Y.shape[1] != rows.n_outputs:
            raise LearningError(
                f"The validation data's X and y have {X.shape[0]} and {len(Y)} rows, and y has "
                f"{Y.shape[1]} outputs; {rows.n_outputs} are learnt."
            )
        return X, Y

    def _inputs(self, X: Any, rows: Rows) -> Array:
        dtype: Any = rows.dtype
        if isinstance(rows, DeviceRows):
            dtype = getattr(rows.there.xp, rows.dtype.name)
        result: Array = validate_data(self, X, dtype=dtype, reset=False)
        return result
