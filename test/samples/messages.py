"""Messages as rclpy and rosbags give them: anything with the same fields."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace as Fields

from semiparam_dynamics.base.arrays import SECOND


def header(stamp: int, frame: str = "") -> Fields:
    sec, nanosec = divmod(stamp, SECOND)
    return Fields(stamp=Fields(sec=sec, nanosec=nanosec), frame_id=frame)


def joint_state(
    stamp: int,
    names: Sequence[str],
    position: Sequence[float],
    velocity: Sequence[float] = (),
    effort: Sequence[float] = (),
) -> Fields:
    return Fields(
        header=header(stamp),
        name=list(names),
        position=list(position),
        velocity=list(velocity),
        effort=list(effort),
    )


def wrench(stamp: int, values: Sequence[float], frame: str = "sensor") -> Fields:
    vectors = [dict(zip("xyz", part, strict=True)) for part in (values[:3], values[3:])]
    return Fields(
        header=header(stamp, frame),
        wrench=Fields(force=Fields(**vectors[0]), torque=Fields(**vectors[1])),
    )
