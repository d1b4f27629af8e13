"""Transitions of the learner node in one process: its own state is rcl's, whatever fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.srv import GetState
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.base.nodes import managed
from semiparam_dynamics.base.nodes.messages import joint_state_message
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.learner.nodes import inverse_dynamics
from semiparam_dynamics.learner.nodes.inverse_dynamics import LATCHED, InverseDynamicsNode
from semiparam_dynamics.robot.model import RobotModel

from .conftest import URDF

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
LONG = 120.0  # s: only reached when something is broken


class Driven:
    """A node, what rcl says of its state, and the topic of its description."""

    def __init__(self, **given: object) -> None:
        pairs = [part for key, value in given.items() for part in ("-p", f"{key}:={value}")]
        rclpy.init(args=["--ros-args", *pairs] if pairs else [])
        self.node = InverseDynamicsNode()
        self._other = rclpy.create_node("other")
        self._executor = SingleThreadedExecutor()
        for node in (self.node, self._other):
            self._executor.add_node(node)
        self._state = self._other.create_client(GetState, "/inverse_dynamics/get_state")
        self._description = self._other.create_publisher(String, "robot_description", LATCHED)

    def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            if condition():
                return
            self._executor.spin_once(timeout_sec=0.02)
        pytest.fail(f"the node is {self.node.state}: {self.node.problem}")

    @property
    def state(self) -> str:
        """The node's state; fails where rcl has another."""
        self.until(self._state.service_is_ready)
        answer = self._state.call_async(GetState.Request())
        self.until(answer.done)
        label: str = answer.result().current_state.label
        assert self.node.state == label
        return label

    def describe(self, text: str) -> None:
        """Publish a description, and spin until the node has taken it."""
        taken: list[str] = []
        heard = self._other.create_subscription(
            String, "robot_description", lambda message: taken.append(message.data), LATCHED
        )
        self.until(self._description.get_subscription_count)
        self._description.publish(String(data=text))
        self.until(lambda: text in taken)
        for _ in range(20):
            self._executor.spin_once(timeout_sec=0.0)
        self._other.destroy_subscription(heard)

    def publisher(self, kind: type, topic: str) -> Any:
        """A publisher that the node has found."""
        made = self._other.create_publisher(kind, topic, 50)
        self.until(made.get_subscription_count)
        return made

    def values(self) -> dict[str, str]:
        """The figures of a report that is made now."""
        return {pair.key: pair.value for pair in self.node.report().values}

    def publishers(self) -> int:
        return len(self._other.get_publishers_info_by_topic("/inverse_dynamics/predicted"))


@pytest.fixture
def drive(ros_environment: dict[str, str]) -> Iterator[Callable[..., Driven]]:
    yield Driven
    rclpy.try_shutdown()


def test_without_a_urdf_it_cannot_be_configured(drive) -> None:
    driven = drive(autostart="false")
    assert driven.node.trigger_configure() == FAILURE
    assert "waiting for the robot's URDF" in driven.node.problem
    assert driven.state == "unconfigured"
    driven.describe(URDF)
    assert driven.state == "unconfigured"  # a manager decides
    assert driven.node.trigger_configure() == SUCCESS and driven.state == "inactive"


def test_a_description_starts_it_once_and_not_against_a_manager(drive, urdf: Path) -> None:
    driven = drive()
    for path in (str(urdf), "/etc/passwd", ""):  # no message names a file
        driven.describe(path)
        assert driven.state == "unconfigured" and driven.node.problem == managed.NO_TEXT
    driven.describe("<robot")
    assert driven.state == "unconfigured" and driven.node.problem
    driven.describe(URDF)
    assert driven.state == "active"
    for trigger in (driven.node.trigger_deactivate, driven.node.trigger_cleanup):
        assert trigger() == SUCCESS
    driven.describe(URDF.replace("two_links", "renamed"))
    assert driven.state == "unconfigured"
    assert driven.node.trigger_shutdown() == SUCCESS
    driven.describe(URDF)
    assert driven.state == "finalized"


def test_an_unexpected_exception_leaves_nothing_behind(drive, urdf: Path, monkeypatch) -> None:
    driven, changes = drive(urdf=urdf), inverse_dynamics.SessionReport
    monkeypatch.setattr(inverse_dynamics, "SessionReport", lambda *_: 1 / 0)
    assert not driven.node.start()
    assert driven.state == "unconfigured"
    assert "unexpected ZeroDivisionError" in driven.node.problem
    monkeypatch.setattr(inverse_dynamics, "SessionReport", changes)
    assert driven.node.start() and driven.state == "active"
    driven.until(lambda: driven.publishers() == 1)


def test_a_full_disk_keeps_it_from_cleaning_up_and_not_from_ending(
    drive, urdf: Path, monkeypatch
) -> None:
    driven = drive(urdf=urdf)
    assert driven.node.start()
    assert driven.node.trigger_deactivate() == SUCCESS

    def full() -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(driven.node.session, "finish", full)
    assert driven.node.trigger_cleanup() == FAILURE
    assert driven.state == "inactive" and driven.node.session is not None
    driven.node.trigger_shutdown()
    assert driven.state == "finalized" and driven.node.session is None
    driven.until(lambda: driven.publishers() == 0)


def test_a_transition_that_makes_no_sense_is_refused(drive, urdf: Path) -> None:
    driven = drive(urdf=urdf, autostart="false")
    assert driven.node.trigger_activate() != SUCCESS
    assert driven.state == "unconfigured"
    assert driven.node.bring_to("active") and driven.state == "active"


COMMENTED = URDF.replace('mass value="2.0"', 'mass value="2.5"') + "<!-- calibrated -->"
LONGER = URDF.replace('origin xyz="0.3 0 0"', 'origin xyz="0.35 0 0"')


def test_a_model_belongs_to_the_kinematics(drive, tmp_path: Path) -> None:
    config, saved = InverseDynamicsNodeConfig().learner, tmp_path / "arm.npz"
    InverseDynamicsLearner(RobotModel(URDF), config).save(saved)
    driven = drive(model_file=saved, **{"filter.cutoff": 8.0})
    driven.describe(COMMENTED)
    assert driven.state == "active" and driven.node.session.autosave.loaded == saved
    assert driven.node.session.differences() == ["filter.cutoff 5.0 (here 8.0)"]


def test_a_model_that_does_not_fit_is_set_aside(drive, tmp_path: Path) -> None:
    saved, kept = tmp_path / "arm.npz", tmp_path / "arm.set-aside-2.npz"
    learner = InverseDynamicsLearner(RobotModel(URDF), InverseDynamicsNodeConfig().learner)
    learner.save(tmp_path / "arm.set-aside.npz")  # of another time
    learner.save(saved)
    content = saved.read_bytes()
    driven = drive(model_file=saved)
    driven.describe(LONGER)
    assert driven.state == "active" and driven.node.session.autosave.loaded is None
    assert kept.read_bytes() == content and not saved.exists()
    told = driven.values()["model set aside"]
    assert f"it was moved to {kept}" in told and "regressor_sha256 is" in told


FINGER = """<link name="tip"/><joint name="finger" type="prismatic"><parent link="lower"/>
  <child link="tip"/><axis xyz="1 0 0"/><limit lower="0" upper="0.1" effort="10" velocity="1"/>
</joint></robot>"""
GRIPPER = URDF.replace("</robot>", FINGER)


def test_joints_that_nobody_publishes_are_left_out(drive, tmp_path: Path) -> None:
    """A gripper in the URDF, and another publisher's messages between the arm's."""
    saved = tmp_path / "arm.npz"
    driven = drive(model_file=saved)
    driven.describe(GRIPPER)
    assert driven.node.session.model.joint_names == ("shoulder", "elbow", "finger")
    names, others = ["elbow", "shoulder"], ["wheel"]
    arm = driven.publisher(JointState, "joint_states")
    sent = 0

    def moves() -> None:
        nonlocal sent
        sent += 1
        t = 0.01 * sent
        arm.publish(joint_state_message(sent * 10_000_000, names, *np.sin([[t, t]] * 3)))
        arm.publish(joint_state_message(sent * 10_000_000, others, *np.zeros((3, 1))))

    def predicts() -> bool:
        moves()
        return driven.node.session.predicted > 20

    driven.until(predicts)
    assert driven.node.session.model.joint_names == ("shoulder", "elbow")
    driven.node.report()
    driven.until(lambda: moves() or driven.node.report().level == DiagnosticStatus.OK)
    assert driven.node.trigger_shutdown() == SUCCESS and saved.exists()
    rclpy.try_shutdown()
    again = drive(model_file=saved)  # resumes with the joints of the saved model
    again.describe(GRIPPER)
    assert again.node.session.model.joint_names == ("shoulder", "elbow")
    assert again.node.session.autosave.loaded == saved


def test_joints_of_a_model_that_is_set_aside_are_not_kept(drive, tmp_path: Path) -> None:
    """The robot got a joint more: what was learned of the others is not its own."""
    saved = tmp_path / "arm.npz"
    InverseDynamicsLearner(RobotModel(URDF), InverseDynamicsNodeConfig().learner).save(saved)
    driven = drive(model_file=saved)
    driven.describe(LONGER.replace("</robot>", FINGER))
    assert driven.state == "active" and driven.node.set_aside
    assert driven.node.session.model.joint_names == ("shoulder", "elbow", "finger")


def test_joints_are_chosen_anew_after_cleaning_up(drive) -> None:
    """The gripper's driver may have come up since."""
    driven = drive()
    driven.describe(GRIPPER)
    driven.node._joints = ("shoulder", "elbow")
    driven.node._rebuild()
    assert driven.node.session.model.joint_names == ("shoulder", "elbow")
    assert driven.node.bring_to("unconfigured") and driven.node.bring_to("active")
    assert driven.node.session.model.joint_names == ("shoulder", "elbow", "finger")


def test_learning_stays_switched_off_when_joints_are_chosen(drive) -> None:
    driven = drive()
    driven.describe(GRIPPER)
    driven.node.session.learning = False
    arm, sent = driven.publisher(JointState, "joint_states"), 0

    def chosen() -> bool:
        nonlocal sent
        sent += 1
        numbers = np.sin([[0.01 * sent] * 2] * 3)
        arm.publish(joint_state_message(sent * 10_000_000, ["shoulder", "elbow"], *numbers))
        driven.node.report()
        return len(driven.node.session.model.joint_names) == 2

    driven.until(chosen)
    assert not driven.node.session.learning


def test_diagnostics_say_what_the_learner_is_doing(
    drive, urdf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A report counts what came since the last one, of which the node's own would take its share.
    monkeypatch.setattr(managed, "REPORT_PERIOD", 3600.0)
    driven = drive(urdf=urdf, defer_learning="false")
    assert driven.node.start()
    arm, sent = driven.publisher(JointState, "joint_states"), 0

    def publishes(speed: float, count: int) -> str:
        """Diagnostics after so many messages."""
        nonlocal sent
        before, wanted = driven.node.session.predicted, count - 3
        driven.node.report()
        for k in range(count):
            sent += 1
            q = 0.4 * np.sin([speed * 0.01 * k, 1.7 * speed * 0.01 * k])
            numbers = q, speed * q, 5.0 + q
            names = driven.node.session.model.joint_names
            arm.publish(joint_state_message(sent * 10_000_000, names, *numbers))
            driven._executor.spin_once(timeout_sec=0.01)
        driven.until(lambda: driven.node.session.predicted >= before + wanted)
        driven.node.session.drain()
        return driven.node.report().message

    assert publishes(0.0, 60).endswith("standing still, waiting for motion")
    said = publishes(2.0, 100)
    assert "learns " in said and "the residual is silent until 1.25 s of motion" in said
    assert driven.values()["outputs behind the joint states [ms]"] == "10.0"
