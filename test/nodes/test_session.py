"""Messages to predictions and learning, without a node."""

from __future__ import annotations

from threading import Event

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from semiparam_dynamics.config import InverseDynamicsNodeConfig
from semiparam_dynamics.dynamics.estimator import Comparison
from semiparam_dynamics.errors import RobotModelError, StorageError
from semiparam_dynamics.learner import Step
from semiparam_dynamics.nodes.messages import joint_state_message
from semiparam_dynamics.nodes.session import Session
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.storage import save_state


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
def test_learning_later_or_in_a_thread_changes_no_bit_of_what_is_learned(make_session, residual):
    changes = {"residual": residual, f"{residual}.window": 0.2}
    whole = make_session(defer_learning=False, **changes)
    parts = make_session(**changes)
    pauses = 0
    for message in messages(60):
        steps = list(parts.joint_state(message)), list(whole.joint_state(message))
        for one, other in zip(*steps, strict=True):
            predictions = (step.prediction.semiparametric for step in (one, other))
            np.testing.assert_allclose(*predictions, rtol=1e-10, atol=1e-10)
        while parts.backlog:  # as the node does while no message waits
            parts.backlog.do_one()
            pauses += 1
        parts.complete()
        a, b = parts.learner.estimator.state(), whole.learner.estimator.state()
        for name in a:  # errors are those of what was published
            np.testing.assert_allclose(a[name], b[name], rtol=1e-9, atol=1e-12, err_msg=name)
            assert np.array_equal(a[name], b[name]) or name.startswith("error.semiparametric")
    # Random features are asked while they learn: nothing needs to wait for a pause.
    assert pauses >= 2 * 58 if residual == "nystrom" else pauses == 0
    assert parts.learner.estimator.n_learned == 58
    for name in ("nonparametric", "semiparametric"):
        rmse = (session.learner.scores.rmse(name) for session in (parts, whole))
        np.testing.assert_allclose(*rmse, rtol=1e-9)


def test_random_features_answer_while_learning_is_held_up(make_session, monkeypatch):
    session = make_session(residual="random_fourier", learning_queue=3)
    begin, begun, go = session.learner.begin_learning, Event(), Event()

    def slow(step: Step) -> Comparison:
        begun.set()
        assert go.wait(30.0)
        return begin(step)

    monkeypatch.setattr(session.learner, "begin_learning", slow)
    steps = [step for message in messages(4) for step in session.joint_state(message)]
    assert begun.wait(30.0) and session.learner.estimator.n_learned == 0
    steps += [step for message in messages(20)[4:] for step in session.joint_state(message)]
    assert len(steps) == session.predicted == 18 and session.deferred > 10
    assert session.waiting == 3
    go.set()
    session.complete()
    assert (
        session.learner.estimator.n_learned + session.dropped()["learning could not keep up"] == 18
    )
    assert 4 <= session.learner.estimator.n_learned <= 7


def test_saved_and_reset_between_what_a_thread_learns(make_session, tmp_path):
    """State is looked at, saved, replaced and forgotten only while nothing is being learned."""
    options = {"residual": "random_fourier", "random_fourier.window": 0.1}
    session, path = make_session(**options), tmp_path / "model.npz"
    for k, message in enumerate(messages(200)):
        list(session.joint_state(message))
        if k % 10 == 3:
            with session.still():
                known = session.learner.estimator.n_learned
                assert session.learner.estimator.rigid_body.excitation_rank() >= 0
                assert session.learner.estimator.n_learned == known
        if k == 100:
            session.save(path)
        if k == 150:
            session.reset()
            assert session.learner.estimator.n_learned == 0
    session.complete()
    assert session.learner.estimator.n_learned == 47 - session.dropped().total()
    beside, whole = make_session(**options), make_session(**options, defer_learning=False)
    beside.load(path)
    whole.load(path)
    for message in messages(230)[200:]:
        steps = list(beside.joint_state(message)), list(whole.joint_state(message))
        beside.complete()
        for one, other in zip(*steps, strict=True):
            predictions = (step.prediction.semiparametric for step in (one, other))
            np.testing.assert_allclose(*predictions, rtol=1e-9, atol=1e-9)


def test_a_load_that_fails_leaves_it_learning_beside_the_messages(make_session, tmp_path):
    session = make_session(residual="random_fourier", **{"random_fourier.window": 0.1})
    for message in messages(60):
        list(session.joint_state(message))
    session.complete()
    state = session.learner.state() | {"residual.core.U": np.zeros((3, 3))}
    save_state(tmp_path / "broken.npz", session.learner.identity(), state)
    with pytest.raises(StorageError):
        session.load(tmp_path / "broken.npz")
    for message in messages(90)[60:]:
        steps = list(session.joint_state(message))
        assert len(session.backlog) == 0
        assert all(np.isnan(step.prediction.semiparametric_std).all() for step in steps)
    session.complete()
    assert session.learner.estimator.n_learned == 88


def test_a_memory_set_while_running_ends_learning_beside_and_zero_begins_it_again(make_session):
    session = make_session(residual="random_fourier")
    config = replace(InverseDynamicsNodeConfig(), residual="random_fourier")
    for memory, waits in ((5.0, True), (0.0, False)):
        session.configure(replace(config, **{"random_fourier.memory": memory}))
        for message in messages(12):
            list(session.joint_state(message))
        assert (len(session.backlog) > 0) == waits
        session.complete()
        session.reset()


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
