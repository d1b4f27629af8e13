"""Faults of sensors: readings that stick or are saturated, and joints that have no sensor.

A real sensor's last digits never rest while the robot moves. So a sensor sticks where its reading
stays the same, bit for bit, while what it should measure changes, and is saturated where it does so
at its own extreme. The readings before that is noticed were learned: the time that it takes bounds
how many.

For a handful of numbers plain Python is faster than NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from semiparam_dynamics.base.arrays import SECOND, TURN, WRENCH_AXES
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.samples.measurement import StreamConfig
from semiparam_dynamics.samples.reports import Reports

ENCODER_NOISE = 5e-4  # rad or m of an encoder at rest; a joint that moved further moves
MIN_LACKING = 200  # messages without one number of a joint's: it has no such sensor
SATURATED = "effort saturated"
SUSPECTED = "effort perhaps saturated"


class SensorFaults:
    """Checks every reading of one robot, in order.

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
        least = config.saturation_after
        self._extremes = [Extremes(k, least) for k in range(len(joint_names)) if least]
        self._limits: list[float] = limits
        self._stuck = StuckReadings(
            round(config.stuck_after * SECOND), config.stuck_motion, own_joint=bool(joint_names)
        )

    def __call__(
        self, stamp: int, reading: Sequence[float], q: Sequence[float] | None
    ) -> list[tuple[int, str, str]]:
        """The axes with a fault in a `reading` at `stamp` (ns), each with what and a sentence.

        reading: an entry for each axis. q: where the joints are, None while that is unknown.
        """
        found = []
        for axis in self._stuck(stamp, reading, q):
            where = f"{self._named(axis)} stays exactly {reading[axis] + 0.0:g}"
            why = "while the robot moves: its sensor sticks (samples.stuck_after)"
            found.append((axis, f"{self._kind} stuck", f"{where} {why}"))
        for axis, extremes in enumerate(self._extremes):
            if q is not None and (what := extremes(reading[axis], q)):
                where = f"{self._named(axis)} stays exactly {reading[axis]:g}"
                why = "while it moves: saturated"
                if what == SUSPECTED:
                    why = "and has hardly moved there: perhaps saturated"
                sentence = f"{where}, where it never goes beyond, {why} (samples.saturation_after)"
                found.append((axis, what, sentence))
        for axis, (value, limit) in enumerate(zip(reading, self._limits, strict=False)):
            if abs(value) >= limit:
                sentence = (
                    f"{self._named(axis)} is {value:g}, at or beyond its limit of {limit:g} "
                    "(samples.saturation)"
                )
                found.append((axis, f"{self._kind} saturated", sentence))
        return found

    def _named(self, axis: int) -> str:
        name = self._axes[axis]
        return f"the effort of {name}" if self._kind == "effort" else f"{name} of the wrench"


class StuckReadings:
    """Detects entries of a force or effort reading that stay the same while the robot moves.

    An entry that has never been anything but zero isn't measured at all, and doesn't stick.

    Parameters
    ----------
    after: how long an entry must have stayed the same, ns; 0: nothing ever sticks.
    motion: how far the joints must have moved meanwhile, rad or m.
    own_joint: each entry is of the joint of the same index (efforts), which must have moved; else
        any joint's motion counts (a wrench).
    """

    def __init__(self, after: int, motion: float, *, own_joint: bool) -> None:
        self._after = after
        self._motion = motion
        self._own_joint = own_joint
        # Of each entry: its value, since when it has been that, where the joints were then, and
        # whether it has ever been another.
        self._runs: list[tuple[float, int, Sequence[float], bool]] = []
        self._found: set[int] = set()  # entries that stick, until their reading is another

    def __call__(
        self, stamp: int, values: Sequence[float], position: Sequence[float] | None
    ) -> list[int]:
        """Indices of those of the reading's `values` that stick at `stamp` (ns).

        position: where the joints are, rad or m, None while that is unknown. Where stamps go back
        the count begins anew.
        """
        if self._after <= 0 or position is None:
            return []
        runs = self._runs = self._runs or [(0.0, stamp, position, False)] * len(values)
        for k, value in enumerate(values):
            last, since, start, alive = runs[k]
            if value != last or stamp < since:
                runs[k] = value, stamp, position, alive or value != last
                self._found.discard(k)
            # Once found it sticks also where the joint comes by the place where that began.
            elif alive and stamp - since > self._after and self._moved(k, start, position):
                self._found.add(k)
        return sorted(self._found)

    def _moved(self, k: int, start: Sequence[float], position: Sequence[float]) -> bool:
        if self._own_joint:
            return abs(position[k] - start[k]) > self._motion
        moves = zip(position, start, strict=True)
        return any(abs(now - then) > self._motion for now, then in moves)


class Extremes:
    """Detects that a joint's effort is saturated at the largest or the smallest value it ever had.

    Coarse steps make a reading stay the same, too, at its extreme longer than elsewhere: about a
    peak that is a parabola 4.8 times as far as in the step below it. So how far the joint moved
    while another value stayed the same is what it has to exceed by more than that. What a later
    reading exceeds was no limit. Nor is zero: a current may be zero in any motion.

    Before the joint has moved that far such readings are suspected where any joint moves: motion
    may begin with a saturated joint that hardly moves, and what is learned there can't be undone.

    Parameters
    ----------
    joint: its index.
    readings: how many at least must be the same; fewer don't count.
    """

    FURTHER = 5.0  # than while any other value stayed the same
    MOTION = 0.01  # rad or m that the joint must have moved at an extreme, all in all

    def __init__(self, joint: int, readings: int) -> None:
        self._joint, self._readings = joint, readings
        self._value, self._count = math.nan, 0  # the run of same readings
        self._start: Sequence[float] = ()  # where the joints were then
        self._moved = 0.0  # in it
        self._usual = 0.0  # how far the joint moved at most from a run's begin to its end's next
        self._limits = [-math.inf, math.inf]  # the largest reading so far, and the smallest
        self._most = [0.0, 0.0]  # the same of runs there
        self._sums = [0.0, 0.0]  # how far it moved all in all, in runs that count
        self._found = [False, False]  # whether it is saturated there

    def __call__(self, value: float, q: Sequence[float]) -> str:
        """SATURATED or SUSPECTED where the effort `value` is, with the joints at q; else empty."""
        largest, smallest = self._limits
        suspected = False
        if value == self._value:
            self._count += 1
            self._moved = self._way(q)
            if not smallest < value < largest and value != 0.0 and self._counts():
                side = int(value != largest)
                self._found[side] |= self._sums[side] + self._moved > self.MOTION
                moves = zip(q, self._start, strict=True)
                suspected = any(abs(now - then) > ENCODER_NOISE for now, then in moves)
        else:
            if self._count > 1:
                self._end(q)
            self._value, self._count, self._moved, self._start = value, 1, 0.0, q
            if value > largest:
                self._goes_beyond(0, value)
            if value < smallest:
                self._goes_beyond(1, value)
        if (self._found[0] and value == largest) or (self._found[1] and value == smallest):
            return SATURATED
        return SUSPECTED if suspected else ""

    def _end(self, q: Sequence[float]) -> None:
        """Note a run that ended before the reading with the joints at q."""
        about, inside = self._way(q), True
        for side, limit in enumerate(self._limits):
            if self._value == limit:
                inside = False
                self._most[side] = max(self._most[side], about)
                self._sums[side] += self._moved if self._counts() else 0.0
        if inside:
            self._usual = max(self._usual, about)

    def _counts(self) -> bool:
        """True if the run is too long for a coarse step."""
        return self._count >= self._readings and self._moved > self.FURTHER * self._usual

    def _goes_beyond(self, side: int, value: float) -> None:
        if self._limits[0] != self._limits[1]:  # else it still is the other extreme
            self._usual = max(self._usual, self._most[side])
        self._limits[side] = value
        self._most[side], self._sums[side], self._found[side] = 0.0, 0.0, False

    def _way(self, q: Sequence[float]) -> float:
        way = abs(q[self._joint] - self._start[self._joint])
        return min(way, abs(way - TURN))  # a driver may wrap


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

    def __call__(self, stamp: int, values: Sequence[float], speeds: Sequence[float] | None) -> str:
        """Sentence on the joint that sticks at `stamp` (ns); empty: none.

        values, speeds: the joints' positions, rad or m, and velocities.
        """
        if self._after <= 0 or speeds is None:
            self._q = ()
            return ""
        if not self._q:
            self._since = [stamp] * len(values)
        last, self._q, since = self._q or values, values, self._since
        stuck = -1
        for k, speed in enumerate(speeds):
            if values[k] != last[k] or not abs(speed) > self._speed or stamp < since[k]:
                since[k] = stamp
            elif stuck < 0 and stamp - since[k] > self._after:
                stuck = k
        if stuck < 0:
            return ""
        return (
            f"'{self._names[stuck]}' stays exactly at {values[stuck]:g} though it is said to move: "
            "its sensor sticks (samples.stuck_after)"
        )


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
