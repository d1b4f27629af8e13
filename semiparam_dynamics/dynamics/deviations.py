"""Standard deviations of predictions.

They follow recent errors, the uncertainty of the parameters, and how new a joint's state is.
:class:`ErrorSpreads` holds them to covering 95 % of what is being learned. Of an axis of which
nothing was learned yet, no error is known: its standard deviation is the size of its output that is
expected of the URDF, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.base.storage import sub_state

HORIZON_S = 20.0  # over which errors are averaged
# Coverage: two standard deviations are to miss a share MISS_RATE of the samples.
MISS_RATE = 0.05
COVERAGE_RATE = 2.0  # 1/s: by it a factor's logarithm grows while samples are missed
MAX_LOG_FACTOR = math.log(4.0)  # of a factor's logarithm
MAX_COVERED_S = 0.1  # that one sample stands for
FACTOR_HOLD_S = 0.5  # so long a factor holds after a sample was learned; at twice that it is 1
# At most an error counts as so many expected ones, or so many of the smallest that is expected, a
# share of the output's size; once so many were seen. While errors are beyond this the mean square,
# and the bound with it, grows by up to MAX_ERROR_RATIO^2 / horizon a second: 7 at 20 s. A filter
# draws one wild effort out over 0.3 s, in which 30 expected ones, 45 a second, bound nothing.
MAX_ERROR_RATIO, MIN_ERROR_SHARE, MIN_ERRORS = 12.0, 0.01, 20.0


def blend(
    confidence: float | Array, near: Array, far: Array, variance: float | Array = 0.0
) -> Array:
    """Standard deviation (n_axes,): the near model's spread among data, the far one's elsewhere.

    near, far : mean squared errors; variance : by the parameters, beside them. Confidences (k, 1)
    give (k, n_axes).
    """
    spread = confidence * np.minimum(near, far) + (1.0 - confidence) * far
    return np.sqrt(spread + variance)


class ErrorSpreads:
    """Running mean squares (n_axes,) of models' errors, and of y about its mean, by name.

    Beside each a factor on the model's standard deviation, so that two of these cover 95 % of the
    samples: adaptive conformal inference (Gibbs and Candes 2021, Adaptive conformal inference under
    distribution shift, equation 2) on the factor's logarithm. That holds on the mean over time, for
    samples like those just learned; where nothing was learned for a second the factor is 1. An axis
    that was not measured (NaN) is passed over.

    models : names of the models; `y` is the measurement's own spread.
    expected : (n_axes,) the standard deviation of an axis before any of its errors was seen, N m
        or N: the size of its output that is expected; None: 0.

    Attributes
    ----------
    n_learned : samples counted.
    all_seen : whether an error of each axis was; :meth:`complete` has nothing to do then.
    """

    def __init__(self, models: Sequence[str], n_axes: int, expected: Array | None = None) -> None:
        self.n_learned = 0
        self._last_stamp: int | None = None
        self._counts = np.zeros(n_axes)  # of each axis
        self._expected = np.zeros(n_axes) if expected is None else expected
        self.all_seen = False
        self._mean_y = np.zeros(n_axes)
        # Without an expected size nobody knows what is far from it.
        usual = np.where(self._expected > 0.0, MIN_ERROR_SHARE * self._expected, np.inf)
        self._errors = {name: RunningSquare(n_axes, HORIZON_S, usual) for name in (*models, "y")}
        self._factors: dict[str, Array] = {name: np.zeros(n_axes) for name in models}  # logarithms

    def __getitem__(self, name: str) -> RunningSquare:
        return self._errors[name]

    @property
    def unseen(self) -> Mask:
        """(n_axes,) True where no error was seen yet."""
        unseen: Mask = self._counts <= 0.0
        return unseen

    def complete(self, stds: Mapping[str, Array]) -> None:
        """Put what is expected in the place of models' standard deviations not seen yet.

        stds : (n_axes,) or (k, n_axes) by name, changed in place.
        """
        if self.all_seen:
            return
        for std in stds.values():
            std[:] = np.where(self.unseen & np.isfinite(std), self._expected, std)

    def factors(self, stamp: int) -> dict[str, Array]:
        """The factors (n_axes,) on the models' standard deviations at a stamp (ns), by name.

        A stamp of 0 is of no instant, and has 1.
        """
        held = self._held_at(stamp)
        return {name: np.exp(held * factor) for name, factor in self._factors.items()}

    def widen(self, stamps: Indices, stds: Mapping[str, Array]) -> dict[str, Array]:
        """Models' standard deviations (k, n_axes) times their :meth:`factors` at k stamps.

        They are completed, see :meth:`complete`.
        """
        held = np.array([[self._held_at(int(stamp))] for stamp in stamps])
        wide = {name: std * np.exp(held * self._factors[name]) for name, std in stds.items()}
        self.complete(wide)
        return wide

    def _held_at(self, stamp: int) -> float:
        """Share of the factors' logarithms that counts at a stamp, in [0, 1]."""
        if self._last_stamp is None or stamp == 0:
            return 0.0
        since = (stamp - self._last_stamp) * 1e-9
        return max(min(2.0 - since / FACTOR_HOLD_S, 1.0), 0.0) if since >= 0.0 else 0.0

    def record(
        self, stamp: int, y: Array, errors: Mapping[str, Array], stds: Mapping[str, Array]
    ) -> None:
        """Count a sample as learned, with the models' errors (n_axes,) on it before, by name.

        stds : the models' standard deviations as they were predicted, with their factors.
        """
        dt = 0.0 if self._last_stamp is None else (stamp - self._last_stamp) * 1e-9
        dt = min(max(dt, 0.0), 1.0)
        for name, std in stds.items():
            # Of what was only expected, coverage tells nothing.
            seen = std if self.all_seen else np.where(self.unseen, 0.0, std)
            _cover(self._factors[name], errors[name], seen, min(dt, MAX_COVERED_S))
        self._last_stamp = stamp
        _follow(self._counts, self._mean_y, y)
        if not self.all_seen:
            self.all_seen = not self.unseen.any()
        for name, error in errors.items():
            self._errors[name].update(error, dt)
        self._errors["y"].update(y - self._mean_y, dt)
        self.n_learned += 1

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        state: dict[str, Array] = {
            f"error.{name}.{key}": value
            for name, error in self._errors.items()
            for key, value in error.state().items()
        }
        state |= {f"error.{name}.factor": value.copy() for name, value in self._factors.items()}
        last = -1 if self._last_stamp is None else self._last_stamp
        state["mean_y"], state["counts_y"] = self._mean_y.copy(), self._counts.copy()
        state["counts"] = np.array([self.n_learned, last], dtype=np.int64)
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`, which may have other entries."""
        for name, error in self._errors.items():
            error.restore(sub_state(state, f"error.{name}."))
        for name in self._factors:
            self._factors[name] = state[f"error.{name}.factor"].copy()
        self._mean_y, self._counts = state["mean_y"].copy(), state["counts_y"].copy()
        self.all_seen = not self.unseen.any()
        self.n_learned, last = (int(value) for value in state["counts"])
        self._last_stamp = None if last < 0 else last


@compiled_as_written
def _follow(counts: Array, mean: Array, y: Array) -> None:
    for j in range(y.size):
        if not math.isnan(y[j]):
            counts[j] += 1.0
            mean[j] += (y[j] - mean[j]) / counts[j]


@compiled_as_written
def _cover(factor: Array, error: Array, std: Array, dt: float) -> None:
    for j in range(factor.size):
        if std[j] > 0.0 and not math.isnan(error[j]):
            missed = 1.0 if abs(error[j]) > 2.0 * std[j] else 0.0
            factor[j] += COVERAGE_RATE * dt * (missed - MISS_RATE)
            factor[j] = max(min(factor[j], MAX_LOG_FACTOR), -MAX_LOG_FACTOR)


class RunningSquare:
    """Running mean of squared errors (n_axes,) over about `horizon` seconds, less those of NaN.

    usual : (n_axes,) an error counts as at most `MAX_ERROR_RATIO` times the root of the mean, or
        times this where that is less, so that one message with a wild effort does not widen
        deviations for minutes; what lasts raises the mean, and the bound with it. None: there is no
        bound.
    """

    def __init__(self, n_axes: int, horizon: float, usual: Array | None = None) -> None:
        self.horizon = horizon
        self._usual_square = np.full(n_axes, np.inf) if usual is None else usual**2
        self.value: Array = np.zeros(n_axes)
        self._weights: Array = np.zeros(n_axes)

    def update(self, error: Array, dt: float) -> None:
        """Take in the errors (n_axes,) of a sample that came `dt` seconds after the last one."""
        keep = math.exp(-dt / self.horizon)
        # The weights make it a plain mean at first, so that it doesn't start from zero.
        _step(self.value, self._weights, error, keep, self._usual_square)

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"value": self.value.copy(), "weights": self._weights.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.value = state["value"].copy()
        self._weights = state["weights"].copy()


@compiled_as_written
def _step(value: Array, weights: Array, error: Array, keep: float, usual_square: Array) -> None:
    for j in range(value.size):
        if not math.isnan(error[j]):
            square = error[j] ** 2
            if weights[j] >= MIN_ERRORS:
                square = min(square, MAX_ERROR_RATIO**2 * max(value[j], usual_square[j]))
            weights[j] = keep * weights[j] + 1.0
            value[j] += (square - value[j]) / weights[j]
