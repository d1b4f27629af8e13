"""Efforts in a trajectory's points against pinocchio, their bounds, and joints that get none."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.control.config import TrajectoryEffortsConfig
from semiparam_dynamics.control.plan import Answer
from semiparam_dynamics.control.trajectory_efforts import TrajectoryEfforts, rigid_efforts
from semiparam_dynamics.errors import ConfigurationError, SampleError
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.robot.model import RobotModel

from .arm import JOINTS, SEVEN

K = 20
TILTED = (1.0, -2.0, -9.0)


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel(SEVEN, joints=JOINTS, gravity=TILTED)


@pytest.fixture
def states() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, K, len(JOINTS)))


def made(model: RobotModel, **changes: object) -> TrajectoryEfforts:
    config = replace(TrajectoryEffortsConfig(), **{"gravity": "include", **changes})
    return TrajectoryEfforts(model, config)


def test_gravity_is_taken_off_as_the_urdf_has_it(model, states) -> None:
    kinematics = model.kinematics
    data = kinematics.createData()
    whole = np.array([pin.rnea(kinematics, data, *state) for state in zip(*states, strict=True)])
    np.testing.assert_allclose(rigid_efforts(model, *states), whole, atol=1e-9)
    held = [pin.computeGeneralizedGravity(kinematics, data, q).copy() for q in states[0]]
    friction = np.full_like(whole, 1.5)
    answer = Answer(whole + friction, np.full_like(whole, 0.1))
    efforts, told = made(model)(states[0], answer)
    assert not told
    np.testing.assert_allclose(efforts, whole + friction, atol=1e-9)
    without, _ = made(model, gravity="exclude")(states[0], answer)
    np.testing.assert_allclose(without, whole + friction - held, atol=1e-9)


def test_neither_what_is_sent_nor_what_is_exerted_is_beyond_the_limits(model, states) -> None:
    limits = np.array([87.0] * len(JOINTS))  # of the file
    data = model.kinematics.createData()
    held = [pin.computeGeneralizedGravity(model.kinematics, data, q).copy() for q in states[0]]
    answer = Answer(np.where(states[1] > 0.0, 1e6, -1e6), np.full_like(states[1], 0.1))
    for share in (1.0, 0.5):
        efforts, _ = made(model, effort_share=share)(states[0], answer)
        np.testing.assert_allclose(np.abs(efforts), np.tile(share * limits, (K, 1)))
        sent, _ = made(model, effort_share=share, gravity="exclude")(states[0], answer)
        assert (np.abs(sent) <= share * limits).all()
        assert (np.abs(sent + held) <= share * limits + 1e-9).all()
    efforts, _ = made(model, effort=(10.0, 20.0, 30.0, 200.0))(states[0], answer)
    np.testing.assert_allclose(np.abs(efforts), np.tile([10.0, 20.0, 30.0, 87.0], (K, 1)))
    with pytest.raises(ConfigurationError, match="'effort' needs one number"):
        made(model, effort=(1.0, 2.0))


def test_joints_that_the_learner_is_unsure_of_get_none(model, states) -> None:
    stds = np.full_like(states[1], 0.1)
    stds[7, 2] = 8.8  # 87 N m and a tenth
    efforts, told = made(model)(states[0], Answer(states[1], stds))
    assert not efforts[:, 2].any()
    np.testing.assert_array_equal(efforts[:, [0, 1, 3]], states[1][:, [0, 1, 3]])
    assert told == "no efforts for joint3: the learner is unsure of it"
    stds[7, 2] = 8.6
    assert made(model)(states[0], Answer(states[1], stds))[1] == ""
    stds[:, 1] = 0.0
    efforts, told = made(model)(states[0], Answer(states[1], stds))
    assert not efforts[:, 1].any() and "has learned nothing" in told and "joint2" in told


def test_answers_that_are_none_are_refused(model, states) -> None:
    stds = np.full_like(states[1], 0.1)
    with pytest.raises(SampleError, match="another size"):
        made(model)(states[0], Answer(states[1][1:], stds[1:]))
    for part in (states[1], stds):
        before, part[3, 1] = part[3, 1], np.nan
        with pytest.raises(SampleError, match="not finite"):
            made(model)(states[0], Answer(states[1], stds))
        part[3, 1] = before
