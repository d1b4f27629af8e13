"""The learner node over DDS, with MuJoCo's arm whose hand takes things and meets others."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from lifecycle_msgs.msg import Transition
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.nodes.messages import joint_state_message, stamp_of
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session

from .conftest import TIMEOUT, URDF, take
from .driver_messages import Driver

pytest.importorskip("mujoco", reason="needs the extra 'sim'")

from semiparam_dynamics.simulation.arm import ArmSimulator  # noqa: E402

NODE = "/inverse_dynamics"
RATE = 50.0
LATCHED = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BODY = (1.0, np.array([0.3, 0.0, 0.05]), 0.004 * np.eye(3))  # kg, m, kg m^2 about the centre
PARAMETERS = """/**:
  ros__parameters:
    comparison: false
    defer_learning: false
    nystrom: {window: 5.0}
    changes: {detect: true, settle: 8.0, payload_time: 4.0}
"""


def simulated() -> ArmSimulator:
    effects = {"compliance": 0.0, "hysteresis": 0.0, "rotor_inertia": 0.0}
    return ArmSimulator(
        URDF,
        joints=("shoulder", "elbow"),
        rate=RATE,
        timestep=0.01,
        motion="exciting",
        period=7.0,
        **{f"effects__{name}": value for name, value in effects.items()},
    )


def message(arm: ArmSimulator, start: float) -> JointState:
    reading = arm.advance()
    stamp = round((start + reading.time) * 1e9)
    return joint_state_message(stamp, arm.joint_names, reading.q, reading.dq, reading.effort)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the URDF, the parameters, and the model of 14 s with nothing in the hand."""
    folder = tmp_path_factory.mktemp("learned")
    (folder / "arm.urdf").write_text(URDF)
    (folder / "arm.yaml").write_text(PARAMETERS)
    config = load_yaml(folder / "arm.yaml", InverseDynamicsNodeConfig)
    session, arm = Session(str(folder / "arm.urdf"), config), simulated()
    for _ in range(round(14.0 * RATE)):
        take(session, message(arm, 1.0))
    session.save(folder / "arm.npz")
    assert session.learner.changes is not None and not session.learner.changes.events
    return folder


class Robot:
    """The simulated arm beside a node that goes on from what was learned of it."""

    def __init__(self, peer: Any, start: Any, learned: Path, folder: Path) -> None:
        self._peer, self._start, self._learned = peer, start, learned
        self.model_file = folder / "arm.npz"
        shutil.copy(learned / "arm.npz", self.model_file)
        self.publisher = peer.node.create_publisher(JointState, "joint_states", 50)
        self.heard = peer.listen(JointState, f"{NODE}/predicted")
        self.topics = {
            "payload": self.listen(InertiaStamped, "payload"),
            "payload_std": self.listen(InertiaStamped, "payload_std"),
            "contact": self.listen(Bool, "contact"),
            "changes": self.listen(DiagnosticArray, "changes"),
            "collision": self.listen(Bool, "collision"),
            "contact_events": self.listen(DiagnosticArray, "contact_events"),
            "markers": peer.listen(MarkerArray, f"{NODE}/markers"),
            "external_fast": peer.listen(JointState, f"{NODE}/external_fast"),
            "external": peer.listen(JointState, f"{NODE}/external"),
            "contact_external": peer.listen(JointState, f"{NODE}/contact_external"),
            "external_deviation": peer.listen(JointState, f"{NODE}/external_deviation"),
        }
        each = (self.topics["external"], self.topics["external_deviation"])
        self._of_each_sample = (self.heard, *each)
        self.arm = simulated()
        for _ in range(round(RATE)):  # its start, from rest at once, is like a push
            self.arm.advance()
        self.node = self.start()
        self.last = JointState()

    def listen(self, kind: type, topic: str) -> list[Any]:
        heard: list[Any] = []
        self._peer.node.create_subscription(kind, f"{NODE}/{topic}", heard.append, LATCHED)
        return heard

    def start(self) -> Any:
        files = {"urdf": self._learned / "arm.urdf", "model_file": self.model_file}
        self._peer.status = None
        node = self._start("inverse_dynamics", self._learned / "arm.yaml", **files)
        self._peer.meet(NODE, self.publisher)
        self._peer.until(lambda: self._peer.status is not None, "diagnostics")
        return node

    def move(self, seconds: float) -> None:
        """On with the motion, never far ahead of the node."""
        for _ in range(round(seconds * RATE)):
            self.last = message(self.arm, 100.0)
            self.publisher.publish(self.last)
            self._peer.spin(0.001)
            if self._ahead() > 20:
                self._peer.until(lambda: self._ahead() <= 20, "predictions")
        self._peer.until(lambda: self._ahead() <= 1, "the last sample's messages")

    def _ahead(self) -> int:
        """How many of the messages that were sent have no answer yet."""
        answers = [topic[-1] for topic in self._of_each_sample if topic]
        stamps = [stamp_of(message) for message in answers]
        return round((stamp_of(self.last) - min(stamps)) * 1e-9 * RATE) if stamps else 0

    def events(self) -> list[dict[str, str]]:
        """What each event says, with its sentence."""
        return [
            {pair.key: pair.value for pair in status.values} | {"message": status.message}
            for array in self.topics["changes"]
            for status in array.status
        ]

    def call(self, service: str, name: str = "") -> Any:
        if name:
            given = [Parameter("snapshot_name", value=name).to_parameter_msg()]
            request = SetParameters.Request(parameters=given)
            answer = self._peer.call(SetParameters, f"{NODE}/set_parameters", request, 5.0)
            assert answer.results[0].successful
        return self._peer.call(Trigger, f"{NODE}/{service}", None, 5.0)


@pytest.fixture
def robot(peer, start, learned: Path, tmp_path: Path) -> Robot:
    return Robot(peer, start, learned, tmp_path)


def test_a_thing_is_weighed_named_put_down_and_recalled_after_a_kill(
    peer, robot, start, learned: Path, driver_messages
) -> None:
    """And the bridge gives the driver what was weighed."""
    driver = Driver(peer, "franka_msgs", "SetLoad", "service_server/set_load")
    bridge = {"driver": "franka", "frame": "lower", "period": 0.1}
    bridge |= {"max_distance": 1.0, "tool_mass": 0.0}
    start("payload_bridge", urdf=learned / "arm.urdf", **bridge)
    payloads = robot.topics["payload"]
    robot.move(4.0)
    peer.until(lambda: len(payloads) > 0 and len(driver.loads) > 0, "the bare hand")
    assert driver.loads[-1].mass == 0.0
    assert [p.inertia.m for p in payloads] == [0.0] and not robot.events()
    refused = robot.call("snapshot", "cup")
    assert not refused.success and "nothing is held" in refused.message

    mass, center, inertia = BODY
    robot.arm.hand.attach(mass, center, inertia)
    robot.move(8.0)
    peer.until(lambda: peer.figures().get("payload: mass [kg]", "0") != "0", "the payload")
    said, std = payloads[-1], robot.topics["payload_std"][-1].inertia
    assert said.header.frame_id == "lower" and len(payloads) > 4
    assert said.inertia.m == pytest.approx(mass, rel=0.1, abs=3.0 * std.m)
    assert std.m < 0.1 * mass
    assert said.inertia.com.x == pytest.approx(center[0], abs=0.03)
    assert said.inertia.com.z == pytest.approx(center[2], abs=0.03)
    assert said.inertia.com.y == pytest.approx(0.0, abs=0.3)  # across the plane nothing is felt
    peer.until(lambda: driver.loads[-1].mass > 0.9 * mass, "the payload at the driver")
    assert driver.loads[-1].mass == pytest.approx(mass, rel=0.1)
    assert driver.loads[-1].center_of_mass[0] == pytest.approx(center[0], abs=0.03)
    found = [event for event in robot.events() if event["cause"] == "payload"]
    assert len(found) == 1 and float(found[0]["delay [s]"]) < 1.0
    assert float(found[0]["statistic"]) > float(found[0]["threshold"])

    kept = robot.call("snapshot", "cup")
    assert kept.success and "'cup'" in kept.message
    robot.arm.hand.attach(0.0, np.zeros(3), np.zeros((3, 3)))
    robot.move(2.0)
    assert robot.events()[-1]["payload"] == "bare"
    drawn = [m for array in robot.topics["markers"] for m in array.markers if m.ns == "payload"]
    assert any(m.text.endswith(" kg") and m.header.frame_id == "lower" for m in drawn)
    assert payloads[-1].inertia.m == 0.0
    peer.until(lambda: driver.loads[-1].mass == 0.0, "the empty hand at the driver")
    peer.until(lambda: peer.figures().get("payload") == "bare", "the bare hand")
    assert peer.figures()["payloads known"] == "bare, cup"

    assert robot.call("save").success
    robot.node.signal(signal.SIGKILL)
    robot.node.wait(TIMEOUT)
    robot.start()
    assert not robot.call("recall", "../mug").success
    assert robot.call("recall", "cup").success
    peer.until(lambda: payloads[-1].inertia.m > 0.0, "the payload that was recalled")
    assert payloads[-1].inertia.m == pytest.approx(said.inertia.m, rel=1e-3)
    peer.until(lambda: peer.figures().get("payload") == "cup", "its name")
    assert robot.call("release").success
    peer.until(lambda: payloads[-1].inertia.m == 0.0, "the release")
    assert robot.call("forget_snapshot").success
    assert "there are: bare" in robot.call("recall", "cup").message


def test_a_push_is_told_and_nothing_of_it_is_learned(peer, robot) -> None:
    robot.move(4.0)
    while not (robot.topics["external"] and robot.topics["external_deviation"]):
        robot.move(0.2)  # until the node knows that it is heard
    contact, external = robot.topics["contact"], robot.topics["external"]
    assert [m.data for m in contact] == [False]
    before = stamp_of(robot.last)
    robot.arm.hand.push(np.array([0.0, 0.0, 40.0]), np.array([0.3, 0.0, 0.0]))
    robot.move(0.5)
    robot.arm.hand.push(np.zeros(3))
    robot.move(2.0)
    assert [m.data for m in contact] == [False, True, False]
    told_of = [m.status[0] for m in robot.topics["contact_events"]]
    assert told_of[-1].level == DiagnosticStatus.OK and "over after 0." in told_of[-1].message
    values = {pair.key: pair.value for pair in told_of[-1].values}
    assert values["link"] in ("upper", "lower")
    # Upwards at the elbow's end, of which two joints about parallel axes show one direction.
    assert 15.0 < float(values["force z [N]"]) < 60.0
    fast = {stamp_of(m): m.effort[0] for m in robot.topics["external_fast"]}
    slow = {stamp_of(m): m.effort[0] for m in external}
    risen = [min(s for s in one if s > before and abs(one[s]) > 5.0) for one in (fast, slow)]
    assert risen[0] <= risen[1]  # at 50 Hz the wide low-pass has too few messages to be earlier
    begin, end = robot.events()
    assert begin["cause"] == "contact" and end["cause"] == "contact over"
    assert float(begin["statistic"]) > float(begin["threshold"])
    each = [float(value) for name, value in begin.items() if name.startswith("deviation ")]
    assert abs(float(begin[f"deviation {begin['axis']}"])) == max(np.abs(each))
    # That of one axis, or of all of them together.
    close = np.isclose(float(begin["statistic"]), (max(np.abs(each)), np.hypot(*each)), rtol=5e-3)
    assert len(each) == 2 and close.any()

    measured = {stamp_of(m): m.effort for m in external}
    told = robot.topics["contact_external"]
    first = stamp_of(robot.topics["changes"][0])
    # At this rate behind the narrow low-pass.
    assert 0 <= first - before < 0.08e9 and first <= stamp_of(told[0])
    for m in told:
        np.testing.assert_array_equal(m.effort, measured[stamp_of(m)])
    assert list(told[0].name) == ["shoulder", "elbow"]
    markers = [m for array in robot.topics["markers"] for m in array.markers]
    shown = {m.text for m in markers if m.ns == "contact" and m.header.frame_id == values["link"]}
    assert any(text.endswith(" N") for text in shown)
    # Both motors feel a push at the elbow's end upwards, and in the same direction.
    assert max(np.abs(m.effort[0]) for m in told) > 10.0
    beyond = [m for m in robot.topics["external_deviation"] if np.max(np.abs(m.effort)) > 6.0]
    assert {stamp_of(m) for m in beyond} & {stamp_of(m) for m in told}
    peer.until(lambda: peer.figures().get("noticed: contact over") == "1", "the diagnostics")
    figures = peer.figures()
    assert int(figures["dropped: during a change (changes.detect)"]) >= 25
    assert figures["contact"] == "false" and figures["changes: learning paused"] == "false"

    robot.arm.hand.push(np.array([0.0, 0.0, 40.0]), np.array([0.3, 0.0, 0.0]))
    robot.move(0.5)
    peer.until(lambda: [m.data for m in contact][3:] == [True], "another contact")
    assert peer.transition(Transition.TRANSITION_DEACTIVATE)  # by which it is over
    peer.until(lambda: [m.data for m in contact][3:] == [True, False], "that it is over")
    assert "over after 0." in robot.topics["contact_events"][-1].status[0].message
    late = robot.listen(Bool, "contact")
    peer.until(lambda: bool(late), "what is latched")
    assert [m.data for m in late] == [False]
