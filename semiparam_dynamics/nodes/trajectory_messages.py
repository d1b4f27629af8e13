"""Desired states, and the efforts to feed forward for them, as JointTrajectory messages."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import SampleError
from semiparam_dynamics.nodes.messages import NANOSECONDS, header

MOST_POINTS = 1000
STATE = ("positions", "velocities", "accelerations")


def desired_message(
    stamp: int, names: Sequence[str], states: tuple[Array, Array, Array], period: float
) -> JointTrajectory:
    """States q, dq, ddq (k, n_joints), `period` seconds apart, the first at `stamp` (ns)."""
    columns = zip(*states, strict=True)
    return _message(stamp, names, period, [dict(zip(STATE, rows, strict=True)) for rows in columns])


def effort_message(
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
    q, dq, ddq = (_rows(message, names, field) for field in STATE)
    return q, dq, ddq


def efforts(message: JointTrajectory, names: Sequence[str]) -> Array:
    """Efforts (k, n_joints) of the joints `names`. Raises SampleError as above, but for finite."""
    return _rows(message, names, "effort", finite=False)


def _rows(
    message: JointTrajectory, names: Sequence[str], field: str, *, finite: bool = True
) -> Array:
    given, points = list(message.joint_names), message.points
    if not 0 < len(points) <= MOST_POINTS:
        raise SampleError(f"{len(points)} points, and 1 to {MOST_POINTS} are answered")
    if len(set(given)) < len(given) or not set(names) <= set(given):
        raise SampleError(f"joint_names must have each of {', '.join(names)} once")
    rows = [getattr(point, field) for point in points]
    if any(len(row) != len(given) for row in rows):
        raise SampleError(f"each point needs {len(given)} {field}, one for each of joint_names")
    values = np.array(rows, dtype=float)[:, [given.index(name) for name in names]]
    if finite and not np.isfinite(values).all():
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
        later = point.time_from_start
        later.sec, later.nanosec = divmod(round(k * period * NANOSECONDS), NANOSECONDS)
        points.append(point)
    return JointTrajectory(header=header(stamp), joint_names=list(names), points=points)
