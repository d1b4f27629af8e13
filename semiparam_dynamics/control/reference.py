"""The desired motion of a controlled arm: from where it stands to a trajectory, and along it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.control.plan import Motion, Reference
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.simulation.config import MotionConfig
from semiparam_dynamics.simulation.kinematics import HandKinematics
from semiparam_dynamics.simulation.trajectories import make_trajectory
from semiparam_dynamics.simulation.urdf import Arm, read_urdf

PEAK = 1.875  # largest velocity of 10 x^3 - 15 x^4 + 6 x^5


class Approach:
    """A motion that begins where the arm stands: at rest, to the trajectory's first position.

    On the way all joints follow 10 x^3 - 15 x^4 + 6 x^5, whose velocity and acceleration are zero
    at both ends (Craig 2005, Introduction to Robotics, section 7.3).

    Parameters
    ----------
    start: (n,) rad. trajectory: q, dq, ddq (k, n) at times (k,) in s, from rest. speed: at most,
        rad/s. least: time that the way takes at least, s.

    Attributes
    ----------
    duration: s, of the way; the trajectory begins after it.
    """

    def __init__(
        self, start: Array, trajectory: Reference, speed: float, least: float = 0.5
    ) -> None:
        self._start, self._trajectory = start, trajectory
        self._way: Array = trajectory(np.zeros(1))[0][0] - start
        self.duration = max(least, PEAK * float(np.abs(self._way).max()) / speed)

    def __call__(self, t: Array) -> Motion:
        """q, dq and ddq (k, n) at times t (k,) in s, t >= 0."""
        T = self.duration
        q, dq, ddq = (part.copy() for part in self._trajectory(np.maximum(np.asarray(t) - T, 0.0)))
        on_the_way = np.asarray(t) < T
        x = (np.asarray(t)[on_the_way] / T)[:, None]
        q[on_the_way] = self._start + (10 * x**3 - 15 * x**4 + 6 * x**5) * self._way
        dq[on_the_way] = (30 * x**2 - 60 * x**3 + 30 * x**4) * self._way / T
        ddq[on_the_way] = (60 * x - 180 * x**2 + 120 * x**3) * self._way / T**2
        return q, dq, ddq


def trajectory_of(
    urdf: str,
    joints: Sequence[str],
    config: MotionConfig,
    seed: int,
    hand_frame: str = "",
    hand_offset: Sequence[float] = (),
) -> Reference:
    """The configured motion of a robot's `joints`, from rest.

    `urdf` is the URDF's text or its file's path. Raises RobotModelError and ConfigurationError.
    """
    if len(hand_offset) not in (0, 3):
        raise ConfigurationError(
            f"parameter 'hand_offset' must have 3 numbers, not {len(hand_offset)}"
        )
    arm = Arm(read_urdf(urdf), tuple(joints), "", hand_frame)
    offset = hand_offset or (0.0, 0.0, 0.0)
    hand = HandKinematics(arm.moving_part(), arm.joints, arm.hand_frame, offset)
    return make_trajectory(config, hand, seed, config.center)
