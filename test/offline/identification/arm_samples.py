"""Samples of the small arm moving, with any parameters; for tests."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.dynamics.consistent import AxisFactors
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.inertia import inertial_parameters, pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel

from ...dynamics.arms import motion


def samples(
    model: RobotModel,
    base: np.ndarray,
    *,
    n: int = 400,
    noise: float = 0.0,
    seed: int = 0,
    moving: np.ndarray | None = None,
) -> list[Sample]:
    """n samples of 20 s with the outputs of `base`; joints that are not `moving` stand at 0."""
    states = motion(model, np.arange(n) * (20.0 / n), seed)
    q, dq, ddq = (s if moving is None else s * moving for s in states)
    regressors = model.regressors(q, dq, ddq)
    y = regressors @ base
    y = y + noise * np.random.default_rng(seed).standard_normal(y.shape)
    return [Sample(k, q[k], dq[k], ddq[k], regressors[k], y[k]) for k in range(n)]


def factors(model: RobotModel, measured: list[Sample]) -> AxisFactors:
    """The samples, added one by one."""
    data = AxisFactors(model.n_axes, model.n_parameters)
    for sample in measured:
        data.add(sample)
    return data


def other_robot(model: RobotModel, seed: int = 0, spread: float = 0.2) -> np.ndarray:
    """Parameters of a robot near the URDF's: bodies stretched and sheared, with friction."""
    rng = np.random.default_rng(seed)
    bodies = []
    for body in model.inertial_prior.reshape(-1, 10):
        T = np.eye(4)
        T[:3, :3] += spread * rng.uniform(-1.0, 1.0, (3, 3))
        T[:3, 3] = 0.1 * spread * rng.uniform(-1.0, 1.0, 3)
        T *= 1.0 + spread * rng.uniform(-1.0, 1.0)
        bodies.append(inertial_parameters(T @ pseudo_inertia(body) @ T.T))
    n_effects = len(model.full_labels) - model.inertial_prior.size
    return np.concatenate((*bodies, rng.uniform(0.1, 1.0, n_effects)))
