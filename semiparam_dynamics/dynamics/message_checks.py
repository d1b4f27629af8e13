"""What a robot's URDF tells about the messages to be expected of it."""

from __future__ import annotations

from typing import TypedDict

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.effort_limits import effort_limits
from semiparam_dynamics.dynamics.force_sensor import frame_names
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.urdf_tree import parse_urdf


class MessageChecks(TypedDict):
    """Arguments of `MeasurementStream` and `read_measurements`."""

    wrench_frame: tuple[str, ...]  # the sensor frame's names; empty for the effort target
    effort_limits: Array  # (n_joints,)


def message_checks(model: RobotModel) -> MessageChecks:
    """What messages of this robot are checked against, live and offline alike.

    Raises RobotModelError where the URDF's effort limits are no numbers.
    """
    tree = parse_urdf(model.urdf_text)
    wrench = model.config.target == "wrench"
    return MessageChecks(
        wrench_frame=frame_names(tree, model.config.sensor_frame) if wrench else (),
        effort_limits=effort_limits(tree, model.joint_names),
    )
