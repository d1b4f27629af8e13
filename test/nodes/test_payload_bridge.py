"""The bridge over real DDS, between a learner's messages and the drivers' services.

The services are those of ur_msgs and franka_msgs: classes and type support that ROS 2's generators
make of the published definitions, compiled here. Robots and their drivers are not here: the test
answers in their place.
"""

from __future__ import annotations

import importlib
import time
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from std_msgs.msg import String
from std_srvs.srv import Trigger

from semiparam_dynamics.base.nodes.managed import LATCHED
from semiparam_dynamics.changes.config import PayloadStatus
from semiparam_dynamics.changes.load import Load, load_of, parameters_of
from semiparam_dynamics.changes.nodes.change_messages import payload_messages, payload_parameters
from semiparam_dynamics.changes.nodes.payload_bridge import fill_franka, fill_ur

from .conftest import TIMEOUT, URDF
from .driver_messages import Driver

# The flange: turned about the elbow's axis and out from it, with y where the link's z was.
FLANGE = """  <link name="tool0"/>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tool0"/>
    <origin xyz="0.3 0 0" rpy="1.5707963267948966 0 0"/></joint>
</robot>"""
ARM = URDF.replace("</robot>", FLANGE)
CENTER = np.array([0.35, 0.0, 0.1])  # in the link's frame: 0.05 m out from the flange, 0.1 m up
SIX = np.array([0.01, 0.001, 0.02, 0.002, 0.003, 0.025])  # Ixx, Ixy, Iyy, Ixz, Iyz, Izz
QUICK = {"period": 0.1, "frame": "tool0"}
QUICK["tool_mass"] = 0.0


def status(mass: float, std: float = 0.01) -> PayloadStatus:
    six, stds = SIX * np.sign(mass), np.full(6, std)
    place = (mass, CENTER, six, std, np.full(3, std), stds)
    return PayloadStatus("lower", "", *place, parameters_of(mass, CENTER, six), True)


class Learner:
    """Publishes payloads as `inverse_dynamics` does, from the same conversion."""

    def __init__(self, peer: Any) -> None:
        topics = ("payload", "payload_std")
        make = peer.node.create_publisher
        names = [f"inverse_dynamics/{topic}" for topic in topics]
        self._publishers = [make(InertiaStamped, name, LATCHED) for name in names]
        self._stamp = 10**9

    def say(self, mass: float, **values: float) -> None:
        self._stamp += 500_000_000
        held = status(mass, **values) if mass else None
        pair = payload_messages(self._stamp, "lower", held)
        for publisher, message in zip(self._publishers, pair, strict=True):
            publisher.publish(message)


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


def test_the_payload_s_message_says_its_parameters() -> None:
    for held in (status(2.0), status(-2.0)):
        message, _ = payload_messages(1, "lower", held)
        np.testing.assert_allclose(payload_parameters(message), held.parameters, atol=1e-12)
    assert not payload_parameters(payload_messages(1, "lower", None)[0]).any()


def test_a_payload_is_set_and_taken_back_on_a_ur(peer, start, urdf, driver_messages) -> None:
    driver = Driver(peer, "ur_msgs", "SetPayload", "io_and_status_controller/set_payload")
    learner = Learner(peer)
    start("payload_bridge", urdf=urdf, driver="ur", **{**QUICK, "tool_mass": 0.5})
    learner.say(0.0)
    peer.until(lambda: [load.mass for load in driver.loads] == [0.5], "the tool's load")
    learner.say(2.0)
    peer.until(lambda: driver.loads[-1].mass == pytest.approx(2.5), "the payload")
    masses = [load.mass for load in driver.loads]
    assert len(masses) > 2 and masses == sorted(masses)  # 2 kg out there are 13 % of 100 N m
    center = driver.loads[-1].center_of_gravity
    # About the link's x by a quarter: y is where z was, and z where -y was.
    held = np.array([center.x, center.y, center.z]) * 2.5 / 2.0
    np.testing.assert_allclose(held, [0.05, 0.1, 0.0], atol=1e-6)
    peer.until(lambda: peer.figures().get("driver: mass [kg]") == "2.5", "the diagnostics")
    assert peer.status.level == DiagnosticStatus.OK
    assert peer.status.message == "the driver has 2.50 kg; 2.00 kg is estimated"

    learner.say(9.0)
    peer.until(lambda: "not between 0 and 5 kg" in peer.status.message, "the reason")
    assert peer.status.level == DiagnosticStatus.WARN and driver.loads[-1].mass < 2.6
    assert peer.set_live("/payload_bridge", max_mass=0.2).successful
    assert not peer.set_live("/payload_bridge", compensated=True).successful
    learner.say(0.0)
    peer.until(lambda: driver.loads[-1].mass == 0.5, "the tool's load again")


def test_a_franka_refuses_and_is_asked_again(peer, start, driver_messages) -> None:
    driver = Driver(peer, "franka_msgs", "SetLoad", "right/set_load")
    learner = Learner(peer)
    more = {"service": "right/set_load", "step_share": 1.0}
    start("payload_bridge", driver="franka", **{**QUICK, **more})
    waits = "waiting for the robot's URDF"
    peer.until(lambda: peer.status is not None and waits in peer.status.message, "diagnostics")
    description = peer.node.create_publisher(String, "robot_description", LATCHED)
    description.publish(String(data=ARM))
    learner.say(2.0)
    peer.until(lambda: len(driver.loads) == 1, "the load")
    driver.accepts = False
    learner.say(3.0)
    said = "the driver refused (the robot is moving)"
    peer.until(lambda: said in peer.status.message, "the refusal in the diagnostics")
    assert "the driver has 2.00 kg" in peer.status.message
    assert peer.status.level == DiagnosticStatus.WARN and driver.refused
    driver.accepts = True
    peer.until(lambda: len(driver.loads) == 2, "the load, asked again")
    load = driver.loads[0]
    np.testing.assert_allclose(load.center_of_mass, [0.05, 0.1, 0.0], atol=1e-9)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    xx, xy, yy, xz, yz, zz = SIX
    inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    np.testing.assert_allclose(np.reshape(load.load_inertia, (3, 3)).T, inertia, atol=1e-9)


def test_a_driver_that_is_gone_and_back_is_told_again(peer, start, urdf, driver_messages) -> None:
    made = peer, "ur_msgs", "SetPayload", "io_and_status_controller/set_payload"
    driver, learner = Driver(*made), Learner(peer)
    start("payload_bridge", urdf=urdf, driver="ur", **QUICK)
    learner.say(2.0)
    peer.until(lambda: driver.loads and driver.loads[-1].mass == 2.0, "the load")
    driver.end()
    said = "the driver's service is gone: its load is not known"
    peer.until(lambda: peer.status is not None and said in peer.status.message, "the warning")
    assert peer.status.level == DiagnosticStatus.WARN
    driver = Driver(*made)
    peer.until(lambda: driver.loads and driver.loads[-1].mass == 2.0, "the load again")
    peer.until(lambda: peer.status.message.startswith("the driver has 2.00 kg"), "the diagnostics")
    assert len(driver.loads) > 1 and peer.status.level == DiagnosticStatus.OK


def test_compensated_the_learner_is_asked_to_count_nothing_as_held_until_it_does(
    peer, start, urdf, driver_messages
) -> None:
    driver = Driver(peer, "ur_msgs", "SetPayload", "io_and_status_controller/set_payload")
    learner, released, delay = Learner(peer), [], 0.0
    accepts, why = False, "set the parameter changes.detect"

    def release(request: Any, response: Any) -> Any:
        time.sleep(delay)
        released.append(request)
        response.success, response.message = accepts, why
        if accepts:
            learner.say(0.0)
        return response

    def warns(sentence: str) -> None:
        peer.until(lambda: peer.status is not None and sentence in peer.status.message, sentence)
        assert peer.status.level == DiagnosticStatus.WARN

    start("payload_bridge", urdf=urdf, compensated="true", timeout=0.5, **QUICK)
    learner.say(2.0)
    peer.until(lambda: driver.loads and driver.loads[-1].mass > 1.99, "the load")
    peer.node.create_service(Trigger, "inverse_dynamics/release", release)  # it may come later
    warns(f"the learner's service release failed ({why}): it may count the payload again")
    peer.until(lambda: len(released) > 2, "the release asked for again")
    accepts = True
    peer.until(lambda: peer.status.level == DiagnosticStatus.OK, "the release")
    made = len(released), len(driver.loads)
    peer.spin(0.7)  # several periods, and more than the timeout
    assert (len(released), len(driver.loads)) == made
    assert driver.loads[-1].mass == pytest.approx(2.0)

    delay = 0.8
    learner.say(-2.0)
    warns("failed (it did not answer within 0.5 s)")
    assert driver.loads[-1].mass == 0.0  # the empty hand
    delay = 0.0
    peer.until(lambda: peer.status.level == DiagnosticStatus.OK, "the second release")


def test_requests_of_either_definition_of_ur_msgs(driver_messages) -> None:
    load = load_of(parameters_of(2.0, CENTER, SIX))
    later = importlib.import_module("later_ur_msgs.srv").SetPayload.Request()
    fill_ur(later, load)
    said = payload_parameters(SimpleNamespace(inertia=later.payload))
    np.testing.assert_allclose(said, parameters_of(2.0, CENTER, SIX), atol=1e-12)
    assert (later.transition_time.sec, later.transition_time.nanosec) == (0, 0)
    none = Load(0.0, np.zeros(3), np.zeros((3, 3)))
    for package, name, fill in (("ur", "SetPayload", fill_ur), ("franka", "SetLoad", fill_franka)):
        request = getattr(importlib.import_module(f"{package}_msgs.srv"), name).Request()
        fill(request, none)
        assert request.mass == 0.0


def test_what_is_missing_is_one_line(start, tmp_path) -> None:
    if PathFinder.find_spec("franka_msgs") is not None:  # not of those imported before
        pytest.skip("franka_msgs is installed here")
    assert start("payload_bridge", driver="franka").wait(TIMEOUT) == 1
    (line,) = (tmp_path / "payload_bridge.log").read_text().strip().splitlines()
    assert "install ros-$ROS_DISTRO-franka-msgs" in line


@pytest.mark.parametrize(
    ("frame", "link", "reason"),
    [("tool", "lower", "did you mean 'tool0'"), ("upper", "lower", "not fixed to 'upper'")],
)
def test_a_wrong_frame_is_named(
    peer, start, urdf, tmp_path, driver_messages, frame: str, link: str, reason: str
) -> None:
    node = start("payload_bridge", urdf=urdf, **{**QUICK, "frame": frame})
    if frame == "tool":
        assert node.wait(TIMEOUT) == 1
        assert reason in (tmp_path / "payload_bridge.log").read_text()
        return
    Learner(peer).say(2.0)
    peer.until(lambda: peer.status is not None and reason in peer.status.message, "the reason")
    assert peer.status.level == DiagnosticStatus.WARN
