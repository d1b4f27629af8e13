"""The simulated arm as a node, and the learner that listens to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.simulation.arm import ArmSimulator

pytest.importorskip("mujoco", reason="needs the extra 'sim'")

ICUB = {"target": "wrench", "sensor_frame": "r_arm_ft_sensor"}
JOINTS = "[r_shoulder_pitch,r_shoulder_roll,r_shoulder_yaw,r_elbow]"


def values(message: WrenchStamped) -> np.ndarray:
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])


def test_publishes_the_simulators_readings_and_the_learner_answers(peer, start, tmp_path: Path):
    learner = start("inverse_dynamics", joints=JOINTS, defer_learning="false", **ICUB)
    topics = ("predicted", "rigid_body", "external")
    outputs = {t: peer.listen(WrenchStamped, f"/inverse_dynamics/{t}") for t in topics}
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    descriptions: list[String] = []
    peer.node.create_subscription(String, "robot_description", descriptions.append, latched)
    simulator = start("arm_simulator", seed=3, motion="exciting", wait_for_subscribers=2)
    peer.until(lambda: peer.node.count_publishers("/inverse_dynamics/external") > 0, "the learner")
    states = peer.listen(JointState, "joint_states")
    wrenches = peer.listen(WrenchStamped, "wrench")
    peer.until(lambda: len(wrenches) >= 150, "150 readings")
    assert simulator.stop() == 0
    heard = -1
    while heard != (heard := len(states) + len(wrenches)):  # until all that was sent has come
        peer.spin(0.3)
    assert abs(len(states) - len(wrenches)) <= 1  # the last one may be lost with its process

    arm = ArmSimulator(seed=3, motion="exciting")
    assert descriptions[0].data == arm.urdf
    for state, wrench in zip(states, wrenches, strict=False):
        reading = arm.advance()
        assert stamp_of(state) == stamp_of(wrench)
        assert stamp_of(state) - stamp_of(states[0]) == round(reading.time * 1e9)
        np.testing.assert_array_equal(state.position, reading.q)
        np.testing.assert_array_equal(state.velocity, reading.dq)
        np.testing.assert_array_equal(state.effort, reading.effort)
        np.testing.assert_array_equal(values(wrench), reading.wrench)
        assert list(state.name) == list(arm.joint_names)
        assert wrench.header.frame_id == arm.sensor_frame

    # A publisher may know a subscriber before the subscriber knows it: the learner's first sample
    # may be a later one than the first heard here.
    stamps = [stamp_of(message) for message in states]
    for messages in outputs.values():
        peer.until(lambda m=messages: m and stamp_of(m[-1]) >= stamps[-3], "the answers")
        first = stamps.index(stamp_of(messages[0]))
        assert [stamp_of(m) for m in messages] == stamps[first : first + len(messages)]
        assert messages[0].header.frame_id == arm.sensor_frame
    assert learner.stop() == 0


def test_a_learner_of_efforts_sets_it_in_motion(peer, start) -> None:
    """Nobody subscribes to the wrench that the arm has, too."""
    states = peer.listen(JointState, "joint_states")
    start("arm_simulator", wait_for_subscribers=1)
    peer.until(lambda: len(states) > 10, "the motion")
