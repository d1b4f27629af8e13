"""Step sizes of gradient methods (thesis 6.3; Lin, Rosasco 2017, section 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.checks import positive
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.rows import Rows

LOOK = 4096  # rows at a time, where only K(x, x) is wanted


@dataclass(frozen=True)
class Steps:
    """Polynomially decaying step sizes, step * t^-decay for t = 1, 2, ..., for S settings.

    Attributes
    ----------
    step, decay : (S,).
    """

    step: Array
    decay: Array

    @classmethod
    def of(cls, settings: list[tuple[Any, Any]], default: float) -> Steps:
        """From (step, decay) of each setting, where the step None is `default`.

        Raises ConfigurationError for a step that isn't positive, or a negative decay.
        """
        for step, decay in settings:
            if step is not None:
                positive(step, "step")
            if not (np.isfinite(decay) and decay >= 0.0):
                raise ConfigurationError(f"decay must not be negative, not {decay}.")
        return cls(
            np.array([default if step is None else step for step, _ in settings], dtype=float),
            np.array([decay for _, decay in settings], dtype=float),
        )

    def after(self, done: int, count: int) -> Array:
        """The sizes (count, S) of the `count` steps that follow the first `done`."""
        t = np.arange(done + 1.0, done + count + 1.0)[:, None]
        sizes: Array = self.step * t**-self.decay
        return sizes


def universal_step(n: int, batch: int, squared_norm: float) -> float:
    """b / (kappa^2 sqrt(n)), and at most 1 / kappa^2, for batches of b rows.

    kappa^2 is `squared_norm`. For b = 1 it is 1 / sqrt(n), for b = sqrt(n) it is 1, both in units
    of 1 / kappa^2: the two choices that are optimal after one pass over n rows (Lin, Rosasco
    2017, theorem 3.1).
    """
    return min(batch / math.sqrt(n), 1.0) / (squared_norm or 1.0)


def largest_diagonal(rows: Rows, kernel: Kernel) -> float:
    """kappa^2 = max K(x, x) over the rows whose weight isn't zero."""
    largest = 0.0
    for block in rows.blocks(LOOK):
        X = block.X if block.weights is None else block.X[block.weights > 0.0]
        if len(X):
            largest = max(largest, float(kernel.diagonal(X).max()))
    return largest
