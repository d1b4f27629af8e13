"""From ROS messages to measurements, stage by stage.

A live node and a bag reader hand their messages to the same `MeasurementStream`, so that both
learn from the same measurements. A joint state passes, in this order, the matching of its joints
(`joint_names.py`), the order of its stamps (`StampOrder`) and the checks of its sensors
(`sensors.py`), and is paired with the wrench or the delayed effort of its instant (`pairing.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, WRENCH_AXES
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.robot.urdf import Lock
from semiparam_dynamics.samples.joint_names import (
    MAX_QUOTED,
    MAX_REMEMBERED,
    EffortJoiner,
    JointMatcher,
    joint_positions,
    one_reading,
)
from semiparam_dynamics.samples.measurement import (
    IMPLAUSIBLE,
    MIN_RUN,
    OTHER_PUBLISHER,
    Measurement,
    StreamConfig,
    number_problem,
    wrong_numbers,
)
from semiparam_dynamics.samples.pairing import WrenchPairer
from semiparam_dynamics.samples.reports import Reports
from semiparam_dynamics.samples.sensors import (
    BAD_VELOCITY,
    MAX_EFFORT_PERIOD,
    NO_EFFORT,
    NO_VELOCITY,
    NOT_YET,
    SATURATED,
    SUSPECTED,
    Efforts,
    SensorFaults,
    StuckPositions,
    Velocities,
)

MOVED = "locked joint moved"
MISSING = "missing joint"
OTHER_FRAME = "wrench in another frame"
MAX_STEP_BACK = SECOND  # ns; stamps that go back by more are of a restarted clock
MIN_WHOLE_SECONDS = 20  # stamps without a fraction in a row: the driver leaves it out
COARSE = (
    "stamps are whole seconds: the driver leaves the fraction out; have it stamp with the time of "
    "the reading, in nanoseconds"
)


class MeasurementStream:
    """Turns JointState and WrenchStamped messages into measurements with increasing stamps.

    Messages are those of rclpy or of rosbags, or anything with the same fields. A bad message never
    raises and never changes what good ones give: it is dropped and counted. Messages of one stamp
    that name different joints are joined.

    Parameters
    ----------
    joint_names: the wanted joints in order, matched by name; other joints are ignored.
    target: ``effort`` (y are the joints' efforts) or ``wrench`` (y is the paired wrench).
    config: tolerances.
    wrench_frame: where given, the sensor frame's name, or its names: wrenches in another frame
        (``header.frame_id``) than these and `config.wrench_frames` are dropped; an empty frame_id
        is accepted.
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
    lists: different lists of joint names that came.
    """

    INCOMPLETE = (
        "no effort",
        "effort not finite",
        NO_EFFORT,
        NOT_YET,
        "effort stuck",
        SATURATED,
        SUSPECTED,
        MOVED,
        BAD_VELOCITY,
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
        locks: Mapping[str, Lock] | None = None,
    ) -> None:
        if target not in ("effort", "wrench"):
            raise ConfigurationError(f"the target must be effort or wrench, not '{target}'")
        config = config or StreamConfig()
        self.received: Counter[str] = Counter()
        self._reports = reports = Reports(tuple(joint_names))
        self.dropped, self.details = reports.dropped, reports.details
        self.frames: set[str] = set()
        self._effort = target == "effort"
        self._with_efforts = EffortJoiner()
        self._matcher = JointMatcher(reports.names)
        self._part: Any = None  # the last message that lacked joints, with those it was joined to
        self.lists = self._matcher.lists
        self._order, self._wrench_order = StampOrder(reports), StampOrder(reports)
        self._velocities = Velocities(config, reports)
        self._positions = StuckPositions(reports.names, config)
        self._efforts: Efforts | None = None
        if self._effort:
            self._efforts = Efforts(config, reports)
        else:
            self._sensor = SensorFaults((), config)
        self._delay = round(config.effort_delay * SECOND) if self._effort else 0
        if self._delay:  # efforts are paired with positions as wrenches are, at earlier stamps
            self._pairer = WrenchPairer(MAX_EFFORT_PERIOD, abs(self._delay), reports, "effort")
        else:
            wait = round(config.pair_wait * SECOND)
            self._pairer = WrenchPairer(wait, wait, reports)
        given = [wrench_frame] if isinstance(wrench_frame, str) else wrench_frame
        frames = [frame.lstrip("/") for frame in given if frame]
        if frames:
            frames += [frame.lstrip("/") for frame in config.wrench_frames]
        self._wrench_frames = tuple(dict.fromkeys(frames))
        self._q: Sequence[float] | None = None  # of the last joint state that was not stuck
        self._placed: set[int] = set()  # joints that had a position while others never had one
        self._locks = locks or {}
        self._elsewhere_now: dict[str, float] = {}  # positions of the locked joints that moved

    @property
    def newest(self) -> int:
        """Stamp of the last joint state, ns; 0 before the first."""
        return self._order.newest

    def joint_state(self, message: Any) -> list[Measurement]:
        """Take one sensor_msgs/JointState in; return the measurements that are complete now."""
        self.received["joint states"] += 1
        if self._locks:
            self._follow_locks(message)
        return self._take(message)

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
        if self._efforts is not None:
            self._efforts.forget_reports()
        return details

    def news(self) -> list[str]:
        """Sentences on what joints lack permanently, each given once.

        joint_state_broadcaster publishes NaN for each interface that a joint does not have.
        """
        news = self._reports.news.copy()
        self._reports.news.clear()
        return news

    def flush(self) -> list[Measurement]:
        """Release the joint states that wait for a wrench or effort: the messages have ended."""
        waiting = self._with_efforts.flush()
        return [m for each in waiting for m in self._take(each, whole=True)] + self._pairer.flush()

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

    def _take(self, message: Any, *, whole: bool = False) -> list[Measurement]:
        """The measurements that are complete with a message; `whole`: it waits for no efforts."""
        try:
            joiner = self._with_efforts
            if self._effort and not whole and not (joiner.before is None and len(message.effort)):
                messages = joiner(message)
                return [m for each in messages for m in self._take(each, whole=True)]
            matcher = self._matcher
            if message.name != matcher.seen:
                message = self._matched(message)
            if matcher.problem:
                return self._drop(matcher.problem, matcher.detail)
            return self._read(message)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            return self._drop("malformed", str(error))

    def _read(self, message: Any) -> list[Measurement]:
        """The measurements that are complete with a message of all joints.

        Of the checks only those that find something are calls: it runs a thousand times a second.
        """
        velocities, efforts = message.velocity, message.effort
        n, n_dq, n_effort = len(message.name), len(velocities), len(efforts)
        if len(message.position) != n or n_dq not in (0, n) or n_effort not in (0, n):
            sizes = f"{len(message.position)} positions, {n_dq} velocities, {n_effort} efforts"
            return self._drop("wrong length", f"{n} names, {sizes}")
        # For a handful of numbers plain Python is faster than NumPy: checks are of tuples.
        pick, values = self._matcher.pick, message.position
        position = pick(values.tolist() if hasattr(values, "tolist") else values)
        if not sum(map(abs, position)) <= IMPLAUSIBLE and (problem := number_problem(position)):
            return self._drop(problem, self._misplaced(position))
        stamp = int(message.header.stamp.sec) * SECOND + int(message.header.stamp.nanosec)
        jumped = self._order(stamp, n_effort > 0 or not self._effort)
        if jumped is None:
            return []
        released: list[Measurement] = []
        if jumped:
            limit = 0 if self._effort else stamp + MAX_STEP_BACK  # efforts jump as well
            released = self._pairer.restart_joint_states(limit)
        velocity = None
        if n_dq:
            given = pick(velocities.tolist() if hasattr(velocities, "tolist") else velocities)
            velocity = self._velocities(stamp, given, position)
        if stuck := self._positions(stamp, position, velocity):
            self._drop("position stuck", stuck)
            return released
        self._q = position
        dq = None if velocity is None else np.array(velocity, dtype=np.float64)
        q, y = np.array(position, dtype=np.float64), None
        if self._efforts is not None:
            if n_effort:
                given = pick(efforts.tolist() if hasattr(efforts, "tolist") else efforts)
                y = self._efforts(stamp, given, position)
            else:
                self._drop("no effort", "the joint states carry no effort: nothing can be learned")
            if self._elsewhere_now and n_effort:
                y = None
                self._drop(MOVED, self.moved())
            if not self._delay:
                return [Measurement(stamp, q, dq, y)]
            if y is not None:
                released += self._pairer.wrench(stamp - self._delay, y)
        return released + self._pairer.joint_state(Measurement(stamp, q, dq, None))

    def _matched(self, message: Any) -> Any:
        """The message, or with those of its stamp where it lacks joints; see the matcher."""
        matcher = self._matcher
        matcher.match(message.name, not self._effort or len(message.effort) > 0)
        if matcher.problem != MISSING:
            return message
        joined = None if self._part is None else one_reading(self._part, message)
        self._part = message if joined is None else joined
        if joined is not None:
            matcher.match(joined.name, not self._effort or len(joined.effort) > 0)
            if not matcher.problem:
                self._reports.take_back(MISSING)  # the part before
                return joined
        return message

    def _wrench(self, message: Any) -> list[Measurement]:
        frame = message.header.frame_id
        if frame[:MAX_QUOTED] not in self.frames and len(self.frames) < MAX_REMEMBERED:
            self.frames.add(frame[:MAX_QUOTED])
        if self._wrench_frames and frame and frame.lstrip("/") not in self._wrench_frames:
            return self._drop(OTHER_FRAME, self._elsewhere(frame))
        force, torque = message.wrench.force, message.wrench.torque
        values = [force.x, force.y, force.z, torque.x, torque.y, torque.z]
        if problem := number_problem(values):
            wrong = wrong_numbers(values)
            told = "; ".join(f"{WRENCH_AXES[k]} of the wrench is {x:g}" for k, x in wrong)
            return self._drop(problem, told)
        wrench = np.array(values, dtype=np.float64)
        stamp = int(message.header.stamp.sec) * SECOND + int(message.header.stamp.nanosec)
        jumped = self._wrench_order(stamp)
        if jumped is None or self._effort:
            return []
        released: list[Measurement] = []
        if jumped:
            released = self._pairer.restart_wrenches(stamp + MAX_STEP_BACK)
        if faults := self._sensor(stamp, values, self._q):
            # One sensor measures all of them.
            self._drop(*faults[0][1:])
        elif self._elsewhere_now:
            self._drop(MOVED, self.moved())
        measured = not faults and not self._elsewhere_now
        return released + self._pairer.wrench(stamp, wrench if measured else None)

    def _misplaced(self, position: Sequence[float]) -> str:
        """A sentence on the positions that are no numbers, and on joints that never had one."""
        wrong = wrong_numbers(position)
        bad = {k for k, _ in wrong}
        told = self._reports.told("position", wrong)
        if self._q is not None:
            return told
        self._placed |= set(range(len(position))) - bad
        if not (never := sorted(bad - self._placed)):
            return told
        return (
            f"{told}; no joint state can be used before each joint has had a position, and "
            f"{self._reports.listed(never)} never had one: have it published, or leave such joints "
            "out by the parameter 'joints'"
        )

    def _follow_locks(self, message: Any) -> None:
        for name, position in joint_positions(message, self._locks).items():
            if self._locks[name].holds(position):
                self._elsewhere_now.pop(name, None)
            else:
                self._elsewhere_now[name] = position

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
        self._reports.drop(reason, detail)
        return []


class StampOrder:
    """Checks that stamps of one topic increase; messages that do not are dropped and counted.

    So are messages without the efforts that others have, of another time than theirs: they are
    another publisher's, whose clock may be any.

    Parameters
    ----------
    reports: where what is dropped is counted.

    Attributes
    ----------
    newest: the last stamp that went on, ns; 0 before the first.
    """

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self.newest = 0
        self._late: list[int] = []  # stamps since the last one in time
        self._whole = 0  # stamps without a fraction of a second, in a row
        self._read = self._unread = 0  # the last stamp with efforts, the first one after it without

    def __call__(self, stamp: int, reads: bool = True) -> bool | None:
        """None: refused and counted; True: the clock has gone back; False: the stamp goes on.

        reads: whether the message has efforts.
        """
        last, late = self.newest, self._late
        self._unread = 0 if reads else self._unread or stamp
        since = abs(stamp - self._unread)
        if not reads and self._read and since <= MAX_STEP_BACK < abs(stamp - self._read):
            self._reports.drop(OTHER_PUBLISHER)
            return None
        self._read = stamp if reads else self._read
        self._whole = self._whole + 1 if stamp % SECOND == 0 else 0
        if stamp > max(last, 0):
            late.clear()
            self.newest = stamp
            return False
        if stamp <= 0:
            self._reports.drop("zero stamp")
            return None
        if stamp == last:
            self._reports.drop("repeated stamp", COARSE if self._whole >= MIN_WHOLE_SECONDS else "")
            return None
        if late and stamp <= late[-1]:
            late.clear()
        late.append(stamp)
        if last - stamp <= MAX_STEP_BACK and len(late) < MIN_RUN:
            self._reports.drop("out of order")
            return None
        late.clear()
        back = (last - stamp) / SECOND
        told = f"stamps went back by {back:.3f} s: a restarted clock or bag"
        self._reports.drop("clock jumped", told)
        self.newest = stamp
        return True
