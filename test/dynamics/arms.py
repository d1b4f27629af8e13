"""A small arm that moves, with friction a rigid body doesn't explain; for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

# What a residual's size doesn't matter to is tested with a small one.
FEW_CENTERS: dict[str, object] = {"nystrom.max_centers": 120, "nystrom.wide_max_centers": 40}

URDF = Path(__file__).resolve().parent.parent / "data" / "small_arm.urdf"


def small_arm(**overrides: object) -> RobotModel:
    return RobotModel(str(URDF), **overrides)


def motion(model: RobotModel, t: np.ndarray, seed: int = 0) -> tuple[np.ndarray, ...]:
    """q, dq, ddq (n, n_joints) of a sum of sines that repeats every 5 s."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = (np.zeros((len(t), model.n_joints)) for _ in range(3))
    for _ in range(4):
        w = 2.0 * np.pi / 5.0 * rng.integers(1, 4, model.n_joints)
        phase = rng.uniform(0.0, 6.28, model.n_joints)
        a = 0.4 / w
        angle = t[:, None] * w + phase
        q += a * np.sin(angle)
        dq += a * w * np.cos(angle)
        ddq -= a * w**2 * np.sin(angle)
    low, high = model.position_limits
    finite = np.isfinite(high - low)
    middle = 0.5 * np.where(finite, low, 0.0) + 0.5 * np.where(finite, high, 0.0)
    scale = np.minimum(np.where(finite, 0.4 * (high - low), np.inf), 1.0)
    return middle + scale * q, scale * dq, scale * ddq


def measurements(
    model: RobotModel,
    seconds: float = 20.0,
    rate: float = 100.0,
    *,
    seed: int = 0,
    extra: float = 0.0,
    velocity: bool = True,
    start: int = 1_000_000_000,
) -> Iterator[Measurement]:
    """Measurements of the model's own dynamics plus `extra` times an effect it does not have."""
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = motion(model, t, seed)
    y = model.regressors(q, dq, ddq) @ model.prior
    second = min(1, model.n_joints - 1)
    y = y + extra * np.sin(3.0 * q[:, :1]) * np.cos(2.0 * q[:, second : second + 1])
    for k in range(len(t)):
        stamp = start + round(t[k] * 1e9)
        yield Measurement(stamp, q[k], dq[k] if velocity else None, y[k])


def samples(model: RobotModel, seconds: float, **options: object) -> list[Sample]:
    """The filtered samples of :func:`measurements`."""
    return filtered(model, measurements(model, seconds, **options))


def run(model: Any, stream: Iterable[Sample]) -> list[Any]:
    """Predictions of an estimator or a baseline, which learns each sample before the next."""
    told = []
    for sample in stream:
        told.append(model.predict(sample))
        model.update(sample, told[-1])
    return told


def filtered(model: RobotModel, stream: Iterable[Measurement]) -> list[Sample]:
    """The samples that come of measurements."""
    pushed = map(SampleFilter(model, FilterConfig()).push, stream)
    return [sample for sample in pushed if sample is not None]
