"""An arm on a lift and a tilting torso, with a finger and another arm beside it; for tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

LEARNED = ("shoulder", "elbow")


def _link(name: str, mass: float, x: float) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{x} 0 0.02"/><mass value="{mass}"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def _joint(
    name: str, kind: str, parent: str, child: str, axis: str, x: float, reach: float = 0.5
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0.1"/><axis xyz="{axis}"/>'
        f'<limit lower="-{reach}" upper="{reach}" effort="200" velocity="5"/></joint>'
    )


URDF = "".join(
    [
        '<robot name="standing"><link name="base"/>',
        *(_link("column", 5.0, 0.0), _link("torso", 8.0, 0.0), _link("other_arm", 4.0, 0.3)),
        *(_link("upper", 3.0, 0.2), _link("lower", 2.0, 0.2), _link("finger_tip", 0.01, 0.0)),
        _joint("lift", "prismatic", "base", "column", "0 0 1", 0.0),
        _joint("tilt", "revolute", "column", "torso", "0 1 0", 0.0),
        _joint("other", "revolute", "torso", "other_arm", "0 1 0", 0.0),
        _joint("shoulder", "revolute", "torso", "upper", "0 1 0", 0.1),
        _joint("elbow", "revolute", "upper", "lower", "0 1 0", 0.4),
        _joint("finger", "prismatic", "lower", "finger_tip", "1 0 0", 0.4, 0.05),
        "</robot>",
    ]
)
# The finger's tip is heavy, and goes out as the elbow bends.
FOLLOWING = URDF.replace('<mass value="0.01"/>', '<mass value="1.0"/>').replace(
    'upper="0.05"', 'upper="0.05"/><mimic joint="elbow" multiplier="0.1"'
)


def model(**locked: float) -> RobotModel:
    """Of the learned joints, the others locked."""
    return RobotModel(URDF, joints=LEARNED, locked=locked)


def moving(seconds: float, seed: int = 0, **locked: float) -> Iterator[Measurement]:
    """The arm's own dynamics at 100 Hz while the other joints stand there."""
    robot, t = model(**locked), np.arange(round(100 * seconds)) * 0.01
    phase = np.random.default_rng(seed).uniform(0.0, 6.0, 2)
    w = np.array([2.1, 3.3])
    angle = t[:, None] * w + phase
    q, dq, ddq = 0.4 * np.sin(angle), 0.4 * w * np.cos(angle), -0.4 * w**2 * np.sin(angle)
    y = robot.regressors(q, dq, ddq) @ robot.prior
    for k in range(len(t)):
        yield Measurement(1_000_000_000 + k * 10_000_000, q[k], dq[k], y[k])
