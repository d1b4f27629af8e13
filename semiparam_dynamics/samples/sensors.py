"""Sensors that fail: readings that stick, are saturated or no numbers, and joints that have none.

A real sensor's last digits never rest while the robot moves. So a reading is judged by its run: the
readings before it that are the same, bit for bit, and how far the joint moved meanwhile. It sticks
where the run lasts, and is saturated where the run is at the largest or smallest value so far. The
readings before that is noticed were learned: the time that it takes bounds how many.

For a handful of numbers plain Python is faster than NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import mul

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, TURN, WRENCH_AXES, Array
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, StreamConfig, wrong_numbers
from semiparam_dynamics.samples.reports import Reports

ENCODER_NOISE = 5e-4  # rad or m of an encoder at rest; a joint that moved further moves
MIN_LACKING = 200  # messages without one number of a joint's: it has no such sensor
MIN_EFFORT_CHANGE = 1e-9  # N m or N: far below what the finest converter of any arm resolves
MAX_EFFORT_PERIOD = SECOND // 10  # ns: drivers read efforts more often than 10 times a second
# Where a coarse reading is the same about a peak, a parabola, the joint goes 4.8 times as far as in
# the step below it: in a run that is saturated it goes further than so many.
COARSE_PEAK = 5.0
MIN_SATURATED_WAY = 0.01  # rad or m that the joint must have moved at an extreme, all in all
# For which, and in how many messages in a row, a joint must be elsewhere: some may be wrong, and
# velocities may come a little late.
ELSEWHERE_NS, ELSEWHERE_MESSAGES = SECOND // 10, 3

SATURATED, SUSPECTED = "effort saturated", "effort perhaps saturated"
NO_EFFORT, NOT_YET = "joint without effort", "efforts not measured yet"
NO_VELOCITY, BAD_VELOCITY = "joint without velocity", "velocity not finite"
INSTEAD = "differences of positions take its place"
RUN_FAULTS = {
    "stuck": "stays exactly {:g} while the robot moves: its sensor sticks (samples.stuck_after)",
    "saturated": "stays exactly {:g}, where it never goes beyond, while it moves: saturated "
    "(samples.saturation_after)",
    "perhaps saturated": "stays exactly {:g}, where it never goes beyond, and has hardly moved "
    "there: perhaps saturated (samples.saturation_after)",
}


class Run:
    """The readings of one force or effort that are the same as the last, and its extremes.

    joint: index of the joint that has to move meanwhile; None: any joint, as for a wrench.
    config: of what is stuck, and saturated: zero is no limit, since a current may be zero in any
        motion, and neither was a value that is exceeded. What has never been anything but zero is
        not measured at all, and does not stick.
    """

    __slots__ = (
        *("joint", "after", "motion", "least", "value", "since", "start", "count", "measured"),
        *("found", "usual", "smallest", "largest", "longest", "total", "saturated"),
    )

    def __init__(self, joint: int | None, config: StreamConfig) -> None:
        self.joint, self.after = joint, round(config.stuck_after * SECOND)
        self.motion, self.least = config.stuck_motion, config.saturation_after
        self.value, self.since, self.count = math.nan, 0, 0
        self.start: Sequence[float] = ()  # where the joints were at the first of them
        self.measured = False  # it has been another value than 0
        self.found = ""  # once found it lasts as long as the run, wherever the joint goes
        self.usual = 0.0  # the joint's longest way in a run elsewhere, to the reading after it
        self.smallest, self.largest = math.inf, -math.inf
        # Of the smallest and the largest: the longest such way of its runs, how far the joint moved
        # in those that are too long for a coarse step, and whether it is saturated there.
        self.longest, self.total, self.saturated = [0.0, 0.0], [0.0, 0.0], [False, False]

    def follow(self, stamp: int, value: float, q: Sequence[float]) -> str:
        """Take a reading, with the joints at q: a key of `RUN_FAULTS`, or "" where it is right."""
        if value != self.value or stamp < self.since:
            self._begin(stamp, value, q)
        else:
            self.count += 1
        self.measured = self.measured or value != 0.0
        way, side = self._way(q), int(value == self.largest)
        limit = self.least and value != 0.0 and (side or value == self.smallest)
        suspected = ""
        if limit and self._is_long(way):
            self.saturated[side] |= self.total[side] + way > MIN_SATURATED_WAY
            # Motion may begin with a saturated joint that hardly moves, and what is learned there
            # can't be undone.
            moves = zip(q, self.start, strict=True)
            if any(abs(now - then) > ENCODER_NOISE for now, then in moves):
                suspected = "perhaps saturated"
        if limit and self.saturated[side]:
            return "saturated"
        lasts = 0 < self.after < stamp - self.since and self.measured
        if lasts and way > self.motion:
            self.found = "stuck"
        return self.found or suspected

    def _begin(self, stamp: int, value: float, q: Sequence[float]) -> None:
        """Note the run that this reading ends, and begin another one."""
        if self.count > 1:
            way, elsewhere = self._way(q), True
            for side, limit in enumerate((self.smallest, self.largest)):
                if self.value == limit:
                    elsewhere = False
                    self.longest[side] = max(self.longest[side], way)
                    self.total[side] += way if self._is_long(way) else 0.0
            if elsewhere:
                self.usual = max(self.usual, way)
        self.value, self.since, self.count, self.start, self.found = value, stamp, 1, q, ""
        only = self.smallest == self.largest  # then one value is still both
        for side, beyond in enumerate((value < self.smallest, value > self.largest)):
            if beyond:
                self.usual = self.usual if only else max(self.usual, self.longest[side])
                self.longest[side], self.total[side], self.saturated[side] = 0.0, 0.0, False
        self.smallest, self.largest = min(self.smallest, value), max(self.largest, value)

    def _is_long(self, way: float) -> bool:
        """True if a run is too long for a coarse step."""
        return self.count >= self.least and way > COARSE_PEAK * self.usual

    def _way(self, q: Sequence[float]) -> float:
        """The joint's distance from where the run began, rad or m; a driver may wrap."""
        if self.joint is None:
            return max(abs(now - then) for now, then in zip(q, self.start, strict=True))
        way = abs(q[self.joint] - self.start[self.joint])
        return min(way, abs(way - TURN))


class SensorFaults:
    """Checks every reading of the efforts of some joints, or of a wrench, in order.

    Parameters
    ----------
    joint_names: whose efforts are read; empty: a wrench is.
    config: what counts as stuck and as saturated.

    Raises ConfigurationError where `config.saturation` has neither one number nor one for each
    axis.
    """

    def __init__(self, joint_names: Sequence[str], config: StreamConfig) -> None:
        self._kind = "effort" if joint_names else "wrench"
        self._axes = tuple(joint_names) or WRENCH_AXES
        given, count = config.saturation, len(self._axes)
        limits = one_or_each("samples.saturation", given, count).tolist() if given else []
        self._limits: list[float] = limits
        if not joint_names:  # a sensor of forces has its range in its data sheet
            config = replace(config, saturation_after=0)
        self._runs = [Run(k if joint_names else None, config) for k in range(count)]
        self._watched = config.stuck_after > 0.0 or config.saturation_after > 0

    def __call__(
        self, stamp: int, reading: Sequence[float], q: Sequence[float] | None
    ) -> list[tuple[int, str, str]]:
        """The axes with a fault in a `reading` at `stamp` (ns), each with what and a sentence.

        reading: an entry for each axis. q: where the joints are, None while that is unknown.
        """
        found = []
        if q is not None and self._watched:
            for axis, (run, value) in enumerate(zip(self._runs, reading, strict=True)):
                if run.count == 1 and value != run.value and run.smallest < value < run.largest:
                    run.value, run.since, run.start = value, stamp, q  # as nearly always
                elif not math.isnan(value) and (why := run.follow(stamp, value, q)):
                    told = RUN_FAULTS[why].format(value + 0.0)
                    found.append((axis, f"{self._kind} {why}", f"{self._named(axis)} {told}"))
        for axis, (value, limit) in enumerate(zip(reading, self._limits, strict=False)):
            if abs(value) >= limit:
                told = f"is {value:g}, at or beyond its limit of {limit:g} (samples.saturation)"
                sentence = f"{self._named(axis)} {told}"
                found.append((axis, f"{self._kind} saturated", sentence))
        return found

    def _named(self, axis: int) -> str:
        name = self._axes[axis]
        return f"the effort of {name}" if self._kind == "effort" else f"{name} of the wrench"


class Efforts:
    """Scales efforts and leaves out those that are none: no numbers, of a sensor that fails.

    Raises ConfigurationError where `config.effort_scale` or `config.saturation` has neither one
    number nor one for each joint.
    """

    def __init__(self, config: StreamConfig, reports: Reports) -> None:
        self._reports, names = reports, reports.names
        scale = one_or_each("samples.effort_scale", config.effort_scale, len(names), "joints")
        self._scale = () if bool(np.all(scale == 1.0)) else tuple(scale.tolist())
        self._faults = SensorFaults(names, config)
        self._lacking = LackingJoints(
            reports,
            "effort",
            "the other joints are learned, without a further word (the parameter 'joints' chooses "
            "the joints)",
        )
        self._unread = UnreadEfforts()
        self._reported: set[tuple[str, int]] = set()  # faults that the details have

    def __call__(
        self, stamp: int, effort: tuple[float, ...], q: Sequence[float] | None
    ) -> Array | None:
        """The efforts (n_joints,) at `stamp` (ns) in N m, NaN where one is none; None: all are.

        q: where the joints are, rad or m, None while that is unknown.
        """
        if self._scale:  # before the checks, whose limits are in N m
            effort = tuple(map(mul, effort, self._scale))
        if not self._unread.done and q is not None and self._unread(stamp, effort, q):
            self._reports.drop(NOT_YET, "the robot moves, and no effort has changed yet")
            return None
        y = np.array(effort, dtype=np.float64)
        faults = self._faults(stamp, effort, q)
        if not sum(map(abs, effort)) <= IMPLAUSIBLE and (wrong := wrong_numbers(effort)):
            faults += self._no_numbers(wrong)
        else:
            self._lacking.unknown.clear()
        if not faults:
            return y
        self._leave_out(faults, y)
        return None if np.isnan(y).all() else y

    def forget_reports(self) -> None:
        """Report each fault anew: the details were taken."""
        self._reported.clear()

    def _no_numbers(self, wrong: list[tuple[int, float]]) -> list[tuple[int, str, str]]:
        """The joints whose efforts are no numbers, each with the reason and a sentence."""
        names, lacking = self._reports.names, self._lacking(wrong)
        return [
            (k, NO_EFFORT, f"{names[k]} never has an effort: the other joints are learned")
            if k in lacking
            else (k, "effort not finite", f"the effort of {names[k]} is {value:g}")
            for k, value in wrong
        ]

    def _leave_out(self, faults: list[tuple[int, str, str]], y: Array) -> None:
        """Put NaN where an effort in y (n_joints,) is none, and count the message."""
        reports = self._reports
        for reason in dict.fromkeys(reason for _, reason, _ in faults):
            reports.drop(reason)
        for axis, reason, sentence in faults:
            y[axis] = np.nan
            if (reason, axis) not in self._reported:
                self._reported.add((reason, axis))
                before = reports.details.get(reason)
                reports.details[reason] = f"{before}; {sentence}" if before else sentence


class UnreadEfforts:
    """Detects efforts that the driver has not read yet: zeros, or what memory held.

    Real efforts change from reading to reading; these stay what the first ones were, all of them,
    though the robot moves.

    Attributes
    ----------
    done: other efforts have come.
    """

    def __init__(self) -> None:
        self.done = False
        # The first efforts, where the joints were, and when.
        self._first: tuple[Sequence[float], Sequence[float], int] | None = None

    def __call__(self, stamp: int, effort: Sequence[float], q: Sequence[float]) -> bool:
        """True if the efforts at `stamp` (ns) are not read yet, with the joints at q, rad or m."""
        first, start, since = self._first = self._first or (effort, q, stamp)
        # NaN differs from itself, and says no more than before.
        changed = any(abs(a - b) > MIN_EFFORT_CHANGE for a, b in zip(effort, first, strict=True))
        self.done = self.done or changed or not any(map(math.isfinite, effort))
        moved = any(abs(a - b) > ENCODER_NOISE for a, b in zip(q, start, strict=True))
        return moved and not self.done and stamp - since >= MAX_EFFORT_PERIOD


class Velocities:
    """Tells measured velocities from zeros and other values that stand for none.

    Drivers that never fill velocities leave zeros. Until one isn't zero it is unknown which kind
    this is; the velocity of a robot at rest is zero by differences of positions as well.
    """

    def __init__(self, config: StreamConfig, reports: Reports) -> None:
        self._reports = reports
        instead = f"{INSTEAD} from now on, without a further word"
        self._lacking = LackingJoints(reports, "velocity", instead)
        self._zeros = ZeroVelocities(config)
        self._moved = False  # the driver has given a velocity other than zero
        self._last = 0  # stamp of the joint state before: another publisher's may have none

    def __call__(
        self, stamp: int, values: tuple[float, ...], position: Sequence[float]
    ) -> tuple[float, ...] | None:
        """The velocities at `stamp` (ns), NaN where a joint has none; None where no joint has.

        values, position: rad/s or m/s, and rad or m.
        """
        before, self._last = self._last, stamp
        if self._zeros.done and sum(map(abs, values)) <= IMPLAUSIBLE:
            self._lacking.unknown.clear()
            return values
        if not self._moved:
            if not any(values):
                return None
            self._moved = any(0.0 < abs(value) <= IMPLAUSIBLE for value in values)
        unknown: set[int] = set()
        if self._moved and not self._zeros.done:
            unknown.update(self._unfilled(stamp, before, values, position))
        if wrong := wrong_numbers(values):
            self._lacking(wrong)
            told = ""
            if BAD_VELOCITY not in self._reports.details:  # a joint may lack it in every message
                told = f"{self._reports.told('velocity', wrong)}: {INSTEAD}"
            self._reports.drop(BAD_VELOCITY, told)
            unknown.update(k for k, _ in wrong)
        else:
            self._lacking.unknown.clear()
        if not unknown:
            return values
        return tuple(math.nan if k in unknown else value for k, value in enumerate(values))

    def _unfilled(
        self, stamp: int, before: int, values: tuple[float, ...], position: Sequence[float]
    ) -> list[int]:
        """The joints whose velocity is a zero that nobody filled."""
        unknown, new = self._zeros(stamp, before, values, position)
        reports = self._reports
        if new:
            reports.news.append(
                f"{reports.listed(new)}: every velocity has been 0, though the joint moves and "
                f"others have theirs; {INSTEAD} from now on, without a further word"
            )
        if unknown:
            reports.drop(
                NO_VELOCITY,
                f"every velocity of {reports.listed(unknown)} has been 0, though the joint "
                f"moves: {INSTEAD} (samples.stuck_motion)",
            )
        return unknown


class ZeroVelocities:
    """Detects joints whose velocity has never been anything but zero although they move.

    A driver may fill the velocities of some joints and leave zeros for others. One velocity other
    than zero tells that a joint's are measured, however coarse they are. Where a joint was moved
    during a pause, its velocity may have been zero before and after.

    Parameters
    ----------
    config: `stuck_motion`, by which a joint must have moved; nothing is noticed where `stuck_after`
        is 0, and for longer a pause lasts.

    Attributes
    ----------
    watched: where each joint with zeros alone was at first, or after the last pause.
    noticed: those that have moved.
    done: nothing more can be noticed.
    """

    def __init__(self, config: StreamConfig) -> None:
        self._after = round(config.stuck_after * SECOND)
        self._motion = config.stuck_motion
        self._begun = self.done = False
        self.watched: dict[int, float] = {}
        # Of joints that are: the first one's stamp, the last one's, and how many they are.
        self._elsewhere: dict[int, tuple[int, int, int]] = {}
        self.noticed: set[int] = set()

    def __call__(
        self, stamp: int, before: int, values: Sequence[float], position: Sequence[float]
    ) -> tuple[list[int], list[int]]:
        """The joints of which the velocity at `stamp` (ns) is unknown, and those noticed now.

        before: stamp of the joint state before. values, position: velocities, and rad or m.
        """
        if not self._begun:
            self._begun = True
            joints = range(len(values)) if self._after > 0 else ()
            self.watched = {k: position[k] for k in joints}
        pause = not 0 < stamp - before <= self._after
        unknown, new = [], []
        for k, start in list(self.watched.items()):
            if 0.0 < abs(values[k]) <= IMPLAUSIBLE:
                del self.watched[k]
                continue
            if k not in self.noticed:
                if pause:
                    self.watched[k] = position[k]
                elif values[k] == 0.0 and self._is_elsewhere(k, stamp, before, position[k] - start):
                    self.noticed.add(k)
                    new.append(k)
            if k in self.noticed and values[k] == 0.0:
                unknown.append(k)
        self.done = not self.watched
        return unknown, new

    def _is_elsewhere(self, k: int, stamp: int, before: int, way: float) -> bool:
        if min(abs(way), abs(abs(way) - TURN)) <= self._motion:  # a driver may wrap
            return False
        since, last, count = self._elsewhere.get(k, (0, 0, 0))
        if last != before:
            since, count = stamp, 0
        self._elsewhere[k] = since, stamp, count + 1
        return count + 1 >= ELSEWHERE_MESSAGES and stamp - since >= ELSEWHERE_NS


class StuckPositions:
    """Detects joints whose position stays the same although their velocity is another than zero.

    Parameters
    ----------
    joint_names: for the sentence that says which one.
    config: `stuck_after`, and `stuck_motion`, which the velocity must come to in that time.
    """

    def __init__(self, joint_names: Sequence[str], config: StreamConfig) -> None:
        self._names = joint_names
        self._after = round(config.stuck_after * SECOND)
        self._speed = config.stuck_motion / config.stuck_after if self._after else 0.0
        self._q: Sequence[float] = ()
        self._since: list[int] = []  # of each joint

    def __call__(self, stamp: int, q: Sequence[float], speeds: Sequence[float] | None) -> str:
        """Sentence on the first joint that sticks at `stamp` (ns); empty: none.

        q, speeds: the joints' positions, rad or m, and velocities.
        """
        if self._after <= 0 or speeds is None:
            self._q = ()
            return ""
        if not self._q:
            self._q, self._since = q, [stamp] * len(q)
        last, self._q, since, told = self._q, q, self._since, ""
        for k, speed in enumerate(speeds):
            if q[k] != last[k] or not abs(speed) > self._speed or stamp < since[k]:
                since[k] = stamp
            elif not told and stamp - since[k] > self._after:
                where = f"'{self._names[k]}' stays exactly at {q[k]:g} though it is said to move"
                told = f"{where}: its sensor sticks (samples.stuck_after)"
        return told


class LackingJoints:
    """Distinguishes joints that have no sensor of a kind from those whose sensor fails.

    Asked of every message of which a reading is no number; of one where all are, `unknown` is to
    be cleared. While no joint has had a number none lacks it: then all of them are to be mended.

    Which joints lack the `quantity`, and what takes its place (`instead`), is reported once.

    Attributes
    ----------
    unknown: joints of which no reading has been a number.
    """

    def __init__(self, reports: Reports, quantity: str, instead: str) -> None:
        self._reports = reports
        self._told = f"no {quantity} has ever been a number; {instead}"
        self.unknown = set(range(len(reports.names)))
        self._messages = 0

    def __call__(self, wrong: Sequence[tuple[int, float]]) -> set[int]:
        """The joints that have no such sensor, as far as is known by a message's `wrong` numbers.

        wrong: each with its joint's index.
        """
        if self.unknown:
            self.unknown &= {k for k, _ in wrong}
        if self.unknown and len(self.unknown) < len(self._reports.names):
            self._messages += 1
            if self._messages == MIN_LACKING:
                lacking = self._reports.listed(sorted(self.unknown))
                self._reports.news.append(f"{lacking}: {self._told}")
        return self.unknown if self._messages >= MIN_LACKING else set()
