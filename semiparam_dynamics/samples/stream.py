"""From ROS messages to measurements: every check that a message has to pass, in one place.

A live node and a bag reader hand their messages to the same `MeasurementStream`, so that both
learn from the same measurements.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter, mul
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import NANO, SECOND, WRENCH_AXES, Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.robot.urdf import Lock, UrdfTree, extent
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, Measurement, StreamConfig
from semiparam_dynamics.samples.pairing import WrenchPairer
from semiparam_dynamics.samples.sensor_faults import (
    SATURATED,
    SUSPECTED,
    TURN,
    SensorFaults,
    StuckPositions,
    ZeroVelocities,
)

# Joint states that tell which joints are published, and where they stand: so many at least.
FIRST_MESSAGES, FIRST_SECONDS = 200, 10.0
MIN_LIST_SHARE = (
    0.01  # of the messages of the usual joints: others that come more seldom do not count
)
MAX_LISTS = 20  # of different joint names that are remembered
MAX_NAMES = 10_000  # a message that names more joints is of no robot
MAX_QUOTED = 60  # characters of a name that a sentence repeats
MAX_FRAMES = 16
MOVED = "locked joint moved"
MAX_EFFORT_STEP = SECOND // 10  # ns: between efforts that are further apart none is interpolated
OTHER_FRAME = "wrench in another frame"
MIN_VELOCITY_SPAN = 0.01  # s: velocities that stand in are no noisier than differences over so long
MIN_LACKING = 200  # messages without one number of a joint's: it has no such sensor
MAX_LISTED = 8  # joints that a sentence names
NO_EFFORT = "joint without effort"
NO_VELOCITY = "joint without velocity"
MIN_LATE_RUN = 3  # late messages, in order among themselves: the clock was set back


class MeasurementStream:
    """Turns JointState and WrenchStamped messages into measurements with increasing stamps.

    Messages are those of rclpy or of rosbags, or anything with the same fields. A bad message never
    raises and never changes what good ones give: it is dropped and counted.

    Parameters
    ----------
    joint_names: the wanted joints in order, matched by name; other joints are ignored.
    target: ``effort`` (y are the joints' efforts) or ``wrench`` (y is the paired wrench).
    config: tolerances.
    wrench_frame: where given, the sensor frame's name, or its names: wrenches in another frame
        (``header.frame_id``) than these and `config.wrench_frames` are dropped; an empty frame_id
        is accepted.
    effort_limits: (n_joints,) of the URDF, infinite where it has none, for `saturation_share`.
    locks: of joints that are not wanted: while one stands elsewhere nothing is measured.

    Raises ConfigurationError for an unknown target, and where `config.saturation` has neither one
    number nor one for each axis, and `config.effort_scale` neither one nor one for each joint.

    Attributes
    ----------
    received: messages taken in, by topic (``joint states``, ``wrenches``).
    dropped: reason -> count. A joint state with one of the reasons in `INCOMPLETE` still gives a
        measurement, without the part in question, which of efforts is the joint's own; all others
        give none. ``clock jumped`` is counted once a jump; that message is accepted, and a stamp
        may then be below the last one.
    details: reason -> a sentence on the first message dropped for it, where there is more to say;
        of efforts one for each joint. First means since the last :meth:`recent_details`.
    frames: the frame_ids seen in wrenches.
    lists: different lists of joint names that came, at most `MAX_LISTS`.
    newest: stamp of the last joint state, ns; 0 before the first.
    """

    INCOMPLETE = (
        "no effort",
        "effort not finite",
        NO_EFFORT,
        "effort stuck",
        SATURATED,
        SUSPECTED,
        MOVED,
        "velocity not finite",
        NO_VELOCITY,
        "unpaired joint state",
    )

    def __init__(
        self,
        joint_names: Sequence[str],
        target: str = "effort",
        config: StreamConfig | None = None,
        *,
        wrench_frame: str | Sequence[str] = "",
        effort_limits: Array | None = None,
        locks: Mapping[str, Lock] | None = None,
    ) -> None:
        if target not in ("effort", "wrench"):
            raise ConfigurationError(f"the target must be effort or wrench, not '{target}'")
        config = config or StreamConfig()
        self.received: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.details: dict[str, str] = {}
        self.frames: set[str] = set()
        self._effort = target == "effort"
        self._matcher = JointMatcher(joint_names)
        self.lists = self._matcher.lists
        self._delay = round(config.effort_delay * SECOND) if self._effort else 0
        if self._delay:  # efforts are paired with positions as wrenches are, at earlier stamps
            self._pairer = WrenchPairer(MAX_EFFORT_STEP, abs(self._delay), self.dropped, "effort")
        else:
            self._pairer = WrenchPairer(
                round(config.pair_tolerance * SECOND),
                round(config.pair_wait * SECOND),
                self.dropped,
                details=self.details,
            )
        self._clock_jump = round(config.clock_jump * SECOND)
        given = [wrench_frame] if isinstance(wrench_frame, str) else wrench_frame
        frames = [frame.lstrip("/") for frame in given if frame]
        if frames:
            frames += [frame.lstrip("/") for frame in config.wrench_frames]
        self._wrench_frames = tuple(dict.fromkeys(frames))
        self._told: set[tuple[str, int]] = set()  # faults of efforts that `details` has
        self._faults = SensorFaults(
            self._matcher.joint_names if self._effort else (), config, effort_limits
        )
        scale = one_or_each("samples.effort_scale", config.effort_scale, len(joint_names), "joints")
        self._effort_scale = () if bool(np.all(scale == 1.0)) else tuple(scale.tolist())
        self._positions = StuckPositions(self._matcher.joint_names, config)
        # Of the last joint state that was not stuck, with the velocity that it was taken to have.
        self._q: Sequence[float] | None = None
        self._dq: Sequence[float] | None = None
        self._q_stamp = 0
        names = self._matcher.joint_names
        self._no_effort, self._no_velocity = LackingJoints(names), LackingJoints(names)
        self._placed: set[int] = set()  # joints that had a position while others never had one
        self._news: list[str] = []
        self._locks = locks or {}
        self._elsewhere_now: dict[str, float] = {}  # positions of the locked joints that moved
        self._moved = False  # the driver has given a velocity other than zero
        self._zeros = ZeroVelocities(config)
        self.newest = self._newest_wrench = 0
        self._late_joint_states: list[int] = []  # stamps since the last one in time
        self._late_wrenches: list[int] = []

    def joint_state(self, message: Any) -> list[Measurement]:
        """Take one sensor_msgs/JointState in; return the measurements that are complete now.

        Of the checks only those that find something are calls: it runs a thousand times a second.
        """
        self.received["joint states"] += 1
        if self._locks:
            self._follow_locks(message)
        try:
            matcher, effort = self._matcher, message.effort
            if message.name != matcher.seen:
                matcher.match(message.name, not self._effort or len(effort) > 0)
            if matcher.problem:
                return self._drop(matcher.problem, matcher.detail)
            n, n_dq, n_effort = len(message.name), len(message.velocity), len(effort)
            if len(message.position) != n or n_dq not in (0, n) or n_effort not in (0, n):
                sizes = f"{len(message.position)} positions, {n_dq} velocities, {n_effort} efforts"
                return self._drop("wrong length", f"{n} names, {sizes}")
            # For a handful of numbers plain Python is faster than NumPy: checks are of tuples.
            values = message.position
            position = matcher.pick(values.tolist() if hasattr(values, "tolist") else values)
            if not sum(map(abs, position)) <= IMPLAUSIBLE and (problem := _problem(position)):
                return self._drop(problem, self._misplaced(position))
            q = np.array(position, dtype=np.float64)
            stamp = message.header.stamp
            stamp = int(stamp.sec) * SECOND + int(stamp.nanosec)
            released: list[Measurement] = []
            if stamp <= self.newest or stamp <= 0 or self._late_joint_states:
                jumped = self._out_of_order(stamp, self.newest, self._late_joint_states)
                if jumped is None:
                    return []
                if jumped:
                    limit = 0 if self._effort else stamp + self._clock_jump  # efforts jump as well
                    released = self._pairer.restart_joint_states(limit)
            self.newest = stamp
            velocity = None
            if n_dq:
                values = message.velocity
                velocity = matcher.pick(values.tolist() if hasattr(values, "tolist") else values)
                if not self._zeros.done or not sum(map(abs, velocity)) <= IMPLAUSIBLE:
                    velocity = self._velocity(stamp, velocity, position)
                else:
                    self._no_velocity.unknown.clear()
            if stuck := self._positions(stamp, position, velocity):
                self._drop("position stuck", stuck)
                return released
            self._q, self._dq, self._q_stamp = position, velocity, stamp
            dq = None if velocity is None else np.array(velocity, dtype=np.float64)
            y = self._efforts(stamp, effort) if self._effort else None
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            return self._drop("malformed", str(error))
        if self._effort and not self._delay:
            return [Measurement(stamp, q, dq, y)]
        if y is not None:
            released += self._pairer.wrench(stamp - self._delay, y)
        return released + self._pairer.joint_state(Measurement(stamp, q, dq, None))

    def wrench(self, message: Any) -> list[Measurement]:
        """Take one geometry_msgs/WrenchStamped in; return the measurements complete now."""
        self.received["wrenches"] += 1
        try:
            return self._wrench(message)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            return self._drop("malformed", str(error))

    def lately(self) -> set[tuple[str, ...]]:
        """The lists of joint names that came since the last call, with efforts where they count."""
        return self._matcher.lately()

    def recent_details(self) -> dict[str, str]:
        """Return `details` and clear it: the next ones are of later messages."""
        details = self.details.copy()
        self.details.clear()
        self._told.clear()
        return details

    def news(self) -> list[str]:
        """Sentences on what joints lack permanently, each given once.

        joint_state_broadcaster publishes NaN for each interface that a joint does not have.
        """
        news, self._news = self._news, []
        return news

    def flush(self) -> list[Measurement]:
        """Release the joint states that wait for a wrench or effort: the messages have ended."""
        return self._pairer.flush()

    def _wrench(self, message: Any) -> list[Measurement]:
        frame = message.header.frame_id
        if frame[:MAX_QUOTED] not in self.frames and len(self.frames) < MAX_FRAMES:
            self.frames.add(frame[:MAX_QUOTED])
        if self._wrench_frames and frame and frame.lstrip("/") not in self._wrench_frames:
            return self._drop(OTHER_FRAME, self._elsewhere(frame))
        force, torque = message.wrench.force, message.wrench.torque
        values = [force.x, force.y, force.z, torque.x, torque.y, torque.z]
        if problem := _problem(values):
            told = "; ".join(f"{WRENCH_AXES[k]} of the wrench is {x:g}" for k, x in _wrong(values))
            return self._drop(problem, told)
        wrench = np.array(values, dtype=np.float64)
        stamp = int(message.header.stamp.sec) * SECOND + int(message.header.stamp.nanosec)
        jumped = self._out_of_order(stamp, self._newest_wrench, self._late_wrenches)
        if jumped is None or self._effort:
            return []
        released: list[Measurement] = []
        if jumped:
            released = self._pairer.restart_wrenches(stamp + self._clock_jump)
        self._newest_wrench = stamp
        if faults := self._faults(stamp, values, self._q):
            # One sensor measures all of them.
            self._drop(*faults[0][1:])
            return released
        if self._elsewhere_now:
            self._drop(MOVED, self.moved())
            return released
        released += self._pairer.wrench(stamp, wrench)
        return released

    def _out_of_order(self, stamp: int, last: int, late: list[int]) -> bool | None:
        """None: refused and counted; True: the clock has gone back; False: all is well.

        late: stamps of the topic's messages refused since `last`, in order.
        """
        if stamp <= 0:
            self._drop("zero stamp")
            return None
        if stamp > last:
            late.clear()
            return False
        if stamp == last:
            self._drop("repeated stamp")
            return None
        if late and stamp <= late[-1]:
            late.clear()
        late.append(stamp)
        if last - stamp <= self._clock_jump and len(late) < MIN_LATE_RUN:
            self._drop("out of order")
            return None
        late.clear()
        back = (last - stamp) / SECOND
        self._drop("clock jumped", f"stamps went back by {back:.3f} s: a restarted clock or bag")
        return True

    def _velocity(
        self, stamp: int, values: tuple[float, ...], position: Sequence[float]
    ) -> tuple[float, ...] | None:
        if not self._moved:
            # Drivers that never fill velocity leave zeros. Until one isn't zero it is unknown
            # which kind this is; the velocity of a robot at rest is zero by differences as well.
            if not any(values):
                return None
            self._moved = any(0.0 < abs(value) <= IMPLAUSIBLE for value in values)
        unknown: list[int] = []
        begins = False
        if self._moved and not self._zeros.done:
            unknown, begins = self._unfilled(stamp, values, position)
        if _problem(values):
            wrong = _wrong(values)
            self._report_velocities(values, wrong)
            unknown = sorted({*unknown, *(k for k, _ in wrong)})
        else:
            self._no_velocity.unknown.clear()
        if begins:  # filters start anew: the step from zero to a velocity would pass for a jerk
            return None
        return self._mended(stamp, values, position, unknown) if unknown else values

    def _unfilled(
        self, stamp: int, values: tuple[float, ...], position: Sequence[float]
    ) -> tuple[list[int], bool]:
        """The joints whose velocity is a zero that nobody filled; and whether one is noticed."""
        unknown, new = self._zeros(stamp, self._q_stamp, values, position)
        if new:
            self._news.append(
                f"{self._listed(new)}: every velocity has been 0, though the joint moves and "
                "others have theirs; differences of positions take its place from now on, "
                "without a further word"
            )
        if unknown:
            told = ""
            if NO_VELOCITY not in self.details:
                told = (
                    f"every velocity of {self._listed(unknown)} has been 0, though the joint "
                    "moves: differences of positions take its place (samples.stuck_motion)"
                )
            self._drop(NO_VELOCITY, told)
        return unknown, bool(new)

    def _report_velocities(self, values: Sequence[float], wrong: list[tuple[int, float]]) -> None:
        """Count and tell that these velocities are no numbers."""
        if lacking := self._no_velocity(values):
            self._news.append(
                f"{self._listed(lacking)}: no velocity has ever been a number; differences of "
                "positions take its place from now on, without a further word"
            )
        reason, told = "velocity not finite", ""
        if reason not in self.details:  # a joint may lack it in every message
            told = f"{self._told_of('velocity', wrong)}: differences of positions take its place"
        self._drop(reason, told)

    def _mended(
        self,
        stamp: int,
        values: tuple[float, ...],
        position: Sequence[float],
        unknown: Sequence[int],
    ) -> tuple[float, ...] | None:
        """Velocities with differences of positions in place of those that are unknown.

        None where most joints have none: positions of all are differentiated later, and better.
        """
        before, step = self._q, (stamp - self._q_stamp) * NANO
        if not self._moved or before is None or step <= 0.0 or 2 * len(unknown) > len(values):
            return None
        mended = list(values)
        for k in unknown:
            moved = position[k] - before[k]
            moved -= TURN * round(moved / TURN)  # a driver may wrap
            if self._dq is not None:
                last = self._dq[k]
            else:
                last = moved / step if k in self._zeros.noticed else 0.0
            mended[k] = last + (moved - last * step) / max(step, MIN_VELOCITY_SPAN)
        return tuple(mended)

    def _misplaced(self, position: Sequence[float]) -> str:
        """A sentence on the positions that are no numbers, and on joints that never had one."""
        wrong = _wrong(position)
        bad = {k for k, _ in wrong}
        told = self._told_of("position", wrong)
        if self._q is not None:
            return told
        self._placed |= set(range(len(position))) - bad
        if not (never := sorted(bad - self._placed)):
            return told
        return (
            f"{told}; no joint state can be used before each joint has had a position, and "
            f"{self._listed(never)} never had one: have it published, or leave such joints out "
            "by the parameter 'joints'"
        )

    def _told_of(self, field: str, wrong: list[tuple[int, float]]) -> str:
        names = self._matcher.joint_names
        told = [f"the {field} of {names[k]} is {value:g}" for k, value in wrong[:MAX_LISTED]]
        more = len(wrong) - MAX_LISTED
        return "; ".join(told) + (f"; and of {more} more joints" if more > 0 else "")

    def _listed(self, joints: Sequence[int]) -> str:
        names = [self._matcher.joint_names[k] for k in joints]
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        return ", ".join(names[:MAX_LISTED]) + more

    def _efforts(self, stamp: int, values: Any) -> Array | None:
        if not len(values):
            self._drop("no effort", "the joint states carry no effort: nothing can be learned")
            return None
        values = values.tolist() if hasattr(values, "tolist") else values
        effort = self._matcher.pick(values)
        if self._effort_scale:  # before the checks, whose limits are in N m
            effort = tuple(map(mul, effort, self._effort_scale))
        y = np.array(effort, dtype=np.float64)
        faults = self._faults(stamp, effort, self._q)
        if not sum(map(abs, effort)) <= IMPLAUSIBLE and _problem(effort):
            faults += self._no_numbers(effort)
        else:
            self._no_effort.unknown.clear()
        if faults:
            self._leave_out(faults, y)
        if self._elsewhere_now:
            self._drop(MOVED, self.moved())
            return None
        return None if faults and np.isnan(y).all() else y

    def _no_numbers(self, effort: tuple[float, ...]) -> list[tuple[int, str, str]]:
        """The joints whose efforts are no numbers, each with the reason and a sentence."""
        if lacking := self._no_effort(effort):
            self._news.append(
                f"{self._listed(lacking)}: no effort has ever been a number; the other joints are "
                "learned, without a further word (the parameter 'joints' chooses the joints)"
            )
        known = self._matcher.joint_names
        return [
            (k, NO_EFFORT, f"{known[k]} never has an effort: the other joints are learned")
            if k in self._no_effort.lacking
            else (k, "effort not finite", f"the effort of {known[k]} is {value:g}")
            for k, value in _wrong(effort)
        ]

    def _leave_out(self, faults: list[tuple[int, str, str]], y: Array) -> None:
        """Put NaN where an effort in y (n_joints,) is none, and count the message."""
        for reason in {reason: None for _, reason, _ in faults}:
            self.dropped[reason] += 1
        for axis, reason, sentence in faults:
            y[axis] = np.nan
            if (reason, axis) not in self._told:
                self._told.add((reason, axis))
                told = self.details.get(reason)
                self.details[reason] = f"{told}; {sentence}" if told else sentence

    def _follow_locks(self, message: Any) -> None:
        for name, position in joint_positions(message, self._locks).items():
            if self._locks[name].holds(position):
                self._elsewhere_now.pop(name, None)
            else:
                self._elsewhere_now[name] = position

    def moved(self) -> str:
        """The locked joints that stand elsewhere now, as a sentence; empty where none does."""
        told = (
            f"{name} is at {position:.3g}, and locked at {self._locks[name].position:g}"
            for name, position in sorted(self._elsewhere_now.items())
        )
        joints = "; ".join(told)
        if not joints:
            return ""
        apart = [name for name in sorted(self._elsewhere_now) if self._comes_apart(name)]
        why = (
            f"; no message names {', '.join(apart)} together with the joints that are learned, "
            "which is needed for all to be learned"
        )
        return f"{joints}: nothing is learned until it is back there{why if apart else ''}"

    def _comes_apart(self, name: str) -> bool:
        """True if no message names a joint together with those that are learned."""
        wanted = set(self._matcher.joint_names)
        return not any(name in names and wanted.issubset(names) for names in self.lists)

    def _elsewhere(self, frame: str) -> str:
        return (
            f"the wrenches are in frame '{frame[:MAX_QUOTED]}', not '{self._wrench_frames[0]}'; if "
            "that is the same frame under another name, put it into samples.wrench_frames"
        )

    def _drop(self, reason: str, detail: str = "") -> list[Measurement]:
        self.dropped[reason] += 1
        if detail and reason not in self.details:
            self.details[reason] = detail
        return []


def _problem(numbers: Sequence[float]) -> str:
    """The reason for which numbers can't be a measurement; empty where they can.

    None is wrong where the sum of their sizes is within `IMPLAUSIBLE`.
    """
    if not all(map(math.isfinite, numbers)):
        return "not finite"
    if max(numbers) > IMPLAUSIBLE or min(numbers) < -IMPLAUSIBLE:
        return "implausible value"
    return ""


def _wrong(numbers: Sequence[float]) -> list[tuple[int, float]]:
    """Those of the numbers that can't be a measurement, each with its index."""
    return [(k, value) for k, value in enumerate(numbers) if not abs(value) <= IMPLAUSIBLE]


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


class LackingJoints:
    """Distinguishes joints that have no sensor of a kind from those whose sensor fails.

    Asked of every message of which a reading is no number; of one where all are, `unknown` is to
    be cleared. While no joint has had a number none lacks it: then all of them are to be mended.

    Attributes
    ----------
    unknown: joints of which no reading has been a number.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._count = len(joint_names)
        self.unknown = set(range(self._count))
        self._messages = 0

    def __call__(self, values: Sequence[float]) -> list[int]:
        """The joints that have no such sensor, at the message that shows it; else none."""
        if not self.unknown:
            return []
        self.unknown &= {k for k, _ in _wrong(values)}
        if len(self.unknown) == self._count:
            return []
        self._messages += 1
        return sorted(self.unknown) if self._messages == MIN_LACKING else []

    @property
    def lacking(self) -> set[int]:
        """The joints that have no such sensor, as far as is known."""
        return self.unknown if self._messages >= MIN_LACKING else set()


class JointMatcher:
    """Finds the wanted joints among a message's names: the order is its publisher's own business.

    The answer for the last list of names is kept, since publishers hardly ever change theirs.
    Joints that aren't wanted are ignored, even where their names are doubled.

    Attributes
    ----------
    seen: the last list of names; None where it is to be matched anew.
    pick: gives the wanted joints' entries, in order, of a list of numbers for these names.
    problem: why the last list of names was refused (``missing joint``, ``duplicate joint name``,
        ``too many joints``), empty where it was accepted.
    detail: the same as a sentence that names the joints.
    lists: different lists of names that came, at most `MAX_LISTS`.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self.joint_names = tuple(joint_names)
        self.lists: set[tuple[str, ...]] = set()
        self.problem = ""
        self.detail = ""
        self._lately: set[tuple[str, ...]] = set()
        self.seen: list[str] | None = None
        self.pick: Callable[[Sequence[float]], tuple[float, ...]] = tuple

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
        self.seen = list(names)
        self._find(self.seen)
        if useful and len(self._lately) < MAX_LISTS:
            self._lately.add(tuple(names))
        return not self.problem

    def lately(self) -> set[tuple[str, ...]]:
        """The lists of names that came since the last call, at most `MAX_LISTS`."""
        lately, self._lately = self._lately, set()
        self.seen = None  # one that continues is reported again
        return lately

    def _find(self, names: list[str]) -> None:
        if len(self.lists) < MAX_LISTS:
            self.lists.add(tuple(names))
        self.problem = self.detail = ""
        count = Counter(names)
        missing = [name for name in self.joint_names if not count[name]]
        doubled = [name for name in self.joint_names if count[name] > 1]
        if missing:
            self.problem = "missing joint"
            there = ", ".join(name[:MAX_QUOTED] for name in names[:20]) or "none"
            self.detail = f"no {', '.join(missing)} among the message's joints: {there}"
            return
        if doubled:
            self.problem = "duplicate joint name"
            self.detail = f"the message names {', '.join(doubled)} more than once"
            return
        index = [names.index(name) for name in self.joint_names]
        if len(index) > 1:
            self.pick = itemgetter(*index)
        else:  # with one index itemgetter gives no tuple
            self.pick = lambda values: tuple(values[i] for i in index)
