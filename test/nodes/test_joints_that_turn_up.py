"""The node chooses its joints anew where more of them turn up, and says so where it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes.messages import joint_state_message
from semiparam_dynamics.learner.nodes import inverse_dynamics

from ..robot.standing_arm import LEARNED, URDF
from .test_transitions import SUCCESS, Driven, drive  # noqa: F401

FINGER = ("finger",)


class Robot:
    """A node, and the drivers of an arm and of its gripper, which publish on their own."""

    def __init__(self, driven: Driven) -> None:
        self.driven, self.node, self._sent = driven, driven.node, 0
        self.warnings: list[str] = []
        logger = driven.node.get_logger()
        warn = logger.warning

        def warning(message: str) -> bool:
            self.warnings.append(message)
            return bool(warn(message))

        logger.warning = warning
        driven.node.get_logger = lambda: logger
        self._topic = driven.publisher(JointState, "joint_states")

    def send(self, count: int, *lists: Sequence[str], moving: bool = True) -> None:
        """So many messages of each list of joints, too far apart for one reading; all are taken."""
        for _ in range(count):
            self._sent += 1
            for k, names in enumerate(lists):
                stamp = 1_000_000_000 + self._sent * 10_000_000 + 2_000_000 * k
                phase = 0.03 * self._sent + np.arange(len(names)) if moving else 0.0
                far = np.array([0.04 if name in FINGER else 0.3 for name in names])
                q, dq = far * np.sin(phase), 3.0 * far * np.cos(phase) * moving
                message = joint_state_message(stamp, names, q, dq, 3.0 * q + dq)
                before = self._received()
                self._topic.publish(message)
                self.driven.until(lambda before=before: self._received() != before)

    def _received(self) -> tuple[object, int]:
        """What it was given; of another session once joints are locked or chosen."""
        return self.node.session, self.node.session.stream.received["joint states"]

    def seconds(self, *lists: Sequence[str], moving: bool = True) -> None:
        """Three of them, as far as the node looks: it does so once a second."""
        for _ in range(3):
            self.send(10, *lists, moving=moving)
            self.node.report()

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(self.node.session.model.joint_names)


@pytest.fixture
def robot(drive, tmp_path: Path) -> Callable[[], Robot]:  # noqa: F811
    """Starts a node with a model's file, whose own timer doesn't look, and its robot."""
    urdf = tmp_path / "standing.urdf"
    urdf.write_text(URDF)

    def start() -> Robot:
        rclpy.try_shutdown()
        given = {"urdf": urdf, "model_file": tmp_path / "arm.npz", "examine_start": "false"}
        driven = drive(defer_learning="false", **given)
        assert driven.node.start()
        for timer in driven.node.timers:
            timer.cancel()
        return Robot(driven)

    return start


def test_a_gripper_that_came_first_does_not_decide_what_is_learned(robot) -> None:
    of = robot()
    of.seconds(FINGER)
    assert of.joints == FINGER and of.node.session.learner.estimator.n_learned > 0
    of.send(10, FINGER, LEARNED)
    of.node.report()
    of.send(1, FINGER)  # a single look is not enough
    assert of.joints == FINGER
    of.seconds(FINGER, LEARNED)
    assert of.joints == LEARNED
    (told,) = [line for line in of.warnings if "which came first" in line]
    assert told.startswith("shoulder, elbow are published together: they are learned from now on")
    of.seconds(FINGER, LEARNED)
    assert of.joints == LEARNED and of.node.session.learner.estimator.n_learned > 0
    assert "other joints" not in of.driven.values()


def test_where_much_is_learned_others_are_told_once(robot, monkeypatch) -> None:
    monkeypatch.setattr(inverse_dynamics, "MIN_KNOWN_SAMPLES", 5)
    of = robot()
    of.seconds(FINGER)
    assert of.node.session.learner.estimator.n_learned > 5
    of.seconds(FINGER, LEARNED)
    of.seconds(FINGER, LEARNED)
    assert of.joints == FINGER
    (told,) = [line for line in of.warnings if "set the parameter 'joints'" in line]
    assert told.startswith("messages name shoulder, elbow, too, which the model of finger")
    assert of.driven.values()["other joints"] == told


def test_a_gripper_s_file_does_not_decide_but_an_arm_s_does(robot, monkeypatch) -> None:
    monkeypatch.setattr(inverse_dynamics, "MIN_KNOWN_SAMPLES", 5)
    of = robot()
    of.seconds(FINGER)
    assert of.node.session.learner.estimator.n_learned > 5
    assert of.node.trigger_shutdown() == SUCCESS
    of = robot()
    assert of.joints == FINGER  # before any message
    of.seconds(FINGER, LEARNED, moving=False)
    assert of.joints == LEARNED and "model set aside" in of.driven.values()
    for _ in range(2):  # after the stand the filters have to forget how they began in motion
        of.seconds(FINGER, LEARNED)
    assert of.node.session.learner.estimator.n_learned > 5
    assert of.node.trigger_shutdown() == SUCCESS
    of = robot()
    of.seconds((*LEARNED, *FINGER), moving=False)
    assert of.joints == LEARNED and of.node.session.learner.estimator.n_learned > 5
    assert of.driven.values()["resumed from"]
    (told,) = [line for line in of.warnings if "set the parameter 'joints'" in line]
    assert told.startswith("messages name finger, too")


def test_an_arm_in_two_messages_is_told_at_once(robot) -> None:
    of = robot()
    of.seconds(("shoulder",), ("elbow", "finger"))
    told = [line for line in of.warnings if "other messages name" in line]
    assert of.joints == ("elbow", "finger")
    assert len(told) == 1 and "other messages name shoulder: taken to stand still" in told[0]
    assert "no message names shoulder together with the joints" in of.node.report().message
