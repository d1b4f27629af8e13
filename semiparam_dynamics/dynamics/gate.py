"""The gate before the filters: instants that continue the one before, and those that do not.

Each joint is expected where its last velocity takes it. How far from there it may be follows from
what a motor can do, from how far stamps may be off, and from how far the joint's positions have
been from where they were expected. An instant that does not fit is left out; the third in a row
that fit to one another says that the positions jumped, and the filters start anew. An instant
without a measured effort or wrench never says so while others have one: it is another publisher's.
One that fits is left out as well while others come often enough: both sides of the equation go
straight between the same instants then, and the robot is learned at the rate of its readings.

A velocity that is missing is filled in from where the joint went, so that a joint's velocity may be
missing now and then, or come later.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import NANO, TURN, Array
from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, MIN_RUN, OTHER_PUBLISHER

MIN_SPEED = 0.01  # rad/s or m/s, below which a joint is at rest
# s between messages, less than of any robot: where most are nearer, stamps have another unit.
MIN_STAMP_STEP, MIN_STEPS = 50e-6, 10
NO_STAMP = -(1 << 62)  # a stamp before all others

# Motors are taken to be no faster than SPEED_FACTOR times the URDF's limit, which is often a guess,
# but at least MIN_SPEED_LIMIT, or DEFAULT_SPEED_LIMIT where there is none; and to take
# SPEED_UP_TIME at least from rest to that speed.
SPEED_FACTOR, MIN_SPEED_LIMIT, DEFAULT_SPEED_LIMIT = 2.0, 5.0, 20.0  # the speeds in rad/s or m/s
SPEED_UP_TIME = 0.05  # s
MAX_STAMP_ERROR = 0.01  # s, by which a stamp may be off
MAX_WRAP_ERROR = 0.6  # rad within which a wrap is expected to be told from a jump
NOISE_INSTANTS = 200  # over which the deviations from where joints were expected are averaged
NOISE_DEVIATIONS = 8.0  # standard deviations that noise stays within: of any kind 63 times of 64
MIN_VELOCITY_SPAN = 0.01  # s: velocities filled in are no noisier than differences over so long

WRONG_UNIT = "stamps 50 us or less apart (stamps are whole numbers of nanoseconds)"

LACKING = "no effort or wrench in a message, between others with one"

# Why a measurement was left out, or the filters started anew, by its counter.
GATE_REASONS = {
    "no_number": "position that is no number",
    "implausible": "position far outside the URDF's limits (degrees instead of radians?)",
    "late": "out of order",
    "pauses": "filter restarted after a pause",
    "fast": "velocity that no motor reaches (twice the URDF's limit)",
    "outliers": "position jumped by more than a motor moves it",
    "lacking": LACKING,
    "others": OTHER_PUBLISHER,
    "jumps": "filter restarted, positions jumped and stayed there",
    "repeats": "reading repeated while the robot moves",
    "clock": "filter restarted, the clock went back a little",
}

# The gate's settings and memory; stamps in ns.
GATE = np.dtype(
    [
        ("max_gap", np.float64),  # s
        ("straight", np.float64),  # s, for which signals may go straight between two instants
        ("last", np.int64),  # stamp of the last instant that passed; NO_STAMP before the first
        ("read", np.int64),  # stamp of the last one with a measured effort or wrench, since a start
        ("moves", np.bool_),  # whether a joint moved in the step to the last instant
        ("late_run", np.int64),  # late messages since the last instant, and the last one's stamp
        ("late_stamp", np.int64),
        # Stamp of the last message left out as an outlier since then, or NO_STAMP, and how many in
        # a row agree with it.
        ("suspect", np.int64),
        ("suspects", np.int64),
        ("steps", np.int64),  # messages after others, and of these the ones within `MIN_STAMP_STEP`
        ("dense", np.int64),
        *((reason, np.int64) for reason in GATE_REASONS),
    ]
)

# Of each joint: positions below or above are implausible, by how much those limits go on beyond a
# position reached, its speed at most, whether it turns without end, and the turns unwrapped (rad);
# the limits within which it must be, infinite where a turn more or less may be, too; the mean
# square of positions' deviations from where they were expected; the acceleration between its last
# two velocities (NaN after one), the last one, and its stamp.
JOINTS = np.dtype(
    [
        *((name, np.float64) for name in ("lowest", "highest", "further", "fastest", "turns")),
        *((name, np.float64) for name in ("low", "high", "noise", "acceleration", "velocity")),
        ("reported", np.int64),
        ("turning", np.bool_),
    ]
)


def plausible_speeds(model: RobotModel) -> Array:
    """(n_joints,) speeds that no motor is taken to exceed, rad/s or m/s."""
    speeds = np.maximum(SPEED_FACTOR * model.velocity_limits, MIN_SPEED_LIMIT)
    plausible: Array = np.where(np.isfinite(speeds), speeds, DEFAULT_SPEED_LIMIT)
    return plausible


def new_gate(max_gap: float, straight: float) -> npt.NDArray[np.void]:
    """(1,) of `GATE`, before the first instant.

    After a longer pause than `max_gap` s the filters start anew; signals may go straight for
    `straight` s.
    """
    gate = np.zeros(1, dtype=GATE)
    gate["max_gap"], gate["straight"] = max_gap, straight
    gate["last"] = gate["read"] = gate["suspect"] = NO_STAMP
    return gate


def joints_of(model: RobotModel) -> npt.NDArray[np.void]:
    """(n_joints,) of `JOINTS`."""
    # URDF limits are often a little off; half a range further something else is wrong.
    low, high = model.position_limits
    margin = np.where(np.isfinite(high - low), 0.5 * np.abs(high - low), 0.0)
    joints = np.zeros(model.n_joints, dtype=JOINTS)
    joints["lowest"], joints["highest"] = low - margin, high + margin
    # Where a whole turn is allowed, another one may follow: no limit to what is turned up to.
    joints["further"] = np.where(high - low >= TURN - 1e-3, margin, 0.0)
    narrow = (high - low < TURN - 1e-3) & ~model.sliding
    joints["low"] = np.where(narrow, low, -np.inf)
    joints["high"] = np.where(narrow, high, np.inf)
    joints["fastest"] = plausible_speeds(model)
    joints["turning"] = model.turning
    joints["reported"] = NO_STAMP
    return joints


@compiled_as_written
def admit(
    g: Any,
    stamp: int,
    period: float,
    c: Array,
    joints: npt.NDArray[np.void],
    raw: Array,
    q: Array,
) -> float:
    """Seconds since the last instant by the stamps; 0 where the filters start anew, NaN: left out.

    g : of `GATE`. period : s, of the clock behind the stamps; 0 while it is unknown.
    c : (width,) signals [q, dq, y], NaN where there are none. What passes is changed in place:
        positions are unwrapped, and velocities that are missing are filled in.
    raw : (2, width) the signals of the last instant that passed, and of an outlier since then.
    q : (n_joints,) working memory.
    """
    n, last = len(joints), raw[0]
    if not _is_possible(g, c, joints):
        return math.nan
    reads = has_reading(c[2 * n :])
    step: float = 0.0
    if g.last != NO_STAMP:
        step = _step_of(g, stamp)
        if math.isnan(step):
            return step
    if step > 0.0:
        _unwrap(c, last, joints, step, q)
        if reads and g.moves and _repeats(c, q, last):
            g.repeats += 1
            return math.nan
        if not _continues(q, last, joints, step, period):
            if not _confirmed(g, stamp, reads, c, joints, raw[1], q):
                return math.nan
            step = 0.0
        elif not reads and g.read != NO_STAMP and (stamp - g.read) * NANO <= g.straight:
            g.lacking += 1
            return math.nan
    g.moves = _accept(c, q, last, joints, step, stamp, g.straight)
    g.read = stamp if reads else g.read if step > 0.0 else NO_STAMP
    g.last, g.suspect, g.late_run = stamp, NO_STAMP, 0
    return step


@compiled_as_written
def _step_of(g: Any, stamp: int) -> float:
    """Seconds since the last instant; 0: after a pause or of another clock, NaN: too late."""
    step: float = (stamp - g.last) * NANO
    g.steps += 1
    g.dense += 0.0 < step <= MIN_STAMP_STEP
    if 0.0 < step <= g.max_gap:
        return step
    if not -g.max_gap <= step <= 0.0:
        g.pauses += 1
        return 0.0
    # One that is overtaken is followed by newer ones; of a clock that was set back all are late,
    # but in order.
    g.late_run = g.late_run + 1 if stamp > g.late_stamp else 1
    g.late_stamp = stamp
    if g.late_run < MIN_RUN:
        g.late += 1
        return math.nan
    g.clock += 1
    return 0.0


@compiled_as_written
def _continues(
    q: Array, last: Array, joints: npt.NDArray[np.void], step: float, period: float
) -> bool:
    """True if all positions q (n_joints,) are where the motion of the `last` instant takes them.

    Where stamps are of messages' arrival, several messages may seem to come at once: then the time
    between them may be a period.
    """
    n = len(joints)
    longest = max(step, period)
    for j in range(n):
        joint, speed = joints[j], last[n + j]
        off = abs(q[j] - last[j] - speed * step)
        if period > 0.0:
            changes = joint.fastest / SPEED_UP_TIME * longest * (0.5 * longest + MAX_STAMP_ERROR)
            reach = changes + abs(speed) * (longest - step + MAX_STAMP_ERROR)
            reach += NOISE_DEVIATIONS * math.sqrt(joint.noise)
        else:
            reach = joint.fastest * (step + MAX_STAMP_ERROR)
        # A motor's speed bounds the way, whatever was expected.
        if off > reach or abs(q[j] - last[j]) > joint.fastest * (longest + MAX_STAMP_ERROR):
            return False
    return True


@compiled_as_written
def _confirmed(
    g: Any,
    stamp: int,
    reads: bool,
    c: Array,
    joints: npt.NDArray[np.void],
    outlier: Array,
    q: Array,
) -> bool:
    """True if an instant that does not continue the last one says that the positions jumped."""
    was_read = g.read != NO_STAMP and (g.last - g.read) * NANO <= g.max_gap
    if was_read and not reads:
        g.others += 1
        return False
    after = (stamp - g.suspect) * NANO
    _unwrap(c, outlier, joints, after, q)
    agrees = g.suspect != NO_STAMP
    for j in range(len(joints)):
        reach = joints[j].fastest * (after + MAX_STAMP_ERROR)
        agrees = agrees and abs(q[j] - outlier[j]) <= reach
    g.suspect, g.suspects = stamp, g.suspects + 1 if agrees else 1
    confirmed = g.suspects >= MIN_RUN or (reads and not was_read)
    for j in range(len(joints)):
        outlier[j] = q[j]
    if confirmed:
        g.jumps += 1
    else:
        g.outliers += 1
    return confirmed


@compiled_as_written
def _accept(
    c: Array,
    q: Array,
    last: Array,
    joints: npt.NDArray[np.void],
    step: float,
    stamp: int,
    straight: float,
) -> bool:
    """Unwrap the joints' positions and fill in missing velocities; True if a joint moves.

    straight : s, for which the acceleration between the last two velocities is taken to last.
    """
    n, moves = len(joints), False
    for j in range(n):
        joint = joints[j]
        if joint.further > 0.0:
            joint.lowest = min(joint.lowest, c[j] - joint.further)
            joint.highest = max(joint.highest, c[j] + joint.further)
        joint.turns = TURN * round((q[j] - c[j]) / TURN) if step > 0.0 else 0.0
        c[j] += joint.turns
        speed = last[n + j] if step > 0.0 else 0.0
        off = c[j] - last[j] - speed * step if step > 0.0 else 0.0
        joint.noise += (off * off - joint.noise) / NOISE_INSTANTS
        if math.isfinite(c[n + j]):
            since = (stamp - joint.reported) * NANO if step > 0.0 else 0.0
            joint.acceleration = (c[n + j] - joint.velocity) / since if since > 0.0 else math.nan
            joint.reported, joint.velocity = stamp, c[n + j]
            moves = moves or abs(c[n + j]) >= MIN_SPEED
        else:
            since = (stamp - joint.reported) * NANO
            recent = joint.reported != NO_STAMP and since <= straight
            if recent and math.isfinite(joint.acceleration):
                c[n + j] = joint.velocity + joint.acceleration * since
            else:  # after one velocity the change of position is at the mean of both
                c[n + j] = speed + (1.0 + recent) * off / max(step, MIN_VELOCITY_SPAN)
            moves = moves or (step > 0.0 and abs(c[j] - last[j]) > MIN_SPEED * step)
            if step <= 0.0:
                joint.reported = NO_STAMP
    return moves


@compiled_as_written
def has_reading(y: Array) -> bool:
    """True if one axis of y (n_axes,) was measured.

    What is no effort that a robot could have would never leave what is learned again: it is none.
    """
    for j in range(y.size):
        if abs(y[j]) <= IMPLAUSIBLE:
            return True
    return False


@compiled_as_written
def _is_possible(g: Any, c: Array, joints: npt.NDArray[np.void]) -> bool:
    """False where a position of the signals c can't be: counted.

    One far beyond its limits, but within them a turn further, is put there. A velocity beyond its
    motor's is none.
    """
    n, fast = len(joints), False
    for j in range(n):
        joint, q = joints[j], c[j]
        if not math.isfinite(q):  # it would never leave the filters again
            g.no_number += 1
            return False
        if q > joint.high + MAX_WRAP_ERROR and joint.low <= q - TURN <= joint.high:
            c[j] = q - TURN
        elif q < joint.low - MAX_WRAP_ERROR and joint.low <= q + TURN <= joint.high:
            c[j] = q + TURN
        if not joint.lowest <= c[j] <= joint.highest:
            g.implausible += 1
            return False
        if abs(c[n + j]) > joint.fastest:
            c[n + j], fast = math.nan, True
    g.fast += fast
    return True


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
def _repeats(signals: Array, q: Array, before: Array) -> bool:
    """True if the signals, with positions q, are those `before`, to the last bit."""
    for j in range(before.size):
        value = q[j] if j < q.size else signals[j]
        if value != before[j] and not math.isnan(value):
            return False
    return True


@compiled_as_written
def reaches(speeds: Array, least: float) -> bool:
    """True if one of these speeds is `least` or more."""
    for speed in speeds:
        if abs(speed) >= least:
            return True
    return False
