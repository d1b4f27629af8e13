"""Efforts of joint states: each joint's own, in N m, without those that were not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE, StreamConfig, wrong_numbers
from semiparam_dynamics.samples.reports import Reports
from semiparam_dynamics.samples.sensor_faults import ENCODER_NOISE, LackingJoints, SensorFaults

NO_EFFORT = "joint without effort"
MIN_EFFORT_CHANGE = 1e-9  # N m or N: far below what the finest converter of any arm resolves
NOT_YET = "efforts not measured yet"
MAX_EFFORT_PERIOD = SECOND // 10  # ns: drivers read efforts more often than 10 times a second


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
