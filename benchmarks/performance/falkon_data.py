"""A synthetic problem of any size for the batch learners, with known noise-free outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array

NOISE = 0.5  # standard deviation; the function's is about 0.7
N_TEST = 10_000
WIDTH = 7.0  # of the Gaussian that learns it


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, X (n, d) and y (n,), and test inputs with their noise-free outputs."""

    X: Array
    y: Array
    X_test: Array
    f_test: Array

    def error(self, predicted: Any) -> float:
        """Root mean square of the difference from the noise-free outputs."""
        difference = np.asarray(predicted, dtype=float).reshape(-1) - self.f_test
        return math.sqrt(np.mean(difference**2))


def synthetic(n: int, n_inputs: int = 28, dtype: Any = np.float32, seed: int = 0) -> Problem:
    """n rows of standard normal inputs; a smooth function of two directions, and noise."""
    draw = np.random.default_rng(seed)

    def inputs(rows: int) -> Array:
        drawn: Any = draw.standard_normal((rows, n_inputs), dtype=np.float32)
        return drawn.astype(dtype, copy=False)  # type: ignore[no-any-return]

    X, X_test = inputs(n), inputs(N_TEST)
    noise: Any = NOISE * draw.standard_normal(n, dtype=np.float32)
    return Problem(X, (_function(X) + noise).astype(dtype, copy=False), X_test, _function(X_test))


def _function(X: Array) -> Array:
    d = X.shape[1]
    signs = np.where(np.arange(d) % 2, -1.0, 1.0).astype(X.dtype)
    along, across = X.sum(axis=1) / math.sqrt(d), X @ signs / math.sqrt(d)
    result: Array = np.sin(along) + 0.5 * np.tanh(across)
    return result
