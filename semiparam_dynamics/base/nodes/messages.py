"""From the core's arrays to ROS messages.

Every number passes through float: rclpy serialises an int or a numpy.float32 in a float field as
garbage, without a word.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import InertiaStamped, Vector3, Wrench, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import (
    Float32MultiArray,
    Float64MultiArray,
    Header,
    MultiArrayDimension,
    MultiArrayLayout,
)
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.errors import SampleError


def header(stamp: int, frame: str = "") -> Header:
    """A header of a stamp in nanoseconds."""
    made = Header(frame_id=frame)
    made.stamp.sec, made.stamp.nanosec = divmod(stamp, SECOND)
    return made


def stamp_of(message: JointState | WrenchStamped | InertiaStamped) -> int:
    """A message's stamp in nanoseconds."""
    stamp = message.header.stamp
    return int(stamp.sec) * SECOND + int(stamp.nanosec)


def wrench_message(stamp: int, frame: str, values: np.ndarray) -> WrenchStamped:
    """Forces (N) and torques (N m), shape (6,), in the sensor's frame."""
    fx, fy, fz, tx, ty, tz = (float(value) for value in values)
    wrench = Wrench(force=Vector3(x=fx, y=fy, z=fz), torque=Vector3(x=tx, y=ty, z=tz))
    return WrenchStamped(header=header(stamp, frame), wrench=wrench)


def effort_message(stamp: int, names: Sequence[str], values: np.ndarray) -> JointState:
    """Joint efforts (N m or N), shape (n_joints,), as a JointState with names and effort only."""
    efforts = [float(value) for value in values]
    return JointState(header=header(stamp), name=list(names), effort=efforts)


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


def covariance_message(covariance: np.ndarray) -> Float64MultiArray:
    """A covariance (6, 6) of force (N) and moment (N m), row after row."""
    dimensions = [
        MultiArrayDimension(label="force x y z, torque x y z", size=6, stride=36),
        MultiArrayDimension(label="force x y z, torque x y z", size=6, stride=6),
    ]
    values = array("d", covariance.astype(float).tobytes())
    return Float64MultiArray(layout=MultiArrayLayout(dim=dimensions), data=values)


def labels_layout(labels: Sequence[str]) -> MultiArrayLayout:
    """A layout in which dimension i, of one number, is labelled labels[i]."""
    return MultiArrayLayout(
        dim=[MultiArrayDimension(label=one, size=1, stride=1) for one in labels]
    )


def scores_message(layout: MultiArrayLayout, scores: np.ndarray) -> Float32MultiArray:
    """Scores (T,), data[i] being that of the label of the layout's dimension i."""
    # An array of the field's own type is taken as it is.
    return Float32MultiArray(layout=layout, data=array("f", scores.astype(np.float32).tobytes()))


# -------------------------------------------------------------------------------------------------
# Desired states, and the efforts to feed forward for them, as JointTrajectory messages.

MOST_POINTS = 1000
STATE = ("positions", "velocities", "accelerations")


def desired_message(
    stamp: int, names: Sequence[str], states: tuple[Array, Array, Array], period: float
) -> JointTrajectory:
    """States q, dq, ddq (k, n_joints), `period` seconds apart, the first at `stamp` (ns)."""
    columns = zip(*states, strict=True)
    return _message(stamp, names, period, [dict(zip(STATE, rows, strict=True)) for rows in columns])


def trajectory_effort_message(
    stamp: int, names: Sequence[str], efforts: Array, like: JointTrajectory
) -> JointTrajectory:
    """Efforts (k, n_joints) for the points of a message of :func:`desired_message`."""
    message = _message(stamp, names, 0.0, [{"effort": row} for row in efforts])
    for point, asked in zip(message.points, like.points, strict=True):
        point.time_from_start = asked.time_from_start
    return message


def desired_states(message: JointTrajectory, names: Sequence[str]) -> tuple[Array, Array, Array]:
    """q, dq, ddq (k, n_joints) of the joints `names`; the message may have more, in any order.

    Raises SampleError where a joint or a number is missing, isn't finite, or there are too many.
    """
    q, dq, ddq = (rows_of(message, names, field) for field in STATE)
    return q, dq, ddq


def efforts(message: JointTrajectory, names: Sequence[str]) -> Array:
    """Efforts (k, n_joints) of the joints `names`. Raises SampleError as above, but for finite."""
    return rows_of(message, names, "effort", finite=False)


def rows_of(
    message: JointTrajectory,
    names: Sequence[str],
    field: str,
    *,
    finite: bool = True,
    optional: bool = False,
) -> Array:
    """Numbers (k, n_joints) of a field; NaN in points without it, where it is `optional`."""
    given, points = list(message.joint_names), message.points
    if not 0 < len(points) <= MOST_POINTS:
        raise SampleError(f"{len(points)} points, and 1 to {MOST_POINTS} are answered")
    if len(set(given)) < len(given) or not set(names) <= set(given):
        raise SampleError(f"joint_names must have each of {', '.join(names)} once")
    rows = [getattr(point, field) for point in points]
    there = [len(row) > 0 or not optional for row in rows]
    if any(len(row) != len(given) for row, is_there in zip(rows, there, strict=True) if is_there):
        raise SampleError(f"each point needs {len(given)} {field}, one for each of joint_names")
    missing = [np.nan] * len(given)
    filled = [row if is_there else missing for row, is_there in zip(rows, there, strict=True)]
    values = np.array(filled, dtype=float)[:, [given.index(name) for name in names]]
    if finite and not np.isfinite(values[there]).all():
        raise SampleError(f"the {field} are not finite")
    return values


def _message(
    stamp: int, names: Sequence[str], period: float, rows: Sequence[dict[str, Array]]
) -> JointTrajectory:
    points = []
    for k, row in enumerate(rows):
        # Arrays of the fields' own type are taken as they are.
        fields = {name: array("d", values.tobytes()) for name, values in row.items()}
        point = JointTrajectoryPoint(**fields)
        point.time_from_start = duration(round(k * period * SECOND))
        points.append(point)
    return JointTrajectory(header=header(stamp), joint_names=list(names), points=points)


def duration(nanoseconds: int) -> Duration:
    """A message of so many nanoseconds."""
    seconds, rest = divmod(nanoseconds, SECOND)
    return Duration(sec=seconds, nanosec=rest)
