"""Standard deviations of predictions, by recent errors and the uncertainty of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.recursion.loops import compiled_as_written
from semiparam_dynamics.storage import sub_state


def blend(confidence: float | Array, near: Array, far: Array) -> Array:
    """Standard deviation (n_axes,): the near model's spread among data, the far one's elsewhere.

    near, far : mean squared errors. Confidences (k, 1) give (k, n_axes).
    """
    return np.sqrt(confidence * np.minimum(near, far) + (1.0 - confidence) * far)


def deviations(leverage: Array, confidence: float, near: Array, far: Array) -> tuple[Array, Array]:
    """Standard deviations (n_axes,) of the far model alone and of the two blended.

    They are sqrt(1 + leverage) times the models' spreads: the uncertainty of the parameters beside
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


class ErrorSpreads:
    """Running mean squares (n_axes,) of models' errors, and of y about its mean, by name.

    models : names of the models; `y` is the measurement's own spread.

    Attributes
    ----------
    n_learned : samples counted.
    """

    def __init__(self, models: Sequence[str], n_axes: int, horizon: float) -> None:
        self.n_learned = 0
        self._last_stamp: int | None = None
        self._mean_y = np.zeros(n_axes)
        self._errors = {name: RunningSquare(n_axes, horizon) for name in (*models, "y")}

    def __getitem__(self, name: str) -> RunningSquare:
        return self._errors[name]

    def values(self) -> dict[str, Array]:
        """The mean squares (n_axes,) by name."""
        return {name: error.value for name, error in self._errors.items()}

    def set_horizon(self, horizon: float) -> None:
        """Look back over about `horizon` seconds from now on."""
        for error in self._errors.values():
            error.horizon = horizon

    def record(self, stamp: int, y: Array, errors: dict[str, Array]) -> None:
        """Count a sample as learned, with the models' errors (n_axes,) on it before, by name."""
        dt = 0.0 if self._last_stamp is None else (stamp - self._last_stamp) * 1e-9
        dt = min(max(dt, 0.0), 1.0)
        self._last_stamp = stamp
        self._mean_y += (y - self._mean_y) / (self.n_learned + 1)
        for name, error in (errors | {"y": y - self._mean_y}).items():
            self._errors[name].update(error, dt)
        self.n_learned += 1

    def record_block(self, stamps: Indices, y: Array, errors: dict[str, Array]) -> dict[str, Array]:
        """:meth:`record` of k samples, all (k, n_axes): the mean squares before each of them."""
        last = stamps[0] if self._last_stamp is None else self._last_stamp
        steps = np.clip(np.diff(stamps, prepend=last) * 1e-9, 0.0, 1.0)
        counts = np.arange(1.0, len(y) + 1.0)[:, None]
        # Sums of y minus the mean before them: they lose nothing, however far y is from 0.
        off = np.cumsum(y - self._mean_y, axis=0)
        means = self._mean_y + off / (self.n_learned + counts)
        self._last_stamp, self._mean_y = int(stamps[-1]), means[-1].copy()
        self.n_learned += len(y)
        rows: dict[str, Array] = errors | {"y": y - means}
        return {name: self._errors[name].update_rows(row, steps) for name, row in rows.items()}

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        state: dict[str, Array] = {
            f"error.{name}.{key}": value
            for name, error in self._errors.items()
            for key, value in error.state().items()
        }
        last = -1 if self._last_stamp is None else self._last_stamp
        state["mean_y"] = self._mean_y.copy()
        state["counts"] = np.array([self.n_learned, last], dtype=np.int64)
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`, which may have other entries."""
        for name, error in self._errors.items():
            error.restore(sub_state(state, f"error.{name}."))
        self._mean_y = state["mean_y"].copy()
        self.n_learned, last = (int(value) for value in state["counts"])
        self._last_stamp = None if last < 0 else last


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
        """:meth:`update` for errors (m, n_axes) and steps (m,) in s; the values before each."""
        before = np.empty_like(errors)
        keep = np.exp(-steps / self.horizon)
        self._weight = _running(self.value, self._weight, errors, keep, before)
        return before

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"value": self.value.copy(), "weight": np.array([self._weight])}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
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
