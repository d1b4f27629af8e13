"""Conditions of joint states in the field, each a function of a log and a random generator.

An event happens at some time and is put into what is learned from alone; a lasting condition is
put into both parts, by generators of the same seed, so that both parts have it on the same joint.
Each returns the truth of what it did, in the terms of the doctor's findings where there is one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.dynamics.effort_trials import FreeFit, inertial_parts
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.doctor.physics import make_columns
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf


@dataclass(frozen=True)
class Truth:
    """A changed log, and the truth of what was done to it.

    Attributes
    ----------
    log: the log.
    finding: the kind of the doctor's finding that names it, empty where none does.
    joints: those that it was done to; empty: all.
    amount: how much of it, in the unit of the finding.
    settings: parameters that are wrong now.
    """

    log: JointLog
    finding: str
    joints: tuple[str, ...] = ()
    amount: float = 0.0
    settings: Mapping[str, object] = field(default_factory=dict)


Change = Callable[[JointLog, np.random.Generator, RobotModel], Truth]


@dataclass(frozen=True)
class Condition:
    """A condition: its name, its function, and whether it lasts."""

    name: str
    change: Change
    lasting: bool


CONDITIONS: dict[str, Condition] = {}


def _condition(name: str, *, lasting: bool) -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        CONDITIONS[name] = Condition(name, change, lasting)
        return change

    return add


event = {"lasting": False}
lasting = {"lasting": True}


def _step(log: JointLog) -> int:
    """The usual time between two messages, ns."""
    return int(np.median(np.diff(log.stamps)))


def _with(log: JointLog, **arrays: object) -> JointLog:
    return dataclasses.replace(log, **arrays)


def _each(log: JointLog, change: Callable[[Array], Array]) -> dict[str, Array | None]:
    """Positions, velocities and efforts (n, k), each changed, where the log has them."""
    given = {name: getattr(log, name) for name in ("q", "dq", "y")}
    return {name: None if values is None else change(values) for name, values in given.items()}


def _joint(log: JointLog, rng: np.random.Generator) -> int:
    return int(rng.integers(len(log.names)))


def _middle(log: JointLog, rng: np.random.Generator) -> int:
    """A row in the middle half."""
    return int(rng.integers(len(log) // 4, max(3 * len(log) // 4, len(log) // 4 + 1)))


# -------------------------------------------------------------------------------------------------
# Rest


def rest(log: JointLog, rng: np.random.Generator, row: int, seconds: float) -> JointLog:
    """Stand at a row for so long: encoder noise of 1e-5 rad, efforts with the log's own noise.

    The log is at rest nowhere, so that the arm stands still from one message to the next. Efforts
    are those of that row without what moving costs.
    """
    step = _step(log)
    n = max(round(seconds * SECOND / step), 1)

    def held(values: Array | None, noise: float, *, zero: bool = False) -> Array | None:
        if values is None:
            return None
        level = 0.0 * values[row] if zero else values[row]
        still = level + noise * rng.standard_normal((n, values.shape[1]))
        return np.concatenate((values[:row], still, values[row:]))

    size = 0.0 if log.y is None else 1e-3 * float(np.std(log.y))
    later = log.stamps[row:] + n * step
    stamps = np.concatenate((log.stamps[:row], log.stamps[row] + step * np.arange(n), later))
    return _with(
        log,
        stamps=stamps,
        q=held(log.q, 1e-5),
        dq=held(log.dq, 1e-4, zero=True),
        y=held(log.y, size),
    )


def _resting(share: float, seconds: float) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        row = min(int(share * len(log)), len(log) - 1)
        return Truth(rest(log, rng, row, seconds), "rest", amount=seconds)

    return change


for _name, _share, _seconds in (
    ("15 s at rest at the start", 0.0, 15.0),
    ("2 s at rest at the start", 0.0, 2.0),
    ("15 s at rest in the middle", 0.5, 15.0),
    ("15 s at rest at the end", 1.0, 15.0),
    ("300 s at rest in the middle", 0.5, 300.0),
):
    _condition(_name, **event)(_resting(_share, _seconds))


# -------------------------------------------------------------------------------------------------
# Time


@_condition("uneven stamps, 20 %", **lasting)
def uneven_stamps(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Messages sampled unevenly and stamped truly: values are those of their stamps."""
    times = log.stamps.astype(np.float64)
    jitter = rng.uniform(-0.4, 0.4, len(log)) * _step(log)
    jitter[[0, -1]] = 0.0
    at = np.maximum.accumulate(times + jitter)
    stamps = np.round(at).astype(np.int64)

    def moved(values: Array) -> Array:
        return np.column_stack([np.interp(at, times, column) for column in values.T])

    return Truth(_with(log, stamps=stamps, **_each(log, moved)), "uneven stamps")


def _missing(share: float) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        keep = rng.random(len(log)) >= share
        keep[[0, -1]] = True
        return Truth(log.rows(keep), "missing messages", amount=share)

    return change


def _jitter(seconds: float) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        """Messages sampled evenly and stamped late or early; they never overtake each other."""
        size = min(seconds * SECOND, 0.45 * _step(log))
        offsets = np.round(rng.uniform(-size, size, len(log))).astype(np.int64)
        offsets[0] = abs(offsets[0])  # the first stamp may be near to zero
        return Truth(_with(log, stamps=log.stamps + offsets), "uneven stamps", amount=size / SECOND)

    return change


def _gap(seconds: float) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        start = log.stamps[_middle(log, rng)]
        gone = (log.stamps > start) & (log.stamps < start + seconds * SECOND)
        return Truth(log.rows(~gone), "gaps", amount=seconds)

    return change


_condition("1 % of messages missing", **lasting)(_missing(0.01))
_condition("10 % of messages missing", **lasting)(_missing(0.1))
_condition("stamps +-1 ms", **lasting)(_jitter(0.001))
_condition("stamps +-3 ms", **lasting)(_jitter(0.003))
_condition("a gap of 0.1 s", **event)(_gap(0.1))
_condition("a gap of 0.4 s", **event)(_gap(0.4))
_condition("a gap of 2 s", **event)(_gap(2.0))


def _every_second(field: str, finding: str) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        values = getattr(log, field)
        if values is None:
            return Truth(log, "")
        values = values.copy()
        values[1::2] = np.nan
        return Truth(_with(log, **{field: values}), finding, amount=len(values) // 2)

    return change


_condition("velocities in every second message", **lasting)(
    _every_second("dq", "messages without velocities")
)
_condition("efforts in every second message", **lasting)(
    _every_second("y", "messages without efforts")
)


@_condition("a second publisher at 10 Hz", **lasting)
def second_publisher(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Beside the robot's messages others of another pose, without velocities and efforts."""
    step = _step(log)
    at = np.arange(0, len(log), max(SECOND // 10 // step, 1))
    stamps = np.concatenate((log.stamps, log.stamps[at] + step // 5))
    order = np.argsort(stamps, kind="stable")
    pose = np.broadcast_to(0.5 * (log.q.min(axis=0) + log.q.max(axis=0)), log.q[at].shape)
    none = np.full(pose.shape, np.nan)
    changed = _each(log, lambda values: np.concatenate((values, none))[order])
    changed["q"] = np.concatenate((log.q, pose))[order]
    return Truth(_with(log, stamps=stamps[order], **changed), "two publishers", amount=len(at))


@_condition("bursts of ten messages", **lasting)
def bursts(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Ten readings are stamped at their arrival with the last one of them."""
    last = np.minimum(np.arange(len(log)) // 10 * 10 + 9, len(log) - 1)
    stamps = log.stamps[last] + 100_000 * (np.arange(len(log)) % 10)
    return Truth(_with(log, stamps=stamps), "bursts", amount=10.0)


@_condition("clock back by 0.5 s", **event)
def clock_back(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Stamps from some row on are half a second too early."""
    stamps = log.stamps.copy()
    stamps[_middle(log, rng) :] -= SECOND // 2
    return Truth(_with(log, stamps=stamps), "stamps go back", amount=0.5)


# -------------------------------------------------------------------------------------------------
# Readings


@_condition("last reading repeated for 2 s", **event)
def repeated_readings(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """A driver that sends its last reading again and again while the arm moves on."""
    start = _middle(log, rng)
    stop = int(np.searchsorted(log.stamps, log.stamps[start] + 2 * SECOND))
    rows = np.arange(len(log))
    rows[start:stop] = start
    held = _each(log, lambda values: values[rows])
    return Truth(_with(log, **held), "repeated readings", amount=2.0)


@_condition("one position 1 rad wrong", **event)
def wrong_position(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    q, joint = log.q.copy(), _joint(log, rng)
    q[_middle(log, rng), joint] += 1.0
    return Truth(_with(log, q=q), "wrong positions", (log.names[joint],), 1.0)


@_condition("one message of zeros", **event)
def zeros(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    kept = (np.arange(len(log)) != _middle(log, rng))[:, None]
    return Truth(_with(log, **_each(log, lambda values: values * kept)), "messages of zeros")


@_condition("a joint passes +-pi", **lasting)
def wraps(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """The widest joint is counted from half its range, and so jumps there by a turn.

    Where its positions begin is the URDF's business: the jump alone is what is looked at, so that
    the positions are within a turn of the true ones.
    """
    q = log.q.copy()
    turning = [k for k, name in enumerate(log.names) if not _slides(model, name)]
    if not turning:
        return Truth(log, "")
    joint = max(turning, key=lambda k: float(np.ptp(q[:, k])))
    q[:, joint] -= 2.0 * np.pi * (q[:, joint] > np.median(q[:, joint]))
    return Truth(_with(log, q=q), "wraps", (log.names[joint],))


@_condition("positions in steps of 1e-3 rad", **lasting)
def quantised(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    return Truth(_with(log, q=np.round(log.q, 3)), "")


@_condition("efforts in steps of a tenth", **lasting)
def quantised_efforts(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Steps of a fifth of the standard deviation of each joint's effort."""
    step = np.maximum(0.2 * log.y.std(axis=0), 1e-12)
    return Truth(_with(log, y=step * np.round(log.y / step)), "coarse steps")


@_condition("a column of NaN", **lasting)
def not_a_number(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Velocities of one joint, where the log has velocities; else its efforts."""
    joint = _joint(log, rng)
    values = (log.q if log.y is None else log.y) if log.dq is None else log.dq
    values = values.copy()
    values[:, joint] = np.nan
    changed = {"dq": values} if log.dq is not None else {"y": values}
    return Truth(_with(log, **changed), "not a number", (log.names[joint],))


@_condition("a joint locked", **lasting)
def locked(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """The joint that moves least is said to stand still; it hardly acts on the others."""
    joint = int(np.argmin(np.ptp(log.q, axis=0)))
    q = log.q.copy()
    q[:, joint] = np.median(q[:, joint])
    dq = log.dq if log.dq is None else log.dq.copy()
    if dq is not None:
        dq[:, joint] = 0.0
    return Truth(_with(log, q=q, dq=dq), "joint stands", (log.names[joint],))


# -------------------------------------------------------------------------------------------------
# Velocities that drivers make up; where each was reported: results/field.md


def _velocities(finding: str, make: Callable[[JointLog, int], Array], *, one: bool) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        """Other velocities, of all joints or of one."""
        if log.dq is None:
            return Truth(log, "")
        joint = _joint(log, rng)
        names = (log.names[joint],) if one else ()
        return Truth(_with(log, dq=make(log, joint)), finding, names)

    return change


def _differences(log: JointLog, joint: int) -> Array:
    q, times = np.round(log.q, 4), log.times
    speeds = np.diff(q, axis=0) / np.maximum(np.diff(times), 1e-4)[:, None]
    return np.concatenate((0.0 * q[:1], speeds))


for _name, _finding, _make, _one in (
    ("velocities always 1.5", "velocity missing", lambda g, k: np.full(g.q.shape, 1.5), False),
    ("velocities without their sign", "velocity", lambda g, k: np.abs(g.dq), False),
    ("velocity of one joint turned", "velocity scale", lambda g, k: g.dq * _turned(g, k), True),
    ("velocities ten times as large", "velocity scale", lambda g, k: 10.0 * g.dq, False),
    ("velocities new in one of ten", "", lambda g, k: g.dq[np.arange(len(g)) // 10 * 10], False),
    ("velocities as differences", "", _differences, False),
    ("a velocity of 20 in one of 50", "", lambda g, k: g.dq + _spikes(g, k), False),
):
    _condition(_name, **lasting)(_velocities(_finding, _make, one=_one))


def _turned(log: JointLog, joint: int) -> Array:
    return np.where(np.arange(len(log.names)) == joint, -1.0, 1.0)


def _spikes(log: JointLog, joint: int) -> Array:
    spikes = np.zeros(log.q.shape)
    spikes[25::50, joint] = 20.0
    return spikes


# -------------------------------------------------------------------------------------------------
# Units, signs and names


@_condition("degrees", **lasting)
def degrees(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    turning = np.array([not _slides(model, name) for name in log.names])
    factor = np.where(turning, 180.0 / np.pi, 1.0)
    dq = None if log.dq is None else log.dq * factor
    return Truth(_with(log, q=log.q * factor, dq=dq), "degrees")


@_condition("efforts as currents", **lasting)
def currents(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    factor = rng.uniform(5.0, 15.0, len(log.names))
    return Truth(_with(log, y=log.y / factor), "effort scale", amount=float(np.median(factor)))


@_condition("sign of one effort turned", **lasting)
def sign(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    joint = _joint(log, rng)
    y = log.y.copy()
    y[:, joint] *= -1.0
    return Truth(_with(log, y=y), "effort sign", (log.names[joint],), -1.0)


@_condition("two joints' efforts exchanged", **lasting)
def exchanged(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    if len(log.names) < 2:
        return Truth(log, "")
    first = int(rng.integers(len(log.names) - 1))
    order = np.arange(len(log.names))
    order[[first, first + 1]] = first + 1, first
    names = (log.names[first], log.names[first + 1])
    return Truth(_with(log, y=log.y[:, order]), "exchanged joints", names)


def _late(seconds: float) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        """The effort of an instant comes with a later instant's positions."""
        times = log.times
        y = np.column_stack([np.interp(times - seconds, times, column) for column in log.y.T])
        return Truth(_with(log, y=y), "effort delay", amount=seconds)

    return change


_condition("efforts 10 ms late", **lasting)(_late(0.01))
_condition("efforts 20 ms late", **lasting)(_late(0.02))
_condition("set points as positions, 80 ms early", **lasting)(_late(0.08))


# -------------------------------------------------------------------------------------------------
# Gravity and forces


def _tilt(angle: float) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        """The base is tilted against the configured gravity, which is what changes."""
        away, turn = np.radians(angle), rng.uniform(0.0, 2.0 * np.pi)
        level = np.array(model.config.gravity)
        size = float(np.linalg.norm(level))
        down = -1.0 if level[2] <= 0.0 else 1.0
        x, y = np.sin(away) * np.cos(turn), np.sin(away) * np.sin(turn)
        gravity = tuple(float(v) for v in size * np.array([x, y, down * np.cos(away)]))
        return Truth(log, "tilted base", amount=angle, settings={"gravity": gravity})

    return change


_condition("base tilted by 5 degrees", **lasting)(_tilt(5.0))
_condition("base tilted by 30 degrees", **lasting)(_tilt(30.0))


@_condition("gravity left out of efforts", **lasting)
def without_gravity(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    """Efforts less what holds the arm up, by parameters fitted to the log itself."""
    return Truth(_with(log, y=log.y - gravity_efforts(log, model)), "gravity left out")


def _contacts(count: int) -> Change:
    def change(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
        """Pushes of 200 ms, of twice the spread of each joint's effort, in random directions."""
        y, times = log.y.copy(), log.times
        for _ in range(count):
            t = (times - times[_middle(log, rng)]) / 0.2
            shape = np.where((t >= 0.0) & (t <= 1.0), np.sin(np.pi * np.clip(t, 0.0, 1.0)), 0.0)
            push = rng.standard_normal(y.shape[1])
            push *= 2.0 * log.y.std(axis=0) / np.linalg.norm(push)
            y += shape[:, None] * push
        return Truth(_with(log, y=y), "", amount=float(count))

    return change


_condition("a contact of 200 ms", **event)(_contacts(1))
_condition("ten contacts", **event)(_contacts(10))


@_condition("efforts clipped at 60 %", **lasting)
def clipped(log: JointLog, rng: np.random.Generator, model: RobotModel) -> Truth:
    most = 0.6 * np.abs(log.y).max(axis=0)
    return Truth(_with(log, y=np.clip(log.y, -most, most)), "clipped efforts", amount=0.6)


def _slides(model: RobotModel, name: str) -> bool:
    return parse_urdf(model.urdf_text).joints[name].type == "prismatic"


def gravity_efforts(log: JointLog, model: RobotModel) -> Array:
    """(n, k) efforts that hold the arm up at each message, by parameters fitted to the log."""
    columns = make_columns(log, model, 5.0)
    fit = FreeFit(columns, np.ones(model.n_joints, dtype=bool), columns.seen)
    gravity = np.array(model.config.gravity)
    found = fit.solve(gravity, columns.y)[0][: columns.prior.size]
    efforts = np.empty_like(log.q)
    for start in range(0, len(log), 2000):
        q = log.q[start : start + 2000]
        parts = inertial_parts(model, q, 0.0 * q, 0.0 * q)
        efforts[start : start + 2000] = np.tensordot(gravity, np.array(parts[1:]), axes=1) @ found
    return efforts
