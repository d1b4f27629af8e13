"""From measurements to samples: the two sides of the equation, filtered alike, at one instant.

Velocity and acceleration are estimated causally. What matters is that the regressor and the
measurement lag alike. So positions, velocities and measurements pass one wide low-pass;
differences are central, which puts every signal one measurement back; the regressor is computed
there; and then every entry of the regressor, the measurement and the residual's inputs pass one
and the same narrow low-pass. A model linear in its parameters is untouched by that: if
y = Phi pi, then filter(y) = filter(Phi) pi, whatever the filter's lag.

Both filters solve their differential equations exactly for signals that are straight between two
readings. So uneven stamps and missing messages make no jerks, as coefficients that change while the
states belong to the step before would; and an axis of the measurement that is read in some messages
only continues from one of its readings to the next. Where stamps are wrong, steps are those of the
driver's clock (`clock.py`); samples keep the stamps of their messages. What does not continue the
motion does not get here (`gate.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import NANO, TURN, Array, Stamps
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.jit import compiled_as_written, compiled_in_turn
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.dynamics.clock import (
    CLOCK,
    FIRST_STEPS,
    MAX_STEP_PERIODS,
    clocked_step,
    restart_clock,
)
from semiparam_dynamics.dynamics.gate import (
    GATE_REASONS,
    MIN_SPEED,
    MIN_STEPS,
    NO_STAMP,
    WRONG_UNIT,
    admit,
    has_reading,
    joints_of,
    new_gate,
    reaches,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import advance_stops, fill
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, Measurement

PREFILTER_RATIO = 4.0  # of the wide low-pass' cut-off to the narrow one's
BLOCK = 256  # measurements filtered in one call: more would not stay in the processor's cache
SETTLING_PERIODS = 2.0  # periods of the cut-off frequency after which a step has left both filters
MAX_STEP_IN_PERIODS = 0.25  # periods of the cut-off frequency that a straight line may stand for
MIN_GAP_STEPS = 3.0  # steps as long as the one before that a gap lasts at least
# rad/s^2 or m/s^2 beyond which all joints that stood, or do, don't begin to move, or stop; and what
# a step lasts at least for positions to tell it, s: nearer in time they show an encoder's counts.
MAX_ACCELERATION, MIN_DIFFERENCE_STEP = 30.0, 0.002
# s within which no motor stops and goes on at once: positions that do so are held, by an encoder
# that is read less often than messages are sent.
MAX_HELD = 0.05
GENTLE, UNREPORTED, REPORTED = 0, 1, 2  # of a rest, how motion ended
MIN_INSTANTS = 3  # messages from which on each gives a sample

BETWEEN = "not learned, too soon after one that was (filter.learn_ratio)"
STANDING = "not learned, standing still (filter.rest_velocity)"
UNREAD = "effort or wrench not measured"
AFTER_GAP = "not learned, the filters forget a gap in the motion or in the readings"
UNSETTLED = "not predicted, the filters began in motion and there are no velocities"
IN_MOTION = "filter started in motion, which it has to forget"
PARTIAL = "learned without the joints whose efforts are missing or wrong"

# Why a measurement was left out or not learned, or the filters started anew, by its counter.
REASONS = GATE_REASONS | {
    "gaps": "gap that the filters have to forget",
    "stops": "motion that began or ended at once, which the filters have to forget",
    "in_motion": IN_MOTION,
    "unsettled": UNSETTLED,
    "still": STANDING,
    "between": BETWEEN,
    "partial": PARTIAL,
    "unread": UNREAD,
    "after_gap": AFTER_GAP,
}

# The filter's settings and its memory, one record; stamps in ns.
MEMORY = np.dtype(
    [
        *((name, np.float64) for name in ("wide_cutoff", "cutoff", "max_gap")),
        *((name, np.float64) for name in ("max_rate", "learn_rate", "rest_velocity")),
        # ns from the first reading after a gap until readings are used again, and until the wide
        # filter has forgotten how it began.
        ("settling", np.int64),
        ("wide_settling", np.int64),
        ("count", np.int64),  # instants since the last start, at most 3
        ("last", np.int64),  # stamp of the last instant
        ("messages", np.int64),  # that came since then
        ("step", np.float64),  # s, before the last instant, by the clock behind the stamps
        ("speed", np.float64),  # of the fastest joint in that step, rad/s or m/s
        # Stamp at which motion began or ended at once, or the filters in motion with velocities.
        ("stopped", np.int64),
        ("stopped_before", np.int64),  # the same of the one before
        # Stamp of the first instant since the last start, of the last one at which differences of
        # positions were none of the motion's, and whether the narrow filter has begun.
        ("began", np.int64),
        ("jerk", np.int64),
        ("begun", np.bool_),
        # How motion ended, at once or `GENTLE`, s for which the robot has stood since, and of the
        # longest rest that was none, since positions were held.
        ("rest", np.int64),
        ("rested", np.float64),
        ("held", np.float64),
        ("last_sample", np.int64),
        ("last_kept", np.int64),  # stamp of the last measured sample that isn't `between`
        ("last_learned", np.int64),  # stamp of the last sample that may be learned
        *((reason, np.int64) for reason in REASONS if reason not in GATE_REASONS),
    ]
)

# Of each axis of the measurement: s since the last reading that passed the wide and the narrow
# filter, NaN before the first; the same between the last two; and the stamp of the last reading
# after a gap, which the filters have to forget, now and an instant ago.
AXES = np.dtype(
    [
        *((name, np.float64) for name in ("since", "since_narrow", "usual")),
        *((name, np.int64) for name in ("gap", "gap_before")),
    ]
)


@dataclass(frozen=True)
class FilterConfig:
    """Filtering of measured signals into samples."""

    cutoff: float = parameter(
        5.0,
        "cut-off of the low-pass that the regressor, the measurement and the residual's inputs "
        "share; 0: no filter at all",
        unit="Hz",
        low=0.0,
        high=1000.0,
        basic=True,
    )
    stages: int = parameter(
        1,
        "how many second-order Butterworth stages that low-pass has",
        low=1,
        high=4,
    )
    max_gap: float = parameter(
        0.5,
        "a longer pause between two messages starts the filters anew",
        unit="s",
        low=0.001,
        high=60.0,
        internal="a pause of 0.5 s starts the filters anew",
    )
    rest_velocity: float = parameter(
        0.01,
        "samples at which no joint's filtered velocity reaches this are predicted, but not "
        "learned: friction at rest may be anything up to what it takes to move; 0: all are learned",
        unit="rad/s or m/s",
        low=0.0,
        high=10.0,
    )
    learn_ratio: float = parameter(
        20.0,
        "samples that are learned a second at most, in multiples of filter.cutoff: behind the "
        "low-pass those between tell nothing new, and are predicted only; 0: all",
        low=0.0,
        high=1e6,
        internal="`learning_share` bounds what learning takes of a core",
    )
    max_rate: float = parameter(
        0.0,
        "samples a second at most that are predicted and learned, the messages in between only "
        "pass the filters; 0: every message",
        unit="Hz",
        low=0.0,
        high=1e5,
    )

    @property
    def wide_cutoff(self) -> float:
        """Hz, of the low-pass before the differences, which `Sample.fast` has passed; 0: none."""
        return PREFILTER_RATIO * self.cutoff

    @property
    def lags(self) -> tuple[float, float]:
        """Seconds that a steady change is behind, of samples and of `Sample.fast`.

        Of each second-order stage that is sqrt(2) / w, see `lowpass_step`.
        """
        if self.cutoff <= 0.0:
            return 0.0, 0.0
        each = math.sqrt(2.0) / (2.0 * math.pi * self.cutoff)
        wide = each / PREFILTER_RATIO
        return wide + self.stages * each, wide


class SampleFilter:
    """Turns measurements, in the order of their stamps, into samples one measurement back.

    A measurement whose stamp isn't later than the last one's is counted and left out, unless the
    clock went back by more than filter.max_gap (a bag played again): then, as after a long pause,
    the filters start anew. Joints that turn without end are unwrapped, and so are others that wrap.
    With `fast` each has beside it what it was before the narrow low-pass (`Sample.fast`).
    Velocities and entries of y may be missing, as NaN or altogether: see `gate.py` and `REASONS`.
    """

    def __init__(self, model: RobotModel, config: FilterConfig, *, fast: bool = False) -> None:
        n, axes, cutoff = model.n_joints, model.n_axes, config.cutoff
        self._fast = fast
        width, self._end = 2 * n + axes, 3 * n + axes
        self._n_joints, self._n_axes, self._shape = n, axes, (axes, model.n_parameters)
        self._size = self._end + axes * model.n_parameters
        self._no_dq, self._no_y = np.full(n, np.nan), np.full(axes, np.nan)
        self._memory = memory = np.zeros(1, dtype=MEMORY)
        memory["cutoff"], memory["wide_cutoff"] = cutoff, config.wide_cutoff
        memory["max_gap"], memory["max_rate"] = config.max_gap, config.max_rate
        memory["learn_rate"] = config.learn_ratio * cutoff
        memory["rest_velocity"] = config.rest_velocity
        if cutoff > 0.0:
            memory["settling"] = int(min(SETTLING_PERIODS / cutoff / NANO, 1 << 61))
            memory["wide_settling"] = int(
                min(SETTLING_PERIODS / config.wide_cutoff / NANO, 1 << 61)
            )
        straight = MAX_STEP_IN_PERIODS / cutoff if cutoff > 0.0 else 0.0
        for stamp in "stopped stopped_before began jerk last_sample last_kept last_learned".split():
            memory[stamp] = NO_STAMP
        self._before = np.empty((0, self._size))
        self._past, self._stops = np.zeros((4, width)), np.zeros((1, model.n_stops))
        self._ways, self._turning = model.stops, model.turning
        self._found = np.zeros((BLOCK, 4), dtype=np.int64)
        self._weights = np.zeros(BLOCK)
        self._gate, self._clock = new_gate(config.max_gap, straight), np.zeros(1, dtype=CLOCK)
        self._arrays = (
            self._gate,
            joints_of(model),
            memory,
            np.zeros(axes, dtype=AXES),
            self._past,
            self._clock,
            np.zeros(FIRST_STEPS),
            np.zeros(n),
            np.zeros((1, 3, width)),
            np.zeros((config.stages, 3, self._size)),
            self._stops,
            model.stops,
            self._found,
            self._weights,
            model.regressor_arguments,
        )

    @property
    def dropped(self) -> Counter[str]:
        """Counts of measurements left out or not learned and of restarts of the filters.

        And of stamps too near to each other, where most are.
        """
        gate = self._gate[0]
        counts: Counter[str] = Counter()
        for field, text in REASONS.items():
            if number := int((gate if field in GATE_REASONS else self._memory[0])[field]):
                counts[text] = number
        dense = gate["steps"] >= MIN_STEPS and 2 * gate["dense"] > gate["steps"]
        if dense and not self._clock[0]["batch"]:
            counts[WRONG_UNIT] = int(gate["dense"])
        return counts

    def reset(self) -> None:
        """Start anew, as after a pause."""
        self._gate["last"] = NO_STAMP

    def push(self, measurement: Measurement) -> Sample | None:
        """Take the next measurement; return the sample of the instant before, if there is one.

        Raises SampleError where its arrays are of another robot, where they or the stamp are no
        real numbers, and for a stamp with a fraction.
        """
        rows = np.empty((1, self._size))
        found = self._filter((measurement,), rows)
        return self._sample(rows[0], 0, float(self._weights[0]), *found[0]) if found else None

    def stops_along(self, q: Array) -> Array | None:
        """The stop operators (k, n_stops) at positions q (k, n_joints), rad or m, in turn.

        The motion goes straight from the last sample to the first of them. None before a sample.
        Raises SampleError where q is of another robot.
        """
        if q.shape[1:] != (self._n_joints,):
            raise SampleError(f"q must be (n, {self._n_joints}), not {q.shape}")
        if self._memory["count"][0] < MIN_INSTANTS:
            return None
        at, rows = self._stops[0].copy(), np.empty((len(q), self._stops.size))
        position = self._past[0, : self._n_joints]
        for k, there in enumerate(q):
            moved = there - position
            # Positions asked for may be a joint's first turn, where it has gone on to others.
            moved = np.where(self._turning, moved - TURN * np.round(moved / TURN), moved)
            advance_stops(at, self._ways, moved)
            rows[k], position = at, there
        return rows

    def filter_recording(
        self, measurements: Sequence[Measurement], *, between: bool = True
    ) -> Iterator[Sample]:
        """The samples of `measurements`, in order: those of :meth:`push`, to the last bit.

        between : also those that are not learned for coming too soon after one that is.

        May be called again with what comes next. A sample's arrays are parts of its block's:
        whoever keeps one of them keeps all.
        """
        for start in range(0, len(measurements), BLOCK):
            block = measurements[start : start + BLOCK]
            rows = np.empty((len(block), self._size))
            found = self._filter(block, rows)
            weights: list[float] = self._weights[: len(found)].tolist()
            for i, (weight, kind) in enumerate(zip(weights, found, strict=True)):
                if between or not kind[-1]:
                    yield self._sample(rows[i], i, weight, *kind)

    def _filter(self, block: Sequence[Measurement], rows: Array) -> list[list[int]]:
        """Filter into `rows` (k, size); of each sample what `filter_rows` found."""
        instants: list[int] = []
        signals: list[Array] = []
        n, axes = self._n_joints, self._n_axes
        try:
            for m in block:
                dq, y = m.dq, m.y
                instants.append(m.stamp if type(m.stamp) is int else _whole(m.stamp))
                of = m.q, self._no_dq if dq is None else dq, self._no_y if y is None else y
                if len(of[0]) != n or len(of[1]) != n or len(of[2]) != axes:
                    sizes = ", ".join(str(len(part)) for part in of)
                    raise SampleError(
                        f"a measurement of this robot has {n} positions, {n} velocities and {axes} "
                        f"measured efforts or wrench entries, not {sizes}"
                    )
                signals += of
            # Filtered in place: whole numbers would stay such.
            flat = np.concatenate(signals, dtype=np.float64).reshape(len(block), 2 * n + axes)
            stamps = np.array(instants, np.int64)
        except SampleError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise SampleError(
                f"a measurement has a stamp in ns, and one real number for each joint or axis in "
                f"q, and in dq and y where they are not None: {error}"
            ) from None
        if self._fast:
            self._before = np.empty_like(rows)
        run = filter_row if len(block) == 1 else filter_rows
        count = run(stamps, flat, rows, self._before, *self._arrays)
        found: list[list[int]] = self._found[:count].tolist()
        return found

    def _sample(self, row: Array, number: int, weight: float, stamp: int, *kind: int) -> Sample:
        measured, informative, between = kind
        n, end, shape, fast = self._n_joints, self._end, self._shape, None
        of = bool(informative), bool(between), weight
        for part in (self._before[number], row) if self._fast else (row,):
            fast = Sample(
                stamp,
                part[:n],
                part[n : 2 * n],
                part[2 * n : 3 * n],
                part[end:].reshape(shape),
                part[3 * n : end] if measured else None,
                *of,
                fast,
            )
        assert fast is not None
        return fast


def _whole(stamp: Any) -> int:
    """The stamp as a whole number. Raises SampleError for more of a fraction than by rounding."""
    if isinstance(stamp, int | np.integer):
        return int(stamp)
    if not isinstance(stamp, float | np.floating) or not math.isfinite(stamp):
        raise SampleError(f"a stamp is a whole number of nanoseconds, not {stamp!r}")
    value = float(stamp)
    if abs(value - round(value)) > 1e-15 * abs(value):
        raise SampleError(
            f"stamps are whole numbers of nanoseconds, and {stamp} has a fraction: "
            "of seconds t make round(1e9 * t)"
        )
    return round(value)


@compiled_as_written
def filter_rows(
    stamps: Stamps,
    signals: Array,
    rows: Array,
    before: Array,
    gate: npt.NDArray[np.void],
    joints: npt.NDArray[np.void],
    memory: npt.NDArray[np.void],
    axes: npt.NDArray[np.void],
    past: Array,
    clock: npt.NDArray[np.void],
    first_steps: Array,
    went: Array,
    wide: Array,
    narrow: Array,
    stops: Array,
    ways: Array,
    found: Stamps,
    weights: Array,
    regressor: tuple[Any, ...],
) -> int:
    """Filter k measurements in turn, and return how many samples they gave.

    stamps : (k,) ns.
    signals : (k, 2 n_joints + n_axes) [q, dq, y], filtered in place; NaN where not measured.
    rows : (k, size) of each sample [q, dq, ddq, y, regressor], filtered; y of an axis is NaN where
        it was not read, and while a gap in its readings is forgotten.
    before : (k, size) of each sample the same before the narrow low-pass; (0, size): not wanted.
    gate : (1,) of `GATE`. joints : (n_joints,) of `JOINTS`. memory : (1,) of `MEMORY`.
    axes : (n_axes,) of `AXES`.
    past : (4, width) the signals of the last two instants, filtered; of the last one unfiltered,
        unwrapped, and of the outlier since then.
    clock : (1,) of `CLOCK`. first_steps, went : see `clocked_step`.
    wide, narrow : (stages, 3, size) the states of both filters, see `lowpass_part`.
    stops : (1, n_stops) the stop operators of friction, and ways : theirs, see `advance_stops`.
    found : (k, 4) of each sample its stamp, and whether it is measured, informative, `between`.
    weights : (k,) of each sample `Sample.weight`.
    regressor : `RobotModel.regressor_arguments`.
    """
    m, n, last = memory[0], len(joints), past[2]
    state, own, samples = np.empty((3, 1, n)), np.empty(n), 0
    for i in range(len(stamps)):
        stamp, c = stamps[i], signals[i]
        step = admit(gate[0], stamp, clock[0].period, c, joints, past[2:], state[0, 0])
        m.messages += 1
        if math.isnan(step):
            continue
        if step > 0.0:
            q = c[:n], last[:n]
            step = clocked_step(clock[0], first_steps, went, *q, step, m.messages)
        else:
            m.count = 0
            restart_clock(clock[0])
        _follow_motion(m, stamp, step, c, last, joints, axes, own, clock[0].period > 0.0)
        m.unread += not has_reading(c[2 * n :])
        for j in range(c.size):
            last[j] = c[j]
        _pass_wide(m, c, step, stamp, axes, wide)
        if m.count >= 2:
            row = rows[samples]
            fast = before[samples] if len(before) > 0 else before.ravel()
            _differences(past[0], past[1], c, m.step, step, own, state)
            _fill_sample(rows[samples : samples + 1], past[:2], state, stops, ways, regressor)
            for j in range(fast.size):
                fast[j] = row[j]
            if _pass_narrow(m, row, fast, narrow, axes, n):
                weights[samples] = _judge(m, row, past[1, 2 * n :], n, found[samples])
                samples += 1
        elif m.count == 0:
            stops[:] = 0.0
        for j in range(c.size):
            past[0, j], past[1, j] = past[1, j], c[j]
        for j in range(len(axes)):
            axes[j].gap_before = axes[j].gap
        m.last, m.step, m.messages = stamp, step, 0
        m.count = min(m.count + 1, MIN_INSTANTS)
    return samples


@compiled_as_written
def _follow_motion(
    m: Any,
    stamp: int,
    step: float,
    c: Array,
    last: Array,
    joints: npt.NDArray[np.void],
    axes: npt.NDArray[np.void],
    own: Array,
    clocked: bool,
) -> None:
    """Note starts, gaps and stops of the motion at an instant.

    own : (n_joints,) 1 for the joints whose velocities are their driver's; 0 for the others, whose
        velocities are differences of positions.
    clocked : the period of the clock behind the stamps is known.
    """
    n, has_velocity = len(joints), True
    for j in range(n):
        own[j] = (stamp - joints[j].reported) * NANO <= m.max_gap
        has_velocity = has_velocity and own[j] > 0.0
    speed = _speed(c, last, n, step, has_velocity)
    if m.count == 0:
        _begin(m, axes, stamp, has_velocity and m.last_sample != NO_STAMP, c[n : 2 * n])
    elif speed > MIN_SPEED:
        # The wide filter began in equilibrium: differences of what moves show a jerk. So do they
        # where several messages are stamped at once, until the clock tells. What is predicted after
        # that is learned once the narrow one has forgotten its start, too.
        begins = m.jerk < m.began and stamp <= m.began + m.wide_settling and not has_velocity
        if begins or (m.count > 1 and not clocked and MAX_STEP_PERIODS * step < m.step):
            m.jerk = m.last
            _note_gap(axes, m.last)
    if m.count > 1 and m.cutoff > 0.0:
        if step > max(MAX_STEP_IN_PERIODS / m.cutoff, MIN_GAP_STEPS * m.step):
            # Too long for a straight line: the filters go on, and learning waits.
            m.gaps += 1
            _note_gap(axes, stamp)
    if m.count > 1 and (has_velocity or step >= MIN_DIFFERENCE_STEP):
        _follow_stops(m, stamp, speed, step, has_velocity)
    m.speed = speed


@compiled_as_written
def _note_gap(axes: npt.NDArray[np.void], stamp: int) -> None:
    """No reading of any axis is used from `stamp` on until the filters have forgotten the gap."""
    for j in range(len(axes)):
        axes[j].gap = stamp


@compiled_as_written
def _pass_wide(
    m: Any, c: Array, step: float, stamp: int, axes: npt.NDArray[np.void], wide: Array
) -> None:
    """Pass an instant's signals c through the wide low-pass; readings that are none become NaN."""
    begin = c.size - len(axes)
    lowpass_part(c, 0, begin, step, wide, m.wide_cutoff, m.count > 0)
    for j in range(len(axes)):
        axis, k = axes[j], begin + j
        axis.since += step
        if not abs(c[k]) <= IMPLAUSIBLE:
            c[k] = math.nan
            continue
        if m.cutoff > 0.0 and m.count > 0:
            usual = step if math.isnan(axis.usual) else axis.usual
            longest = max(MAX_STEP_IN_PERIODS / m.cutoff, MIN_GAP_STEPS * usual)
            if not axis.since <= longest:  # or it is the first one
                axis.gap = stamp
        lowpass_part(c, k, k + 1, axis.since, wide, m.wide_cutoff, not math.isnan(axis.since))
        axis.usual, axis.since = axis.since, 0.0


@compiled_as_written
def _pass_narrow(
    m: Any, row: Array, fast: Array, narrow: Array, axes: npt.NDArray[np.void], n: int
) -> bool:
    """Pass a sample's row through the narrow low-pass; True if it is one to predict.

    fast : (size,) the same before it, or nothing. In both, readings that are not used become NaN.
    """
    settled, begin, end = m.last > m.jerk + m.wide_settling, 3 * n, 3 * n + len(axes)
    for j in range(len(axes)):
        axis, k = axes[j], begin + j
        # The first input is a filter's equilibrium, so that its first step never counts.
        axis.since_narrow = axis.since_narrow + m.step if settled and m.begun else math.nan
        if not math.isnan(row[k]) and settled:
            started = not math.isnan(axis.since_narrow)
            lowpass_part(row, k, k + 1, axis.since_narrow, narrow, m.cutoff, started)
            axis.since_narrow = 0.0
        if m.last <= axis.gap_before + m.settling:
            row[k] = math.nan
        if fast.size > 0 and math.isnan(row[k]):
            fast[k] = math.nan
    if settled:
        lowpass_part(row, 0, begin, m.step, narrow, m.cutoff, m.begun)
        lowpass_part(row, end, row.size, m.step, narrow, m.cutoff, m.begun)
    m.begun = settled
    m.unsettled += not settled
    # Half a message early counts as in time, else jitter would halve the rate.
    since = (m.last - m.last_sample) * NANO
    return settled and (m.max_rate <= 0.0 or not 0.0 <= since < 1.0 / m.max_rate - 0.5 * m.step)


@compiled_as_written
def _fill_sample(
    out: Array, past: Array, state: Array, stops: Array, ways: Array, regressor: tuple[Any, ...]
) -> None:
    """Fill a sample's row `out` (1, size), before the narrow low-pass, at a `state` (3, 1, n)."""
    n, row, width = state.shape[2], out[0], past.shape[1]
    moved = np.empty(n)
    for j in range(n):
        moved[j] = past[1, j] - past[0, j]
    advance_stops(stops[0], ways, moved)
    for j in range(n):
        row[j], row[n + j], row[2 * n + j] = state[0, 0, j], state[1, 0, j], state[2, 0, j]
    for j in range(2 * n, width):
        row[n + j] = past[1, j]
    fill(state[0], state[1], state[2], stops, out, n + width, *regressor)


@compiled_as_written
def _judge(m: Any, row: Array, y: Array, n: int, found: Stamps) -> float:
    """Note in `found` (4,) whether a sample is measured and may be learned; its weight.

    y : (n_axes,) its instant's readings, before the narrow low-pass.
    """
    known = 0
    for k in range(3 * n, 3 * n + y.size):
        known += not math.isnan(row[k])
    informative = m.rest_velocity <= 0.0 or reaches(row[n : 2 * n], m.rest_velocity)
    since = (m.last - m.last_kept) * NANO
    between = m.learn_rate > 0.0 and 0.0 <= since < 1.0 / m.learn_rate - 0.5 * m.step
    measured = known > 0
    m.after_gap += not measured and has_reading(y)
    if measured:
        m.between += between
        m.still += not between and not informative
        if not between:
            m.last_kept = m.last
    informative = informative and not between and m.last > m.stopped + m.settling
    since = (m.last - m.last_learned) * NANO
    # Behind the low-pass 2 cut-off frequencies a second are independent.
    share = 2.0 * m.cutoff * since if m.cutoff > 0.0 and since >= 0.0 else 1.0
    if measured and informative:
        m.last_learned = m.last
        m.partial += known < y.size
    found[0], found[1] = m.last, measured
    found[2], found[3] = informative, between
    m.last_sample = m.last
    return min(share, 1.0)


@compiled_in_turn
def filter_row(*arguments: Any) -> int:
    """:func:`filter_rows` of a live message."""
    return filter_rows(*arguments)


@compiled_as_written
def _begin(
    m: Any, axes: npt.NDArray[np.void], stamp: int, has_velocity: bool, speeds: Array
) -> None:
    """Start the filters, which know nothing yet, at `stamp`; it may be before the last one.

    has_velocity : it is not the first start, and velocities say whether the robot moves. The
    filters begin in equilibrium, as at constant velocity: beside all of the effort that
    accelerates, the differences begin at 0 and tell it later.
    """
    m.began, m.begun, m.rest, m.jerk = stamp, False, GENTLE, NO_STAMP
    for j in range(len(axes)):
        axes[j].since = axes[j].usual = math.nan
        axes[j].gap = axes[j].gap_before = NO_STAMP
    # What an effort does beside motion that began or ended at once goes on.
    m.stopped, m.stopped_before = min(m.stopped, stamp), min(m.stopped_before, stamp)
    if has_velocity and m.cutoff > 0.0 and reaches(speeds, MIN_SPEED):
        m.in_motion += 1
        m.stopped = m.stopped_before = stamp


@compiled_as_written
def _follow_stops(m: Any, stamp: int, speed: float, step: float, has_velocity: bool) -> None:
    """Note motion that begins or ends at once: its effort is not explained by the motion.

    speed : of the fastest joint in the `step` that ends at `stamp`, after `m.speed` in that before.
    """
    abrupt = min(speed, m.speed) < MIN_SPEED and abs(speed - m.speed) > MAX_ACCELERATION * step
    if speed < MIN_SPEED:
        if m.speed >= MIN_SPEED:
            m.rest, m.rested = UNREPORTED if abrupt else GENTLE, 0.0
        m.rested += step
        tell = m.rest == UNREPORTED and (has_velocity or m.rested > m.held + 0.5 * step)
        if tell:
            m.rest = REPORTED
    else:
        tell = abrupt
        if abrupt and m.rest != GENTLE and m.rested <= MAX_HELD and not has_velocity:
            m.held, tell = max(m.held, m.rested), False
            if m.rest == REPORTED:
                m.stops -= 1
                m.stopped = m.stopped_before
        m.rest = GENTLE
    if tell:
        m.stops += 1
        m.stopped_before, m.stopped = m.stopped, stamp


@compiled_as_written
def _speed(signals: Array, before: Array, n: int, step: float, has_velocity: bool) -> float:
    """Speed of the fastest of n joints, by their velocities or between two signals."""
    fastest = 0.0
    for j in range(n):
        way = signals[n + j] * step if has_velocity else signals[j] - before[j]
        fastest = max(fastest, abs(way))
    return fastest / step if step > 0.0 else 0.0


@compiled_as_written
def _differences(
    a: Array, b: Array, c: Array, back: float, ahead: float, own: Array, state: Array
) -> None:
    """State (3, 1, n_joints), q, dq and ddq, at the second of three signals [q, dq, ...].

    They are `back` and `ahead` seconds apart. Without velocities of its own (n_joints,) a joint's
    are differences of positions.
    """
    n, both = state.shape[2], back + ahead
    for i in range(n):
        q = b[i]
        if own[i] > 0.0:
            dq = b[n + i]
            ddq = (c[n + i] - a[n + i]) / both
        else:
            before, after = (q - a[i]) / back, (c[i] - q) / ahead
            dq = (c[i] - a[i]) / both
            ddq = (after - before) * (2.0 / both)
        state[0, 0, i], state[1, 0, i], state[2, 0, i] = q, dq, ddq


@compiled_as_written
def lowpass_part(
    row: Array, begin: int, end: int, step: float, state: Array, cutoff: float, started: bool
) -> None:
    """A causal Butterworth low-pass of row[begin:end], in place, `step` seconds after the last one.

    state: (stages, 3, row.size), of each stage y', y and the last input. It starts in equilibrium
    at its first input. Being linear, it commutes with any fixed linear combination of the entries,
    the first row included.

    A stage solves y'' + sqrt(2) w y' + w^2 y = w^2 u, `step` seconds on, for u that went straight
    from its last value to u: its poles are -a (1 +- i) with a = w / sqrt(2), and behind a ramp y
    lags by sqrt(2) / w. So it is exact for steps of any length, one after the other.
    """
    if cutoff <= 0.0:
        return
    if not started:
        for k in range(len(state)):
            for i in range(begin, end):
                state[k, 0, i], state[k, 1, i], state[k, 2, i] = 0.0, row[i], row[i]
        return
    a = 2.0 * math.pi * cutoff / math.sqrt(2.0)
    lag, rate, decay = 1.0 / a, 1.0 / step, math.exp(-a * step)
    cosine, sine = decay * math.cos(a * step), decay * math.sin(a * step)
    for k in range(len(state)):
        speeds, values, last = state[k, 0], state[k, 1], state[k, 2]
        for i in range(begin, end):
            now = row[i]
            slope = (now - last[i]) * rate
            # The deviations from the ramp's own answer die out.
            e, d = values[i] - last[i] + lag * slope, speeds[i] - slope
            last[i] = now
            speeds[i] = slope + (cosine - sine) * d - 2.0 * a * sine * e
            values[i] = now - lag * slope + (cosine + sine) * e + sine * lag * d
            row[i] = values[i]
