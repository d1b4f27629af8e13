"""A memory in seconds, of the rigid body and of the residual."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learning.recursion.forgetting import ForgettingClock
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotModel

from .arms import FEW_CENTERS, motion, small_arm

pytestmark = pytest.mark.usefixtures("seldom_inferred")


def estimator(model: RobotModel, **values: object) -> SemiparametricEstimator:
    return SemiparametricEstimator(model, **{"nystrom.window": 1.0, **FEW_CENTERS, **values})


def samples(model: RobotModel, seconds: float, rate: float = 50.0, extra: float = 1.0):
    """Motion that repeats every 5 s, with an effect that no rigid body has."""
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = motion(model, t)
    y = model.regressors(q, dq, ddq) @ model.prior
    y = y + extra * np.sin(3.0 * q[:, :1]) * np.cos(2.0 * q[:, 1:2])
    probe = estimator(model)
    return [
        probe.sample(*state, y[k], 1 + round(t[k] * 1e9))
        for k, state in enumerate(zip(q, dq, ddq, strict=True))
    ]


@pytest.mark.parametrize("step", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("rate", [7.0, 50.0, 1000.0])
def test_what_is_left_depends_on_time_and_not_on_the_rate(step: float, rate: float) -> None:
    clock, left, seconds = ForgettingClock(8.0, step), 1.0, 20.0
    for k in range(int(seconds * rate) + 1):
        left *= 1.0 - clock.forgetting_fraction(round(k / rate * 1e9))
    np.testing.assert_allclose(left, np.exp(-seconds / 8.0), rtol=1.5 * step + 2.0 / rate / 8.0)


def test_pauses_and_stamps_that_go_back_count_little() -> None:
    clock = ForgettingClock(10.0, 0.0)
    assert clock.forgetting_fraction(5_000_000_000) == 0.0
    np.testing.assert_allclose(clock.forgetting_fraction(3_600_000_000_000), -np.expm1(-0.1))
    assert clock.forgetting_fraction(0) == 0.0
    clock.memory = 1e-3
    np.testing.assert_allclose(clock.forgetting_fraction(500_000_000), -np.expm1(-1.0))
    clock.memory = 0.0
    assert clock.forgetting_fraction(1_000_000_000) == 0.0


def test_without_a_memory_nothing_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for name in ("forget", "update_replacing"):
        monkeypatch.setattr(RecursiveLeastSquares, name, lambda *_, n=name: called.append(n))
    model = small_arm()
    stream = samples(model, 3.0)
    for values in ({}, {"rigid_body.memory": 2.0, "nystrom.memory": 2.0}):
        target = estimator(model, **values)
        for sample in stream:
            target.update(sample)
        assert set(called) == ({"update_replacing"} if values else set())


def test_repeated_motion_does_not_blow_up() -> None:
    """Predicted half a second ahead, as the delayed protocol does, over many repetitions."""
    model = small_arm()
    forgetful = estimator(model, **{"nystrom.memory": 1.0})
    errors, waiting = [], []
    for sample in samples(model, 40.0, rate=25.0):
        p = forgetful.predict(sample)
        errors.append(np.abs(sample.y - np.array([p.rigid_body, p.semiparametric])))
        waiting.append((sample, p, forgetful.update_rigid_body(sample)))
        if len(waiting) > 12:
            for each in waiting:
                forgetful.update_residual(*each)
            waiting.clear()
    rigid, both = np.array(errors[250:]).swapaxes(0, 1)
    assert np.mean(both**2) < 0.5 * np.mean(rigid**2)
    assert both.max() < 1.5 * rigid.max()


def test_a_place_that_is_left_is_kept() -> None:
    model = small_arm()
    stream = samples(model, 5.0)
    q = model.position_limits[1].clip(-3.0, 3.0) - 0.2
    still, Phi = 0.0 * q, model.regressor(q, 0.0 * q, 0.0 * q)
    learner = estimator(model, **{"nystrom.memory": 30.0, "nystrom.wide_max_centers": 0})
    for sample in stream:
        learner.update(sample)

    def residual() -> np.ndarray:
        return np.array([learner.predict(s).residual.value for s in stream])

    before, pi = residual(), learner.rigid_body.parameters.copy()
    for k in range(1, 301):  # five minutes at one place
        stamp = stream[-1].stamp + k * 1_000_000_000
        learner.update(Sample(stamp, q, still, still, Phi, Phi @ model.prior))
    learner.rigid_body.parameters = pi  # what it learned away from there aside
    assert 0.9 < np.linalg.norm(residual()) / np.linalg.norm(before) < 1.1
