"""Parameters of the `computed_torque` node."""

from __future__ import annotations

import dataclasses

from semiparam_dynamics.control.session import SessionConfig
from semiparam_dynamics.parameters import group, parameter
from semiparam_dynamics.simulation.config import MotionConfig


@dataclasses.dataclass(frozen=True)
class ComputedTorqueNodeConfig:
    """Parameters of the `computed_torque` node.

    The motion is that of the simulator, whose `stiffness` belongs to its own controller.
    """

    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description"
    )
    joints: tuple[str, ...] = parameter(
        (), "controlled joints, in order; empty: all actuated joints of the URDF"
    )
    hand_frame: str = parameter("", "link or frame that draws circles; empty: the arm's end")
    hand_offset: tuple[float, ...] = parameter(
        (), "point of the hand frame that does; empty: its origin", unit="m", low=-2.0, high=2.0
    )
    seed: int = parameter(0, "seed of the motion", low=0, high=2**31 - 1)
    motion: MotionConfig = group(MotionConfig, inline=True)
    session: SessionConfig = group(SessionConfig, inline=True)
