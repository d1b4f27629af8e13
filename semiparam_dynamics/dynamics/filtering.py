"""From measurements to samples: the two sides of the equation, filtered alike, at one instant.

Velocity and acceleration are estimated causally. What matters is that the regressor and the
measurement lag alike. So positions, velocities and measurements pass one wide low-pass;
differences are central, which puts every signal one measurement back; the regressor is computed
there; and then every entry of the regressor, the measurement and the residual's inputs pass one
and the same narrow low-pass. A model linear in its parameters is untouched by that: if
y = Phi pi, then filter(y) = filter(Phi) pi, whatever the filter's lag.

Both filters solve their differential equations exactly for signals that are straight between two
messages. So uneven stamps and missing messages make no jerks, as coefficients that change while the
states belong to the step before would. Where stamps are wrong, steps are those of the driver's
clock (`clock.py`); samples keep the stamps of their messages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import NANO, Array, Stamps
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.jit import compiled_as_written, compiled_in_turn
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.dynamics.clock import CLOCK, FIRST_STEPS, clocked_step, restart_clock
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import advance_stops, fill
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, Measurement

BLOCK = 256  # measurements filtered in one call: more would not stay in the processor's cache
MIN_SPEED = 0.01  # rad/s or m/s, below which a joint is at rest
# s between messages, less than of any robot: where most are nearer, stamps have another unit.
MIN_STAMP_STEP, MIN_STEPS = 50e-6, 10
NO_STAMP = -(1 << 62)  # a stamp before all others
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
MIN_LATE_RUN = 3  # late messages in a row, in order among themselves: the clock went back
MIN_INSTANTS = 3  # messages from which on each gives a sample

# Motors are taken to be no faster than SPEED_FACTOR times the URDF's limit, which is often a guess,
# but at least MIN_SPEED_LIMIT, or DEFAULT_SPEED_LIMIT where there is none.
SPEED_FACTOR, MIN_SPEED_LIMIT, DEFAULT_SPEED_LIMIT = 2.0, 5.0, 20.0  # the speeds in rad/s or m/s
MAX_STAMP_ERROR = 0.01  # s, by which a stamp may be off
MAX_WRAP_ERROR = 0.6  # rad within which a wrap is expected to be told from a jump
MAX_ZERO_DISTANCE = 0.01  # rad or m, that positions go at most where they come to rest at 0
TURN = 2.0 * math.pi

BETWEEN = "not learned, too soon after one that was (filter.learn_ratio)"
STANDING = "not learned, standing still (filter.rest_velocity)"
UNREAD = "effort or wrench not measured"
AFTER_UNREAD = "not learned, the filters forget a missing effort or wrench"
WRONG_UNIT = "stamps 50 us or less apart (stamps are whole numbers of nanoseconds)"
UNSETTLED = "not predicted, the filters began in motion and there are no velocities"
IN_MOTION = "filter started in motion, which it has to forget"
PARTIAL = "learned without the joints whose efforts are missing or wrong"

# Why a measurement was left out or not learned, or the filters started anew, by its counter.
REASONS = {
    "no_number": "position or velocity that is no number",
    "implausible": "position far outside the URDF's limits (degrees instead of radians?)",
    "late": "out of order",
    "pauses": "filter restarted after a pause",
    "velocity_changes": "filter restarted, velocities came or went",
    "fast": "velocity that no motor reaches (twice the URDF's limit)",
    "outliers": "position jumped by more than a motor moves it",
    "jumps": "filter restarted, positions jumped and stayed there",
    "repeats": "reading repeated while the robot moves",
    "clock": "filter restarted, the clock went back a little",
    "gaps": "gap that the filters have to forget",
    "stops": "motion that began or ended at once, which the filters have to forget",
    "in_motion": IN_MOTION,
    "unsettled": UNSETTLED,
    "still": STANDING,
    "between": BETWEEN,
    "partial": PARTIAL,
    "unread": UNREAD,
    "after_unread": AFTER_UNREAD,
}

# The filter's settings and its memory, one record; stamps in ns.
MEMORY = np.dtype(
    [
        *(
            (name, np.float64)
            for name in (
                *("wide_cutoff", "cutoff", "max_gap", "max_rate", "learn_rate", "rest_velocity"),
            )
        ),
        ("settling", np.int64),  # ns from the last measurement without y until y is used again
        ("wide_settling", np.int64),  # ns until the wide filter has forgotten how it began
        ("count", np.int64),  # instants since the last start, at most 3
        ("last", np.int64),  # stamp of the last instant
        ("has_velocity", np.bool_),  # whether the instants since the last start have dq
        ("step", np.float64),  # s, before the last instant, by the clock behind the stamps
        ("moved", np.bool_),  # whether a joint moved in that step, and in the last sample
        ("speed", np.float64),  # of the fastest joint in that step, rad/s or m/s
        ("late_run", np.int64),  # late messages since the last instant, and the last one's stamp
        ("late_stamp", np.int64),
        ("suspect", np.int64),  # stamp of a message left out as an outlier since then, or NO_STAMP
        ("measured", np.bool_),  # whether y is used at the last instant
        ("unmeasured", np.int64),  # stamp of the last measurement without y
        # The same of the last whose y had no axis, apart from what the filters forget besides; and
        # of the last instant whether it had none, and whether it is still too near to such a one.
        ("read_none", np.int64),
        ("lacked", np.bool_),
        ("forgets", np.bool_),
        # Stamp at which motion began or ended at once, or the filters in motion with velocities.
        ("stopped", np.int64),
        ("stopped_before", np.int64),  # the same of the one before
        # Stamp of the first instant since the last start, of the first at which the robot moved and
        # positions began to tell its speed, and whether the narrow filter has begun.
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
        ("steps", np.int64),  # messages after others, and of these the ones within `MIN_STAMP_STEP`
        ("dense", np.int64),
        *((reason, np.int64) for reason in REASONS),
    ]
)

# Of each joint: positions below or above are implausible, by how much those limits go on beyond a
# position reached, its speed at most, whether it turns without end, and the turns unwrapped (rad);
# and the limits within which it must be, infinite where a turn more or less may be, too.
JOINTS = np.dtype(
    [
        *((name, np.float64) for name in ("lowest", "highest", "further", "fastest", "turns")),
        ("low", np.float64),
        ("high", np.float64),
        ("turning", np.bool_),
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
    prefilter_ratio: float = parameter(
        4.0,
        "cut-off of the low-pass that positions, velocities and measurements pass before they are "
        "differentiated, in multiples of filter.cutoff",
        low=1.0,
        high=100.0,
        internal="the low-pass before differences follows `filter.cutoff`, times 4",
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
        return self.prefilter_ratio * self.cutoff

    @property
    def lags(self) -> tuple[float, float]:
        """Seconds that a steady change is behind, of samples and of `Sample.fast`.

        Of each second-order stage that is sqrt(2) / w, see `lowpass_step`.
        """
        if self.cutoff <= 0.0:
            return 0.0, 0.0
        each = math.sqrt(2.0) / (2.0 * math.pi * self.cutoff)
        wide = each / self.prefilter_ratio
        return wide + self.stages * each, wide


def plausible_speeds(model: RobotModel) -> Array:
    """(n_joints,) speeds that no motor is taken to exceed, rad/s or m/s."""
    speeds = np.maximum(SPEED_FACTOR * model.velocity_limits, MIN_SPEED_LIMIT)
    plausible: Array = np.where(np.isfinite(speeds), speeds, DEFAULT_SPEED_LIMIT)
    return plausible


class SampleFilter:
    """Turns measurements, in the order of their stamps, into samples one measurement back.

    A measurement whose stamp isn't later than the last one's is counted and left out, unless the
    clock went back by more than filter.max_gap (a bag played again): then, as after a long pause,
    the filters start anew. Joints that turn without end are unwrapped, and so are others that wrap.
    With `fast` each has beside it what it was before the narrow low-pass (`Sample.fast`).
    Of what a robot cannot do a single message is left out, and where the next ones confirm it, the
    filters start anew; see `REASONS`.
    """

    def __init__(self, model: RobotModel, config: FilterConfig, *, fast: bool = False) -> None:
        n, axes, cutoff = model.n_joints, model.n_axes, config.cutoff
        self._fast = fast
        width, self._end = 2 * n + axes, 3 * n + axes
        self._n_joints, self._n_axes, self._shape = n, axes, (axes, model.n_parameters)
        self._size = self._end + axes * model.n_parameters
        self._no_dq, self._no_y = np.zeros(n), np.zeros(axes)
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
        for stamp in (
            "unmeasured",
            "read_none",
            "stopped",
            "stopped_before",
            "began",
            "jerk",
            "last_sample",
            "last_kept",
            "last_learned",
            "suspect",
        ):
            memory[stamp] = NO_STAMP
        # URDF limits are often a little off; half a range further something else is wrong.
        low, high = model.position_limits
        margin = np.where(np.isfinite(high - low), 0.5 * np.abs(high - low), 0.0)
        joints = np.zeros(n, dtype=JOINTS)
        joints["lowest"], joints["highest"] = low - margin, high + margin
        # Where a whole turn is allowed, another one may follow: no limit to what is turned up to.
        joints["further"] = np.where(high - low >= TURN - 1e-3, margin, 0.0)
        narrow = (high - low < TURN - 1e-3) & ~model.sliding
        joints["low"] = np.where(narrow, low, -np.inf)
        joints["high"] = np.where(narrow, high, np.inf)
        joints["fastest"] = plausible_speeds(model)
        joints["turning"] = model.turning
        self._before = np.empty((0, self._size))
        self._past, self._stops = np.zeros((3, width)), np.zeros((1, model.n_stops))
        self._ways, self._turning = model.stops, model.turning
        self._found = np.zeros((BLOCK, 4), dtype=np.int64)
        self._weights = np.zeros(BLOCK)
        self._arrays = (
            joints,
            memory,
            self._past,
            np.full((2, axes), NO_STAMP, dtype=np.int64),
            np.zeros((2, width)),
            np.zeros(1, dtype=CLOCK),
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
        record = self._memory[0]
        counts = {text: int(record[field]) for field, text in REASONS.items() if record[field]}
        if record["steps"] >= MIN_STEPS and 2 * record["dense"] > record["steps"]:
            counts[WRONG_UNIT] = int(record["dense"])
        return Counter(counts)

    def reset(self) -> None:
        """Start anew, as after a pause."""
        self._memory["count"] = 0

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
        instants: list[tuple[int, bool, bool]] = []
        signals: list[Array] = []
        n, axes = self._n_joints, self._n_axes
        try:
            for m in block:
                dq, y = m.dq, m.y
                stamp = m.stamp if type(m.stamp) is int else _whole(m.stamp)
                instants.append((stamp, dq is not None, y is not None))
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
    instants: Stamps,
    signals: Array,
    rows: Array,
    before: Array,
    joints: npt.NDArray[np.void],
    memory: npt.NDArray[np.void],
    past: Array,
    unread: Stamps,
    raw: Array,
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

    instants : (k, 3) stamp in ns, and whether dq and y were measured.
    signals : (k, 2 n_joints + n_axes) [q, dq, y], filtered in place; 0 where not measured, NaN or
        beyond `IMPLAUSIBLE` where one axis of y was not.
    rows : (k, size) of each sample [q, dq, ddq, y, regressor], filtered; y of an axis is NaN where
        and as long after it was not measured as all of y is unused where none was.
    before : (k, size) of each sample the same before the narrow low-pass; (0, size): not wanted.
    joints : (n_joints,) of `JOINTS`.
    memory : (1,) of `MEMORY`.
    past : (3, width) the signals of the last two instants, filtered, and the y measured last.
    unread : (2, n_axes) stamps at which an axis lacked its reading last, now and an instant ago.
    raw : (2, width) the signals of the last instant, unwrapped, and of the outlier since then.
    clock : (1,) of `CLOCK`. first_steps, went : see `clocked_step`.
    wide, narrow : (stages, 3, size) the states of both filters, see `lowpass_row`.
    stops : (1, n_stops) the stop operators of friction, and ways : theirs, see `advance_stops`.
    found : (k, 4) of each sample its stamp, and whether it is measured, informative, `between`.
    weights : (k,) of each sample `Sample.weight`.
    regressor : `RobotModel.regressor_arguments`.
    """
    m = memory[0]
    n = len(joints)
    state, unwrapped, last = np.empty((3, 1, n)), np.empty(n), raw[0]
    samples = 0
    for i in range(len(instants)):
        stamp, c, has_velocity = instants[i, 0], signals[i], instants[i, 1] != 0
        measured = instants[i, 2] != 0
        step = _admit(m, stamp, has_velocity, measured, c, joints, raw, unwrapped)
        if math.isnan(step):
            continue
        if m.count == 0:
            moving = has_velocity and m.steps > 0 and _reaches(c[n : 2 * n], MIN_SPEED)
            _begin(m, unread, stamp, moving)
        elif not has_velocity and m.jerk < m.began and stamp <= m.began + m.wide_settling:
            # The wide filter began in equilibrium: differences of what moves show a jerk. What is
            # predicted after that is learned once the narrow one has forgotten its start, too.
            if _moves(c, last, n, step):
                m.jerk = m.unmeasured = m.last
        lacks = not _take_outputs(c[2 * n :], past[2, 2 * n :], unread[0], measured, stamp)
        if lacks:
            m.unread += 1
            m.unmeasured = m.read_none = stamp
        if has_velocity:
            m.moved = _reaches(c[n : 2 * n], MIN_SPEED)
        else:
            m.moved = m.count > 1 and _moves(c, last, n, step)
        if m.count > 0:
            step = clocked_step(clock[0], first_steps, went, c[:n], last[:n], step)
        else:
            restart_clock(clock[0])
        speed = _speed(c, last, n, step, has_velocity)
        if m.count > 1 and (has_velocity or step >= MIN_DIFFERENCE_STEP):
            _follow_stops(m, stamp, speed, step, has_velocity)
        m.speed = speed
        for j in range(c.size):
            last[j] = c[j]
        lowpass_row(c, step, wide, m.wide_cutoff, m.count > 0)
        if m.count == 0:
            for j in range(stops.size):
                stops[0, j] = 0.0
        if m.count >= 2:
            row = rows[samples]
            own = before[samples] if len(before) > 0 else before.ravel()
            _differences(past[0], past[1], c, m.step, step, has_velocity, state)
            _fill_sample(rows[samples : samples + 1], past, state, stops, ways, regressor)
            for j in range(own.size):
                own[j] = row[j]
            if _filter_sample(m, row, own, narrow, unread[1], n, c.size, has_velocity):
                known = _count_known(row[3 * n : n + c.size])
                weights[samples] = _judge(m, row[n : 2 * n], known, c.size - 2 * n, found[samples])
                samples += 1
        for j in range(c.size):
            past[0, j], past[1, j] = past[1, j], c[j]
        for j in range(unread.shape[1]):
            unread[1, j] = unread[0, j]
        m.last, m.step = stamp, step
        m.late_run, m.suspect = 0, NO_STAMP
        m.has_velocity, m.measured = has_velocity, stamp > m.unmeasured + m.settling
        m.lacked, m.forgets = lacks, stamp <= m.read_none + m.settling
        m.count = min(m.count + 1, MIN_INSTANTS)
    return samples


@compiled_as_written
def _admit(
    m: Any,
    stamp: int,
    has_velocity: bool,
    measured: bool,
    c: Array,
    joints: npt.NDArray[np.void],
    raw: Array,
    unwrapped: Array,
) -> float:
    """Seconds since the last instant by the stamps, with m.count 0 where the filters start anew.

    NaN where the measurement is left out. c : its signals, of which positions are unwrapped. raw :
    see `filter_rows`. unwrapped : (n_joints,) working memory.
    """
    n, last, outlier = len(joints), raw[0], raw[1]
    if not _finite(c[: 2 * n]):
        m.no_number += 1
        return math.nan
    _turn_home(c, joints)
    if _outside(c, joints):
        m.implausible += 1
        return math.nan
    if has_velocity and _too_fast(c, joints):
        m.fast += 1
        return math.nan
    step = 0.0
    if m.count > 0:
        step = (stamp - m.last) * NANO
        m.steps += 1
        m.dense += 0.0 < step <= MIN_STAMP_STEP
        if -m.max_gap <= step <= 0.0:
            # One that is overtaken is followed by newer ones; of a clock that was set back all are
            # late, but in order.
            m.late_run = m.late_run + 1 if stamp > m.late_stamp else 1
            m.late_stamp = stamp
            if m.late_run < MIN_LATE_RUN:
                m.late += 1
                return math.nan
            m.clock += 1
            m.count = 0
        elif not 0.0 < step <= m.max_gap:
            m.pauses += 1
            m.count = 0
        elif has_velocity != m.has_velocity:
            # Velocities that come or go would pass the filter as a step.
            m.velocity_changes += 1
            m.count = 0
    if m.count > 0:
        _unwrap(c, last, joints, step, unwrapped)
        if m.moved and measured and _repeats(c, unwrapped, last):
            m.repeats += 1
            return math.nan
        if _jumps(unwrapped, last, joints, step) or _blank(c, unwrapped, last):
            after = (stamp - m.suspect) * NANO
            _unwrap(c, outlier, joints, after, unwrapped)
            confirmed = m.suspect != NO_STAMP and not _jumps(unwrapped, outlier, joints, after)
            m.suspect = stamp
            for j in range(n):
                outlier[j] = unwrapped[j]
            if not confirmed:
                m.outliers += 1
                return math.nan
            m.jumps += 1
            m.count = 0
        elif m.cutoff > 0.0 and m.count > 1:
            if step > max(MAX_STEP_IN_PERIODS / m.cutoff, MIN_GAP_STEPS * m.step):
                # Too long for a straight line: the filters go on, and learning waits.
                m.gaps += 1
                m.unmeasured = stamp
    _accept(c, unwrapped, joints, m.count > 0)
    return step


@compiled_as_written
def _take_outputs(y: Array, last: Array, unread: Stamps, measured: bool, stamp: int) -> bool:
    """True if y has a reading, which becomes the `last` one; others are those of before.

    Prediction continues where the effort is missing: the filters are fed the last one, and nothing
    is learned until they have forgotten it.
    """
    reads = False
    for j in range(y.size):
        # What is no effort that a robot could have would never leave what is learned again.
        if measured and abs(y[j]) <= IMPLAUSIBLE:
            last[j] = y[j]
            reads = True
        else:
            if measured:
                unread[j] = stamp
            y[j] = last[j]
    return reads


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
def _filter_sample(
    m: Any,
    row: Array,
    own: Array,
    narrow: Array,
    unread: Stamps,
    n: int,
    width: int,
    has_velocity: bool,
) -> bool:
    """Pass a sample's row through the narrow low-pass; whether it is one to predict.

    own : (size,) the same before it, or nothing. In both, axes that are not read become NaN.
    """
    settled = m.last > m.jerk + m.wide_settling
    if settled:
        # The first input is a filter's equilibrium, so that its first step never counts.
        lowpass_row(row, m.step, narrow, m.cutoff, m.begun)
    m.begun = settled
    _mark_unread(row[3 * n : n + width], unread, m.last, m.settling)
    if own.size > 0:
        _mark_unread(own[3 * n : n + width], unread, m.last, m.settling)
    m.moved = m.moved and (has_velocity or _reaches(row[n : 2 * n], MIN_SPEED))
    m.unsettled += not settled
    # Half a message early counts as in time, else jitter would halve the rate.
    since = (m.last - m.last_sample) * NANO
    return settled and (m.max_rate <= 0.0 or not 0.0 <= since < 1.0 / m.max_rate - 0.5 * m.step)


@compiled_as_written
def _judge(m: Any, speeds: Array, known: int, n_axes: int, found: Stamps) -> float:
    """Note in `found` (4,) whether a sample is measured and may be learned; its weight.

    known : axes of n_axes that were read.
    """
    informative = m.rest_velocity <= 0.0 or _reaches(speeds, m.rest_velocity)
    since = (m.last - m.last_kept) * NANO
    between = m.learn_rate > 0.0 and 0.0 <= since < 1.0 / m.learn_rate - 0.5 * m.step
    measured = m.measured and known > 0
    if not measured and not m.lacked:
        m.after_unread += m.forgets or known == 0
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
        m.partial += known < n_axes
    found[0], found[1] = m.last, measured
    found[2], found[3] = informative, between
    m.last_sample = m.last
    return min(share, 1.0)


@compiled_in_turn
def filter_row(*arguments: Any) -> int:
    """:func:`filter_rows` of a live message."""
    return filter_rows(*arguments)


@compiled_as_written
def _begin(m: Any, unread: Stamps, stamp: int, moving: bool) -> None:
    """Start the filters, which know nothing yet, at `stamp`; it may be before the last one.

    moving : whether velocities say so. The filters begin in equilibrium, as at constant velocity:
    beside all of the effort that accelerates, the differences begin at 0 and tell it later.
    """
    m.began, m.begun, m.rest = stamp, False, GENTLE
    m.jerk = m.unmeasured = m.read_none = NO_STAMP
    unread[:] = NO_STAMP
    # What an effort does beside motion that began or ended at once goes on.
    m.stopped, m.stopped_before = min(m.stopped, stamp), min(m.stopped_before, stamp)
    if moving and m.cutoff > 0.0:
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
def _finite(numbers: Array) -> bool:
    """True if all are numbers: none would ever leave the filters again."""
    for number in numbers:
        if not math.isfinite(number):
            return False
    return True


@compiled_as_written
def _turn_home(signals: Array, joints: npt.NDArray[np.void]) -> None:
    """Put positions that are far beyond a joint's limits, but within them a turn further, there."""
    for j in range(len(joints)):
        q, low, high = signals[j], joints[j].low, joints[j].high
        if q > high + MAX_WRAP_ERROR and low <= q - TURN <= high:
            signals[j] = q - TURN
        elif q < low - MAX_WRAP_ERROR and low <= q + TURN <= high:
            signals[j] = q + TURN


@compiled_as_written
def _outside(signals: Array, joints: npt.NDArray[np.void]) -> bool:
    """True if a position is below its lowest or above its highest."""
    for j in range(len(joints)):
        if signals[j] < joints[j].lowest or signals[j] > joints[j].highest:
            return True
    return False


@compiled_as_written
def _too_fast(signals: Array, joints: npt.NDArray[np.void]) -> bool:
    """True if a velocity is more than its motor's."""
    n = len(joints)
    for j in range(n):
        if abs(signals[n + j]) > joints[j].fastest:
            return True
    return False


@compiled_as_written
def _unwrap(
    signals: Array, before: Array, joints: npt.NDArray[np.void], step: float, q: Array
) -> None:
    """Positions q (n_joints,), whole turns from those of `signals`, that follow those `before`.

    Joints that end do not turn by whole turns, unless their driver wraps: then nothing else
    explains the step.
    """
    for j in range(len(joints)):
        q[j] = signals[j] + joints[j].turns
        moved = q[j] - before[j]
        turns = TURN * round(moved / TURN)
        if turns != 0.0:
            reach = joints[j].fastest * (step + MAX_STAMP_ERROR)
            wraps = abs(moved - turns) <= reach < min(abs(moved), MAX_WRAP_ERROR)
            if wraps or joints[j].turning:
                q[j] -= turns


@compiled_as_written
def _jumps(q: Array, before: Array, joints: npt.NDArray[np.void], step: float) -> bool:
    """True if a joint went further between two positions than its motor can."""
    for j in range(len(joints)):
        if abs(q[j] - before[j]) > joints[j].fastest * (step + MAX_STAMP_ERROR):
            return True
    return False


@compiled_as_written
def _blank(signals: Array, q: Array, before: Array) -> bool:
    """True if all positions are suddenly 0, as in messages that nobody filled.

    q : (n_joints,) the same, unwrapped. Joints may as well come to rest at 0: these are near it.
    """
    far = False
    for j in range(q.size):
        if signals[j] != 0.0:
            return False
        far = far or abs(q[j] - before[j]) > MAX_ZERO_DISTANCE
    return q.size > 1 and far


@compiled_as_written
def _repeats(signals: Array, q: Array, before: Array) -> bool:
    """True if the signals, with positions q, are those `before`, to the last bit."""
    for j in range(before.size):
        value = q[j] if j < q.size else signals[j]
        if value != before[j] and not math.isnan(value):
            return False
    return True


@compiled_as_written
def _mark_unread(y: Array, unread: Stamps, stamp: int, settling: int) -> None:
    """Put NaN where an axis was unread at, or too soon before, `stamp`."""
    for j in range(y.size):
        if stamp <= unread[j] + settling:
            y[j] = math.nan


@compiled_as_written
def _count_known(y: Array) -> int:
    """The number of axes that were read."""
    known = 0
    for value in y:
        known += not math.isnan(value)
    return known


@compiled_as_written
def _accept(signals: Array, q: Array, joints: npt.NDArray[np.void], continued: bool) -> None:
    """Note how far joints have turned, and put the unwrapped positions q in place."""
    for j in range(len(joints)):
        joint = joints[j]
        if joint.further > 0.0:
            joint.lowest = min(joint.lowest, signals[j] - joint.further)
            joint.highest = max(joint.highest, signals[j] + joint.further)
        joint.turns = TURN * round((q[j] - signals[j]) / TURN) if continued else 0.0
        signals[j] += joint.turns


@compiled_as_written
def _moves(signals: Array, before: Array, n: int, step: float) -> bool:
    """True if a joint is faster than `MIN_SPEED` between two signals, `step` seconds apart."""
    for j in range(n):
        if abs(signals[j] - before[j]) > MIN_SPEED * step:
            return True
    return False


@compiled_as_written
def _speed(signals: Array, before: Array, n: int, step: float, has_velocity: bool) -> float:
    """Speed of the fastest of n joints, by their velocities or between two signals."""
    fastest = 0.0
    for j in range(n):
        way = signals[n + j] * step if has_velocity else signals[j] - before[j]
        fastest = max(fastest, abs(way))
    return fastest / step if step > 0.0 else 0.0


@compiled_as_written
def _reaches(speeds: Array, least: float) -> bool:
    """True if one of these speeds is `least` or more."""
    for speed in speeds:
        if abs(speed) >= least:
            return True
    return False


@compiled_as_written
def _differences(
    a: Array, b: Array, c: Array, back: float, ahead: float, has_velocity: bool, state: Array
) -> None:
    """State (3, 1, n_joints), q, dq and ddq, at the second of three signals [q, dq, ...].

    They are `back` and `ahead` seconds apart. Without velocities they are differences of positions.
    """
    n, both = state.shape[2], back + ahead
    for i in range(n):
        q = b[i]
        if has_velocity:
            dq = b[n + i]
            ddq = (c[n + i] - a[n + i]) / both
        else:
            before, after = (q - a[i]) / back, (c[i] - q) / ahead
            dq = (c[i] - a[i]) / both
            ddq = (after - before) * (2.0 / both)
        state[0, 0, i], state[1, 0, i], state[2, 0, i] = q, dq, ddq


@compiled_as_written
def lowpass_step(u: Array, state: Array, out: Array, w: float, step: float) -> None:
    """One step of a continuous second-order Butterworth low-pass, for straight input.

    The solution of y'' + sqrt(2) w y' + w^2 y = w^2 u, `step` seconds on, for u that went straight
    from its last value to u: its poles are -a (1 +- i) with a = w / sqrt(2), and behind a ramp y
    lags by sqrt(2) / w. So it is exact for steps of any length, one after the other.

    state: (3, size), y', y and the last u. Rounded as it stands here, so that the functions that it
    becomes part of give the same numbers.
    """
    a = w / math.sqrt(2.0)
    lag, rate, decay = 1.0 / a, 1.0 / step, math.exp(-a * step)
    cosine, sine = decay * math.cos(a * step), decay * math.sin(a * step)
    speeds, values, last = state[0], state[1], state[2]
    for i in range(u.size):
        now = u[i]
        slope = (now - last[i]) * rate
        # The deviations from the ramp's own answer die out.
        e, d = values[i] - last[i] + lag * slope, speeds[i] - slope
        last[i] = now
        speeds[i] = slope + (cosine - sine) * d - 2.0 * a * sine * e
        values[i] = now - lag * slope + (cosine + sine) * e + sine * lag * d
        out[i] = values[i]


@compiled_as_written
def lowpass_row(row: Array, step: float, state: Array, cutoff: float, started: bool) -> None:
    """A causal Butterworth low-pass of a row (size,), in place, `step` seconds after the last one.

    state: (stages, 3, size), see `lowpass_step`. It starts in equilibrium at its first input. Being
    linear, it commutes with any fixed linear combination of the entries, the first row included.
    """
    if cutoff <= 0.0:
        return
    for k in range(len(state)):
        if started:
            lowpass_step(row, state[k], row, 2.0 * math.pi * cutoff, step)
        else:
            speeds, values, last = state[k, 0], state[k, 1], state[k, 2]
            for i in range(row.size):
                speeds[i], values[i], last[i] = 0.0, row[i], row[i]
