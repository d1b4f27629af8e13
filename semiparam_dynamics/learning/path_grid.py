"""The grid of a regularisation path over a size and the penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.base import positive_penalty


def sizes_and_penalties(
    estimator: Any, grid: Mapping[str, Sequence[Any]]
) -> tuple[list[int], list[float]]:
    """The values of the estimator's path_parameters, (size, penalty), in the grid or its own.

    Raises ConfigurationError for other names and for values that aren't positive.
    """
    names = estimator.path_parameters
    if not set(grid) <= set(names):
        raise ConfigurationError(f"A path can only run over {names}, not over {tuple(grid)}.")
    sizes, penalties = (list(grid.get(name, [getattr(estimator, name)])) for name in names)
    if not sizes or not penalties:
        raise ConfigurationError("The grid has a parameter without values.")
    for size in sizes:
        if size < 1 or int(size) != size:
            raise ConfigurationError(f"{names[0]} must be a positive whole number, not {size}.")
    return sizes, [positive_penalty(penalty) for penalty in penalties]
