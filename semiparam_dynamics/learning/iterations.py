"""What an iterative learner tells while it runs, and when it stops."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.progress import ProgressBar


@dataclass(frozen=True)
class Iteration:
    """What a callback gets after each iteration (for stochastic methods: each pass).

    Attributes
    ----------
    number, total : of this iteration, from 1, and of those asked for.
    seconds : since the fit began.
    validation_error : mean squared error, or what the estimator says, on the validation data;
        None without such data.
    """

    number: int
    total: int
    seconds: float
    validation_error: float | None


Callback = Callable[[Iteration], Any]  # a true answer ends the fit after this iteration


class IterationLog:
    """Follows a fit: validation errors, the best iteration, the user's callback, a bar.

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
    ) -> None:
        """`patience`: stop when the error hasn't fallen by the relative `tolerance` for so many
        iterations; None: never because of it.
        """
        self.total = total
        self.errors: list[float] = []
        self.best = 0
        self.improved = False
        self._reference = np.inf
        self._since = 0
        self._tolerance = tolerance
        self._patience = patience
        self._callback = callback
        self._bar = ProgressBar(label, sys.stderr) if verbose else None
        self._start = time.perf_counter()

    def done(self, number: int, error: float | None = None) -> bool:
        """Iteration `number` (from 1) ended with this validation error; True: stop here.

        `improved` then says whether the error is the smallest so far, and `best` is the
        iteration that it was reached in.
        """
        stop = False
        if error is not None:
            self.improved = not self.errors or error < min(self.errors)
            self.errors.append(error)
            if self.improved:
                self.best = number
            self._since += 1
            if error < self._reference * (1.0 - self._tolerance):
                self._reference, self._since = error, 0
            stop = self._patience is not None and self._since >= self._patience
        if self._bar is not None:
            self._bar(number / self.total)
        if self._callback is not None:
            seconds = time.perf_counter() - self._start
            stop |= bool(self._callback(Iteration(number, self.total, seconds, error)))
        return stop

    def __enter__(self) -> IterationLog:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)


def mean_squared_error(Y: Array, predicted: Array) -> float:
    """Mean over rows and outputs of (Y - predicted)^2."""
    return float(np.mean((Y - predicted) ** 2))
