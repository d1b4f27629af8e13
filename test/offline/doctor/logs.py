"""Logs of a small arm that moves, with friction; its own parameters are the URDF's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.examination import Examination, examine
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.samples.bag_writer import BagWriter

from ...dynamics.arms import URDF, motion, small_arm


def arm_log(
    seconds: float = 14.0,
    rate: float = 100.0,
    *,
    velocities: bool = True,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    delay: float = 0.0,
    noise: float = 0.02,
    seed: int = 0,
) -> JointLog:
    """Efforts of the URDF's parameters, friction and noise; `delay` in s is the efforts'."""
    model = small_arm(gravity=gravity)
    t = np.arange(round(seconds * rate)) / rate
    q, dq, _ = motion(model, t, seed)
    rng = np.random.default_rng(seed)
    y = efforts(t - delay, gravity, seed) + noise * rng.standard_normal(q.shape)
    stamps = SECOND + np.round(t * SECOND).astype(np.int64)
    q = q + 1e-5 * rng.standard_normal(q.shape)
    return JointLog(model.joint_names, stamps, q, dq if velocities else None, y)


def efforts(t: Array, gravity: tuple[float, float, float], seed: int) -> Array:
    model = small_arm(gravity=gravity)
    q, dq, ddq = motion(model, t, seed)
    rigid: Array = model.regressors(q, dq, ddq) @ model.prior
    return rigid + 0.3 * np.tanh(dq / 0.05) + 0.2 * dq


def write_log(path: Path, log: JointLog, urdf: str = "") -> Path:
    """A bag of the log, and of the robot's description where it is given."""
    with BagWriter(path) as bag:
        if urdf:
            bag.robot_description(urdf, int(log.stamps[0]))
        for stamp, *rows in zip(log.stamps.tolist(), log.q, log.dq, log.y, strict=True):
            bag.joint_state(stamp, log.names, *rows)
    return path


def examined(log: JointLog, **settings: object) -> Examination:
    return examine(log, URDF.read_text(), replace(InverseDynamicsConfig(), **settings))


def kinds(examination: Examination) -> list[str]:
    """The faults found."""
    return [finding.kind for finding in examination.findings if finding.fault]
