"""How much of its limits a motion uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.identification.fourier_trajectory import FourierTrajectory
from semiparam_dynamics.identification.motion_limits import MotionLimits


@dataclass(frozen=True)
class LimitUse:
    """Largest values over a period relative to the limits, each (n_joints,); 1 is the limit.

    position: distance from the middle of the range. velocity: |dq|. effort: |torque| of the URDF's
    rigid body, without friction; 0 where it is not limited.
    """

    position: Array
    velocity: Array
    effort: Array
    joint_names: tuple[str, ...]

    @property
    def kept(self) -> bool:
        """Whether no limit is passed."""
        return bool(max(self.position.max(), self.velocity.max(), self.effort.max()) <= 1.0)

    @property
    def worst_effort(self) -> str:
        """In words, the joint whose effort passes its limit most."""
        worst = int(np.argmax(self.effort))
        return f"{self.joint_names[worst]} needs {self.effort[worst]:.2f} of what it may use"


def limit_use(
    trajectory: FourierTrajectory, limits: MotionLimits, effort_model: RobotModel
) -> LimitUse:
    """The use of `limits` on a grid of 40 instants in a cycle of the highest harmonic.

    effort_model: the robot with target effort. A maximum between two instants can be 0.3 % higher.
    """
    n = 40 * trajectory.harmonics
    q, dq, ddq = trajectory(trajectory.period / n * np.arange(n))
    efforts = effort_model.regressors(q, dq, ddq) @ effort_model.prior
    relative = (q - limits.middle) / limits.half, dq / limits.velocity, efforts / limits.effort
    position, velocity, effort = (np.abs(ratio).max(axis=0) for ratio in relative)
    return LimitUse(position, velocity, effort, effort_model.joint_names)
