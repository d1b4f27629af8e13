"""From measurements to samples: the two sides of the equation, filtered alike, at one instant.

Velocity and acceleration are estimated causally. What matters is that the regressor and the
measurement lag alike. So positions, velocities and measurements pass one wide low-pass;
differences are central, which puts every signal one measurement back; the regressor is computed
there; and then every entry of the regressor, the measurement and the residual's inputs pass one
and the same narrow low-pass. A model linear in its parameters is untouched by that: if
y = Phi pi, then filter(y) = filter(Phi) pi, whatever the filter's lag.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array, Indices, Stamps
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.recursion.loops import compiled_as_written, lowpass_step
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import fill
from semiparam_dynamics.samples.measurement import Measurement

# -------------------------------------------------------------------------------------------------
# A causal low-pass over vectors, one at a time or many rows in one compiled call.


class LowPass:
    """A causal Butterworth low-pass over a vector, for uneven steps.

    It starts in equilibrium at its first input. Being linear, it commutes with any fixed linear
    combination of the entries, the first sample included.
    """

    def __init__(self, size: int, cutoff: float, stages: int = 1) -> None:
        self._cutoff = cutoff
        self._band = np.zeros((stages, size))
        self._low = np.zeros((stages, size))
        self._started = False
        self._step = np.zeros(1)

    def reset(self) -> None:
        """Forget the past; the next input is the new equilibrium."""
        self._started = False

    def __call__(self, value: Array, dt: float) -> Array:
        """Filter `value` (size,), `dt` seconds after the one before; returns a fresh array."""
        output = value.copy()
        self._step[0] = dt
        self.filter_rows(output.reshape(1, -1), self._step)
        return output

    def filter_rows(self, rows: Array, steps: Array) -> None:
        """Filter rows (n, size) in place, each so many seconds after the one before (n,).

        To the last bit as one by one: the same compiled function does both. C-ordered.
        """
        if len(rows):
            lowpass_rows(rows, steps, *self.arguments())

    def arguments(self) -> tuple[Array, Array, float, bool]:
        """What :func:`lowpass_row` takes of this filter, which counts as started from now on."""
        started, self._started = self._started, True
        return self._band, self._low, self._cutoff, started


@compiled_as_written
def lowpass_rows(
    rows: Array, steps: Array, band: Array, low: Array, cutoff: float, started: bool
) -> None:
    """:func:`lowpass_row` of rows (n, size), one after the other; steps (n,)."""
    for i in range(len(rows)):
        lowpass_row(rows[i], steps[i], band, low, cutoff, started)
        started = True


@compiled_as_written
def lowpass_row(
    row: Array, step: float, band: Array, low: Array, cutoff: float, started: bool
) -> None:
    """All stages over a row (size,), in place; band, low (stages, size), step in s."""
    if cutoff <= 0.0:
        return
    if not started:
        band[:] = 0.0
        low[:] = row
        return
    # A cut-off near the Nyquist frequency would make tan() explode: there it passes all.
    g = math.tan(math.pi * min(cutoff * step, 0.45))
    for k in range(len(band)):
        lowpass_step(row, band[k], low[k], row, g)


# -------------------------------------------------------------------------------------------------
# A message's way through the filters in one compiled call; see `filtering.SampleFilter`.
#
# Every operation is rounded as it is in `RecordingFilter`, which does the same for a whole block.


@compiled_as_written
def outside(values: Array, lowest: Array, highest: Array) -> bool:
    """Whether one of the first values is below its lowest or above its highest, both (n,)."""
    found = False
    for i in range(lowest.size):
        if values[i] < lowest[i] or values[i] > highest[i]:
            found = True
    return found


@compiled_as_written
def sample_row(
    a: Array,
    b: Array,
    c: Array,
    back: float,
    ahead: float,
    has_velocity: bool,
    state: Array,
    row: Array,
    wide_band: Array,
    wide_low: Array,
    wide_cutoff: float,
    wide_started: bool,
    band: Array,
    low: Array,
    cutoff: float,
    started: bool,
    geometry: Array,
    joints: Indices,
    units: Array,
    columns: Indices,
    entries: Indices,
    mixing: Array,
    effects: Indices,
    per_velocity: float,
    work: Array,
) -> None:
    """The filtered row [q, dq, ddq, y, regressor] of the instant before the newest one.

    a, b, c : [q, dq, y] of three instants `back` and `ahead` seconds apart, the first two
        filtered; c is as it was measured and becomes filtered by the wide filter too.
    has_velocity : dq is one; else velocities are differences of positions.
    state : (3, 1, n_joints), for q, dq and ddq. row : (1, size). Both are written to.
    The rest: what `lowpass_row` takes of the wide and the narrow filter, and `fill` of the model.
    """
    lowpass_row(c, ahead, wide_band, wide_low, wide_cutoff, wide_started)
    n = state.shape[2]
    both = back + ahead
    for i in range(n):
        q = b[i]
        if has_velocity:
            dq = b[n + i]
            ddq = (c[n + i] - a[n + i]) / both
        else:
            before, after = (q - a[i]) / back, (c[i] - q) / ahead
            dq = (c[i] - a[i]) / both
            ddq = (after - before) * (2.0 / both)
        state[0, 0, i] = row[0, i] = q
        state[1, 0, i] = row[0, n + i] = dq
        state[2, 0, i] = row[0, 2 * n + i] = ddq
    for i in range(2 * n, b.size):
        row[0, n + i] = b[i]
    fill(
        state[0],
        state[1],
        state[2],
        geometry,
        joints,
        units,
        columns,
        entries,
        mixing,
        effects,
        per_velocity,
        work,
        row,
        n + b.size,
    )
    # The first input is a filter's equilibrium, so that its first step never counts.
    lowpass_row(row[0], back, band, low, cutoff, started)


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


# -------------------------------------------------------------------------------------------------
# A whole recording's samples, a block at a time: the numbers of `SampleFilter.push`, sooner.

LEAST, MOST = 16, 256  # messages of a block: more would not stay in the processor's cache


class RecordingFilter(SampleFilter):
    """A `SampleFilter` that is given many measurements at once.

    Filters, differences and regressors of a block are computed in a few calls. A message that is
    out of order, implausible or after a pause goes through :meth:`push`, so that every decision
    is made in one place. The samples are those of :meth:`push`, to the last bit.
    """

    def filter_recording(self, measurements: Sequence[Measurement]) -> Iterator[Sample]:
        """The samples of `measurements`, in order; may be called again with what comes next.

        A sample's arrays are parts of its block's: who keeps one of them keeps all.
        """
        start, size = 0, LEAST
        while start < len(measurements):
            block = measurements[start : start + size]
            stamps = np.array([m.stamp for m in block], dtype=np.int64)
            # Whether a start without velocities is one in motion, push sees from the first two.
            beginning = len(self._past) < 2 and block[0].dq is None
            regular = 0 if beginning else self._regular(block, stamps)
            yield from self._block(block[:regular], stamps[:regular])
            start += regular
            size = min(2 * size, MOST)
            if regular < len(block):
                sample = self.push(block[regular])
                start += 1
                size = LEAST
                if sample is not None:
                    yield sample

    def _regular(self, block: Sequence[Measurement], stamps: Stamps) -> int:
        """How many of the first measurements :meth:`push` would take without a word."""
        q = np.array([m.q for m in block])
        strange = np.any((q < self._lowest) | (q > self._highest), axis=1)
        dt, moves = np.ones(len(block)), np.array([m.dq is not None for m in block])
        before = np.concatenate((moves[:1], moves[:-1]))
        dt[1:] = np.diff(stamps) * NANO
        dt[0] = self._config.max_gap
        if self._past:
            dt[0] = (int(stamps[0]) - self._past[-1][0]) * NANO
            before[0] = self._past[-1][2]
        strange |= ~((dt > 0.0) & (dt <= self._config.max_gap)) | (moves != before)
        return int(np.argmax(strange)) if strange.any() else len(block)

    def _block(self, block: Sequence[Measurement], stamps: Stamps) -> Iterator[Sample]:
        if not block:
            return
        wide, measured = self._signals_of(block, stamps)
        steps = np.zeros(len(block))
        steps[1:] = np.diff(stamps) * NANO
        if self._past:
            steps[0] = (int(stamps[0]) - self._past[-1][0]) * NANO
        self._wide.filter_rows(wide, steps)
        past, has_velocity = self._past, block[0].dq is not None
        stamps = np.concatenate((np.array([p[0] for p in past], dtype=np.int64), stamps))
        wide = np.concatenate((np.array([p[1] for p in past]).reshape(-1, wide.shape[1]), wide))
        measured = np.concatenate((np.array([p[3] for p in past], dtype=bool), measured))
        last = range(max(len(stamps) - 2, 0), len(stamps))
        self._past = [(int(stamps[i]), wide[i], has_velocity, bool(measured[i])) for i in last]
        if len(stamps) < 3:
            return
        rows, back = self._rows(stamps, wide, has_velocity)
        for i, row in enumerate(rows):
            stamp, known = int(stamps[i + 1]), bool(measured[i + 1])
            sample = self._sample(stamp, float(back[i]), row, known)
            if sample is not None:
                yield sample

    def _signals_of(
        self, block: Sequence[Measurement], stamps: Stamps
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """What the wide filter is fed (k, 2 n_joints + n_axes), and what counts as measured."""
        n, there = self._model.n_joints, np.array([m.y is not None for m in block])
        signals = np.zeros((len(block), 2 * n + self._model.n_axes))
        signals[:, :n] = [m.q for m in block]
        if block[0].dq is not None:
            signals[:, n : 2 * n] = [m.dq for m in block]
        # Where nothing was measured, the last measurement stands; row 0 is from before the block.
        held = np.array([self._held_y, *(m.y for m in block if m.y is not None)])
        signals[:, 2 * n :] = held[np.cumsum(there)]
        self._held_y = held[-1]
        counts = np.arange(1, len(block) + 1)
        missing = np.maximum.accumulate(np.where(there, 0, counts))
        unmeasured = np.concatenate(([self._unmeasured], stamps))[missing]
        self._unmeasured = int(unmeasured[-1])
        return signals, stamps > unmeasured + min(self._settling, 1 << 61)

    def _rows(self, stamps: Stamps, wide: Array, has_velocity: bool) -> tuple[Array, Array]:
        """Filtered rows of all instants but the first and the last, and each one's step (s)."""
        n, axes = self._model.n_joints, self._model.n_axes
        dt = np.diff(stamps) * NANO
        back, ahead = dt[:-1, None], dt[1:, None]
        a, b, c = wide[:-2], wide[1:-1], wide[2:]
        q = np.ascontiguousarray(b[:, :n])
        if has_velocity:
            dq = np.ascontiguousarray(b[:, n : 2 * n])
            ddq = (c[:, n : 2 * n] - a[:, n : 2 * n]) / (back + ahead)
        else:
            before, after = (q - a[:, :n]) / back, (c[:, :n] - q) / ahead
            dq = (c[:, :n] - a[:, :n]) / (back + ahead)
            ddq = (after - before) * (2.0 / (back + ahead))
        rows = np.empty((len(q), self._size))
        for k, values in enumerate((q, dq, ddq)):
            rows[:, k * n : (k + 1) * n] = values
        rows[:, 3 * n : 3 * n + axes] = b[:, 2 * n :]
        self._model.fill_regressors(q, dq, ddq, rows, 3 * n + axes)
        steps = np.ascontiguousarray(back[:, 0])
        self._narrow.filter_rows(rows, steps)
        return rows, steps
