"""Validation data for choosing parameters, and errors on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut, ShuffleSplit, check_cv
from sklearn.utils import _safe_indexing

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.rows import Rows

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
    """How many folds `validation` describes (see :func:`~.selection.select`), and the folds."""
    if isinstance(validation, tuple) and len(validation) == 2:
        return 1, iter([Fold(X, y, sample_weight, *validation, None)])
    if isinstance(X, Rows):
        raise ConfigurationError("With Rows, validation must be the arrays (X_val, y_val).")
    splitter = _splitter(estimator, y, validation, random_state)

    def make(train: Any, test: Any) -> Fold:
        parts = [
            None if data is None else _safe_indexing(data, indices)
            for indices in (train, test)
            for data in (X, y, sample_weight)
        ]
        return Fold(*parts)

    splits = splitter.split(X, y, groups)
    return splitter.get_n_splits(X, y, groups), (make(train, test) for train, test in splits)


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
                f"The validation outputs are {Y.shape} and the predictions {predicted.shape}."
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
    """Of which rows the scores, (n, 1) by their sign or (n, T) by the largest, miss the class."""
    if Y.shape[1] > 1:
        return scores.argmax(axis=1) != Y.argmax(axis=1)
    if not np.isin(Y, (-1.0, 1.0)).all():
        raise LearningError(
            'The error "classification" needs outputs of 1 and -1, or one column for each class.'
        )
    return np.sign(scores) != Y


def _average(errors: Any, weights: Any) -> float:
    if weights is not None and not np.sum(weights) > 0.0:
        raise LearningError("The validation rows' sample weights sum to zero.")
    return float(np.average(errors, weights=weights))
