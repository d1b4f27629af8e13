"""A small arm whose hand, joints or surroundings change while it moves; for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.hypotheses import Causes
from semiparam_dynamics.changes.monitor import ChangeMonitor
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import motion, small_arm

MODEL = small_arm()
ON = 22.0  # s at which something changes; detection begins after 10 s
RATE = 50.0
START = 1_000_000_000
NOISE = 0.05  # of an axis' output's standard deviation, white
Change = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # t, dq, columns -> (n_axes,)


def learner(model: RobotModel = MODEL, **values: Any) -> InverseDynamicsLearner:
    """Quick to settle; the second residual is left out."""
    settings: dict[str, Any] = {"changes.detect": True, "changes.settle": 10.0, "comparison": False}
    settings |= {"nystrom.window": 10.0, "nystrom.max_centers": 100}
    settings |= {"nystrom.wide_max_centers": 0} | values
    return InverseDynamicsLearner(model, from_flat(InverseDynamicsConfig, settings))


def monitor(of: InverseDynamicsLearner) -> ChangeMonitor:
    assert of.changes is not None
    return of.changes


def moving(
    seconds: float, change: Change, *, begin: float = 0.0, seed: int = 0, model: RobotModel = MODEL
) -> Iterator[Measurement]:
    """The arm's own dynamics, an effect that no rigid body has, noise, and `change` on top.

    From `begin` to `seconds`, of a motion that repeats every 5 s.
    """
    t = np.arange(int(seconds * RATE)) / RATE
    q, dq, ddq = motion(model, t)
    regressors = model.regressors(q, dq, ddq)
    y = regressors @ model.prior
    size = y[: int(5.0 * RATE)].std(axis=0)
    y = y + 0.2 * size * np.sin(3.0 * q[:, :1]) * np.cos(2.0 * q[:, 1:2])
    y += NOISE * size * np.random.default_rng(seed).standard_normal(y.shape)
    columns = regressors @ Causes(model, ChangesConfig()).combination
    for k, instant in enumerate(t):
        if instant < begin:
            continue
        changed = y[k] + change(float(instant), dq[k], columns[k])
        yield Measurement(START + round(instant * 1e9), q[k], dq[k], changed)


def nothing(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """No change."""
    return np.zeros(MODEL.n_axes)


def held(parameters: np.ndarray, since: float, until: float = np.inf) -> Change:
    """A payload in the hand: ten parameters of the last link."""

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        part: np.ndarray = columns[:, :10] @ parameters
        return part if since <= t < until else 0.0 * part

    return change


def largest_weight() -> float:
    """The largest effort that gravity takes."""
    at_rest = MODEL.regressors(*(np.zeros((1, 4)),) * 3)[0]
    return float(np.abs(at_rest @ MODEL.prior).max())


def pushed(effort: np.ndarray, since: float, until: float) -> Change:
    """Constant efforts from outside."""
    return lambda t, dq, columns: effort if since <= t < until else 0.0 * effort


def by_hand(force: np.ndarray, since: float, until: float) -> Change:
    """A constant force (3,) of somebody at the last link's origin, in the base's axes."""
    robot = MODEL.kinematics
    data, frame = robot.createData(), robot.getFrameId(MODEL.bodies[-1])

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if not since <= t < until:
            return nothing(t, dq, columns)
        (q,), _, _ = motion(MODEL, np.array([t]))
        places = pin.integrate(robot, pin.neutral(robot), q)
        J = pin.computeFrameJacobian(robot, data, places, frame, pin.LOCAL_WORLD_ALIGNED)
        effort: np.ndarray = -J[:3].T @ force
        return effort

    return change


def follow(of: InverseDynamicsLearner, measurements: Iterator[Measurement]) -> list[Step]:
    """Every step of it, learned at once."""
    steps = []
    for measurement in measurements:
        step = of.predict(measurement)
        if step is not None:
            of.update(of.admit(step))
            steps.append(step)
    return steps


def seconds(stamp: int) -> float:
    return (stamp - START) * 1e-9


def errors(steps: list[Step], begin: float, end: float) -> np.ndarray:
    """Root mean square errors (n_axes,) of what was predicted within a stretch of time."""
    chosen = [s for s in steps if begin <= seconds(s.stamp) < end and s.y is not None]
    left = np.array([s.y - s.prediction.semiparametric for s in chosen])
    rms: np.ndarray = np.sqrt(np.mean(left**2, axis=0))
    return rms
