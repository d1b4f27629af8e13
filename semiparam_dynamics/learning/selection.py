"""Choosing parameters by validation, through an estimator's regularisation path if it has one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, check_cv

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.learning.base import Grid, Setting, values_of
from semiparam_dynamics.learning.kernels import is_sparse
from semiparam_dynamics.learning.rows import Rows

# -------------------------------------------------------------------------------------------------
# Validation data for choosing parameters, and errors on them.

Error = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Fold:
    """Training and validation rows, with weights (or None) for both."""

    X: Any
    y: Any
    weights: Any
    X_validation: Any
    y_validation: Any
    validation_weights: Any


def folds(
    estimator: Any,
    X: Any,
    y: Any,
    validation: Any,
    groups: Any = None,
    random_state: Any = None,
    sample_weight: Any = None,
) -> tuple[int, Iterator[Fold]]:
    """The number of folds that `validation` describes (see :func:`select`), and the folds."""
    if _is_pair_of_arrays(validation):
        X_validation, y_validation = validation
        return 1, iter([Fold(X, y, sample_weight, X_validation, y_validation, None)])
    if isinstance(X, Rows):
        raise ConfigurationError("With Rows, validation must be the arrays (X_val, y_val).")
    splitter = _splitter(estimator, y, validation, random_state)

    def make(train: Any, test: Any) -> Fold:
        parts = [
            None if data is None else _rows_of(data, indices)
            for indices in (train, test)
            for data in (X, y, sample_weight)
        ]
        return Fold(*parts)

    splits = splitter.split(X, y, groups)
    return splitter.get_n_splits(X, y, groups), (make(train, test) for train, test in splits)


def _is_pair_of_arrays(validation: Any) -> bool:
    """True for (X_val, y_val); a list of two pairs of indices is one of two splits."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        return False
    if isinstance(validation, tuple):
        return True
    if not all(hasattr(part, "__len__") or hasattr(part, "shape") for part in validation):
        return False
    lengths = [part.shape[0] if hasattr(part, "shape") else len(part) for part in validation]
    return any(length != 2 for length in lengths)


def _rows_of(data: Any, indices: Any) -> Any:
    """The rows of an array, a table or a list, as one of the same kind; sparse ones as CSR."""
    if hasattr(data, "iloc"):
        return data.iloc[indices]
    if is_sparse(data):  # other formats have no rows
        return data.tocsr()[indices]
    return data[indices] if hasattr(data, "shape") else [data[i] for i in indices]


def _splitter(estimator: Any, y: Any, validation: Any, random_state: Any) -> Any:
    if isinstance(validation, str) and validation == "leave_one_out":
        return LeaveOneOut()
    if isinstance(validation, int | np.integer) and validation > 1:
        return check_cv(int(validation), y, classifier=is_classifier(estimator))
    if isinstance(validation, int | float | np.number):
        if not 0.0 < validation < 1.0:
            raise ConfigurationError(
                f"validation must be a share between 0 and 1, or 2 folds or more, not {validation}."
            )
        return ShuffleSplit(1, test_size=float(validation), random_state=random_state)
    if isinstance(validation, str) or not (
        hasattr(validation, "split") or hasattr(validation, "__iter__")
    ):
        raise ConfigurationError(
            'validation must be a share, a number of folds, "leave_one_out", a scikit-learn '
            f"splitter or the arrays (X_val, y_val), not {validation!r}."
        )
    return check_cv(validation)


def validation_error(error: Any, classifier: bool, y: Any, predicted: Any, weights: Any) -> float:
    """The error of predictions (n,) or (n, T), infinite where one of them is not finite.

    `error` is one of the names, or a function, that :func:`~.selection.select` knows. The named
    ones weight the rows by `weights` (n,), which may be None.
    """
    Y, predicted = np.asarray(y), np.asarray(predicted)
    if not classifier:
        Y = Y.reshape(len(Y), -1).astype(float)
        predicted = predicted.reshape(len(predicted), -1)
        if predicted.shape != Y.shape:
            raise LearningError(
                f"The validation outputs are {Y.shape} and the predictions {predicted.shape}: the "
                "model must be fit to outputs of the same number of columns."
            )
        if not np.isfinite(predicted).all():
            return np.inf
    if callable(error):
        value = float(error(Y, predicted))
        return value if np.isfinite(value) else np.inf
    if error == "classification":
        wrong = predicted != Y if classifier else _wrong(Y, predicted)
        return _average(np.reshape(wrong, (len(Y), -1)).any(axis=1), weights)
    if error not in ("mse", "rmse", "mae"):
        raise ConfigurationError(
            f'error must be "mse", "rmse", "mae", "classification" or a function, not {error!r}.'
        )
    if classifier:
        raise ConfigurationError(f'A classifier\'s error is "classification", not "{error}".')
    with np.errstate(over="ignore"):  # an infinite error is what it is then
        if error == "mae":
            return _average(np.abs(Y - predicted).mean(axis=1), weights)
        squared = _average(((Y - predicted) ** 2).mean(axis=1), weights)
    return squared if error == "mse" else float(np.sqrt(squared))


def _wrong(Y: Array, scores: Array) -> Any:
    """Rows whose scores, (n, 1) by their sign or (n, T) by the largest, miss the class."""
    if Y.shape[1] > 1:
        return scores.argmax(axis=1) != Y.argmax(axis=1)
    if not np.isin(Y, (-1.0, 1.0)).all():
        raise LearningError(
            'The error "classification" needs outputs of 1 and -1, or one column for each class.'
        )
    return np.sign(scores) != Y


def _average(errors: Any, weights: Any) -> float:
    if weights is not None and not np.sum(weights) > 0.0:
        raise LearningError(
            "The validation rows' sample weights sum to zero: take folds with positive ones."
        )
    return float(np.average(errors, weights=weights))


# -------------------------------------------------------------------------------------------------
# Predictions of an estimator for every setting of a grid, by its path where it has one.


def candidate_predictions(
    estimator: Any,
    grid: Grid,
    settings: Sequence[Setting],
    fold: Fold,
    leave_one_out: bool = False,
) -> Iterator[tuple[int, Any]]:
    """(number of a setting, its predictions on the fold's validation rows), once for each setting.

    `settings` is the product of `grid`, in its order. The parameters that are among the
    estimator's `path_parameters` are left to its `path`, or with `leave_one_out` to its method of
    that name; for each setting of the others there is a clone of it.
    """
    weights = {} if fold.weights is None else {"sample_weight": fold.weights}
    inner = [name for name in grid if name in getattr(estimator, "path_parameters", ())]
    outer = [name for name in grid if name not in inner]
    path_grid = {name: grid[name] for name in inner}
    for numbers in _by_outer_setting(grid, outer, inner):
        first = settings[numbers[0]]
        model = with_setting(estimator, {name: first[name] for name in outer})
        # Which parameters a path has may depend on the others: KRLS' filter, for instance.
        has_path = inner and set(inner) <= set(model.path_parameters)
        if not (has_path or leave_one_out):
            for i in numbers:
                fitted = with_setting(estimator, settings[i]).fit(fold.X, fold.y, **weights)
                yield i, fitted.predict(fold.X_validation)
            continue
        if leave_one_out:
            results = model.leave_one_out(fold.X, fold.y, path_grid, **weights)
        else:
            results = model.path(fold.X, fold.y, path_grid, fold.X_validation, **weights)
        # By value, since a path may have an order of its own; values given twice have one answer.
        places: dict[tuple[Any, ...], list[int]] = {}
        for i in numbers:
            places.setdefault(tuple(settings[i][name] for name in inner), []).append(i)
        for found, predicted in results:
            for i in places.pop(tuple(found[name] for name in inner), ()):
                yield i, predicted
        if places:
            raise ConfigurationError(
                f"The path of {type(model).__name__} gave no predictions for {inner} in "
                f"{list(places)}."
            )


def with_setting(estimator: Any, setting: Setting) -> Any:
    """A clone of the estimator with these parameters; ConfigurationError if it has no such."""
    try:
        return clone(estimator).set_params(**setting)
    except (ValueError, AttributeError) as problem:
        raise ConfigurationError(
            f"{type(estimator).__name__} cannot take {tuple(setting)}: {problem}"
        ) from problem


def _by_outer_setting(grid: Grid, outer: list[str], inner: list[str]) -> list[list[int]]:
    """The settings' numbers, a list for each setting of the outer parameters."""
    names = list(grid)
    numbers = np.arange(np.prod([len(values) for values in grid.values()], dtype=int))
    cube = numbers.reshape([len(values) for values in grid.values()])
    turned = cube.transpose([names.index(name) for name in (*outer, *inner)])
    n_outer = np.prod([len(grid[name]) for name in outer], dtype=int)
    return turned.reshape(n_outer, -1).tolist()


@dataclass(frozen=True)
class Selection:
    """Settings, their validation errors, and the best of them.

    Attributes
    ----------
    grid : the values of each parameter.
    settings : every combination of them, the last parameter's values running fastest.
    errors : (n_settings, n_folds), validation errors; infinite where a prediction wasn't finite.
    best_index : of the chosen setting.
    estimator : with the chosen setting, fitted to all of X and y; None without `refit`.
    """

    grid: dict[str, list[Any]]
    settings: list[Setting]
    errors: Array
    best_index: int
    estimator: Any = None

    @property
    def mean(self) -> Array:
        """Each setting's error, (n_settings,), averaged over the folds."""
        mean: Array = self.errors.mean(axis=1)
        return mean

    @property
    def best(self) -> dict[str, Any]:
        """The chosen setting."""
        return self.settings[self.best_index]

    @property
    def best_error(self) -> float:
        """The chosen setting's error."""
        return float(self.mean[self.best_index])

    def curve(self, name: str) -> tuple[list[Any], Array]:
        """A parameter's values, and the errors there with the other parameters as chosen."""
        if name not in self.grid:
            raise ConfigurationError(f"The grid has no {name}; it has {tuple(self.grid)}.")
        shape = tuple(len(values) for values in self.grid.values())
        index: list[Any] = list(np.unravel_index(self.best_index, shape))
        index[list(self.grid).index(name)] = slice(None)
        return self.grid[name], self.mean.reshape(shape)[tuple(index)]


def select(
    estimator: Any,
    X: Any,
    y: Any,
    grid: Grid,
    *,
    validation: Any = 0.2,
    error: Any = None,
    random_state: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    refit: bool = True,
    verbose: bool = False,
    callback: Callable[[float], Any] | None = None,
) -> Selection:
    """Choose an estimator's parameters by their error on validation data.

    The parameters that the estimator's `path` computes together cost one pass over the data for
    each setting of the others and each fold. With ``centers="leverage_scores"`` these settings
    share centres that are drawn once, and the fit to all rows draws its own. Any scikit-learn
    regressor or classifier will do; one without `path` is fitted anew for each setting.

    Parameters
    ----------
    estimator : is cloned, and left as it is.
    X, y : (n, d), and (n,) or (n, T); or :class:`Rows` and None, with validation arrays.
    grid : a sequence of values for each parameter's name, such as `kernel__length_scale`.
    validation : a share, of the rows, drawn at random and held out; a number of folds, which are
        consecutive rows (for classifiers stratified), as in scikit-learn; a scikit-learn
        splitter, such as GroupKFold with `groups`; "leave_one_out", which is one fit where the
        estimator has a method `leave_one_out`, and n fits elsewhere; or arrays (X_val, y_val).
    error : "mse", "rmse", "mae", each averaged over the outputs; "classification", the share of
        wrong labels (of a regressor: of wrong signs for outputs of 1 and -1, of wrong largest
        columns for several outputs); or a function of Y and the predictions, (n, T) both (of a
        classifier: labels), that is smaller for better ones. None: "mse", or "classification"
        for classifiers. The errors of "leave_one_out" are of all rows together, as one fold.
    random_state : seed of the held-out share.
    sample_weight : (n,), for training, and for the average of the named errors.
    refit : whether to fit the estimator, with the chosen setting, to all of X and y.
    verbose : draws a progress bar on a terminal. `callback` is called with the share done.

    Raises
    ------
    ConfigurationError : for names or values that mean nothing.
    LearningError : if no setting gives finite predictions.
    """
    values = values_of(grid)
    classifier = is_classifier(estimator)
    measure = ("classification" if classifier else "mse") if error is None else error
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    settings = [dict(zip(values, choice, strict=True)) for choice in product(*values.values())]
    pooled = isinstance(validation, str) and validation == "leave_one_out"
    closed_form = pooled and all(
        hasattr(with_setting(estimator, setting), "leave_one_out") for setting in settings
    )
    if closed_form and not isinstance(X, Rows):
        n_folds, parts = 1, iter([Fold(X, y, sample_weight, None, y, sample_weight)])
    else:
        n_folds, parts = folds(estimator, X, y, validation, groups, random_state, sample_weight)
    errors: list[list[float]] = [[] for _ in settings]
    collected: list[list[Any]] = [[] for _ in settings]

    def measured(i: int, fold: Fold, predicted: Any) -> None:
        errors[i].append(
            validation_error(
                measure, classifier, fold.y_validation, predicted, fold.validation_weights
            )
        )

    with ProgressBar("select", sys.stderr) if verbose else nullcontext() as bar:
        for j, fold in enumerate(parts):
            results = candidate_predictions(estimator, values, settings, fold, closed_form)
            for done, (i, predicted) in enumerate(results, 1):
                if pooled and not closed_form:
                    collected[i].append(predicted)
                else:
                    measured(i, fold, predicted)
                for show in (bar, callback):
                    if show is not None:
                        show((j + done / len(settings)) / n_folds)
    if pooled and not closed_form:
        whole = Fold(X, y, sample_weight, None, y, sample_weight)
        for i, predictions in enumerate(collected):
            measured(i, whole, np.concatenate(predictions))
    table = np.array(errors)
    best = int(table.mean(axis=1).argmin())
    if not np.isfinite(table[best]).all():
        raise LearningError(
            "No setting in the grid gives finite predictions in every fold: take larger penalties "
            "or smaller steps."
        )
    fitted = None
    if refit:
        fitted = with_setting(estimator, settings[best]).fit(X, y, **weights)
    return Selection(values, settings, table, best, fitted)
