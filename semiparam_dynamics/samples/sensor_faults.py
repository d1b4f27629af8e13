"""What is wrong with a reading of efforts or of a wrench: its sensor sticks, or is saturated."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq

import numpy as np

from semiparam_dynamics.arrays import Array, Indices, Mask, Stamps
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.samples.stream_config import SECOND, StreamConfig

# -------------------------------------------------------------------------------------------------
# Readings at a sensor's or a motor's limit, which say only that the true value is not below it.


def saturation_limits(
    given: Sequence[float], share: float, effort_limits: Array | None, n_axes: int
) -> list[float]:
    """The magnitude at and beyond which each axis' reading is saturated; empty: none ever is.

    Parameters
    ----------
    given: limits in the axes' units, N m or N: one for all, or one each; empty: none.
    share: of the URDF's `effort_limits` (n_joints,) that counts as well; 0: they don't.
    n_axes: how many axes a reading has.

    Raises ConfigurationError where `given` has another length.
    """
    limits = per_axis(given, n_axes, "samples.saturation")
    if share > 0.0 and effort_limits is not None:
        limits = np.minimum(limits, share * effort_limits)
    return [float(limit) for limit in limits] if np.isfinite(limits).any() else []


def per_axis(given: Sequence[float], n_axes: int, name: str) -> Array:
    """(n_axes,) one number for all axes or one for each; infinite where none is given.

    `name` is the parameter's, for the ConfigurationError on another length.
    """
    if not given:
        return np.full(n_axes, np.inf)
    if len(given) not in (1, n_axes):
        raise ConfigurationError(
            f"parameter '{name}' needs one number, or one for each of the {n_axes} axes, "
            f"not {len(given)}"
        )
    limits: Array = np.broadcast_to(np.asarray(given, dtype=np.float64), (n_axes,)).copy()
    return limits


def saturated_axis(reading: list[float], limits: list[float]) -> int:
    """Index of the first entry of `reading` (n_axes,) at or beyond its limit; -1: none."""
    for k, (value, limit) in enumerate(zip(reading, limits, strict=False)):
        if abs(value) >= limit:
            return k
    return -1


# -------------------------------------------------------------------------------------------------
# Sensors that stick: the same reading, bit for bit, while what it should measure goes on.
#
# A real sensor's last digits never rest while the robot moves. What came before a sensor is found
# to
# stick was learned: the time that this takes bounds how much.

# For a handful of numbers plain Python is faster than NumPy. Hardly ever is one of them the same as
# before: then all counts begin anew, at the speed of one comparison.


class StuckReadings:
    """Notices entries of a force or effort reading that stay the same while the robot moves.

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
        self._values: list[float] = []
        self._since: list[int] = []
        self._from: list[list[float]] = []  # where the joints were then
        self._alive: list[bool] = []

    def __call__(self, stamp: int, values: list[float], position: list[float] | None) -> int:
        """Index of the first of the reading's `values` that sticks at `stamp` (ns); -1: none.

        position: where the joints are, rad or m, None while that is unknown. Where stamps go back
        the count begins anew.
        """
        if self._after <= 0 or position is None:
            return -1
        if len(values) == len(self._values) and not any(map(eq, values, self._values)):
            n = len(values)
            self._values, self._since, self._from = list(values), [stamp] * n, [position] * n
            self._alive = [True] * n
            return -1
        if not self._values:
            self._values = [0.0] * len(values)
            self._since, self._from = [stamp] * len(values), [position] * len(values)
            self._alive = [False] * len(values)
        stuck = -1
        for k, value in enumerate(values):
            if value != self._values[k] or stamp < self._since[k]:
                self._alive[k] |= value != self._values[k]
                self._values[k], self._since[k], self._from[k] = value, stamp, position
            elif (
                stuck < 0
                and self._alive[k]
                and stamp - self._since[k] > self._after
                and self._moved(k, position)
            ):
                stuck = k
        return stuck

    def rows(self, stamps: Stamps, values: Array, positions: Array) -> Mask:
        """Which of k rows in turn this would say a word about, or whose answer isn't clear; (k,).

        stamps, values (k, n), positions (k, n): increasing; for `own_joint` only. Those before the
        first of them are taken in by :meth:`take_rows`.
        """
        if self._after <= 0:
            return np.zeros(len(stamps), dtype=bool)
        if len(self._values) != values.shape[1] or max(self._since) > stamps[0]:
            return np.ones(len(stamps), dtype=bool)
        same = _same_as_before(self._values, values)
        if not same.any():
            return np.zeros(len(stamps), dtype=bool)
        last = _last(~same)
        known = last >= 0
        since = np.where(known, stamps[last], self._since)
        start = np.array([position[k] for k, position in enumerate(self._from)])
        start = np.where(known, np.take_along_axis(positions, last, axis=0), start)
        long = same & (known | self._alive) & (stamps[:, None] - since > self._after)
        sticks: Mask = (long & (np.abs(positions - start) > self._motion)).any(axis=1)
        return sticks

    def take_rows(self, stamps: Stamps, values: Array, positions: Array) -> None:
        """Take in rows that :meth:`rows` found nothing in, as one by one."""
        if self._after <= 0 or not len(stamps):
            return
        last = _last(~_same_as_before(self._values, values))[-1]
        for k, row in enumerate(last.tolist()):
            if row >= 0:
                self._alive[k] = True
                self._since[k], self._from[k] = int(stamps[row]), positions[row].tolist()
        self._values = values[-1].tolist()

    def _moved(self, k: int, position: list[float]) -> bool:
        before = self._from[k]
        if self._own_joint:
            return abs(position[k] - before[k]) > self._motion
        return any(
            abs(now - then) > self._motion for now, then in zip(position, before, strict=True)
        )


class StuckPositions:
    """Notices joints whose position stays the same although their velocity is another than zero.

    Parameters
    ----------
    joint_names: for the sentence that says which one.
    config: `stuck_after`, and `stuck_motion`, which the velocity must come to in that time.
    """

    def __init__(self, joint_names: Sequence[str], config: StreamConfig) -> None:
        self._names = joint_names
        self._after = round(config.stuck_after * SECOND)
        self._speed = config.stuck_motion / config.stuck_after if self._after else 0.0
        self._q: list[float] = []
        self._since: list[int] = []

    def __call__(self, stamp: int, values: list[float], speeds: list[float] | None) -> str:
        """Which joint sticks at `stamp` (ns), as a sentence; empty: none.

        values, speeds: the joints' positions, rad or m, and velocities.
        """
        if self._after <= 0 or speeds is None:
            self._q = []
            return ""
        if not self._q or not any(map(eq, values, self._q)):
            self._q, self._since = list(values), [stamp] * len(values)
            return ""
        stuck = -1
        for k, speed in enumerate(speeds):
            if values[k] != self._q[k] or abs(speed) <= self._speed or stamp < self._since[k]:
                self._q[k], self._since[k] = values[k], stamp
            elif stuck < 0 and stamp - self._since[k] > self._after:
                stuck = k
        if stuck < 0:
            return ""
        return (
            f"'{self._names[stuck]}' stays exactly at {values[stuck]:g} though it is said to move: "
            "its sensor sticks (samples.stuck_after)"
        )

    def rows(self, stamps: Stamps, values: Array, speeds: Array | None) -> Mask:
        """Which of k rows in turn this would say a word about, or whose answer isn't clear; (k,).

        stamps, values (k, n), speeds (k, n): increasing. Those before the first of them are taken
        in by :meth:`take_rows`.
        """
        if self._after <= 0 or speeds is None:
            return np.zeros(len(stamps), dtype=bool)
        if not self._q or max(self._since) > stamps[0]:
            return np.ones(len(stamps), dtype=bool)
        same = _same_as_before(self._q, values)
        if not same.any():
            return np.zeros(len(stamps), dtype=bool)
        held: Mask = same & (np.abs(speeds) > self._speed)
        last = _last(~held)
        since = np.where(last >= 0, stamps[last], self._since)
        sticks: Mask = np.any(held & (stamps[:, None] - since > self._after), axis=1)
        return sticks

    def take_rows(self, stamps: Stamps, values: Array, speeds: Array | None) -> None:
        """Take in rows that :meth:`rows` found nothing in, as one by one."""
        if not len(stamps):
            return
        if self._after <= 0 or speeds is None:
            self._q = []
            return
        held: Mask = _same_as_before(self._q, values) & (np.abs(speeds) > self._speed)
        for k, row in enumerate(_last(~held)[-1].tolist()):
            if row >= 0:
                self._since[k] = int(stamps[row])
        self._q = values[-1].tolist()


def _same_as_before(first: list[float], values: Array) -> Mask:
    """Which entries of the rows (k, n) are those of the row before, `first` for row 0."""
    same: Mask = np.equal(np.concatenate(([first], values[:-1])), values)
    return same


def _last(there: Mask) -> Indices:
    """(k, n): up to each row the last one in which an entry was `there`, -1 before any was."""
    rows: Indices = np.maximum.accumulate(np.where(there, np.arange(len(there))[:, None], -1))
    return rows


WRENCH_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")


class SensorFaults:
    """Looks at every reading of one robot, in order.

    Parameters
    ----------
    joint_names: whose efforts are read; empty: a wrench is.
    config: what counts as stuck and as saturated.
    effort_limits: (n_joints,) of the URDF, for `config.saturation_share`; of no concern to a
        wrench.

    Raises ConfigurationError where `config.saturation` has neither one number nor one for each
    axis.
    """

    def __init__(
        self, joint_names: Sequence[str], config: StreamConfig, effort_limits: Array | None = None
    ) -> None:
        self._kind = "effort" if joint_names else "wrench"
        self._axes = tuple(joint_names) or WRENCH_AXES
        self._limits = saturation_limits(
            config.saturation,
            config.saturation_share,
            effort_limits if joint_names else None,
            len(self._axes),
        )
        self._stuck = StuckReadings(
            round(config.stuck_after * SECOND), config.stuck_motion, own_joint=bool(joint_names)
        )

    def __call__(
        self, stamp: int, reading: list[float], q: list[float] | None
    ) -> tuple[str, str] | None:
        """What is wrong with the `reading`, an entry for each axis, at `stamp` (ns), in a sentence.

        q: where the joints are, None while that is unknown.
        """
        axis = self._stuck(stamp, reading, q)
        if axis >= 0:
            return f"{self._kind} stuck", (
                f"{self._axes[axis]} of the {self._kind} stays exactly {reading[axis]:g} while the "
                "robot moves: its sensor sticks (samples.stuck_after)"
            )
        axis = saturated_axis(reading, self._limits) if self._limits else -1
        if axis >= 0:
            return f"{self._kind} saturated", (
                f"{self._axes[axis]} of the {self._kind} is {reading[axis]:g}, at or beyond its "
                f"limit of {self._limits[axis]:g} (samples.saturation, samples.saturation_share)"
            )
        return None

    def rows(self, stamps: Stamps, readings: Array, q: Array) -> Mask:
        """Which of k efforts (k, n) in turn something is wrong with, or may be; (k,).

        What comes before the first of them is taken in by :meth:`take_rows`.
        """
        wrong = self._stuck.rows(stamps, readings, q)
        if self._limits:
            wrong |= (np.abs(readings) >= self._limits).any(axis=1)
        return wrong

    def take_rows(self, stamps: Stamps, readings: Array, q: Array) -> None:
        """Take in rows that :meth:`rows` found nothing wrong with, as one by one."""
        self._stuck.take_rows(stamps, readings, q)
