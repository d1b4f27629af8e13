"""What the controller does with measurements and answers, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.control import session as sessions
from semiparam_dynamics.control.config import SessionConfig
from semiparam_dynamics.control.session import ControlSession
from semiparam_dynamics.robot.model import RobotModel

from .arm import JOINTS, SEVEN

STEP = 2_000_000  # ns
START = 7_000_000_123
N = len(JOINTS)


def motion(t):
    w = np.linspace(0.5, 2.0, N)
    angle = np.asarray(t)[:, None] * w
    return 0.2 * (1 - np.cos(angle)), 0.2 * w * np.sin(angle), 0.2 * w**2 * np.cos(angle)


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel(SEVEN, joints=JOINTS)


@pytest.fixture
def session(model) -> ControlSession:
    return ControlSession(model, motion, replace(SessionConfig(), feedforward="rigid_body"))


def follow(session: ControlSession, steps: int, start: int = START, answer: bool = True):
    """Measurements of an arm that stays exactly where it is desired; stamps of the questions."""
    asked = []
    q, dq = np.zeros(N), np.zeros(N)
    for k in range(steps):
        effort, questions = session.measured(start + k * STEP, q, dq)
        assert effort is not None and np.isfinite(effort).all()
        for question in questions:
            asked.append(question.stamp)
            if answer:
                values = question.block.urdf + 1.0
                session.answered(question.stamp, values, np.full_like(values, 1e-9))
        assert session.plan is not None
        q = session.plan.at((k * STEP) * 1e-9).q
    return asked


def test_questions_follow_each_other_and_answers_find_their_block(session):
    asked = follow(session, 200)
    assert asked[0] == START
    np.testing.assert_array_equal(np.diff(asked), 10 * STEP)
    begun, late = session.blocks()
    # The command acts an instant later; nobody can have answered about the first instants.
    assert begun == 20 + 1 and late == 1
    assert not session.counts
    assert set(session.tracking) == {"rigid_body"}
    session.answered(START - 10 * STEP, np.zeros((10, N)), np.zeros((10, N)))
    assert session.counts[sessions.NOT_ASKED] == 1
    with pytest.raises(SampleError, match="shape"):
        session.answered(asked[-1], np.zeros((3, N)), np.zeros((3, N)))


def test_without_answers_all_blocks_are_late(session):
    follow(session, 100, answer=False)
    begun, late = session.blocks()
    assert begun == late == 11
    assert not session.controller.correction.value.any()


def test_what_is_out_of_order_or_not_finite_is_left_out(session):
    follow(session, 10)
    here = np.zeros(N)
    for stamp, q in ((START, here), (START + 9 * STEP, here), (START + 20 * STEP, here + np.nan)):
        effort, questions = session.measured(stamp, q, here)
        assert effort is None and not questions
    assert session.counts[sessions.OUT_OF_ORDER] == 2
    assert session.counts[sessions.NOT_FINITE] == 1


@pytest.mark.parametrize("value", [1e160, -1e12, np.inf])
def test_what_no_arm_can_have_measured_is_left_out(session, value):
    """At the beginning, in motion and after a pause; by position and by velocity."""
    here, there = np.zeros(N), np.array([0.0, value, 0.0, 0.0])
    for begin in (START, START + 5_000_000_000):
        assert session.measured(begin, there, here) == (None, [])
        assert session.measured(begin, here, there) == (None, [])
        follow(session, 10, begin)
    assert session.measured(begin + 10 * STEP, there, here) == (None, [])
    assert session.counts == {sessions.NOT_FINITE: 5, sessions.RESTARTED: 1}


def test_positions_beyond_the_limits_or_reach_of_the_joints_move_nothing(session, model):
    beyond = np.zeros(N)
    beyond[1] = model.position_limits[1][1] + 1.1
    assert session.measured(START, beyond, np.zeros(N)) == (None, [])
    assert session.plan is None
    follow(session, 100)
    jump = np.array([2.0, 0.0, 0.0, 0.0])
    for k, q in enumerate((beyond, beyond, jump, jump - 2.0 * np.eye(N)[0], -jump)):
        effort, _ = session.measured(START + (100 + k) * STEP, q, np.zeros(N))
        assert (effort is None) == bool(np.any(q))
    assert session.counts == {sessions.ELSEWHERE: 5}
    # The motion goes on, and the learner has been asked meanwhile.
    assert session.blocks()[0] == 11


def test_a_jump_that_stays_begins_the_motion_anew(session):
    follow(session, 100)
    jump = np.array([2.0, 0.0, 0.0, 0.0])
    assert session.measured(START + 100 * STEP, jump, np.zeros(N))[0] is None
    effort, _ = session.measured(START + 101 * STEP, jump, np.zeros(N))
    assert effort is not None
    assert session.counts == {sessions.ELSEWHERE: 1, sessions.LOST: 1}
    np.testing.assert_allclose(session.plan.at(0.0).q, jump)


def test_after_a_pause_and_where_the_arm_is_lost_the_motion_begins_anew(session):
    follow(session, 300)
    later = START + 5_000_000_000
    place = np.full(N, 0.1)
    _, questions = session.measured(later, place, np.zeros(N))
    assert session.counts[sessions.RESTARTED] == 1
    assert questions[0].stamp == later
    np.testing.assert_allclose(questions[0].block.q[0], place)
    lost = place + np.array([0.0, 0.0, 0.31, 0.0])
    effort, questions = session.measured(later + STEP, lost, np.zeros(N))
    assert effort is not None
    assert session.counts[sessions.LOST] == 1
    np.testing.assert_allclose(questions[0].block.q[0], lost)
    np.testing.assert_allclose(session.plan.at(0.0).q, lost)


def test_an_answer_to_a_question_of_before_a_restart_is_not_used(session):
    """Although its instants lie within those of the motion that was begun anew."""
    asked = follow(session, 100, answer=False)
    restart = START + 100 * STEP + 1000
    lost = np.full(N, 0.5)
    session.measured(restart, lost, np.zeros(N))
    assert session.counts[sessions.LOST] == 1
    for stamp in asked[-3:]:
        session.answered(stamp, np.zeros((10, N)), np.ones((10, N)))
    assert session.counts[sessions.NOT_ASKED] == 3


def test_live_parameters_reach_the_controller(session):
    follow(session, 300)
    assert session.controller.correction.value.all()
    config = replace(SessionConfig(), feedforward="rigid_body", **{"trust.horizon": 3.0})
    session.configure(replace(config, **{"trust.sure": 0.0, "trust.unsure": 0.0}))
    follow(session, 300, START + 5_000_000_000)
    assert not session.controller.correction.value.any()  # no answer is sure enough
