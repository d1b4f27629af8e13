"""From the core's arrays to ROS messages.

Every number passes through float: rclpy serialises an int or a numpy.float32 in a float field as
garbage, without a word.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import (
    Float32MultiArray,
    Float64MultiArray,
    Header,
    MultiArrayDimension,
    MultiArrayLayout,
)

NANOSECONDS = 1_000_000_000


def header(stamp: int, frame: str = "") -> Header:
    """A header of a stamp in nanoseconds."""
    made = Header(frame_id=frame)
    made.stamp.sec, made.stamp.nanosec = divmod(stamp, NANOSECONDS)
    return made


def stamp_of(message: JointState | WrenchStamped) -> int:
    """A message's stamp in nanoseconds."""
    stamp = message.header.stamp
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def wrench_message(stamp: int, frame: str, values: np.ndarray) -> WrenchStamped:
    """Forces (N) and torques (N m), shape (6,), in the sensor's frame."""
    fx, fy, fz, tx, ty, tz = (float(value) for value in values)
    wrench = Wrench(force=Vector3(x=fx, y=fy, z=fz), torque=Vector3(x=tx, y=ty, z=tz))
    return WrenchStamped(header=header(stamp, frame), wrench=wrench)


def effort_message(stamp: int, names: Sequence[str], values: np.ndarray) -> JointState:
    """Joint efforts (N m or N), shape (n_joints,), as a JointState with names and effort only."""
    efforts = [float(value) for value in values]
    return JointState(header=header(stamp), name=list(names), effort=efforts)


class ReusedWrench:
    """:func:`wrench_message` of one frame, in one message that is filled again and again."""

    def __init__(self, frame: str) -> None:
        self._message = WrenchStamped(header=Header(frame_id=frame))

    def __call__(self, stamp: int, values: np.ndarray) -> WrenchStamped:
        """The message, filled; it holds until the next call."""
        stamped, wrench = self._message.header.stamp, self._message.wrench
        stamped.sec, stamped.nanosec = divmod(stamp, NANOSECONDS)
        force, torque = wrench.force, wrench.torque
        numbers = values.astype(float).tolist()
        force.x, force.y, force.z, torque.x, torque.y, torque.z = numbers
        return self._message


class ReusedEffort:
    """:func:`effort_message` of one robot's joints, in one message that is filled again."""

    def __init__(self, names: Sequence[str]) -> None:
        self._message = JointState(name=list(names))

    def __call__(self, stamp: int, values: np.ndarray) -> JointState:
        """The message, filled; it holds until the next call."""
        stamped = self._message.header.stamp
        stamped.sec, stamped.nanosec = divmod(stamp, NANOSECONDS)
        # An array of the field's own type is taken as it is.
        self._message.effort = array("d", values.astype(float).tobytes())
        return self._message


def joint_state_message(
    stamp: int,
    names: Sequence[str],
    position: np.ndarray,
    velocity: np.ndarray,
    effort: np.ndarray,
) -> JointState:
    """Positions (rad), velocities (rad/s) and efforts (N m), each of shape (n_joints,)."""
    message = effort_message(stamp, names, effort)
    message.position = [float(value) for value in position]
    message.velocity = [float(value) for value in velocity]
    return message


def parameters_message(
    labels: Sequence[str], values: np.ndarray, deviations: np.ndarray
) -> Float64MultiArray:
    """Base parameters with standard deviations, both of shape (n,), in the labels' order.

    Dimension i of the layout is labelled with parameter i; data[2 i] is its value and
    data[2 i + 1] its standard deviation.
    """
    dimensions = [MultiArrayDimension(label=label, size=2, stride=2) for label in labels]
    pairs = np.column_stack([values, deviations]).astype(float)
    return Float64MultiArray(layout=MultiArrayLayout(dim=dimensions), data=pairs.ravel().tolist())


def labels_layout(labels: Sequence[str]) -> MultiArrayLayout:
    """A layout in which dimension i, of one number, is labelled labels[i]."""
    return MultiArrayLayout(
        dim=[MultiArrayDimension(label=one, size=1, stride=1) for one in labels]
    )


def scores_message(layout: MultiArrayLayout, scores: np.ndarray) -> Float32MultiArray:
    """Scores (T,), data[i] being that of the label of the layout's dimension i."""
    # An array of the field's own type is taken as it is.
    return Float32MultiArray(layout=layout, data=array("f", scores.astype(np.float32).tobytes()))
