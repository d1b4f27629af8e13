"""From measurements to samples: the two sides of the equation, filtered alike, at one instant.

Velocity and acceleration are estimated causally. What matters is that the regressor and the
measurement lag alike. So positions, velocities and measurements pass one wide low-pass;
differences are central, which puts every signal one measurement back; the regressor is computed
there; and then every entry of the regressor, the measurement and the residual's inputs pass one
and the same narrow low-pass. A model linear in its parameters is untouched by that: if
y = Phi pi, then filter(y) = filter(Phi) pi, whatever the filter's lag.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.compiled_sample import outside, sample_row
from semiparam_dynamics.dynamics.lowpass import LowPass
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.samples.measurement import Measurement

NANO = 1e-9
STILL = 0.01  # rad/s or m/s
IMPLAUSIBLE = "position far outside the URDF's limits (degrees instead of radians?)"


@dataclass(frozen=True)
class FilterConfig:
    """How measured signals become samples."""

    cutoff: float = parameter(
        5.0,
        "cut-off of the low-pass that the regressor, the measurement and the residual's inputs "
        "share; 0: no filter at all",
        unit="Hz",
        low=0.0,
        high=1000.0,
    )
    stages: int = parameter(
        1, "how many second-order Butterworth stages that low-pass has", low=1, high=4
    )
    prefilter_ratio: float = parameter(
        4.0,
        "cut-off of the low-pass that positions, velocities and measurements pass before they are "
        "differentiated, in multiples of filter.cutoff",
        low=1.0,
        high=100.0,
    )
    max_gap: float = parameter(
        0.5,
        "a longer pause between two messages starts the filters anew",
        unit="s",
        low=0.001,
        high=60.0,
    )
    max_rate: float = parameter(
        0.0,
        "samples a second at most that are predicted and learned, the messages in between only "
        "pass the filters; 0: every message",
        unit="Hz",
        low=0.0,
        high=1e5,
    )


class SampleFilter:
    """Turns measurements, in the order of their stamps, into samples one measurement back."""

    def __init__(self, model: RobotModel, config: FilterConfig) -> None:
        self._model = model
        self._config = config
        n, axes, width = model.n_joints, model.n_axes, model.n_parameters
        self._wide = LowPass(2 * n + axes, config.prefilter_ratio * config.cutoff)
        self._size = 3 * n + axes + axes * width
        self._narrow = LowPass(self._size, config.cutoff, config.stages)
        self._state, self._no_velocity = np.zeros((3, 1, n)), np.zeros(n)
        self._past: list[tuple[int, Array, bool, bool]] = []
        self._held_y = np.zeros(axes)
        self._unmeasured = -(1 << 62)  # stamp of the last measurement without y
        # A held value that jumps back to the measured one has left both filters by then.
        self._settling = int(2.0 / config.cutoff / NANO) if config.cutoff > 0.0 else 0
        self._last_sample = -(1 << 62)
        # URDF limits are often a little off; half a range further something else is wrong.
        low, high = model.position_limits
        margin = np.where(np.isfinite(high - low), 0.5 * np.abs(high - low), 0.0)
        self._lowest, self._highest = low - margin, high + margin
        self.dropped: Counter[str] = Counter()

    def reset(self) -> None:
        """Start anew, as after a pause."""
        self._wide.reset()
        self._narrow.reset()
        self._past.clear()

    def push(self, measurement: Measurement) -> Sample | None:
        """Take the next measurement; return the sample of the instant before, if there is one.

        A measurement whose stamp isn't later than the last one's is counted and left out, unless
        the clock went back by more than filter.max_gap (a bag played again): then, as after a
        long pause, the filters start anew.
        """
        m = measurement
        dq = self._no_velocity if m.dq is None else m.dq
        signals = np.concatenate((m.q, dq, self._held_y if m.y is None else m.y))
        if outside(signals, self._lowest, self._highest):
            self.dropped[IMPLAUSIBLE] += 1
            return None
        if self._past and not self._follows(m):
            return None
        step = (m.stamp - self._past[-1][0]) * NANO if self._past else 0.0
        if len(self._past) == 1 and m.dq is None and self._moves(m.q, step):
            # The filters began in equilibrium: differences of what moves would show a jerk.
            self._unmeasured = self._past[0][0]
        if m.y is None:
            # Prediction goes on where the effort is missing: the filters are fed the last one,
            # and nothing is learned until they have forgotten it.
            self._unmeasured = m.stamp
        else:
            self._held_y = m.y
        measured = m.stamp > self._unmeasured + self._settling
        self._past.append((m.stamp, signals, m.dq is not None, measured))
        if len(self._past) == 3:
            return self._between(step)
        self._wide.filter_rows(signals.reshape(1, -1), np.array([step]))
        return None

    def _moves(self, q: Array, dt: float) -> bool:
        n = self._model.n_joints
        first = self._past[0][1][:n]  # as it came: the first input is the equilibrium
        return bool(np.max(np.abs(q - first)) > STILL * dt)

    def _follows(self, m: Measurement) -> bool:
        """False if `m` is to be left out; where it can't follow the past, the past is dropped."""
        last, _, had_velocity, _ = self._past[-1]
        dt = (m.stamp - last) * NANO
        if -self._config.max_gap <= dt <= 0.0:
            self.dropped["out of order"] += 1
            return False
        if not 0.0 < dt <= self._config.max_gap:
            self.dropped["filter restarted after a pause"] += 1
            self.reset()
        elif had_velocity != (m.dq is not None):
            # Velocities that come or go would pass the filter as a step.
            self.dropped["filter restarted, velocities came or went"] += 1
            self.reset()
        return True

    def _between(self, ahead: float) -> Sample | None:
        """The sample of the second of three measurements, whose third isn't filtered yet."""
        (t0, a, _, _), (t1, b, has_velocity, measured), (_, c, _, _) = self._past
        back, row = (t1 - t0) * NANO, np.empty((1, self._size))
        filters = *self._wide.arguments(), *self._narrow.arguments()
        model = self._model.regressor_arguments
        sample_row(a, b, c, back, ahead, has_velocity, self._state, row, *filters, *model)
        del self._past[0]
        return self._sample(t1, back, row[0], measured)

    def _sample(self, stamp: int, back: float, row: Array, measured: bool) -> Sample | None:
        """The sample that a filtered row is, unless it comes too soon for filter.max_rate."""
        if self._config.max_rate > 0.0:
            # Half a message early counts as in time, else jitter would halve the rate.
            if (stamp - self._last_sample) * NANO < 1.0 / self._config.max_rate - 0.5 * back:
                return None
            self._last_sample = stamp
        n, axes = self._model.n_joints, self._model.n_axes
        return Sample(
            stamp=stamp,
            q=row[:n],
            dq=row[n : 2 * n],
            ddq=row[2 * n : 3 * n],
            regressor=row[3 * n + axes :].reshape(axes, -1),
            y=row[3 * n : 3 * n + axes] if measured else None,
        )
