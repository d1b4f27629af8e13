"""The joints that messages name: the wanted ones, and messages that name only some of them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.robot.urdf import UrdfTree, extent
from semiparam_dynamics.samples.joint_states import JointStateMessage
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE

# Joint states that tell which joints are published, and where they stand: so many at least.
FIRST_MESSAGES, FIRST_SECONDS = 200, 10.0
MIN_LIST_SHARE = (
    0.01  # of the messages of the usual joints: others that come more seldom do not count
)
MIN_JOINED_SHARE = 0.9  # of a topic's messages that have another part of the robot at their stamp
MAX_PARTS_APART = SECOND // 1000  # ns: a driver's messages on one cycle of 1 kHz, the fastest usual
MAX_REMEMBERED = 20  # of joint names, or frames of wrenches, that are remembered
MAX_NAMES = 10_000  # a message that names more joints is of no robot
MAX_QUOTED = 60  # characters of a name that a sentence repeats


def stamp_of(message: Any) -> int:
    """A stamped message's time, ns."""
    stamp = message.header.stamp
    return int(stamp.sec) * SECOND + int(stamp.nanosec)


def joint_positions(message: Any, wanted: Iterable[str]) -> dict[str, float]:
    """The positions of `wanted` joints in a JointState, by name; of a bad message none."""
    try:
        names, positions = message.name, message.position
        if len(names) > MAX_NAMES or len(positions) != len(names):
            return {}
        given = dict(zip(names, positions, strict=True))
        found = {name: float(given[name]) for name in wanted if name in given}
    except (AttributeError, TypeError, ValueError, OverflowError):
        return {}
    return {name: value for name, value in found.items() if abs(value) <= IMPLAUSIBLE}


def first_positions(messages: Iterable[Any], wanted: Collection[str]) -> dict[str, float]:
    """Place of each of `wanted` where JointStates had it first; of those that a message names."""
    found: dict[str, float] = {}
    for message in messages:
        found = joint_positions(message, wanted) | found
    return found


def joints_together(
    tree: UrdfTree, lists: Iterable[Sequence[str]], joints: Sequence[str]
) -> tuple[str, ...]:
    """Those of `joints`, in order, that come in one message, by the messages' lists of names.

    Of messages with different joints, an arm's and its hand's say, those with the longest chain,
    see `extent`; of two arms' the first one in `joints`.
    """
    kinds = {tuple(name for name in joints if name in names) for names in lists}

    def rank(kind: tuple[str, ...]) -> tuple[int, int, list[int]]:
        chain, number = extent(tree, kind)
        return -chain, -number, [*map(joints.index, kind)]

    return min(kinds, key=rank, default=())


def without_strays(lists: Iterable[Sequence[str]]) -> Counter[tuple[str, ...]]:
    """Messages' lists of names and how often each came, but for those that hardly ever did."""
    counts = Counter(map(tuple, lists))
    least = MIN_LIST_SHARE * max(counts.values(), default=0)
    return Counter({names: count for names, count in counts.items() if count >= least})


def naming_remedy(names: Iterable[str], joints: Sequence[str]) -> str:
    """A remedy where messages' names are the URDF's but for a prefix; empty otherwise."""
    names = sorted(set(names))
    for given, wanted, to_bag in ((names, joints, True), (joints, names, False)):
        found = Counter(
            name.removesuffix(joint)
            for name, joint in itertools.product(given, wanted)
            if joint and name != joint and name.endswith(joint)
        )
        (prefix, count), *_ = found.most_common(1) or [("", 0)]
        if not prefix or 2 * count < min(len(names), len(joints)):
            continue
        if not re.fullmatch(r"[\w/.-]+", prefix):  # what comes over the network is in no command
            continue
        at = prefix.replace("/", r"\/").replace(".", r"\.")
        edit = ('"', f'"{at}') if to_bag else (f'"{at}', '"')
        begin, where = (
            ("the bag's", "the URDF's lack") if to_bag else ("the URDF's", "the bag's lack")
        )
        return (
            f"{begin} names begin with '{prefix}', which {where}: write a copy of the URDF with "
            f"the bag's names, by sed -E 's/(<(joint|mimic) [^>]*(name|joint)=){edit[0]}/\\1"
            f"{edit[1]}/' robot.urdf > renamed.urdf, and name it with --urdf"
        )
    return ""


class JointMatcher:
    """Finds the wanted joints among a message's names: the order is its publisher's own business.

    The answers for the lists of names that came are kept, since publishers hardly ever change
    theirs. Joints that aren't wanted are ignored, even where their names are doubled.

    Attributes
    ----------
    seen: the last list of names; None where it is to be matched anew.
    pick: gives the wanted joints' entries, in order, of a list of numbers for these names.
    problem: why the last list of names was refused (``missing joint``, ``duplicate joint name``,
        ``too many joints``), empty where it was accepted.
    detail: the same as a sentence that names the joints.
    lists: different lists of names that came, at most `MAX_REMEMBERED`.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self.lists: set[tuple[str, ...]] = set()
        self.problem = ""
        self.detail = ""
        self._lately: set[tuple[str, ...]] = set()
        self.seen: list[str] | None = None
        self.pick: Callable[[Sequence[float]], tuple[float, ...]] = tuple
        self._found: dict[tuple[str, ...], tuple[Any, str, str]] = {}

    def match(self, names: Sequence[str], useful: bool = True) -> bool:
        """Find the wanted joints in a list of names; whether all are there, once each.

        useful: whether :meth:`lately` is to report the list.
        """
        if names == self.seen:
            return not self.problem
        if len(names) > MAX_NAMES:
            # Before anything is made of them: a list of millions would be counted each time.
            self.seen, self.problem = None, "too many joints"
            self.detail = f"the message names {len(names)} joints; {MAX_NAMES} are allowed"
            return False
        self.seen, key = list(names), tuple(names)
        found = self._found.get(key)
        if found is None:
            found = self._find(self.seen)
            if len(self._found) < MAX_REMEMBERED:
                self._found[key] = found
        self.pick, self.problem, self.detail = found
        if len(self.lists) < MAX_REMEMBERED:
            self.lists.add(key)
        if useful and len(self._lately) < MAX_REMEMBERED:
            self._lately.add(key)
        return not self.problem

    def lately(self) -> set[tuple[str, ...]]:
        """The lists of names that came since the last call, at most `MAX_REMEMBERED`."""
        lately, self._lately = self._lately, set()
        self.seen = None  # one that continues is reported again
        return lately

    def _find(self, names: list[str]) -> tuple[Any, str, str]:
        """The function that picks the wanted joints; the problem with its sentence, or nothing."""
        count = Counter(names)
        missing = [name for name in self.joint_names if not count[name]]
        doubled = [name for name in self.joint_names if count[name] > 1]
        if missing:
            there = ", ".join(name[:MAX_QUOTED] for name in names[:20]) or "none"
            told = f"no {', '.join(missing)} among the message's joints: {there}"
            return tuple, "missing joint", told
        if doubled:
            told = f"the message names {', '.join(doubled)} more than once"
            return tuple, "duplicate joint name", told
        index = [names.index(name) for name in self.joint_names]
        if len(index) > 1:
            return itemgetter(*index), "", ""
        # With one index itemgetter gives no tuple.
        return (lambda values: tuple(values[i] for i in index)), "", ""


class EffortJoiner:
    """Joins efforts that come in a message of their own to the one before, of the same stamp.

    A message without efforts is passed on at once. Where efforts of its joints follow, later ones
    wait for theirs.

    Attributes
    ----------
    before: the last message, where it has no efforts; else None.
    """

    def __init__(self) -> None:
        self.before: Any = None
        self._waits = False  # for efforts

    def __call__(self, message: Any) -> list[Any]:
        """The messages to be read now."""
        before, self.before = self.before, None
        joined = None if before is None else one_reading(before, message)
        ready = self._ready(before) if joined is None else []
        if joined is not None and self._waits:
            message = joined
        elif joined is not None and len(message.effort) and before.name == message.name:
            self._waits = True
        if len(message.effort):
            return [*ready, message]
        self.before = message
        return ready if self._waits else [message]

    def flush(self) -> list[Any]:
        """The message that waits: no more come."""
        before, self.before = self.before, None
        return self._ready(before)

    def _ready(self, waiting: Any) -> list[Any]:
        return [waiting] if self._waits and waiting is not None else []


def one_reading(first: Any, second: Any) -> JointStateMessage | None:
    """Two messages that follow each other as one: of different joints, or efforts apart.

    Of one stamp and the same joints that which has efforts counts, with what it lacks of the other:
    a second publisher may know positions alone, and make them up. None where they are two readings.
    """
    apart = stamp_of(second) - stamp_of(first)
    if not 0 <= apart <= MAX_PARTS_APART or len(first.name) + len(second.name) > MAX_NAMES:
        return None
    fields = ("position", "velocity", "effort")
    if not set(first.name) & set(second.name):
        names = [*first.name, *second.name]
        parts = (_joined(first, second, field) for field in fields)
        return JointStateMessage(second.header, names, *parts)
    with_efforts, other = (second, first) if len(second.effort) else (first, second)
    if apart or len(other.effort) or list(first.name) != list(second.name):
        return None
    values = [getattr(with_efforts, f) for f in fields]
    if not len(values[0]):
        values[:2] = other.position, other.velocity
    arrays = (np.asarray(value, dtype=np.float64) for value in values)
    return JointStateMessage(second.header, list(second.name), *arrays)


def _joined(first: Any, second: Any, field: str) -> Array:
    """The values of both messages' joints, NaN where one has none; nothing where both have none."""
    values = [np.asarray(getattr(message, field), dtype=np.float64) for message in (first, second)]
    if not any(given.size for given in values):
        return values[0]
    for k, message in enumerate((first, second)):
        if not values[k].size:
            values[k] = np.full(len(message.name), np.nan)
    return np.concatenate(values)


def whole_messages(messages: Sequence[Any]) -> Sequence[Any]:
    """The JointStates of a robot whose joints come in several messages of one stamp, as one each.

    Where only some messages have a part at their stamp all of them are left as they are.
    """
    whole: list[Any] = []
    for message in messages:
        joined = one_reading(whole[-1], message) if whole else None
        if joined is not None:
            whole[-1] = joined
        else:
            whole.append(message)
    return whole if len(messages) - len(whole) >= MIN_JOINED_SHARE * len(whole) else messages
