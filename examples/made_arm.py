"""A made-up arm of three joints, and what it measures: the data of the other examples.

Replace it by your own robot: a URDF, and arrays of positions, velocities and efforts.
"""

from __future__ import annotations

import numpy as np
import pinocchio

LINK = """
  <link name="link{k}"><inertial><origin xyz="0.02 0.01 {middle}"/><mass value="{mass}"/>
    <inertia ixx="0.02" iyy="0.02" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>
    <origin xyz="0 0 {length}"/><axis xyz="{axis}"/>
    <limit lower="-2.5" upper="2.5" effort="80" velocity="3"/></joint>"""
LINKS = [
    LINK.format(k=k, parent=parent, mass=mass, axis=axis, length=0.3, middle=0.15)
    for k, parent, mass, axis in (
        (1, "base", 3.0, "0 0 1"),
        (2, "link1", 2.0, "0 1 0"),
        (3, "link2", 1.0, "0 1 0"),
    )
]
URDF = f'<robot name="made_arm"><link name="base"/>{"".join(LINKS)}\n</robot>'
PERIOD = 15.0  # s, after which the motion repeats
JOINTS = ("joint1", "joint2", "joint3")


def record(
    seconds: float, rate: float = 100.0, seed: int = 0, load: float = 0.0, load_from: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times (n,), s; positions, velocities, efforts (n, 3) in rad, rad/s, N m.

    The efforts are the rigid body's, friction, an effect that no rigid body has, and noise. From
    `load_from`, s, on the hand holds `load`, kg, 0.1 m from the last joint.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = (np.zeros((len(t), 3)) for _ in range(3))
    for w in 2.0 * np.pi / PERIOD * rng.integers(1, 8, (5, 3)):
        angle = t[:, None] * w + rng.uniform(0.0, 2.0 * np.pi, 3)
        q += 0.5 / w * np.sin(angle)
        dq += 0.5 * np.cos(angle)
        ddq -= 0.5 * w * np.sin(angle)
    bare = pinocchio.buildModelFromXML(URDF)
    loaded = bare.copy()
    body = pinocchio.Inertia(load, np.array([0.0, 0.0, 0.1]), 1e-4 * np.eye(3))
    loaded.inertias[3] = loaded.inertias[3] + body
    tau = np.array(
        [
            pinocchio.rnea(model, model.createData(), q[k], dq[k], ddq[k])
            for k in range(len(t))
            for model in [loaded if load and t[k] >= load_from else bare]
        ]
    )
    tau += 1.5 * np.tanh(dq / 0.02) + 0.8 * dq + 0.5 * np.sin(4.0 * q)
    return t, q, dq, tau + 0.05 * rng.standard_normal(tau.shape)
