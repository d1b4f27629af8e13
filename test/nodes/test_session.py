"""Messages to predictions and learning, without a node."""

from __future__ import annotations

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.nodes.config import InverseDynamicsNodeConfig
from semiparam_dynamics.nodes.messages import joint_state_message
from semiparam_dynamics.nodes.session import Session
from semiparam_dynamics.parameters import replace


@pytest.fixture
def make_session(urdf):
    def make(**changes: object) -> Session:
        return Session(str(urdf), replace(InverseDynamicsNodeConfig(), **changes))

    return make


def messages(count: int) -> list[JointState]:
    made = []
    for k in range(count):
        q = np.sin(0.3 + 0.01 * k * np.array([2.0, 3.1]))
        stamp = 1_000_000_000 + 10_000_000 * k
        made.append(joint_state_message(stamp, ("shoulder", "elbow"), q, 0.1 * q, 5.0 * q))
    return made


def test_predicts_all_and_drops_what_there_is_no_time_to_learn(make_session):
    session = make_session(learning_queue=3)
    steps = [step for message in messages(12) for step in session.joint_state(message)]
    assert len(steps) == session.predicted == 10
    session.backlog.do_all()
    assert session.learner.estimator.n_learned == 3
    assert session.dropped() == {"learning could not keep up": 7}
    assert session.deferred == 9


def test_learns_each_sample_before_the_next_message_if_asked(make_session):
    session = make_session(defer_learning=False)
    for message in messages(12):
        list(session.joint_state(message))
    assert session.learner.estimator.n_learned == 10
    assert session.deferred == 0 and len(session.backlog) == 0


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_learning_in_pauses_and_comparing_in_a_thread_change_no_bit(make_session, residual):
    changes = {"residual": residual, f"{residual}.window": 0.2}
    whole = make_session(defer_learning=False, **changes)
    parts = make_session(**changes)
    pauses = 0
    for message in messages(60):
        (list(parts.joint_state(message)), list(whole.joint_state(message)))
        while parts.backlog:  # as the node does while no message waits
            parts.backlog.do_one()
            pauses += 1
        parts.complete()
        a, b = parts.learner.estimator.state(), whole.learner.estimator.state()
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert pauses >= 2 * 58 and parts.learner.estimator.n_learned == 58
    for name in ("nonparametric", "semiparametric"):
        assert np.array_equal(parts.learner.scores.rmse(name), whole.learner.scores.rmse(name))


def test_the_rank_of_the_excitation_grows_from_nothing(make_session):
    session = make_session(defer_learning=False)
    assert session.learner.estimator.rigid_body.excitation_rank() == 0
    for message in messages(300):
        list(session.joint_state(message))
    assert 5 <= session.learner.estimator.rigid_body.excitation_rank() <= session.model.n_parameters


def test_reset_forgets_and_counts_anew(make_session):
    session = make_session(learning_queue=3)
    fresh = [list(session.joint_state(message)) for message in messages(12)]
    session.reset()
    assert session.predicted == 0 and not session.dropped() and len(session.backlog) == 0
    again = [list(session.joint_state(message)) for message in messages(12)]
    for before, after in zip(fresh, again, strict=True):
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a.prediction.semiparametric, b.prediction.semiparametric)


def test_refuses_a_urdf_without_the_named_joint(make_session):
    with pytest.raises(RobotModelError, match="wrist"):
        make_session(joints=("wrist",))
