"""A seven-joint arm and its motion, for benchmarks that need no robot's files."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.robot.model import RobotModel

N_JOINTS = 7


def serial_arm_urdf(n_joints: int = N_JOINTS) -> str:
    """A serial arm whose joints turn about z and y in turns, each link a third of a metre long."""
    links, joints = ['<link name="base"/>'], []
    for i in range(1, n_joints + 1):
        mass = 6.0 / i
        ixx, izz = 0.02 * mass, 0.005 * mass
        axis = "0 0 1" if i % 2 else "0 1 0"
        links.append(
            f'<link name="link{i}"><inertial><origin xyz="0.02 0.01 0.15"/><mass value="{mass}"/>'
            f'<inertia ixx="{ixx}" iyy="{1.1 * ixx}" izz="{izz}" ixy="0" ixz="0" iyz="0"/>'
            "</inertial></link>"
        )
        parent = "base" if i == 1 else f"link{i - 1}"
        joints.append(
            f'<joint name="joint{i}" type="revolute"><origin xyz="0 0 0.33"/>'
            f'<parent link="{parent}"/><child link="link{i}"/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" effort="100" velocity="3"/></joint>'
        )
    return f'<robot name="serial_arm">{"".join(links + joints)}</robot>'


def moving(
    model: RobotModel, seconds: float, rate: float, start: float = 0.0
) -> tuple[Array, Array, Array, Array]:
    """t (n,) s, q and dq (n, n_joints) and y (n, n_axes) of five sines a joint that don't repeat.

    So many seconds of it from t = `start` on; the noise is drawn anew, and the same for each start.
    y is what the URDF says, friction, and an effect of the positions that no rigid body has.
    """
    rng = np.random.default_rng(0)
    t = start + np.arange(round(seconds * rate)) / rate
    w = rng.uniform(0.5, 4.0, (5, 1, model.n_joints))
    phase = rng.uniform(0.0, 2.0 * np.pi, w.shape)
    angles = w * t[:, None] + phase
    a = 0.2 / w
    q, dq, ddq = (
        (a * np.sin(angles)).sum(axis=0),
        (a * w * np.cos(angles)).sum(axis=0),
        -(a * w**2 * np.sin(angles)).sum(axis=0),
    )
    y = np.concatenate(
        [
            model.regressors(*(x[i : i + 512] for x in (q, dq, ddq))) @ model.prior
            for i in range(0, len(t), 512)
        ]
    )
    y += np.sin(3.0 * q[:, :1]) + 0.02 * rng.standard_normal(y.shape)
    if model.config.target == "effort":
        y += 2.0 * np.tanh(dq / 0.02) + dq
    return t, q, dq, y
