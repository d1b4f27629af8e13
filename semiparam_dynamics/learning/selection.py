"""Choosing parameters by validation, through an estimator's regularisation path if it has one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.candidates import candidate_predictions, with_setting
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.validation import Fold, folds, validation_error
from semiparam_dynamics.progress import ProgressBar


@dataclass(frozen=True)
class Selection:
    """What was tried, and what was best.

    Attributes
    ----------
    grid : the values of each parameter.
    settings : every combination of them, the last parameter's values running fastest.
    errors : (n_settings, n_folds), validation errors; infinite where a prediction wasn't finite.
    best_index : of the chosen setting.
    estimator : with the chosen setting, fitted to all of X and y; None without `refit`.
    """

    grid: dict[str, list[Any]]
    settings: list[dict[str, Any]]
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
    grid: Mapping[str, Sequence[Any]],
    *,
    validation: Any = 0.2,
    error: Any = None,
    random_state: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    refit: bool = True,
    rule: str = "best",
    verbose: bool = False,
    callback: Callable[[float], Any] | None = None,
) -> Selection:
    """Choose an estimator's parameters by their error on validation data.

    The parameters that the estimator's `path` computes together cost one pass over the data for
    each setting of the others and each fold. Any scikit-learn regressor or classifier will do;
    one without `path` is fitted anew for each setting.

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
    rule : "best": the smallest mean error, the first of equals; "one_standard_error": the first
        setting within one standard error of it, over the folds. Give the values from the most
        to the least regularised for that: then it is the simplest one that does as well.
    verbose : draws a progress bar on a terminal. `callback` is called with the share done.

    Raises
    ------
    ConfigurationError : for names or values that mean nothing.
    LearningError : if no setting gives finite predictions.
    """
    values = {name: list(choices) for name, choices in grid.items()}
    if not all(values.values()):
        raise ConfigurationError("Every parameter in the grid needs at least one value.")
    if rule not in ("best", "one_standard_error"):
        raise ConfigurationError(f'rule must be "best" or "one_standard_error", not {rule!r}.')
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
    best = _choose(table, rule)
    fitted = None
    if refit:
        fitted = with_setting(estimator, settings[best])
        fitted.fit(X, **weights) if y is None else fitted.fit(X, y, **weights)
    return Selection(values, settings, table, best, fitted)


def _choose(errors: Array, rule: str) -> int:
    """The number of the best row of errors (n_settings, n_folds)."""
    mean = errors.mean(axis=1)
    best = int(mean.argmin())
    if not np.isfinite(mean[best]):
        raise LearningError("No setting in the grid gives finite predictions in every fold.")
    if rule == "best":
        return best
    if errors.shape[1] < 2:
        raise ConfigurationError("One standard error needs two folds or more: pass validation=5.")
    spread = errors[best].std(ddof=1) / np.sqrt(errors.shape[1])
    return int(np.flatnonzero(mean <= mean[best] + spread)[0])
