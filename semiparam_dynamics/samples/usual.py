"""Joint states that no check says anything about, found by one compiled call.

Hardly ever has a check anything to say: each effort is another than the one before and within those
that came so far, at a later stamp. To find that out check by check takes Python as long as all of
the filters' work takes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array, Stamps
from semiparam_dynamics.jit import compiled_in_turn
from semiparam_dynamics.samples.measurement import IMPLAUSIBLE
from semiparam_dynamics.samples.sensor_faults import (
    TURN,
    SensorFaults,
    StuckPositions,
    ZeroVelocities,
)

# Of each joint: the last joint state; between which bounds an effort is usual; and where the joint
# stands while every velocity has been 0 (`watched`).
JOINT = np.dtype(
    [
        *((name, np.float64) for name in ("q", "dq", "effort", "least", "most", "start")),
        ("watched", np.bool_),
    ]
)
RULES = np.dtype(
    [
        ("stamp", np.int64),  # of the last joint state, ns
        ("velocities", np.bool_),  # whether they are used; else they are 0
        ("slow", np.float64),  # rad/s or m/s, beyond which a position must be another than before
        ("motion", np.float64),  # rad or m that a watched joint may go
        ("after", np.int64),  # ns: a longer pause makes watched joints be looked at
    ]
)


class UsualJointStates:
    """Counts the joint states that are usual ones, for the checks of one robot.

    Each check would let such a one pass and remember nothing of it but that it was the last. So
    they learn of the last one alone, when one that is not usual follows.

    Parameters
    ----------
    n_joints: of the robot.
    positions, velocities, efforts: the checks.

    Attributes
    ----------
    begun: whether the next joint state may be asked about.
    with_velocities: whether velocities are used.
    """

    def __init__(
        self,
        n_joints: int,
        positions: StuckPositions,
        velocities: ZeroVelocities,
        efforts: SensorFaults,
    ) -> None:
        self._positions, self._velocities, self._efforts = positions, velocities, efforts
        self._joints = np.zeros(n_joints, dtype=JOINT)
        self._rules = np.zeros(1, dtype=RULES)
        self.begun = self.with_velocities = self._passed = False

    def begin(self, stamp: int, with_velocities: bool) -> None:
        """Know what is usual after a joint state at `stamp` (ns) that all checks have looked at."""
        joints, rules = self._joints, self._rules[0]
        # What is unknown is NaN, to which nothing is equal.
        joints["q"] = self._positions.last or math.nan
        joints["effort"] = self._efforts.last or math.nan
        joints["least"], joints["most"] = self._efforts.bounds()
        joints["watched"] = False
        if with_velocities:
            for k, start in self._velocities.watched.items():
                joints["watched"][k], joints["start"][k] = True, start
        rules["stamp"], rules["velocities"] = stamp, with_velocities
        rules["slow"] = self._positions.slow
        rules["motion"], rules["after"] = self._velocities.motion, self._velocities.after
        self.begun, self.with_velocities, self._passed = True, with_velocities, False

    def count(self, stamps: Stamps, rows: Array) -> int:
        """How many of the joint states that follow are usual, until one is not.

        stamps: (k,) ns. rows: (k, 3 n_joints), positions, velocities (0 where there are none) and
        efforts.
        """
        count: int = count_usual(stamps, rows, self._joints, self._rules)
        self._passed = self._passed or count > 0
        return count

    def end(self) -> tuple[int, tuple[float, ...], tuple[float, ...] | None] | None:
        """Have the checks look at the next one; the last usual one's stamp, q and dq.

        None where there was none since it was begun.
        """
        self.begun = False
        if not self._passed:
            return None
        stamp = int(self._rules[0]["stamp"])
        q, dq, effort = (tuple(self._joints[name].tolist()) for name in ("q", "dq", "effort"))
        speeds = dq if self.with_velocities else None
        self._positions.pass_over(stamp, q, speeds)
        self._efforts.pass_over(stamp, effort, q)
        return stamp, q, speeds


def warm_up() -> None:
    """Have what looks at joint states compiled."""
    rows = np.zeros((1, 3))
    count_usual(np.ones(1, np.int64), rows, np.zeros(1, JOINT), np.zeros(1, RULES))


@compiled_in_turn
def count_usual(
    stamps: Stamps, rows: Array, joints: npt.NDArray[np.void], rules: npt.NDArray[np.void]
) -> int:
    """See :meth:`UsualJointStates.count`."""
    n, r = len(joints), rules[0]
    for i in range(len(stamps)):
        step = stamps[i] - r.stamp
        if step <= 0:
            return i
        for j in range(n):
            joint, q, dq, effort = joints[j], rows[i, j], rows[i, n + j], rows[i, 2 * n + j]
            # Said so that what is no number is within no bound.
            if not (abs(q) <= IMPLAUSIBLE and abs(dq) <= IMPLAUSIBLE):
                return i
            if not (abs(effort) <= IMPLAUSIBLE and joint.least < effort < joint.most):
                return i
            if effort == joint.effort:
                return i
            if not r.velocities:
                if dq != 0.0:
                    return i
            elif q == joint.q and abs(dq) > r.slow:
                return i
            if joint.watched:
                way = abs(q - joint.start)
                if dq != 0.0 or step > r.after or min(way, abs(way - TURN)) > r.motion:
                    return i
        r.stamp = stamps[i]
        for j in range(n):
            joint = joints[j]
            joint.q, joint.dq, joint.effort = rows[i, j], rows[i, n + j], rows[i, 2 * n + j]
    return len(stamps)
