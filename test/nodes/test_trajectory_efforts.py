"""The node between a trajectory's sender and a controller: what it fills in, and bad inputs."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

pytest.importorskip("trajectory_msgs.msg", reason="trajectories need trajectory_msgs")
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.nodes.managed import LATCHED, NO_TEXT, UNSENT
from semiparam_dynamics.base.nodes.messages import (
    STATE,
    desired_message,
    joint_state_message,
    stamp_of,
    trajectory_effort_message,
)
from semiparam_dynamics.base.parameters import from_flat, replace
from semiparam_dynamics.control.config import TrajectoryEffortsConfig
from semiparam_dynamics.control.nodes.trajectory_efforts import (
    TrajectoryEffortsNode,
    fill_efforts,
    is_finite,
    waypoints,
)
from semiparam_dynamics.control.plan import Answer
from semiparam_dynamics.control.trajectory_efforts import (
    TrajectoryEfforts,
    gravity_efforts,
    resampled,
    states_at,
)
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.robot.model import RobotModel

from ..robot import standing_arm
from .conftest import take

NAMES = ("shoulder", "elbow")
IN, OUT = "/trajectory_efforts/joint_trajectory", "/joint_trajectory_controller/joint_trajectory"
K = 5


def trajectory(fields: int = 3, names: tuple[str, ...] = NAMES[::-1]) -> JointTrajectory:
    """Points of a motion 0.1 s apart, with efforts of their own, of which nothing may be left."""
    w = 2.0 + np.arange(len(names))
    angle = 0.1 * np.arange(K)[:, None] * w
    states = (np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle))
    message = desired_message(7_000_000_001, names, states, 0.1)
    message.header.frame_id = "world"
    for point in message.points:
        point.effort = [1e3] * len(names)
        for name in STATE[fields:]:
            setattr(point, name, [])
    return message


def bare(message: JointTrajectory) -> JointTrajectory:
    """The same without efforts."""
    message = copy.deepcopy(message)
    for point in message.points:
        point.effort = []
    return message


def test_points_are_read_by_name_and_refused_with_a_reason() -> None:
    message = trajectory()
    points = waypoints(message, NAMES)
    for read, name in zip((points.q, points.dq, points.ddq), STATE, strict=True):
        sent = [getattr(point, name)[::-1] for point in message.points]
        np.testing.assert_array_equal(read, sent)
    assert points.times.tolist() == [100_000_000 * k for k in range(K)]
    message.points[2].velocities = message.points[2].accelerations = []
    assert np.isnan(waypoints(message, NAMES).dq).any(axis=1).tolist() == [k == 2 for k in range(K)]
    message.points[1].velocities = [1.0]
    with pytest.raises(SampleError, match="needs 2 velocities"):
        waypoints(message, NAMES)
    with pytest.raises(SampleError, match="needs 2 positions"):
        waypoints(JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint()]), NAMES)
    with pytest.raises(SampleError, match="joints other than shoulder, elbow"):
        waypoints(trajectory(names=(*NAMES, "gripper")), NAMES)
    message = trajectory()
    assert is_finite(message)
    message.points[3].accelerations[1] = math.nan
    assert not is_finite(message)
    with pytest.raises(SampleError, match="accelerations are not finite"):
        waypoints(message, NAMES)


def test_added_points_carry_what_the_given_ones_do() -> None:
    for fields in (1, 2, 3):
        message = trajectory(fields)
        points = resampled(waypoints(message, NAMES), 0.03, 1000)
        fill_efforts(message, NAMES, points, np.arange(2.0 * len(points.times)).reshape(-1, 2))
        assert len(message.points) == 4 * (K - 1) + 1
        for name in STATE:
            sizes = {len(getattr(point, name)) for point in message.points}
            assert sizes == {2 if name in STATE[:fields] else 0}
        again = waypoints(message, NAMES)
        np.testing.assert_array_equal(again.times, points.times)
        np.testing.assert_array_equal(again.q, points.q)
        assert list(message.points[3].effort) == [7.0, 6.0]


class Between:
    """Sends trajectories to the node and hears what goes on to the controller.

    answered: whether there is a learner; it and the node then know of each other.
    """

    def __init__(self, peer, answered: bool = True) -> None:
        self._peer = peer
        self._heard: list[JointTrajectory] = peer.listen(JointTrajectory, OUT)
        self._sender = peer.node.create_publisher(JointTrajectory, IN, 10)
        peer.until(lambda: self._sender.get_subscription_count() > 0, "the node's subscription")
        self._sent = 0
        if answered:
            peer.until(self._connected, "trajectories with efforts")
        else:
            peer.meet("/trajectory_efforts", self._sender)
            peer.until(lambda: peer.node.count_publishers(OUT) > 0, "what goes on")

    def _connected(self) -> bool:
        """Send one, unless one has come out with efforts."""
        if any(len(message.points[0].effort) for message in self._heard):
            return True
        self.send(trajectory())
        self._peer.spin(0.2)
        return False

    def send(self, message: JointTrajectory) -> None:
        """Send a trajectory with a stamp of its own."""
        self._sent += 1
        message.header.stamp.sec = self._sent
        self._sender.publish(message)

    def heard(self, stamp: int) -> list[JointTrajectory]:
        """What came out of one of that stamp, in s."""
        return [message for message in self._heard if message.header.stamp.sec == stamp]

    def __call__(self, message: JointTrajectory) -> JointTrajectory:
        """What the node makes of a trajectory."""
        self.send(message)
        self._peer.until(lambda: bool(self.heard(self._sent)), "the trajectory to go on")
        (came,) = self.heard(self._sent)
        return came


def summary(peer) -> str:
    """The last sentence of the node's diagnostics."""
    status = peer.status
    return status.message if status is not None and status.name == "trajectory_efforts" else ""


def test_trajectories_get_the_learner_s_efforts_and_are_else_the_same(
    peer, start, urdf, connect
) -> None:
    start("inverse_dynamics", urdf=urdf, feedforward="true", defer_learning="false")
    arm = connect()
    states = peer.listen(JointState, "joint_states")
    arm.move(150)
    peer.until(lambda: peer.figures().get("samples learned", "0") == "148", "148 samples learned")
    learned = Session(str(urdf), from_flat(InverseDynamicsNodeConfig, {"defer_learning": False}))
    for state in states:
        take(learned, state)
    settings = {"gravity": "exclude", "unsure": 1.0}
    start("trajectory_efforts", urdf=urdf, timeout=5.0, **settings)
    between = Between(peer)
    model = RobotModel(urdf)
    rule = TrajectoryEfforts(model, replace(TrajectoryEffortsConfig(), **settings))
    for fields in (1, 2, 3):
        sent = trajectory(fields)
        came = between(sent)
        assert bare(came) == bare(sent)
        states = states_at(waypoints(sent, NAMES))
        said = learned.learner.feedforward(*states)
        answer = Answer(said.values["semiparametric"], said.stds["semiparametric"])
        expected, told = rule(states[0], answer)
        assert not told and np.ptp(expected, axis=0).min() > 0.05
        np.testing.assert_allclose(
            [point.effort[::-1] for point in came.points], expected, rtol=1e-9, atol=1e-9
        )
    peer.until(lambda: "with efforts" in summary(peer), "no complaint")


def test_without_a_learner_trajectories_go_on_without_efforts(peer, start, urdf, tmp_path) -> None:
    start("trajectory_efforts", timeout=0.2)
    between = Between(peer, answered=False)
    sent = trajectory()
    assert between(sent) == bare(sent)
    missing = "no efforts: the robot's URDF has not come on robot_description"
    peer.until(lambda: summary(peer) == missing, "the first sentence")
    between(sent)
    peer.until(lambda: int(peer.figures().get(missing, "0")) > 1, "the same again")
    description = peer.node.create_publisher(String, "robot_description", LATCHED)
    description.publish(String(data=str(urdf)))
    peer.until(lambda: summary(peer) == NO_TEXT, "a file's name")
    between(sent)
    peer.until(lambda: summary(peer) == f"no efforts: {NO_TEXT}", "what is missing")
    description.publish(String(data="<robot>"))
    peer.until(lambda: "URDF" in summary(peer) and NO_TEXT not in summary(peer), "a bad URDF")
    description.publish(String(data=urdf.read_text()))
    peer.until(lambda: "trajectories with efforts" in summary(peer), "the URDF")
    assert between(sent) == bare(sent)
    peer.until(lambda: "nobody answers" in summary(peer), "the learner to be missed")

    # Somebody listens who answers too late, or with what fits no question.
    asked = peer.listen(JointTrajectory, "/inverse_dynamics/desired")
    answers = [
        peer.node.create_publisher(JointTrajectory, f"/inverse_dynamics/feedforward{end}", 10)
        for end in ("", "_std")
    ]
    peer.until(lambda: all(one.get_subscription_count() for one in answers), "the node to listen")
    peer.until(lambda: between(sent) is not None and bool(asked), "a question")
    assert between(sent) == bare(sent)
    peer.until(lambda: "did not answer in time" in summary(peer), "the late answer")
    late, ones = asked[-1], np.ones((K, 2))
    for publisher in answers:
        publisher.publish(trajectory_effort_message(7_000_000_002, NAMES, ones, late))
    assert between(sent) == bare(sent)
    assert peer.figures()["with efforts"] == "0"
    log = (tmp_path / "trajectory_efforts.log").read_text()
    assert "no efforts: " in log and "Traceback" not in log


def test_bad_trajectories_are_not_harmful_and_good_ones_are_resampled(
    peer, start, urdf, tmp_path
) -> None:
    start("inverse_dynamics", urdf=urdf, feedforward="true")
    start("trajectory_efforts", urdf=urdf, timeout=5.0, period=0.02, effort="[1e-3,50.0]")
    between = Between(peer)

    told = []

    def refused(message: JointTrajectory, sentence: str) -> None:
        told.append(sentence)
        assert between(message) == bare(message)
        peer.until(lambda: sentence in summary(peer), sentence)

    refused(JointTrajectory(joint_names=list(NAMES)), "0 points")
    refused(trajectory(names=("shoulder", "wrist")), "each of shoulder, elbow once")
    refused(trajectory(names=(*NAMES, "gripper")), "joints other than")
    backwards = trajectory()
    backwards.points.reverse()
    refused(backwards, "must increase")
    short = trajectory()
    short.points[1].positions = [0.1]
    refused(short, "needs 2 positions")
    odd = trajectory()
    for point in odd.points:
        point.velocities = []
    refused(odd, "accelerations and no velocities")

    wild = trajectory()
    wild.points[0].positions = [0.0, math.inf]
    between.send(wild)
    peer.until(lambda: "not sent on" in summary(peer), "the refusal")
    between.send(wild)
    good = between(trajectory())
    assert not between.heard(good.header.stamp.sec - 1)
    log = (tmp_path / "trajectory_efforts.log").read_text()
    assert all(log.count(sentence) == 1 for sentence in told)  # though they follow each other
    assert log.count("not sent on") == 2
    assert len(good.points) == 5 * (K - 1) + 1
    np.testing.assert_array_equal([point.effort for point in good.points], 0.0)
    nothing = "no efforts for shoulder, elbow: the learner has learned nothing of it"
    peer.until(lambda: summary(peer) == nothing, "the sentence")


@pytest.mark.parametrize("gravity", ["exclude", "include"])
def test_a_gripper_and_a_torso_that_are_not_learned(peer, start, tmp_path, gravity: str) -> None:
    """A trajectory of the arm's joints alone, and gravity where the torso is tilted."""
    urdf = tmp_path / "standing.urdf"
    urdf.write_text(standing_arm.URDF)
    asked = peer.listen(JointTrajectory, "/inverse_dynamics/desired")
    answers = [
        peer.node.create_publisher(JointTrajectory, f"/inverse_dynamics/feedforward{end}", 10)
        for end in ("", "_std")
    ]
    states = peer.node.create_publisher(JointState, "joint_states", 10)
    start("trajectory_efforts", urdf=urdf, timeout=5.0, gravity=gravity)
    between = Between(peer, answered=False)
    peer.until(lambda: all(one.get_subscription_count() for one in answers), "the node to listen")
    if gravity == "exclude":
        peer.until(lambda: states.get_subscription_count() > 0, "joint states to be taken")
        stand = {
            "tilt": 0.3,
            "lift": 0.1,
            "shoulder": 0.2,
            "elbow": 0.1,
            "other": 0.0,
            "finger": 0.0,
        }
        at, zeros = np.array([*stand.values()]), np.zeros(len(stand))
        message = joint_state_message(1_000_000_000, tuple(stand), at, zeros, zeros)

        def taken() -> bool:
            states.publish(message)
            return states.get_subscription_count() == 0  # all that there is to know is known

        peer.until(taken, "where the torso stands")
    peer.until(lambda: between._sender.get_subscription_count() > 0, "the node")
    sent = trajectory()
    del asked[:]
    between.send(sent)
    peer.until(lambda: bool(asked), "the question")
    values = np.array([[20.0, -7.0]] * K)
    for publisher, numbers in zip(answers, (values, np.ones((K, 2))), strict=True):
        publisher.publish(trajectory_effort_message(stamp_of(asked[-1]), NAMES, numbers, asked[-1]))
    peer.until(lambda: bool(between.heard(between._sent)), "the trajectory to go on")
    [came] = between.heard(between._sent)
    q = states_at(waypoints(sent, NAMES))[0]
    held = gravity_efforts(standing_arm.model(tilt=0.3, lift=0.1), q)
    assert np.abs(held - gravity_efforts(standing_arm.model(), q)).max() > 1.0
    expected = values - held if gravity == "exclude" else values
    efforts = [point.effort[::-1] for point in came.points]
    np.testing.assert_allclose(efforts, expected, rtol=1e-9, atol=1e-9)


def test_a_trajectory_that_the_network_refuses_is_sent_again(
    ros_environment, urdf, monkeypatch
) -> None:
    rclpy.init()
    try:
        node = TrajectoryEffortsNode()
        tried: list[JointTrajectory] = []

        def refuse_first(message: JointTrajectory) -> bool:
            tried.append(message)
            return len(tried) > 2

        monkeypatch.setattr(node._controller, "publish", refuse_first)
        first, second = JointTrajectory(), trajectory()  # the first one stops the arm
        node._received(first)
        node._received(second)
        for _ in range(100):
            if len(tried) == 4:
                break
            rclpy.spin_once(node, timeout_sec=0.1)
        assert tried[:3] == [first] * 3 and tried[3:] == [second]
        assert node._sent == 2 and node._reasons[UNSENT] == 2 and not node._waiting
        node.destroy_node()
    finally:
        rclpy.shutdown()
