"""The controller as a node: answers of the learner over DDS, and what happens without them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from sensor_msgs.msg import JointState

pytest.importorskip("trajectory_msgs.msg", reason="the controller needs trajectory_msgs")
from trajectory_msgs.msg import JointTrajectory

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.nodes.messages import (
    desired_message,
    desired_states,
    effort_message,
    joint_state_message,
    stamp_of,
)
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.control import session as sessions
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session

from .conftest import TIMEOUT, take

SEVEN = str(Path(__file__).resolve().parents[1] / "data" / "seven_joint_arm.urdf")
JOINTS = "[joint1,joint2,joint3,joint4]"
ROTORS = 0.1
LEARNER = {
    "feedforward": "true",
    "joints": JOINTS,
    "comparison": "false",
    "filter__max_rate": 50.0,
    "nystrom__max_centers": 20,
    "nystrom__wide_max_centers": 0,
}
# The loop over DDS is closed in wall time: slower than real time, at a low rate and with soft gains
# the arm stays stable, and answers come in time, where a busy machine's commands are 0.5 s late.
SIMULATOR = {
    "urdf": SEVEN,
    "joints": JOINTS,
    "control": "effort",
    "rate": 200.0,
    "motion": "exciting",
    "real_time_factor": 0.2,
    "wait_for_subscribers": 2,
    "effects__rotor_inertia": ROTORS,
}
CONTROLLER = {
    "joints": JOINTS,
    "motion": "exciting",
    "rate": 200.0,
    "lead": 0.1,
    "gains__rotor_inertia": f"[{ROTORS}]",
    "gains__bandwidth": "[5.0]",
    "trust__fade_time": 0.1,
    "trust__sure": 100.0,  # how sure it has to be is tested without ROS
    "trust__unsure": 100.0,
}
STATES = tuple(np.random.default_rng(0).normal(size=(3, 5, 2)))


def test_desired_states_are_read_by_name_and_refused_with_a_reason():
    names = ("shoulder", "elbow")
    message = desired_message(3_000_000_007, names, STATES, 0.002)
    assert stamp_of(message) == 3_000_000_007
    assert [p.time_from_start.nanosec for p in message.points] == [2_000_000 * k for k in range(5)]
    for read, sent in zip(desired_states(message, names), STATES, strict=True):
        np.testing.assert_array_equal(read, sent)
    for read, sent in zip(desired_states(message, names[::-1]), STATES, strict=True):
        np.testing.assert_array_equal(read, sent[:, ::-1])
    message.points[2].velocities = [1.0, float("nan")]
    with pytest.raises(SampleError, match="velocities are not finite"):
        desired_states(message, names)
    message.points[2].velocities = [1.0]
    with pytest.raises(SampleError, match="needs 2 velocities"):
        desired_states(message, names)
    with pytest.raises(SampleError, match="each of shoulder, wrist once"):
        desired_states(message, ("shoulder", "wrist"))
    message.points = []
    with pytest.raises(SampleError, match="0 points"):
        desired_states(message, names)


def test_the_learner_answers_with_its_models_and_their_deviations(peer, start, urdf, connect):
    start("inverse_dynamics", urdf=urdf, feedforward="true", defer_learning="false")
    arm = connect()
    topics = ("feedforward", "feedforward_std", "feedforward_rigid_body")
    heard = {t: peer.listen(JointTrajectory, f"/inverse_dynamics/{t}") for t in topics}
    ask = peer.node.create_publisher(JointTrajectory, "/inverse_dynamics/desired", 10)
    peer.meet("/inverse_dynamics", ask)
    states = peer.listen(JointState, "joint_states")
    names = ("elbow", "shoulder")  # the other way round
    question = desired_message(5_000_000_000, names, tuple(s[:, ::-1] for s in STATES), 0.002)
    ask.publish(question)
    peer.until(lambda: all(heard.values()), "an answer on each topic")
    # A controller takes 0 for a joint of which nothing was learned.
    assert all(list(p.effort) == [0.0, 0.0] for p in heard["feedforward_std"][0].points)
    for answers in heard.values():
        answers.clear()
    arm.move(300)
    peer.until(lambda: peer.figures().get("samples learned", "0") == "298", "298 samples learned")
    ask.publish(question)
    peer.until(lambda: all(heard.values()), "an answer on each topic")

    session = Session(str(urdf), from_flat(InverseDynamicsNodeConfig, {"defer_learning": False}))
    for state in states:
        take(session, state)
    said = session.learner.feedforward(*STATES)
    expected = (
        said.values["semiparametric"],
        said.stds["semiparametric"],
        said.values["rigid_body"],
    )
    for topic, values in zip(topics, expected, strict=True):
        answer = heard[topic][0]
        assert stamp_of(answer) == 5_000_000_000
        assert list(answer.joint_names) == ["shoulder", "elbow"]
        assert [p.time_from_start for p in answer.points] == [
            p.time_from_start for p in question.points
        ]
        np.testing.assert_allclose([p.effort for p in answer.points], values, rtol=1e-9)

    given = question.points[0].velocities
    question.points[0].velocities = [1e300, 1e300]
    ask.publish(question)
    peer.until(lambda: any("too large" in key for key in peer.figures()), "the first refusal")
    question.points[0].velocities = given
    question.points[0].accelerations = [1.0]
    ask.publish(question)
    peer.until(
        lambda: sum(key.startswith("desired refused") for key in peer.figures()) == 2, "the refusal"
    )
    assert peer.figures()["samples learned"] == "298"


def test_a_wrench_learner_has_no_feed_forward(start, urdf, tmp_path):
    wrench = {"target": "wrench", "sensor_frame": "elbow"}
    assert start("inverse_dynamics", urdf=urdf, feedforward="true", **wrench).wait(TIMEOUT) == 1
    assert "needs the target 'effort'" in (tmp_path / "inverse_dynamics.log").read_text()


def test_commands_come_from_the_learner_and_without_it_from_the_urdf(peer, start):
    pytest.importorskip("mujoco", reason="needs the extra 'sim'")
    figures: dict[str, dict[str, str]] = {}

    def noted() -> bool:
        if peer.status is not None:
            figures[peer.status.name] = peer.figures()
        return True

    def controller(key: str, default: str = "nan") -> float:
        noted()
        return float(figures.get("computed_torque", {}).get(key, default))

    learner = start("inverse_dynamics", **LEARNER)
    start("computed_torque", **CONTROLLER)
    commands = peer.listen(JointState, "effort_command")
    simulator = start("arm_simulator", **SIMULATOR)
    peer.until(lambda: controller("share of the fall-back") < 0.05, "the learner to be followed")
    followed = figures["computed_torque"]
    assert followed["feed-forward"] == "semiparametric"
    assert int(followed["late answers"].split()[0]) < int(followed["late answers"].split()[2])
    begun = len(commands)
    assert learner.stop() == 0
    peer.until(lambda: controller("share of the fall-back") == 1.0, "the fall-back")
    assert controller("no answer of the learner in time") > 0
    peer.until(lambda: len(commands) > begun + 100, "commands after the learner's end")
    assert controller("tracking error semiparametric joint1 [rad]") < 0.1
    assert peer.set_live("/computed_torque", feedforward="rigid_body").successful
    peer.until(
        lambda: noted() and figures["computed_torque"]["feed-forward"] == "rigid_body",
        "the other feed-forward",
    )
    assert simulator.stop() == 0
    # Each joint state has one command; none jumps, but for the sensors' noise in the feedback.
    stamps = [stamp_of(message) for message in commands]
    assert stamps == sorted(set(stamps))
    efforts = np.array([message.effort for message in commands])
    assert np.isfinite(efforts).all() and (np.abs(efforts) <= 0.9 * 87.0).all()


def test_a_joint_state_that_no_arm_sends_ends_nothing_and_moves_nothing(peer, start, urdf) -> None:
    start("computed_torque", urdf=urdf, feedforward="urdf", motion="exciting")
    publisher = peer.node.create_publisher(JointState, "joint_states", 10)
    commands = peer.listen(JointState, "effort_command")
    peer.meet("/computed_torque", publisher)
    values = (0.0, 1e160, 1e12, 20.0, 0.0)
    for k, value in enumerate(values):
        q = np.array([value, 0.0])
        message = joint_state_message((1000 + k) * 1_000_000, ("shoulder", "elbow"), q, 0.0 * q, q)
        publisher.publish(message)
        peer.flush("/computed_torque")
    peer.until(lambda: len(commands) >= 2, "commands before and after")
    assert [stamp_of(command) for command in commands] == [1_000_000_000, 1_004_000_000]
    peer.fresh()
    assert peer.figures()[sessions.NOT_FINITE] == "2"
    assert peer.figures()[sessions.ELSEWHERE] == "1"

    def told() -> bool:
        publisher.publish(
            joint_state_message(2_000_000_000, ("shoulder", "elbow"), *[q * 20.0] * 3)
        )
        return peer.status.message == f"no commands: {sessions.ELSEWHERE}"

    q = np.ones(2)
    peer.until(told, "the reason why there are no commands")


def test_gravity_is_held_where_the_joint_that_carries_the_arm_stands(peer, start, urdf) -> None:
    gravity = (3.0, 0.0, -9.0)  # the base leans
    start(
        "computed_torque",
        urdf=urdf,
        joints="[elbow]",
        gravity_vector=str(list(gravity)),
        feedforward="urdf",
        motion="exciting",
    )
    publisher = peer.node.create_publisher(JointState, "joint_states", 10)
    commands = peer.listen(JointState, "effort_command")
    peer.meet("/computed_torque", publisher)
    at_rest = np.zeros(1)

    def publish(k: int, name: str, q: float) -> None:
        state = (np.array([q]), at_rest, at_rest)
        publisher.publish(joint_state_message((1000 + k) * 1_000_000, (name,), *state))
        peer.flush("/computed_torque")

    publish(0, "elbow", 0.4)
    peer.fresh()
    assert peer.status.message == "waiting for the positions of shoulder, for a second"
    publish(1, "shoulder", -0.5)
    publish(2, "elbow", 0.4)
    peer.until(lambda: bool(commands), "a command")
    assert [stamp_of(command) for command in commands] == [1_002_000_000]
    model = pin.buildModelFromXML(urdf.read_text())
    model.gravity.linear = np.array(gravity)
    expected = pin.computeGeneralizedGravity(model, model.createData(), np.array([-0.5, 0.4]))
    np.testing.assert_allclose(commands[0].effort, expected[1:], atol=1e-3)  # N m; it moves off


def test_an_arm_whose_motors_nobody_bounds_is_not_moved(start, urdf, tmp_path) -> None:
    endless = tmp_path / "endless.urdf"
    endless.write_text(urdf.read_text().replace('effort="100"', 'effort="0"', 1))
    assert start("computed_torque", urdf=endless, motion="exciting").wait(TIMEOUT) == 1
    said = (tmp_path / "computed_torque.log").read_text()
    assert "no effort limit of shoulder" in said and "bounds.effort" in said


def test_the_simulator_takes_commands_by_name_and_refuses_others(peer, start, tmp_path):
    pytest.importorskip("mujoco", reason="needs the extra 'sim'")
    states = peer.listen(JointState, "joint_states")
    values = {**SIMULATOR, "wait_for_subscribers": 1, "command_timeout": 10.0}
    start("arm_simulator", **values, effects__noise_effort=0.0)
    publisher = peer.node.create_publisher(JointState, "effort_command", 10)
    peer.meet("/arm_simulator", publisher)
    names = [f"joint{i}" for i in (4, 3, 2, 1)]
    peer.until(lambda: len(states) > 3, "joint states")
    publisher.publish(effort_message(1, names, np.array([4.0, 3.0, -2.0, 1.0])))
    wanted = [1.0, -2.0, 3.0, 4.0]
    peer.until(lambda: list(states[-1].effort) == wanted, "the commanded efforts")
    publisher.publish(effort_message(1, names[:2], np.zeros(2)))
    publisher.publish(effort_message(1, names, np.full(4, np.inf)))
    log = tmp_path / "arm_simulator.log"
    peer.until(lambda: "command refused" in log.read_text(), "the refusal")
    peer.flush("/arm_simulator")
    count = len(states)
    peer.until(lambda: len(states) > count + 1, "joint states after them")
    assert list(states[-1].effort) == wanted
