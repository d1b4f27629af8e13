"""The joint states of a bag as they were sent, bad ones included."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array, Indices, Mask, Stamps
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.dynamics.clock import FIRST_STEPS, batch_step
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
from semiparam_dynamics.samples.sensors import ENCODER_NOISE, UnreadEfforts


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
