"""The plan against pinocchio and the motion itself, and the way to the motion."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.control.plan import Answer, Approach, Plan, trajectory_of
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.config import MotionConfig

from .arm import JOINTS, SEVEN

PERIOD, SIZE = 0.002, 10
W = np.array([1.0, 2.0, 0.7, 1.5])


def motion(t):
    angle = np.asarray(t)[:, None] * W
    return 0.3 * np.sin(angle), 0.3 * W * np.cos(angle), -0.3 * W**2 * np.sin(angle)


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel(SEVEN, joints=JOINTS)


def test_desired_states_and_the_urdfs_efforts(model):
    kinematics, data = model.kinematics, model.kinematics.createData()
    plan = Plan(model, motion, PERIOD, SIZE, delay=PERIOD, lead=0.03)
    for step in range(200):
        time = step * PERIOD + 0.0004
        plan.ahead(time)
        point = plan.at(time)
        q, dq, _ = (part[0] for part in motion(np.array([time])))
        np.testing.assert_allclose(point.q, q, atol=1e-9)
        np.testing.assert_allclose(point.dq, dq, atol=1e-6)
        acting = tuple(part[0] for part in motion(np.array([(step + 1) * PERIOD])))
        np.testing.assert_allclose(point.urdf, pin.rnea(kinematics, data, *acting), atol=1e-9)
        middle = motion(np.array([((step + 1) // SIZE * SIZE + SIZE // 2) * PERIOD]))[0][0]
        inertia = np.diagonal(pin.crba(kinematics, data, middle))
        np.testing.assert_allclose(point.inertia, inertia, rtol=1e-9)


def test_each_instant_is_asked_about_once_and_in_time(model):
    plan = Plan(model, motion, PERIOD, SIZE, delay=0.004, lead=0.03)
    asked: list[int] = []
    for step in range(300):
        asked += [block.first for block in plan.ahead(step * PERIOD)]
        plan.at(step * PERIOD)
        assert (asked[-1] + SIZE) * PERIOD > step * PERIOD + 0.034
    assert asked == list(range(0, len(asked) * SIZE, SIZE))
    assert plan.begun == plan.late == (299 + 2) // SIZE + 1


def test_answers_belong_to_their_instants_and_late_ones_are_counted(model):
    plan = Plan(model, motion, PERIOD, SIZE, lead=0.02)
    for step in range(50):
        for block in plan.ahead(step * PERIOD):
            if block.first == 20:
                continue  # comes in the middle of its block
            values = block.first + np.arange(SIZE)[:, None] + np.zeros((1, model.n_joints))
            assert plan.take(block.first, Answer(values, 0.1 * values))
        if step == 25:
            assert plan.take(20, Answer(np.full_like(values, 7.0), values))
        answer = plan.at(step * PERIOD).answer
        if 20 <= step < 25:
            assert answer is None
        else:
            assert answer is not None
            expected = 7.0 if 25 <= step < 30 else float(step)
            np.testing.assert_array_equal(answer.values, expected)
    assert (plan.begun, plan.late) == (5, 1)
    assert not plan.take(0, Answer(values, values))
    with pytest.raises(SampleError, match="shape"):
        plan.take(40, Answer(values[:3], values[:3]))


def test_it_continues_after_a_pause_or_a_clock_that_went_back(model):
    plan = Plan(model, motion, PERIOD, SIZE)
    for time in (0.0, 0.002, 3.0, 3.002, 1.0):
        plan.ahead(time)
        np.testing.assert_allclose(plan.at(time).q, motion(np.array([time]))[0][0], atol=1e-9)
    with pytest.raises(SampleError, match="ahead"):
        plan.at(2.0)


def test_a_motion_that_is_not_finite_is_refused(model):
    bad = np.full((SIZE, model.n_joints), np.nan)
    with pytest.raises(SampleError, match="not finite"):
        Plan(model, lambda t: (bad, bad, bad), PERIOD, SIZE).ahead(0.0)


def test_approach_begins_where_the_arm_stands_without_jumps():
    trajectory = trajectory_of(SEVEN, JOINTS, MotionConfig(motion="exciting"), seed=1)
    start = trajectory(np.zeros(1))[0][0] + np.array([0.5, -0.2, 0.0, 0.1])
    approach = Approach(start, trajectory, speed=0.4)
    assert approach.duration == pytest.approx(1.875 * 0.5 / 0.4)
    t = np.arange(0.0, approach.duration + 3.0, 1e-3)
    q, dq, ddq = approach(t)
    np.testing.assert_allclose(q[0], start)
    assert not dq[0].any() and not ddq[0].any()
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[1:-1], dq[1:-1], atol=2e-5)
    np.testing.assert_allclose(np.gradient(dq, t, axis=0)[1:-1], ddq[1:-1], atol=5e-3)
    on_the_way = t < approach.duration
    assert np.abs(dq[on_the_way]).max() == pytest.approx(0.4, rel=1e-3)
    later = t[~on_the_way]
    np.testing.assert_array_equal(q[~on_the_way], trajectory(later - approach.duration)[0])
