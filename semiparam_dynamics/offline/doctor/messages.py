"""The joint states of a bag as they were sent, the faults that they show, and logs repaired.

The sentences of findings are in findings.yaml.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]

from semiparam_dynamics.base.arrays import SECOND, TURN, Array, Indices, Mask, Stamps
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.dynamics.clock import FIRST_STEPS, batch_step
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import UrdfTree, locked_positions
from semiparam_dynamics.samples.bag import BagReader
from semiparam_dynamics.samples.joint_names import (
    first_positions,
    joints_together,
    naming_remedy,
    stamp_of,
    whole_messages,
    without_strays,
)
from semiparam_dynamics.samples.joint_states import JOINT_STATE
from semiparam_dynamics.samples.measurement import StreamConfig
from semiparam_dynamics.samples.sensors import ENCODER_NOISE, SensorFaults, UnreadEfforts


@dataclass(frozen=True)
class Lacks:
    """Messages that lack something, which is made good here as it is where the robot learns."""

    efforts: int = 0  # without efforts, between others that have them, which are left out
    elsewhere: int = 0  # of them those whose positions are not between those of their neighbours
    velocities: int = 0  # without velocities, which are filled in by differences of positions
    unread: int = 0  # first ones whose efforts never change though the robot moves, left out
    batch: float = 0.0  # come at once on the mean, whose stamps are put at even times; 0: singly


@dataclass(frozen=True)
class JointLog:
    """n joint states of k joints in the order in which they came, unchecked.

    Positions, velocities and efforts are as they were sent, NaN where a message has none.
    """

    names: tuple[str, ...]  # of the joints
    stamps: Stamps  # (n,) ns
    q: Array  # (n, k)
    dq: Array | None  # None where no message has any
    y: Array | None  # the same
    unknown: tuple[str, ...] = ()  # names in the messages that the robot doesn't have
    missing: tuple[str, ...] = ()  # joints of the robot that no message names
    others: int = 0  # messages that name other joints than most do
    doubled: tuple[str, ...] = ()  # joints that these messages name more than once
    unfit: int = 0  # messages with another number of values than of names
    lacks: Lacks = field(default_factory=Lacks)  # what the learner makes good
    unreadable: tuple[str, ...] = ()  # sentences on what of the bag could not be read

    def __len__(self) -> int:
        return len(self.stamps)

    @property
    def times(self) -> Array:
        """(n,) s since the first message."""
        return np.asarray((self.stamps - self.stamps[0]) / SECOND, dtype=np.float64)

    def rows(self, chosen: Mask | Indices | slice) -> JointLog:
        """Some of the messages."""
        dq, y = (None if a is None else a[chosen] for a in (self.dq, self.y))
        return dataclasses.replace(self, stamps=self.stamps[chosen], q=self.q[chosen], dq=dq, y=y)


def read_joint_log(
    path: str | Path,
    joints: Sequence[str],
    topic: str = "",
    *,
    others: Collection[str] = (),
    tree: UrdfTree | None = None,
) -> JointLog:
    """The joint states of a bag, of those of `joints` that it has, in their order.

    Where `topic` isn't named, `BagReader.choose` takes one. others : more joints of the robot,
    which are no unknown names. tree : the robot's, by which of several lists of names, an arm's and
    its gripper's, the arm's is taken, as an evaluation does; else that with most of `joints`.
    Raises BagError where the bag can't be read or its messages name none of the joints.
    """
    with BagReader(path) as bag:
        topic = bag.choose(JOINT_STATE, topic)
        messages = whole_messages([message for _, message, _ in bag.messages([topic])])
        unreadable = bag.unreadable
    sets = Counter(tuple(message.name) for message in messages)
    known = set(joints)
    sets = Counter({names: count for names, count in sets.items() if known & set(names)})
    if not sets:
        named = sorted({name for message in messages[:100] for name in message.name})
        raise BagError(
            f"no message on {topic} of {path} names a joint of the URDF: it has "
            f"{', '.join(named) or 'no names at all'}, the URDF {', '.join(joints)}"
            + "".join(f"; {told}" for told in (naming_remedy(named, joints), *unreadable) if told)
        )
    often = without_strays(tuple(message.name) for message in messages if known & set(message.name))
    kinds = {names: tuple(name for name in joints if name in names) for names in often}
    if tree is None:
        own = max(kinds.values(), key=len)
    else:
        own = joints_together(tree, often, joints)
    most = max((names for names in often if kinds[names] == own), key=sets.__getitem__)
    published = {name for names in sets for name in names}
    place = [most.index(name) for name in own]
    chosen = [message for message in messages if tuple(message.name) == most]
    q, dq, y = (_column(chosen, name, place) for name in ("position", "velocity", "effort"))
    log = JointLog(
        own,
        np.array([stamp_of(message) for message in chosen], dtype=np.int64),
        q,
        None if np.isnan(dq).all() else dq,
        None if np.isnan(y).all() else y,
        tuple(sorted(published.difference(known, others))),
        tuple(name for name in joints if name not in published),
        len(messages) - sets[most],
        tuple(name for name in own if most.count(name) > 1),
        sum(not _fits(message) for message in chosen),
        unreadable=unreadable,
    )
    return made_good(log)


def made_good(log: JointLog) -> JointLog:
    """The log without what single messages lack: all velocities or efforts, NaN in their rows."""
    efforts = elsewhere = velocities = 0
    if log.y is not None:
        none = _empty_rows(log.y)
        efforts, elsewhere = int(none.sum()), _count_elsewhere(log, ~none)
        log = log.rows(~none)
    if log.dq is not None and len(log) > 1 and (none := _empty_rows(log.dq)).any():
        velocities = int(none.sum())
        times = np.maximum.accumulate(log.times) + 1e-9 * np.arange(len(log))
        slopes = np.gradient(log.q, times, axis=0)
        log = dataclasses.replace(log, dq=np.where(none[:, None], slopes, log.dq))
    unread = _count_unread(log)
    log = log.rows(slice(unread, None))
    batch, steps = 0.0, np.diff(log.stamps) / SECOND
    if len(log) > 2 * FIRST_STEPS and batch_step(np.sort(steps[:FIRST_STEPS])) > 0.0:
        batch = len(log) / (1 + np.count_nonzero(steps > steps.mean()))
        index = np.arange(len(log))
        even = np.polynomial.Polynomial.fit(index, log.times, 1)(index)
        log = dataclasses.replace(
            log, stamps=log.stamps[0] + np.round(even * SECOND).astype(np.int64)
        )
    return dataclasses.replace(log, lacks=Lacks(efforts, elsewhere, velocities, unread, batch))


def _empty_rows(values: Array) -> Mask:
    """(n,) true for the rows (n, k) without one number."""
    return np.asarray(np.isnan(values).all(axis=1))


def _count_elsewhere(log: JointLog, has_effort: Mask) -> int:
    """The messages without efforts that are no part of the motion of the others.

    They are further from the straight line between their neighbours than these are apart.
    """
    rows, others = np.flatnonzero(has_effort), np.flatnonzero(~has_effort)
    if len(rows) < 2 or not others.size:
        return 0
    after = np.clip(np.searchsorted(rows, others), 1, len(rows) - 1)
    before, after = rows[after - 1], rows[after]
    middle, apart = (log.q[before] + log.q[after]) / 2.0, np.abs(log.q[after] - log.q[before])
    off = np.abs(log.q[others] - middle) > apart + ENCODER_NOISE
    return int(np.count_nonzero(off.any(axis=1)))


def _count_unread(log: JointLog) -> int:
    """The number of first messages of which no effort changed though the robot moved."""
    if log.y is None:
        return 0
    unread, found = UnreadEfforts(), False
    rows = zip(log.stamps.tolist(), log.y.tolist(), log.q.tolist(), strict=True)
    for k, (stamp, effort, q) in enumerate(rows):
        found |= unread(stamp, effort, q)
        if unread.done:
            return k if found else 0
    return 0


def read_description(paths: Sequence[str | Path]) -> tuple[str | Path, str]:
    """The first bag that holds a robot_description, and its text. Raises BagError where none."""
    for path in paths:
        with BagReader(path) as bag:
            if (text := bag.robot_description()) is not None:
                return path, text
    told, hold = " and ".join(map(str, paths)), "hold" if len(paths) > 1 else "holds"
    raise BagError(
        f"{told} {hold} no robot_description: add --urdf FILE, its URDF, or --urdf NAME, such as "
        "ur10 (pip install example-robot-data); where the robot runs, ros2 param get --hide-type "
        "/robot_state_publisher robot_description > robot.urdf writes the file"
    )


def read_locks(
    path: str | Path, tree: UrdfTree, joints: Sequence[str], topic: str = ""
) -> dict[str, float]:
    """Positions of the robot's joints that are not among `joints`, as an evaluation locks them.

    They are where the bag publishes them first, rad or m; those that it does not are left out.
    """
    with BagReader(path) as bag:
        first = bag.first_joint_states(bag.choose(JOINT_STATE, topic))
    return locked_positions(tree, joints, first_positions(first, tree.joints))


def _fits(message: Any) -> bool:
    n = len(message.name)
    rates = len(message.velocity), len(message.effort)
    return len(message.position) == n and all(length in (0, n) for length in rates)


def _column(messages: Sequence[Any], field: str, place: Sequence[int]) -> Array:
    values = np.full((len(messages), len(place)), np.nan)
    for row, message in zip(values, messages, strict=True):
        given = np.asarray(getattr(message, field), dtype=np.float64)
        if given.size == len(message.name):
            row[:] = given[place]
    return values


# -------------------------------------------------------------------------------------------------
# Faults that messages show by themselves


REST_VELOCITY = 0.01  # rad/s or m/s, below which all joints are at rest
UNEVEN_STEP = 0.05  # of the usual step: stamps that differ by more are uneven
MIN_UNEVEN_SHARE = 0.05  # of the steps, from which stamps are uneven
MIN_MISSING_SHARE = 0.004  # of the messages
MIN_GAP = 0.08  # s, and
MIN_REPORTED_GAP_STEPS = 4.5  # usual steps: longer is a gap
MIN_REST = 1.5  # s at rest that are reported
LITTLE_MOTION = 10.0  # s of motion that are few
STANDING_RANGE = 2e-3  # rad or m of range: a joint that stands
COARSE_STEP = 0.1  # of the standard deviation: steps that are coarse
MIN_CLIPPED_SHARE = 0.005  # share of the messages at one and the same largest value
STUCK = "effort stuck"
MIN_SPIKE = 0.05  # rad or m
JUMP_RATIO = 10.0  # times the 99 % quantile, of steps or of speeds: no motion
MAX_STRETCH = 60.0  # s that are compared with the dynamics
MAX_PAUSE = 0.5  # s within a stretch
FINDINGS = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text(encoding="utf-8"))


def found(
    kind: str,
    joints: Sequence[str] = (),
    amount: float = np.nan,
    mends: Mapping[str, object] | None = None,
    *,
    fault: bool | None = None,
    **told: object,
) -> Finding:
    """A finding of a kind of findings.yaml, which says whether it is a fault unless `fault` does.

    told: what is put into its sentences; the others are those of `Finding`.
    """
    entry, told = FINDINGS[kind], {"joints": listing(joints) if joints else "", **told}
    evidence, advice = (entry[name].format(**told) for name in ("evidence", "advice"))
    fault = not entry.get("note", False) if fault is None else fault
    return Finding(kind, evidence, advice, tuple(joints), amount, mends or {}, fault)


@dataclass(frozen=True)
class JointFacts:
    """Facts of the URDF on the log's joints: turning (k,), and limits (k,), infinite for none."""

    turning: Mask
    low: Array
    high: Array

    @classmethod
    def of(cls, model: RobotModel) -> JointFacts:
        """The facts of a model's joints."""
        return cls(~model.sliding, *model.position_limits)


def message_findings(
    log: JointLog, facts: JointFacts, samples: StreamConfig | None = None
) -> Iterator[Finding]:
    """All that can be seen without the dynamics; `samples` has what counts as an effort stuck."""
    yield from _names(log)
    yield from _lacks(log)
    yield from stamp_findings(log.stamps)
    yield from _numbers(log)
    yield from _units(log, facts)
    clean = repaired(log, facts)
    if len(clean) < 3:
        return
    yield from _velocities(clean)
    yield from _efforts(clean, samples or StreamConfig())
    yield from _motion(clean)


def repaired(log: JointLog, facts: JointFacts) -> JointLog:
    """The log without broken messages, in radians, without jumps by a turn, in order of stamps.

    Columns that hold no number in more than a tenth of the messages stay as they are.
    """
    if degrees(log, facts):
        log = _in_radians(log, facts)
    keep = np.isfinite(log.q).all(axis=1) & ~_emptied(log)
    for values in (log.dq, log.y):
        if values is not None:
            bad = ~np.isfinite(values)
            keep &= ~bad[:, bad.mean(axis=0) < 0.1].any(axis=1)
    keep &= ~_held(log)
    if not keep.any():
        return log.rows(keep)
    log = log.rows(keep)
    newest = np.maximum.accumulate(log.stamps)
    later: Mask = np.concatenate(([True], log.stamps[1:] > newest[:-1]))
    later[log.stamps <= 0] = False
    log = log.rows(later)
    log = dataclasses.replace(log, q=_unwrapped(log.q, facts))
    good: Mask = np.asarray(~spikes(log.q).any(axis=1))
    return log.rows(good)


def _in_radians(log: JointLog, facts: JointFacts) -> JointLog:
    factor = np.where(facts.turning, np.pi / 180.0, 1.0)
    dq = None if log.dq is None else log.dq * factor
    return dataclasses.replace(log, q=log.q * factor, dq=dq)


def liveliest_stretch(log: JointLog) -> JointLog:
    """The stretch without pauses or jumps, of `MAX_STRETCH` at most, with the most motion."""
    if len(log) < 3:
        return log
    times, active = log.times, moving(log)
    steps = np.abs(np.diff(log.q, axis=0))  # a clock that went back leaves a jump behind
    largest = np.maximum(JUMP_RATIO * np.quantile(steps, 0.99, axis=0), MIN_SPIKE)
    jumps = (steps > largest).any(axis=1)
    breaks = np.flatnonzero((np.diff(times) > MAX_PAUSE) | jumps) + 1
    total = np.concatenate(([0], np.cumsum(active)))
    best, chosen = -1, (0, len(log))
    bounds = [0, *breaks.tolist(), len(log)]
    for a, b in zip(bounds[:-1], bounds[1:], strict=True):
        for start in range(a, b, max(1, (b - a) // 50)):
            stop = min(int(np.searchsorted(times, times[start] + MAX_STRETCH)), b)
            if (count := int(total[stop] - total[start])) > best:
                best, chosen = count, (start, stop)
    return log.rows(slice(*chosen))


def moving(log: JointLog) -> Mask:
    """(n,) whether a joint moves, by differences over a tenth of a second on both sides."""
    times = log.times
    before = np.interp(times - 0.1, times, np.arange(len(log))).astype(int)
    after = np.minimum(np.searchsorted(times, times + 0.1), len(log) - 1)
    span = np.maximum(times[after] - times[before], 1e-9)[:, None]
    return np.asarray((np.abs(log.q[after] - log.q[before]) / span > REST_VELOCITY).any(axis=1))


def degrees(log: JointLog, facts: JointFacts) -> bool:
    """Test for degrees: most joints exceed their limits in radians, none in degrees."""
    # A joint without limits may turn many times: its angles are no evidence of the unit.
    limited = np.isfinite(facts.low) & np.isfinite(facts.high)
    known = facts.turning & limited & np.isfinite(log.q).any(axis=0)
    if not known.any():
        return False
    largest = np.nanquantile(np.abs(log.q[:, known]), 0.99, axis=0)
    bound = np.maximum(np.abs(facts.low), np.abs(facts.high))[known]
    bound = np.minimum(bound, 1.5 * TURN)
    beyond = largest > 1.5 * bound
    return bool(2 * beyond.sum() >= largest.size and (np.radians(largest) < 1.2 * bound).all())


# -------------------------------------------------------------------------------------------------
# The checks


def _names(log: JointLog) -> Iterator[Finding]:
    n = len(log)
    if log.missing:
        yield found("joints not published", log.missing, mends={"joints": log.names})
    if log.unknown:
        fault = bool(log.missing)
        yield found("names not in the URDF", fault=fault, names=listing(log.unknown))
    if log.doubled:
        yield found("doubled names", log.doubled)
    if log.unfit:
        yield found("wrong lengths", amount=log.unfit, count=log.unfit, total=n)
    if log.others:
        yield found("several kinds of message", count=log.others, total=n)


def _lacks(log: JointLog) -> Iterator[Finding]:
    """Facts that the learner makes good, of messages that differ from the others."""
    yield from (found("unreadable", told=told) for told in log.unreadable)
    lacks, total = log.lacks, len(log) + log.lacks.efforts + log.lacks.unread
    if lacks.efforts:
        other = 2 * lacks.elsewhere > lacks.efforts
        kind = "two publishers" if other else "messages without efforts"
        yield found(kind, amount=lacks.efforts, count=lacks.efforts, total=total)
    if n := lacks.velocities:
        yield found("messages without velocities", amount=n, count=n, total=len(log))
    if lacks.unread:
        yield found("efforts not measured yet", amount=lacks.unread, count=lacks.unread)
    if lacks.batch:
        rate = (len(log) - 1) / max(float(log.times[-1]), 1e-9)
        yield found("bursts", amount=lacks.batch, batch=lacks.batch, rate=rate)


def stamp_findings(stamps: Stamps) -> Iterator[Finding]:
    """Check the stamps (n,), in ns, of one topic's messages."""
    steps = np.diff(stamps) / SECOND
    if not steps.size:
        return
    ahead = steps[steps > 0.0]
    if not ahead.size:
        yield found("stamps stand")
        return
    usual = float(np.median(ahead))
    if zero := int(np.sum(stamps <= 0)):
        yield found("zero stamps", amount=zero, count=zero)
    if back := int(np.sum(steps < 0.0)):
        most = -float(steps.min())
        yield found("stamps go back", amount=most, count=back, most=1e3 * most)
    if same := int(np.sum(steps == 0.0)):
        fault = same > MIN_MISSING_SHARE * len(stamps)
        yield found("stamps repeat", amount=same, fault=fault, count=same)
    gap = (ahead > MIN_GAP) & (ahead > MIN_REPORTED_GAP_STEPS * usual)
    gaps, rest = ahead[gap], ahead[~gap]
    if gaps.size:
        longest, plural = float(gaps.max()), "s" if gaps.size > 1 else ""
        yield found("gaps", amount=longest, count=gaps.size, plural=plural, longest=longest)
    lost = float(np.sum(rest) / usual - rest.size)
    share = lost / (rest.size + lost)
    twice = float(np.mean(rest > 1.5 * usual))
    if share > MIN_MISSING_SHARE and twice > 0.5 * MIN_MISSING_SHARE:
        yield found("missing messages", amount=share, percent=100 * share, rate=1 / usual)
    single = rest[rest < 1.5 * usual]
    uneven = float(np.mean(np.abs(single - usual) > UNEVEN_STEP * usual))
    if uneven > MIN_UNEVEN_SHARE:
        spread = float(np.std(single))
        yield found(
            "uneven stamps",
            amount=spread,
            percent=100 * uneven,
            usual=1e3 * usual,
            most=100 * UNEVEN_STEP,
            spread=1e3 * spread,
        )


def _numbers(log: JointLog) -> Iterator[Finding]:
    for what, values in (("positions", log.q), ("velocities", log.dq), ("efforts", log.y)):
        if values is None:
            continue
        share = np.mean(~np.isfinite(values), axis=0)
        if share.any():
            names, most = _named(log, np.flatnonzero(share)), float(share.max())
            yield found("not a number", names, most, what=what, percent=100 * most)
    empty = _emptied(log)
    if count := int(empty.sum()):
        yield found("messages of zeros", amount=count, count=count)
    held = _held(log)
    if count := int(held.sum()):
        seconds = float(np.sum(np.diff(log.stamps)[held[1:]])) / SECOND
        yield found("repeated readings", amount=seconds, count=count, seconds=seconds)


def _units(log: JointLog, facts: JointFacts) -> Iterator[Finding]:
    if degrees(log, facts):
        yield found("degrees", reach=float(np.nanmax(np.abs(log.q))))
        log = _in_radians(log, facts)
    finite = log.rows(np.isfinite(log.q).all(axis=1) & ~_emptied(log))
    if len(finite) < 3:
        return
    jumps = _turns(finite.q, facts)
    if count := int(jumps.sum()):
        names = _named(log, np.flatnonzero(jumps.any(axis=0)))
        yield found("wraps", names, count, count=count)
    q = _unwrapped(finite.q, facts)
    wrong = spikes(q)
    if n := int(wrong.sum()):
        names = _named(log, np.flatnonzero(wrong.any(axis=0)))
        yield found("wrong positions", names, n, count=n)
    q = q[~wrong.any(axis=1)]
    out = np.mean((q < facts.low - 1e-3) | (q > facts.high + 1e-3), axis=0)
    beyond = np.flatnonzero(out > 0.01)
    if beyond.size and not count:
        ranges = ", ".join(
            f"{log.names[k]} {q[:, k].min():.2f} .. {q[:, k].max():.2f} "
            f"({facts.low[k]:.2f} .. {facts.high[k]:.2f})"
            for k in beyond
        )
        yield found("limits", _named(log, beyond), ranges=ranges)


def _velocities(log: JointLog) -> Iterator[Finding]:
    zero = log.dq is not None and not np.nan_to_num(log.dq).any()
    if zero and not moving(log).any():
        return  # of an arm at rest they are true
    if log.dq is None or zero:
        all_zero = "all velocities are 0 though the arm moves"
        yield found("no velocities", what=all_zero if zero else "the messages have no velocities")
        return
    if len(log) < 50:
        return
    # Both smoothed over a tenth of a second, so that a driver's own filter hardly matters.
    times = log.times
    middle = 0.5 * (times[1:] + times[:-1])
    slope = np.diff(log.q, axis=0) / np.diff(times)[:, None]
    fastest = JUMP_RATIO * np.quantile(np.abs(slope), 0.99, axis=0)
    motion = (np.abs(slope) <= fastest).all(axis=1)  # not a jump that a clock left behind
    middle, slope = middle[motion], slope[motion]
    width = max(1, round(0.1 / float(np.median(np.diff(times)))))
    window = np.ones(width) / width
    for k, name in enumerate(log.names):
        told = np.interp(middle, times, log.dq[:, k])
        if not np.isfinite(told).all():
            continue
        a, b = (np.convolve(x, window, mode="valid") for x in (slope[:, k], told))
        if a.std() < REST_VELOCITY:
            continue
        if b.std() < 1e-3 * a.std():
            yield found("velocity missing", (name,), way=float(np.ptp(log.q[:, k])))
            continue
        factor = float(a @ b / (a @ a))
        match = float(np.corrcoef(a, b)[0, 1])
        if abs(match) > 0.9 and not 0.75 < factor < 1.33:
            unit = ", as degrees would be" if abs(factor / np.degrees(1.0) - 1.0) < 0.1 else ""
            yield found("velocity scale", (name,), factor, factor=factor, unit=unit)
        elif match < 0.5:
            yield found("velocity", (name,), match, match=match)


def _efforts(log: JointLog, samples: StreamConfig) -> Iterator[Finding]:
    if log.y is None:
        yield found("no efforts")
        return
    active = moving(log)
    y = log.y[active]
    if len(y) < 50:
        return
    stuck = left_out(log.names, log.stamps, log.y, log.q, samples)[STUCK]
    limits = one_or_each("samples.saturation", samples.saturation or (np.inf,), len(log.names))
    seconds = float(np.mean(active)) * log.times[-1]
    for k, name in enumerate(log.names):
        column = y[:, k]
        if not np.isfinite(column).all():
            continue
        if np.ptp(column) == 0.0:
            yield found("effort missing", (name,), value=column[0] + 0.0)  # not -0
            continue
        zeros = float(np.mean(column == 0.0))
        if zeros > 0.3:
            yield found("efforts mostly zero", (name,), zeros, percent=100 * zeros)
            continue
        values = np.unique(column)
        step = float(np.median(np.diff(values)))
        if values.size < 200 and step > COARSE_STEP * column.std():
            little = seconds < LITTLE_MOTION  # in which the deviation is not what it will be
            doubt = "; in more motion it may be less" if little else ""
            ratio = float(step / column.std())
            yield found(
                "coarse steps", (name,), step, fault=not little, step=step, ratio=ratio, doubt=doubt
            )
            continue
        known = bool(np.abs(column).max() >= limits[k])  # by samples.saturation
        if not known and (clip := clipped(column)) is not None:
            extreme, share = clip
            # One limit is for both signs: it must not take the other end's good efforts away.
            largest = abs(extreme) >= np.abs(values[[0, -1]]).max()
            limit = {"samples.saturation": abs(extreme) * (1.0 - 1e-6)} if largest else {}
            where = "with samples.saturation" if largest else "where the learner sees that, too"
            percent = 100 * share
            yield found(
                "clipped efforts",
                (name,),
                abs(extreme),
                limit,
                extreme=extreme,
                percent=percent,
                where=where,
            )
        elif k in stuck and (count := int(np.sum(np.abs(log.y[stuck[k][1], k]) < limits[k]))):
            yield found(STUCK, (name,), count, count=count, told=stuck[k][0])


def left_out(
    names: Sequence[str], stamps: Stamps, readings: Array, q: Array, samples: StreamConfig
) -> dict[str, dict[int, tuple[str, list[int]]]]:
    """Of each fault its axes, each with a sentence and its rows, by the stage that the learner has.

    names: of the joints whose efforts are read; empty: a wrench is.
    """
    found: dict[str, dict[int, tuple[str, list[int]]]] = defaultdict(dict)
    faults = SensorFaults(names, samples)
    for row, reading in enumerate(zip(*(a.tolist() for a in (stamps, readings, q)), strict=True)):
        for axis, kind, sentence in faults(*reading):
            found[kind].setdefault(axis, (sentence, []))[1].append(row)
    return found


def as_evidence(log: JointLog, samples: StreamConfig) -> JointLog:
    """The log with NaN for efforts that stick or are saturated: they follow no motion."""
    if log.y is None or not len(log):
        return log
    y, active = log.y.copy(), moving(log)
    for axes in left_out(log.names, log.stamps, log.y, log.q, samples).values():
        for k, (_, rows) in axes.items():
            y[rows, k] = np.nan
    for column, told in zip(y.T, log.y.T, strict=True):
        if active.any() and (clip := clipped(told[active])) is not None:
            column[(told <= clip[0]) if clip[0] < 0.0 else (told >= clip[0])] = np.nan
            column[np.abs(told) >= abs(clip[0])] = np.nan
    return dataclasses.replace(log, y=y)


def _motion(log: JointLog) -> Iterator[Finding]:
    times, active = log.times, moving(log)
    edges = np.flatnonzero(np.diff(np.concatenate(([True], active, [True])).astype(int)))
    rests = [(times[a], times[b - 1]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    rests = [(a, b) for a, b in rests if b - a > MIN_REST]
    if rests:
        when = listing([f"{a:.1f} .. {b:.1f} s" for a, b in rests], most=4)
        seconds = sum(b - a for a, b in rests)
        yield found("rest", amount=seconds, seconds=seconds, when=when)
    seconds = float(np.mean(active)) * times[-1]
    if seconds < LITTLE_MOTION:
        yield found("little motion", amount=seconds, seconds=seconds)
    stands = np.flatnonzero(np.ptp(log.q, axis=0) < STANDING_RANGE)
    if stands.size:
        places = ", ".join(f"{log.q[0, k]:.3f}" for k in stands)
        yield found("joint stands", _named(log, stands), places=places)


# -------------------------------------------------------------------------------------------------
# What is found in arrays


def _named(log: JointLog, joints: Indices) -> tuple[str, ...]:
    return tuple(log.names[int(k)] for k in joints)


def _emptied(log: JointLog) -> Mask:
    """(n,) messages that put all joints at exactly 0, where the one before or after doesn't."""
    zero: Mask = (log.q == 0.0).all(axis=1) & (log.q.shape[1] > 1)
    near = np.concatenate((log.q[:1], log.q, log.q[-1:]))
    far = np.maximum(np.abs(near[:-2]).max(axis=1), np.abs(near[2:]).max(axis=1)) > MIN_SPIKE
    return np.asarray(zero & far & (np.mean(zero) < 0.1))


def _held(log: JointLog) -> Mask:
    """(n,) messages that repeat the one before while the arm moves, by what comes after them."""
    same = np.zeros(len(log), dtype=bool)
    if len(log) < 10:
        return same
    same[1:] = _equal(log.q[1:], log.q[:-1])
    if log.y is not None:
        same[1:] &= _equal(log.y[1:], log.y[:-1])
    fresh = np.flatnonzero(~same)
    if fresh.size < 3:
        return np.zeros(len(log), dtype=bool)
    run = np.diff(np.append(fresh, len(log))) - 1  # repeats after each fresh reading
    move = np.nan_to_num(np.abs(np.diff(log.q[fresh], axis=0))).max(axis=1)
    usual = float(np.median(move[run[:-1] == 0])) if (run[:-1] == 0).any() else 0.0
    held = np.zeros(len(log), dtype=bool)
    for i in np.flatnonzero(run[:-1]):
        # A reading at rest repeats as well: what counts is that the arm was elsewhere afterwards.
        if move[i] > max(0.1 * usual * run[i], 3.0 * usual, 1e-3):
            held[fresh[i] + 1 : fresh[i + 1]] = True
    return held


def _equal(a: Array, b: Array) -> Mask:
    """(n,) rows that are the same; a number that is missing in both is no difference."""
    return np.asarray(((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1))


def _turns(q: Array, facts: JointFacts) -> Mask:
    """(n - 1, k) steps of about a turn."""
    steps = np.diff(q, axis=0)
    whole = np.round(steps / TURN)
    usual = np.quantile(np.abs(steps), 0.9, axis=0)
    near: Mask = np.abs(steps - TURN * whole) < np.maximum(5.0 * usual, 0.05)
    return np.asarray(near & (whole != 0.0) & facts.turning & (usual < 1.0))


def _unwrapped(q: Array, facts: JointFacts) -> Array:
    if len(q) < 2:
        return q
    turns = np.where(_turns(q, facts), np.round(np.diff(q, axis=0) / TURN), 0.0)
    return np.asarray(q - TURN * np.concatenate((0.0 * q[:1], np.cumsum(turns, axis=0))))


def spikes(q: Array, least: float = MIN_SPIKE) -> Mask:
    """(n, k) single values far from both neighbours, which are near to each other.

    least: the smallest distance that counts, in the values' unit.
    """
    found = np.zeros(q.shape, dtype=bool)
    if len(q) < 10:
        return found
    away = np.abs(q[1:-1] - 0.5 * (q[:-2] + q[2:]))
    across = np.abs(q[2:] - q[:-2])
    usual = np.quantile(away, 0.95, axis=0)
    found[1:-1] = (away > np.maximum(least, 20.0 * usual)) & (across < 0.5 * away)
    return found


def clipped(values: Array) -> tuple[float, float] | None:
    """The extreme that readings (n,) stay at exactly, and their share there; None: they do not."""
    found, counts = np.unique(values, return_counts=True)
    if found.size < 2 or not np.isfinite(found).all():
        return None
    end = -1 if counts[-1] > counts[0] else 0
    if counts[end] > max(MIN_CLIPPED_SHARE * len(values), 10.0 * np.median(counts)):
        return float(found[end]), float(counts[end]) / len(values)
    return None
