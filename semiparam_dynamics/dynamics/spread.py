"""How far off a prediction is likely to be."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled_as_written


class RunningSquare:
    """Running mean of squared errors (n_axes,) over about `horizon` seconds."""

    def __init__(self, n_axes: int, horizon: float) -> None:
        self.horizon = horizon
        self.value: Array = np.zeros(n_axes)
        self._weight = 0.0

    def update(self, error: Array, dt: float) -> None:
        """Take in the errors (n_axes,) of a sample that came `dt` seconds after the last one."""
        keep = math.exp(-dt / self.horizon)
        # The weight makes it a plain mean at first, so that it doesn't start from zero.
        self._weight = _step(self.value, self._weight, error, keep)

    def update_rows(self, errors: Array, steps: Array) -> Array:
        """:meth:`update` for errors (m, n_axes) and steps (m,) in s; what it was before each."""
        before = np.empty_like(errors)
        keep = np.exp(-steps / self.horizon)
        self._weight = _running(self.value, self._weight, errors, keep, before)
        return before

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"value": self.value.copy(), "weight": np.array([self._weight])}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.value = state["value"].copy()
        self._weight = float(state["weight"][0])


@compiled_as_written
def _step(value: Array, weight: float, error: Array, keep: float) -> float:
    weight = keep * weight + 1.0
    for j in range(value.size):
        value[j] += (error[j] ** 2 - value[j]) / weight
    return weight


@compiled_as_written
def _running(value: Array, weight: float, errors: Array, keep: Array, before: Array) -> float:
    for i in range(len(errors)):
        before[i] = value
        weight = _step(value, weight, errors[i], keep[i])
    return weight


def blend(confidence: float | Array, near: Array, far: Array) -> Array:
    """Standard deviation (n_axes,): the near model's spread among data, the far one's elsewhere.

    Confidences (k, 1) give (k, n_axes).
    """
    return np.sqrt(confidence * np.minimum(near, far) + (1.0 - confidence) * far)


def deviations(leverage: Array, confidence: float, near: Array, far: Array) -> tuple[Array, Array]:
    """Standard deviations (n_axes,) of the far model alone and of the two blended.

    They are sqrt(1 + leverage) times the models' spreads: what is known of the parameters beside
    the noise.
    """
    result = np.empty((2, len(leverage)))
    _deviations(leverage, confidence, near, far, result)
    return result[0], result[1]


@compiled_as_written
def _deviations(leverage: Array, confidence: float, near: Array, far: Array, out: Array) -> None:
    for j in range(leverage.size):
        more = 1.0 + leverage[j]
        out[0, j] = math.sqrt(far[j] * more)
        least = min(near[j], far[j])
        spread = confidence * least + (1.0 - confidence) * far[j]
        out[1, j] = math.sqrt(more) * math.sqrt(spread)
