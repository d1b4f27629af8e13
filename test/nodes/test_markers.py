"""Markers of forces, contacts and payloads: where they are, and how large."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("visualization_msgs.msg")

from visualization_msgs.msg import Marker

from semiparam_dynamics.changes.config import PayloadStatus
from semiparam_dynamics.changes.external_wrench import ExternalWrench, WrenchEstimate
from semiparam_dynamics.changes.touch import ContactEvent, ContactEvents, Touch
from semiparam_dynamics.learner.nodes.markers import (
    LARGEST,
    METRES_PER_N,
    contact_markers,
    payload_markers,
    wrench_markers,
)
from semiparam_dynamics.robot.model import RobotModel

URDF = Path(__file__).resolve().parents[1] / "data" / "seven_joint_arm.urdf"
MODEL = RobotModel(str(URDF), joints=tuple(f"joint{k}" for k in range(1, 8)))
FORCE = np.array([10.0, -20.0, 5.0])


def array(point) -> np.ndarray:
    return np.array([point.x, point.y, point.z])


@pytest.mark.parametrize("axes", ["", "link0"])
def test_the_arrow_begins_at_the_frame_and_its_tip_has_the_ellipsoid(axes: str) -> None:
    external, q = ExternalWrench(MODEL, "hand", axes), np.linspace(-1.0, 1.0, 7)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3)) * [3.0, 1.0, 0.3]
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = root @ root.T
    estimate = WrenchEstimate(np.r_[FORCE, 0.0, 0.0, 0.0], covariance, np.ones(6), np.eye(6))
    arrow, cloud = wrench_markers(external, q, estimate)
    assert arrow.type == Marker.ARROW and cloud.type == Marker.SPHERE
    assert {arrow.header.frame_id, cloud.header.frame_id} == {axes or "hand"}

    data = MODEL.kinematics.createData()
    pin.framesForwardKinematics(MODEL.kinematics, data, q)
    places = {
        link: data.oMf[MODEL.kinematics.getFrameId(link, pin.FrameType.BODY)]
        for link in ("hand", "link0")
    }
    origin = places["link0"].actInv(places["hand"]).translation if axes else np.zeros(3)
    begin, end = map(array, arrow.points)
    np.testing.assert_allclose(begin, origin, atol=1e-12)
    np.testing.assert_allclose(end - begin, METRES_PER_N * FORCE, atol=1e-12)

    np.testing.assert_allclose(array(cloud.pose.position), end, atol=1e-12)
    turn = cloud.pose.orientation
    R = pin.Quaternion(np.array([turn.x, turn.y, turn.z, turn.w])).matrix()
    half = array(cloud.scale) / 2.0 / METRES_PER_N
    np.testing.assert_allclose(R @ np.diag(half**2) @ R.T, 7.815 * root @ root.T, rtol=1e-6)


def test_a_direction_that_is_not_seen_does_not_fill_the_picture() -> None:
    external = ExternalWrench(MODEL, "hand")
    estimate = WrenchEstimate(np.zeros(6), 1e4 * np.eye(6), np.ones(6), np.eye(6))
    _, cloud = wrench_markers(external, np.zeros(7), estimate)
    np.testing.assert_allclose(array(cloud.scale), 2.0 * LARGEST)


def test_a_contact_is_shown_from_when_its_place_is_known_until_it_is_over() -> None:
    contacts = ContactEvents(lambda q, external, covariance, shares: Touch("", FORCE, 1.0))
    assert contact_markers(contacts, "sensor") == []
    contacts.touched = True
    contacts.events.append(ContactEvent(2, 1, "contact", 1.5))
    assert contact_markers(contacts, "sensor") == []
    for touch, frame in ((Touch("link4", FORCE, 0.6), "link4"), (Touch("", FORCE, 1.0), "sensor")):
        contacts.events.append(ContactEvent(3, 1, "contact", 2.0, touch))
        ball, text = contact_markers(contacts, "sensor")
        assert ball.header.frame_id == text.header.frame_id == frame
        assert text.text == "23 N" and (ball.ns, ball.id) != (text.ns, text.id)
    calm = ball.color.g
    contacts.hard = True
    assert contact_markers(contacts, "sensor")[0].color.g < calm
    contacts.touched = False
    assert contact_markers(contacts, "sensor") == []


def test_a_payload_is_a_ball_of_its_mass_at_its_centre() -> None:
    center, six = np.array([0.1, 0.0, 0.2]), np.zeros(6)
    held = PayloadStatus("hand", "", 1.5, center, six, 0.1, center, six, np.zeros(10), True)
    ball, text = payload_markers("hand", held)
    np.testing.assert_allclose(array(ball.pose.position), center)
    assert 1000.0 * np.pi / 6.0 * ball.scale.x**3 == pytest.approx(1.5)
    assert text.text == "1.50 kg" and text.pose.position.z > center[2] + ball.scale.z / 2.0
    assert payload_markers("hand", None) == []
