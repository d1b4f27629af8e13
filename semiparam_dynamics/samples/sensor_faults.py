"""What is wrong with a reading of efforts or of a wrench: its sensor sticks, or is saturated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array, Mask, Stamps
from semiparam_dynamics.samples.saturation import saturated_axis, saturation_limits
from semiparam_dynamics.samples.stream_config import SECOND, StreamConfig
from semiparam_dynamics.samples.stuck import StuckReadings

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
