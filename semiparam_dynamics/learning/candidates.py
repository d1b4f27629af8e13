"""Predictions of an estimator for every setting of a grid, by its path where it has one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.validation import Fold


def candidate_predictions(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    settings: Sequence[Mapping[str, Any]],
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
                yield i, _fit_predict(with_setting(estimator, settings[i]), fold, weights)
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


def with_setting(estimator: Any, setting: Mapping[str, Any]) -> Any:
    """A clone of the estimator with these parameters; ConfigurationError if it has no such."""
    try:
        return clone(estimator).set_params(**setting)
    except (ValueError, AttributeError) as problem:
        raise ConfigurationError(
            f"{type(estimator).__name__} cannot take {tuple(setting)}: {problem} (A kernel's "
            f"parameters need a kernel in the estimator, such as kernel=Gaussian().)"
        ) from problem


def _by_outer_setting(
    grid: Mapping[str, Sequence[Any]], outer: list[str], inner: list[str]
) -> list[list[int]]:
    """The settings' numbers, a list for each setting of the outer parameters."""
    names = list(grid)
    numbers = np.arange(np.prod([len(values) for values in grid.values()], dtype=int))
    cube = numbers.reshape([len(values) for values in grid.values()])
    turned = cube.transpose([names.index(name) for name in (*outer, *inner)])
    n_outer = np.prod([len(grid[name]) for name in outer], dtype=int)
    groups: list[list[int]] = turned.reshape(n_outer, -1).tolist()
    return groups


def _fit_predict(model: Any, fold: Fold, weights: Mapping[str, Any]) -> Any:
    if fold.y is None:
        model.fit(fold.X, **weights)
    else:
        model.fit(fold.X, fold.y, **weights)
    return model.predict(fold.X_validation)
