"""Velocities of joint states: those that are measured, and those that nobody filled."""

from __future__ import annotations

import math
from collections.abc import Sequence

from semiparam_dynamics.base.arrays import SECOND, TURN
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, StreamConfig, wrong_numbers
from semiparam_dynamics.samples.reports import Reports
from semiparam_dynamics.samples.sensor_faults import LackingJoints

NO_VELOCITY = "joint without velocity"
NOT_FINITE = "velocity not finite"
INSTEAD = "differences of positions take its place"


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

    def __call__(
        self, stamp: int, before: int, values: tuple[float, ...], position: Sequence[float]
    ) -> tuple[float, ...] | None:
        """The velocities at `stamp` (ns), NaN where a joint has none; None where no joint has.

        before: stamp of the joint state before. values, position: rad/s or m/s, and rad or m.
        """
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
            first = NOT_FINITE not in self._reports.details  # a joint may lack it in every message
            told = f"{self._reports.told('velocity', wrong)}: {INSTEAD}" if first else ""
            self._reports.drop(NOT_FINITE, told)
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

    # For which, and in how many messages in a row, a joint must be elsewhere: some may be wrong,
    # and velocities may come a little late.
    ELSEWHERE, MESSAGES = SECOND // 10, 3

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
        return count + 1 >= self.MESSAGES and stamp - since >= self.ELSEWHERE
