"""Regularisation paths: many settings of an estimator from one pass over the data, or one run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.checks import positive, positive_count
from semiparam_dynamics.learning.compatibility import validate_data
from semiparam_dynamics.learning.rows import Rows, training_rows

Setting = dict[str, Any]
Path = Iterator[tuple[Setting, Array]]
Grid = Mapping[str, Sequence[Any]]
CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "max_iter": positive_count,
    "n_centers": positive_count,
    "n_features": positive_count,
    "penalty": positive,
}


class RegularisationPath(ABC):
    """Gives an estimator its `path`, from a `_path` that knows how settings share their work.

    Attributes
    ----------
    path_parameters : the parameters that a path may go over.
    """

    @property
    @abstractmethod
    def path_parameters(self) -> tuple[str, ...]:
        """The parameters whose values share one pass or one run."""

    def path(
        self, X: Any, y: Any, grid: Grid, X_validation: Any, *, sample_weight: Any = None
    ) -> Path:
        """(setting, predictions (k, T) at X_validation (k, d)) for every setting of the grid.

        They equal those of a fit for each setting to X (n, d), y (n,) or (n, T), and weights
        (n,), or to Rows with y=None. `grid` maps some of `path_parameters` to their values; the
        settings are all combinations, in an order of the estimator's own.
        Raises ConfigurationError for another name, and for one without values.
        """
        chosen = self._chosen(grid)
        rows = training_rows(self, X, y, sample_weight)
        dtypes = [np.float64, np.float32]
        X_validation = validate_data(self, X_validation, dtype=dtypes, reset=False)
        for setting, predicted in self._path(rows, chosen, X_validation):
            yield {name: setting[name] for name in grid}, predicted

    @abstractmethod
    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """The same, given a list of values for every one of the path's parameters."""

    def _chosen(self, grid: Grid) -> dict[str, list[Any]]:
        """The values of every one of the path's parameters, the estimator's own where not given."""
        names = self.path_parameters
        if not set(grid) <= set(names):
            raise ConfigurationError(
                f"The path of this {type(self).__name__} can only go over "
                f"{names or 'nothing'}, not over {tuple(grid)}."
            )
        chosen = {name: list(grid.get(name, [getattr(self, name)])) for name in names}
        for name, values in chosen.items():
            if not values:
                raise ConfigurationError(f"The grid has no values for {name}.")
            if name in CHECKS:
                chosen[name] = [CHECKS[name](value, name) for value in values]
        return chosen
