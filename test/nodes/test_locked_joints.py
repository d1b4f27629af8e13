"""The node locks joints that are not learned where its first messages say that they stand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes.messages import joint_state_message
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.samples.joint_names import FIRST_MESSAGES
from semiparam_dynamics.samples.stream import MOVED

from ..robot.standing_arm import FOLLOWING, LEARNED, URDF, moving
from .test_transitions import SUCCESS, Driven, drive  # noqa: F401

LEARNED_LIST = f"[{', '.join(LEARNED)}]"
NAMES = ("tilt", "lift", *LEARNED)
MOTION = [(m.q, m.dq, m.y) for m in moving(20.0, tilt=0.3)]


class Torso:
    """Publishes the arm's motion and where the torso stands."""

    def __init__(self, driven: Driven, names: tuple[str, ...] = NAMES) -> None:
        self.driven, self.names, self._sent = driven, names, 0
        self._topic = driven.publisher(JointState, "joint_states")

    def send(self, tilt: float, lift: float = 0.352) -> None:
        self._sent += 1
        q, dq, y = MOTION[self._sent]
        numbers = (
            np.concatenate((first, values))
            for first, values in (([tilt, lift], q), ([0.0, 0.0], dq), ([0.0, 0.0], y))
        )
        stamp = 1_000_000_000 + self._sent * 10_000_000
        self._topic.publish(joint_state_message(stamp, self.names, *numbers))
        # No more than DDS keeps are on their way.
        self.driven.until(lambda: self.driven.node.session.stream.received["joint states"] > 0)
        self.driven._executor.spin_once(timeout_sec=0.01)

    def predict(self, count: int, tilt: float) -> None:
        """Until so many more samples are predicted."""
        wanted = self.driven.node.session.predicted + count
        while self.driven.node.session.predicted < wanted:
            self.send(tilt)

    def settle(self) -> None:
        """Until no message is on its way."""
        before = -1
        while (received := self.driven.node.session.stream.received["joint states"]) != before:
            before = received
            for _ in range(10):
                self.driven._executor.spin_once(timeout_sec=0.03)


def values(driven: Driven) -> tuple[DiagnosticStatus, dict[str, str]]:
    status = driven.node.report()
    return status, {pair.key: pair.value for pair in status.values}


@pytest.fixture
def torso(drive, tmp_path: Path):  # noqa: F811
    """Starts a node that learns the arm in turn, and its torso."""

    def start() -> Torso:
        urdf = tmp_path / "standing.urdf"
        urdf.write_text(URDF)
        given = {"urdf": urdf, "joints": LEARNED_LIST, "model_file": tmp_path / "arm.npz"}
        driven = drive(defer_learning="false", **given)
        assert driven.node.start()
        return Torso(driven)

    return start


def test_locked_with_the_first_message_which_is_answered_too(torso) -> None:
    of = torso()
    node = of.driven.node
    assert not node.session.model.locked
    of.send(0.301)
    assert node.session.model.locked == pytest.approx({"lift": 0.35, "tilt": 0.3})
    assert node.session.stream.received["joint states"] == node.session.measured == 1
    same = node.session
    of.predict(20, 0.301)
    assert node.session is same  # the lock is not looked for again


def test_a_torso_that_is_published_seldom_is_locked_all_the_same(torso) -> None:
    """Two hundred of an arm's messages are a fifth of a second at 1 kHz."""
    of = torso()
    of.names = LEARNED
    publish = of._topic.publish
    for k in range(FIRST_MESSAGES + 20):
        q, dq, y = MOTION[k]
        publish(joint_state_message(1_000_000_000 + k * 10_000_000, LEARNED, q, dq, y))
        of.driven.until(lambda: of.driven.node.session.stream.received["joint states"] > k)  # noqa: B023
    assert not of.driven.node.session.model.locked
    last, zero = 1_000_000_000 + (FIRST_MESSAGES + 20) * 10_000_000, np.zeros(1)
    publish(joint_state_message(last, ("tilt",), np.array([0.3]), zero, zero))
    of.driven.until(lambda: of.driven.node.session.model.locked == pytest.approx({"tilt": 0.3}))


def test_a_urdf_s_file_is_not_needed_once_it_was_read(torso, tmp_path: Path) -> None:
    """A launch file may have written it for the start alone."""
    of = torso()
    (tmp_path / "standing.urdf").unlink()
    set_live = of.driven.node.set_parameters
    assert set_live([Parameter("save_interval", value=30.0)])[0].successful
    of.send(0.301)
    assert of.driven.node.session.model.locked == pytest.approx({"lift": 0.35, "tilt": 0.3})
    assert set_live([Parameter("save_interval", value=40.0)])[0].successful
    assert not of.driven.node.problem


def test_where_it_moves_that_is_told_and_nothing_is_learned_until_it_is_back(torso) -> None:
    of = torso()
    node = of.driven.node
    of.predict(30, 0.3)
    of.settle()
    learned = node.session.learner.estimator.n_learned
    assert learned > 10
    of.predict(30, 0.5)
    of.settle()
    status, told = values(of.driven)
    assert status.level == DiagnosticStatus.WARN
    assert "tilt is at 0.5, and locked at 0.3: nothing is learned" in status.message
    assert int(told[f"dropped: {MOVED}"]) >= 29  # of 30, one may have ended what was begun
    assert node.session.learner.estimator.n_learned <= learned + 1
    of.predict(120, 0.3)
    assert node.session.learner.estimator.n_learned > learned + 50


def test_a_heavy_joint_that_follows_a_learned_one_is_told_and_does_not_end_learning(
    drive,  # noqa: F811
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    urdf, file = tmp_path / "following.urdf", tmp_path / "arm.npz"
    urdf.write_text(FOLLOWING)
    told = "finger moves with elbow (<mimic>), which the model does not represent"
    locked, learned = [], []
    for k in range(2):
        driven = drive(urdf=urdf, defer_learning="false", model_file=file, joints=LEARNED_LIST)
        assert driven.node.start()
        of = Torso(driven, ("tilt", "finger", *LEARNED))
        wanted = driven.node.session.predicted + 60
        while driven.node.session.predicted < wanted:
            of.send(0.3, 0.1 * MOTION[of._sent + 1][0][1] + 0.02 * k)
        locked.append(driven.node.session.model.locked)
        learned.append(driven.node.session.learner.estimator.n_learned)
        assert not driven.node.session.stream.dropped[MOVED]
        assert driven.node.trigger_shutdown() == SUCCESS
        rclpy.try_shutdown()
        assert capfd.readouterr().err.count(told) == 1
    # It stands elsewhere at each start, which makes no other model.
    assert locked[0] == locked[1] and locked[0].keys() == {"tilt", "finger"}
    assert learned[0] > 30 and learned[1] > learned[0] + 30


def test_a_saved_model_is_resumed_where_the_torso_stands_as_before(torso) -> None:
    of = torso()
    of.predict(30, 0.3)
    learned = of.driven.node.session.learner.estimator.n_learned
    assert of.driven.node.trigger_shutdown() == SUCCESS
    rclpy.try_shutdown()
    again = torso()
    node = again.driven.node
    assert node.session.model.locked == pytest.approx({"lift": 0.35, "tilt": 0.3})
    assert node.session.learner.estimator.n_learned == learned
    same = node.session
    again.send(0.327)  # rounded alone it would be 0.35
    assert node.session is same and not node.set_aside


@pytest.mark.parametrize("mass", [0.01, 1.0])
def test_a_gripper_that_stood_elsewhere_is_told_where_it_matters(tmp_path: Path, mass) -> None:
    urdf = URDF.replace('<mass value="0.01"/>', f'<mass value="{mass}"/>')
    config = replace(InverseDynamicsNodeConfig(), joints=LEARNED)
    for finger in (0.04, 0.0, 0.045):
        session = Session(urdf, config, {"tilt": 0.3, "finger": finger})
        if finger == 0.04:
            session.save(tmp_path / "arm.npz")
        session.load(tmp_path / "arm.npz")
        told = ["another position of finger, 0.04 (here 0)"] if mass > 0.5 and not finger else []
        assert session.differences() == told
        session.finish()


def test_joints_that_nobody_publishes_cost_one_session_more(drive, tmp_path: Path) -> None:  # noqa: F811
    urdf = tmp_path / "standing.urdf"
    # A finger that follows the elbow is no joint of its own, so that it may be locked at once.
    urdf.write_text(URDF.replace('upper="0.05"', 'upper="0.05"/><mimic joint="elbow"'))
    driven = drive(urdf=urdf, defer_learning="false", examine_start="false")
    assert driven.node.start()
    sessions = [driven.node.session]
    of = Torso(driven, ("tilt", "finger", *LEARNED))
    while sessions[-1].model.joint_names != ("tilt", *LEARNED):
        of.send(0.3)
        of.send(0.3)
        driven.node.report()
        if driven.node.session is not sessions[-1]:
            sessions.append(driven.node.session)
    assert len(sessions) == 2
    assert sessions[-1].model.locked == pytest.approx({"finger": 0.35})


def test_a_contact_is_over_once_no_joint_state_comes(torso) -> None:
    of = torso()
    of.predict(30, 0.3)
    of.settle()
    node = of.driven.node
    for timer in node.timers:
        timer.cancel()  # no report but those below
    node.report()  # joint states have come since the last one
    learner, last = node.session.learner, node.session.last
    learner._detector.active, learner._detector.since = True, last.stamp
    q, external = last.sample.q, np.full(2, 50.0)
    learner.contacts.follow(last.stamp, q, external, learner._detector)
    node._contacts.publish(last.stamp)
    assert learner.contacts.touched and node._contacts._last == (True, False)
    of.send(0.3)
    of.settle()
    learner.contacts.touched = True  # whatever the detector says of that one
    node.report()
    assert learner.contacts.touched
    node.report()
    assert not learner.contacts.touched and node._contacts._last == (False, False)
