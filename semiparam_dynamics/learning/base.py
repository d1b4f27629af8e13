"""The base of the kernel estimators, f(x) = sum_j K(x, c_j) coef_j, their paths and validation."""

from __future__ import annotations

import copy
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive,
    positive_count,
    positive_penalty,
)
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.learning.centers import chosen_by_leave_one_out, scaled_kernel
from semiparam_dynamics.learning.kernels import (
    HasKernel,
    Kernel,
    as_inputs,
    as_kernel,
    in_format,
    is_sparse,
    require_sparse_form,
)
from semiparam_dynamics.learning.products import kernel_rows
from semiparam_dynamics.learning.rows import (
    FLOATS,
    ArrayRows,
    Rows,
    backend_of,
    chunk_by_chunk,
    masked,
    to_numpy,
    training_rows,
    validate_data,
)


def fitted_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, on_device: bool = False
) -> Rows:
    """:func:`~.rows.training_rows`, with what an estimator finds in them before anything else.

    Sets `kernel_`, whose width is a number, and `penalty_` of an estimator with a penalty: those
    that were given, or :func:`~.centers.chosen_by_leave_one_out`. One without, whose steps
    regularise, would take too many of them in a wide kernel: its width is the median distance.
    """
    regularised = hasattr(estimator, "penalty")
    if regularised and estimator.penalty is not None:
        positive_penalty(estimator.penalty)
    rows = training_rows(estimator, X, y, sample_weight, on_device=on_device)
    kernel = estimator._kernel_for(rows)
    if not regularised:
        estimator.kernel_ = scaled_kernel(kernel, rows)
        return rows
    penalty = estimator.penalty
    if penalty is None or kernel.needs_scale:
        choose = getattr(estimator, "_choose", chosen_by_leave_one_out)
        kernel, found = choose(rows, kernel, estimator.memory_limit)
        penalty = found if penalty is None else penalty
    estimator.kernel_, estimator.penalty_ = kernel, penalty
    return rows


class KernelRegressor(MultiOutputMixin, RegressorMixin, HasKernel):  # type: ignore[misc]
    """Base of the estimators whose function is a sum of kernels at centres.

    A subclass has the parameters `kernel` and `memory_limit`, and its `fit` ends in `_keep`.

    Inputs may be sparse, of scipy.sparse, where the kernel is a function of inner products:
    `Linear`, `Polynomial`, `Gaussian`, or a function of two matrices that takes such ones. Time
    and memory then go by the numbers stored, whatever the number of columns.

    Attributes
    ----------
    centers_ : (m, d), compressed rows of scipy.sparse where the training inputs were sparse.
    coef_ : (m,), or (m, T) where y had two dimensions.
    kernel_ : the kernel, with the width that `fit` found where none was given.
    penalty_ : lambda, given or found, of an estimator with a penalty.
    n_features_in_ : d.
    """

    memory_limit: int | None
    centers_: Array
    coef_: Array
    _takes_sparse = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            tags.input_tags.sparse = as_kernel(self.kernel).takes_sparse
        except ConfigurationError:  # `fit` says what is wrong with it
            tags.input_tags.sparse = False
        return tags

    @chunk_by_chunk
    def predict(self, X: Any) -> Array:
        """f(x), (n,) or (n, T) as y was, of inputs X (n, d), a block of rows at a time.

        Of an array of another library, with scikit-learn's `array_api_dispatch`, one of its own;
        of a Dask array a Dask array, in the same chunks of rows. In the precision of the fit.
        Raises LearningError for predictions that it has no numbers for.
        """
        backend = backend_of(X)
        if backend is not None:
            elsewhere: Array = backend.predict(self, X)
            return elsewhere
        X = validate_data(self, X, dtype=self.centers_.dtype, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            found = kernel_sum(X, self.kernel_, self.centers_, self.coef_, self.memory_limit)
        if not np.isfinite(found).all():
            raise LearningError(
                f"Predictions are beyond the numbers of {found.dtype}: scale inputs and outputs, "
                f"or raise the penalty."
            )
        return found

    def _keep(self, rows: Rows, centers: Array, coefficients: Array) -> None:
        """Store centres (m, d) and coefficients (m, T) as fitted attributes."""
        self.centers_ = as_inputs(centers, rows.dtype)
        self.coef_ = coefficients[:, 0] if rows.one_output else coefficients


def predictor(
    rows: Rows, kernel: Kernel, centers: Array, memory_limit: int | None = None, keep: bool = True
) -> Callable[[Array], Array]:
    """The function: coefficients (m, T) -> sum_j K(x, c_j) coefficients_j at the rows, (n, T).

    In the rows' precision. With `keep` their kernel is kept if it fits into the limit.
    """
    data = kernel_rows(rows, kernel, centers, memory_limit, keep)
    return lambda coefficients: np.concatenate(list(data.multiply(coefficients)))


def kernel_sum(
    X: Array, kernel: Any, centers: Array, coefficients: Array, memory_limit: int | None = None
) -> Array:
    """sum_j K(x, c_j) coefficients_j: (n,) or (n, T), as the coefficients are (m,) or (m, T).

    In the centres' precision. Raises ConfigurationError where X or the centres are sparse and the
    kernel has no form for that.
    """
    X, sparse = as_inputs(X, centers.dtype), is_sparse(X) or is_sparse(centers)
    if sparse:
        require_sparse_form(kernel)
        X, centers = in_format(X, True), in_format(centers, True)
    columns = coefficients.reshape(len(coefficients), -1)
    result = predictor(ArrayRows(X), kernel, centers, memory_limit, keep=False)(columns)
    return result[:, 0] if coefficients.ndim == 1 else result


# -------------------------------------------------------------------------------------------------
# Regularisation paths: many settings of an estimator from one pass over the data, or one run.

Iterate = TypeVar("Iterate")
Setting = dict[str, Any]
Path = Iterator[tuple[Setting, Array]]
Grid = Mapping[str, Sequence[Any]]
CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "max_iter": positive_count,
    "n_centers": positive_count,
    "n_features": positive_count,
    "penalty": positive,
}


def values_of(grid: Grid) -> dict[str, list[Any]]:
    """The values of each name; ConfigurationError for none, and for what is no sequence."""
    found = {}
    for name, values in grid.items():
        try:
            listed = None if isinstance(values, str) else list(values)
        except TypeError:  # one value
            listed = None
        if not listed:
            given = repr(values) if listed is None else "none"
            raise ConfigurationError(
                f"The grid needs a sequence of one value or more for {name}, not {given}."
            )
        found[name] = listed
    return found


class RegularisationPath(ABC):
    """Gives an estimator its `path`, from a `_path` that knows how settings share their work."""

    @property
    @abstractmethod
    def path_parameters(self) -> tuple[str, ...]:
        """The parameters that a path may go over: their values share one pass or one run."""

    def path(
        self, X: Any, y: Any, grid: Grid, X_validation: Any, *, sample_weight: Any = None
    ) -> Path:
        """(setting, predictions (k, T) at X_validation (k, d)) for every setting of the grid.

        They equal those of a fit for each setting to X (n, d), y (n,) or (n, T), and weights
        (n,), or to Rows with y=None; but with ``centers="leverage_scores"`` all settings share the
        centres that are drawn once, of which a fit would draw others by its own penalty or number.
        `grid` maps some of `path_parameters` to their values; the
        settings are all combinations, in an order of the estimator's own. The estimator stays as it
        is, fitted or not. Raises ConfigurationError for another name, and for one without values.
        """
        other, rows, chosen = self._begun(X, y, grid, sample_weight)
        X_validation = validate_data(other, to_numpy(X_validation), dtype=FLOATS, reset=False)
        X_validation = in_format(X_validation, rows.sparse)
        for setting, predicted in other._path(rows, chosen, X_validation):
            yield {name: setting[name] for name in grid}, predicted

    def _begun(
        self, X: Any, y: Any, grid: Grid, sample_weight: Any
    ) -> tuple[Any, Rows, dict[str, list[Any]]]:
        """A copy that has found what `fit` finds in the rows, the rows, and :meth:`_chosen`."""
        other: Any = copy.copy(self)
        chosen = self._chosen(grid)
        if "penalty" in grid and other.penalty is None:  # of leverage scores, if they are asked for
            other.penalty = float(np.median(chosen["penalty"]))
        rows = fitted_rows(other, X, y, sample_weight)
        if chosen.get("penalty") == [None]:
            chosen["penalty"] = [other.penalty_]
        return other, rows, chosen

    @abstractmethod
    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """Settings and predictions, given a list of values for each of the path's parameters."""

    def _chosen(self, grid: Grid) -> dict[str, list[Any]]:
        """The values of every one of the path's parameters, the estimator's own where not given."""
        names = self.path_parameters
        if not set(grid) <= set(names):
            raise ConfigurationError(
                f"The path of this {type(self).__name__} can only go over "
                f"{names or 'nothing'}, not over {tuple(grid)}."
            )
        chosen = {name: [getattr(self, name)] for name in names} | values_of(grid)
        for name, values in chosen.items():
            if name in CHECKS and (name in grid or values != [None]):
                chosen[name] = [CHECKS[name](value, name) for value in values]
        return chosen


# -------------------------------------------------------------------------------------------------
# Convex losses of a prediction f for a target y (thesis chapters 1 and 6).

LOSSES = ("square", "hinge", "logistic", "absolute", "epsilon_insensitive", "exponential")
LOSSES_OF_LABELS = ("hinge", "logistic", "exponential")  # targets must be -1 and 1
SQUARE, HINGE, LOGISTIC, ABSOLUTE, EPSILON_INSENSITIVE, EXPONENTIAL = range(6)


@compiled
def slope(loss: int, epsilon: float, y: float, f: float) -> float:
    """The left-hand derivative at f of the loss of predicting f for y."""
    if loss == SQUARE:
        return f - y
    if loss == HINGE:
        # 1 - y f has its kink at y f = 1; from the left of it, f is smaller.
        inside = f <= 1.0 if y > 0.0 else f > -1.0
        return -y if inside else 0.0
    if loss == LOGISTIC:
        result: float = -y / (1.0 + np.exp(y * f))
        return result
    if loss == EXPONENTIAL:
        steep: float = -y * np.exp(-y * f)
        return steep
    if loss == ABSOLUTE:
        return -1.0 if f <= y else 1.0
    if f - y <= -epsilon:
        return -1.0
    return 1.0 if f - y > epsilon else 0.0


@compiled
def slopes(loss: int, epsilon: float, y: Array, f: Array, out: Array) -> None:
    """out_i = slope(y_i, f_i), all (k,)."""
    for i in range(y.size):
        out[i] = slope(loss, epsilon, y[i], f[i])


@dataclass(frozen=True)
class Loss:
    """One of LOSSES and its left-hand derivative, elementwise over arrays of one shape.

    "square" is (f - y)^2 / 2, whose derivative is the residual; "hinge", the support vector
    machine's, max(0, 1 - y f) for y = -1 or 1; "logistic" log(1 + exp(-y f)) for such y;
    "absolute" |f - y|; "epsilon_insensitive", support vector regression's,
    max(0, |f - y| - epsilon); "exponential", boosting's, exp(-y f) for y = -1 or 1. The derivative
    at f is the one from below, which a convex loss has everywhere (thesis 6.2).
    """

    name: str
    epsilon: float = 0.0

    @property
    def code(self) -> int:
        """The loss' number in the compiled loops."""
        return LOSSES.index(self.name)

    def value(self, y: Array, f: Array) -> Array:
        """The loss of each prediction."""
        if self.name == "square":
            return np.asarray(0.5 * (f - y) ** 2)
        if self.name == "hinge":
            return np.maximum(1.0 - y * f, 0.0)
        if self.name == "logistic":  # never overflows
            return np.asarray(np.logaddexp(0.0, -y * f))
        if self.name == "exponential":
            return np.exp(-y * f)
        return np.maximum(np.abs(f - y) - (0.0 if self.name == "absolute" else self.epsilon), 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        """Its left-hand derivative with respect to f."""
        y, f = np.broadcast_arrays(np.asarray(y, float), np.asarray(f, float))
        result = np.empty(f.shape)
        flat = result.reshape(-1)
        slopes(self.code, self.epsilon, y.reshape(-1), f.reshape(-1), flat)
        return result

    def error(self, y: Array, f: Array) -> Array:
        """The loss, of which a validation error is the mean; for "square" the square itself."""
        return np.asarray((f - y) ** 2) if self.name == "square" else self.value(y, f)

    def check(self, rows: Rows) -> None:
        """Raise LearningError for rows with outputs that the loss has no meaning for."""
        if self.name in LOSSES_OF_LABELS and not np.isin(rows.outputs(), (-1.0, 1.0)).all():
            raise LearningError(
                f"With the {self.name} loss y must be -1 or 1: encode the labels so, or wrap the "
                f"estimator in a classifier."
            )


def as_loss(name: str, epsilon: float = 0.0) -> Loss:
    """The loss called `name`; `epsilon` matters to "epsilon_insensitive" only.

    Raises ConfigurationError for another name, and for a negative epsilon.
    """
    if name not in LOSSES:
        raise ConfigurationError(f"loss must be one of {', '.join(LOSSES)}, not {name!r}.")
    return Loss(name, not_negative(epsilon, "epsilon"))


# -------------------------------------------------------------------------------------------------
# The log of an iterative fit: progress, validation errors, and when to stop.

# Whether to stop, from the errors after each iteration so far: of the square loss root mean squared
# errors, of another its means.
StoppingRule = Callable[[Sequence[float]], Any]


@dataclass(frozen=True)
class ErrorSlope:
    """Stop where a line fitted to the last errors falls by less than a threshold.

    The line is the least-squares fit to the errors of the last `window` iterations; the rule holds
    where its slope is -threshold / window or above. Before there are so many, it doesn't. This is
    the rule of NYTRO's published experiments (Camoriano et al. 2016, table 1), with a window of 10
    and a threshold for each data set.

    Parameters
    ----------
    window : iterations that the line is fitted to, 2 or more.
    threshold : in units of the error, which is a root mean squared error for the square loss. 0:
        stop where the line no longer falls.

    Raises
    ------
    ConfigurationError : for a window below 2 or a threshold that is not a finite number.
    """

    window: int = 10
    threshold: float = 0.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "window", positive_count(self.window, "window"))
        if self.window < 2:
            raise ConfigurationError(f"window must be 2 or more, not {self.window}.")
        if not np.isfinite(self.threshold):
            raise ConfigurationError(f"threshold must be a finite number, not {self.threshold}.")

    def __call__(self, errors: Sequence[float]) -> bool:
        """True where to stop after these errors, one for each iteration so far."""
        if len(errors) < self.window:
            return False
        last = np.asarray(errors[-self.window :], dtype=float)
        # The least-squares line about the window's middle, where slope and mean are independent.
        place = np.arange(self.window) - 0.5 * (self.window - 1)
        slope = float(place @ last) / float(place @ place)
        return slope >= -self.threshold / self.window


@dataclass(frozen=True)
class Iteration:
    """The argument of a callback, after each iteration (for stochastic methods: each pass).

    Attributes
    ----------
    number, total : of this iteration, from 1, and of those asked for.
    seconds : since the fit began.
    validation_error : mean squared error, or the estimator's own error, on the validation data;
        None without such data.
    """

    number: int
    total: int
    seconds: float
    validation_error: float | None


Callback = Callable[[Iteration], Any]  # a true answer ends the fit after this iteration


class IterationLog(ExitStack):
    """Validation errors of a fit and its best iteration; calls the user's callback, draws a bar.

    Use it as a context manager around the iterations, and call `done` after each.
    """

    def __init__(
        self,
        total: int,
        callback: Callback | None = None,
        verbose: bool = False,
        label: str = "iterations",
        tolerance: float = 0.0,
        patience: int | None = None,
        stopping: StoppingRule | None = None,
        squared: bool = False,
    ) -> None:
        """`patience`: stop when the error hasn't fallen by the relative `tolerance` for so many
        iterations; None: never because of it. `stopping`, a rule, takes the place of both. With
        `squared` the errors are mean squares, of which the rule is given the roots.

        Raises ConfigurationError for a rule that can't be called.
        """
        super().__init__()
        self.total = total
        self.errors: list[float] = []
        self.improved = self.ended = False
        self._reference, self._since = np.inf, 0
        self._tolerance = not_negative(tolerance, "tolerance")
        self._patience = None if patience is None else positive_count(patience, "patience")
        if stopping is not None and not callable(stopping):
            raise ConfigurationError(
                f"stopping must be None, an ErrorSlope or a function of the errors so far, not "
                f"{stopping!r}."
            )
        self._stopping, self._squared = stopping, squared
        self._callback = callback
        self._bar = self.enter_context(ProgressBar(label, sys.stderr)) if verbose else None
        self._start = time.perf_counter()

    def done(self, number: int, error: float | None = None) -> bool:
        """Iteration `number` (from 1) ended with this validation error; True: stop here.

        `improved` then says whether the error is the smallest so far, `ended` what was answered.
        """
        stop = False
        if error is not None:
            self.improved = not self.errors or error < min(self.errors)
            self.errors.append(error)
            self._since += 1
            if error < self._reference * (1.0 - self._tolerance):
                self._reference, self._since = error, 0
            if self._stopping is None:
                stop = self._patience is not None and self._since >= self._patience
            else:
                seen = np.sqrt(self.errors).tolist() if self._squared else list(self.errors)
                stop = bool(self._stopping(seen))
        if self._bar is not None:
            self._bar(number / self.total)
        if self._callback is not None:
            seconds = time.perf_counter() - self._start
            stop |= bool(self._callback(Iteration(number, self.total, seconds, error)))
        self.ended = stop
        return stop


# -------------------------------------------------------------------------------------------------
# Validation data: held out of the training rows, or given.


def validation_rows(estimator: Any, data: Any, rows: Rows) -> Rows:
    """Rows of `validation_data`, (X, y) or Rows, in the precision of the training rows.

    Raises ConfigurationError for anything else, LearningError for another number of inputs, outputs
    or rows.
    """
    given = data
    if not isinstance(data, Rows):
        if not (isinstance(data, tuple | list) and len(data) == 2):
            raise ConfigurationError("validation_data must be (X, y), two arrays, or Rows.")
        X, y = map(to_numpy, data)
        X = validate_data(estimator, X, dtype=rows.dtype, reset=False)
        y = check_array(y, dtype=rows.dtype, ensure_2d=False, input_name="y")
        n = X.shape[0]
        if n != len(y):
            raise LearningError(f"The validation data's X and y have {n} and {len(y)} rows.")
        given = ArrayRows(in_format(X, rows.sparse), y)
    if (given.n_features, given.n_outputs) != (rows.n_features, rows.n_outputs):
        raise LearningError(
            f"The validation data have {given.n_features} inputs and {given.n_outputs} outputs; "
            f"the training data have {rows.n_features} and {rows.n_outputs}."
        )
    validated: Rows = given
    return validated


def hold_out(rows: Rows, share: float, draw: np.random.RandomState) -> tuple[Rows, Rows]:
    """The rows to learn from and those to validate on: a `share` of all, drawn uniformly.

    Raises ConfigurationError for a share outside (0, 1), LearningError where either part would be
    empty.
    """
    if not 0.0 < share < 1.0:
        raise ConfigurationError(f"validation must be a share between 0 and 1, not {share}.")
    n = rows.n_samples
    count = round(share * n)
    if not 0 < count < n:
        raise LearningError(f"A share of {share} of {n} rows can't be held out for validation.")
    held = np.zeros(n, dtype=bool)
    held[draw.permutation(n)[:count]] = True
    return masked(rows, ~held), masked(rows, held)


class HeldOut:
    """Mean errors on validation rows of functions with these coefficients of kernels at centres.

    error : of targets and predictions (k, T). predict : see :func:`predictor`.
    """

    def __init__(
        self,
        rows: Rows,
        predict: Callable[[Array], Array],
        error: Callable[[Array, Array], Array],
    ) -> None:
        self._Y, self._weights = rows.outputs(), rows.weights()
        self._predict, self._error = predict, error

    def mean_error(self, coefficients: Array, offsets: Any = 0.0) -> float:
        """The mean over rows (by weight) and outputs for coefficients (m, T) and offsets (T,)."""
        predicted = self._predict(coefficients).astype(float) + offsets
        errors = self._error(self._Y, predicted).mean(axis=1)
        return float(np.average(errors, weights=self._weights))


@dataclass(eq=False, repr=False)
class StoppedEarly(RegularisationPath, KernelRegressor):
    """Base of the estimators that keep the iterate with the smallest validation error."""

    _: KW_ONLY
    validation: float | None = None
    tolerance: float = 0.0
    patience: int | None = None
    stopping: StoppingRule | None = None
    random_state: Any = None
    memory_limit: int | None = None
    callback: Callback | None = None
    verbose: bool = False

    def _split(
        self, rows: Rows, validation_data: Any, draw: np.random.RandomState
    ) -> tuple[Rows, Rows | None]:
        """Rows to learn from, and those to validate on: given, or held out, or none.

        Raises ConfigurationError for a stopping rule without any: it would never be asked.
        """
        if validation_data is not None:
            return rows, validation_rows(self, validation_data, rows)
        if self.stopping is not None and self.validation is None:
            raise ConfigurationError(
                "stopping is a rule for validation errors: pass validation_data to fit, or set "
                "validation to the share of rows to hold out."
            )
        return (rows, None) if self.validation is None else hold_out(rows, self.validation, draw)

    def _log(self, total: int, label: str, tolerance: float, squared: bool) -> IterationLog:
        of = self.callback, self.verbose, label, tolerance, self.patience, self.stopping, squared
        return IterationLog(total, *of)

    def _best(
        self,
        iterates: Iterator[Iterate],
        log: IterationLog,
        check: HeldOut | None,
        coefficients: Callable[[Iterate], Array],
    ) -> Iterate:
        """The iterate of the smallest error, or the last without `check`; sets n_iter_."""
        self.__dict__.pop("validation_errors_", None)  # of an earlier fit
        with log:
            for number, iterate in enumerate(iterates, 1):
                error = None if check is None else check.mean_error(coefficients(iterate))
                stop = log.done(number, error)
                if check is None or log.improved:
                    best, self.n_iter_ = iterate, number
                if stop:
                    break
        if check is not None:
            self.validation_errors_ = np.array(log.errors)
        return best
