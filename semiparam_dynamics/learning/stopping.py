"""Stopping rules: when the validation errors of an iterative fit say that it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.base.errors import ConfigurationError, positive_count

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
    threshold : in units of the error, which is a root mean squared error for the square loss; with
        `relative` a share of the line's height where the window begins. 0: stop where the line no
        longer falls.
    relative : see above.

    Raises
    ------
    ConfigurationError : for a window below 2 or a threshold that is not a finite number.
    """

    window: int = 10
    threshold: float = 0.0
    relative: bool = False

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "window", positive_count(self.window, "window"))
        if self.window < 2:
            raise ConfigurationError(f"window must be 2 or more, not {self.window}.")
        if not np.isfinite(self.threshold):
            raise ConfigurationError(f"threshold must be a finite number, not {self.threshold}.")

    def __call__(self, errors: Sequence[float]) -> bool:
        """Whether to stop after these errors, one for each iteration so far."""
        if len(errors) < self.window:
            return False
        last = np.asarray(errors[-self.window :], dtype=float)
        # The least-squares line about the window's middle, where slope and mean are independent.
        place = np.arange(self.window) - 0.5 * (self.window - 1)
        slope = float(place @ last) / float(place @ place)
        height = float(last.mean()) + slope * float(place[0]) if self.relative else 1.0
        return slope >= -self.threshold * height / self.window


def first_stop(rule: StoppingRule, errors: Sequence[float]) -> int:
    """The first iteration, from 1, after which the rule stops; the last one if it never does."""
    return next((t for t in range(1, len(errors)) if rule(errors[:t])), len(errors))
