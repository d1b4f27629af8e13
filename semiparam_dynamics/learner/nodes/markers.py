"""Forces, contacts and payloads as markers, for RViz and for 3D panels that show the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.nodes.managed import Outlet
from semiparam_dynamics.base.nodes.messages import header
from semiparam_dynamics.changes.config import PayloadStatus
from semiparam_dynamics.changes.external_wrench import ExternalWrench, WrenchEstimate
from semiparam_dynamics.changes.touch import ContactEvents
from semiparam_dynamics.learner.learner import Step
from semiparam_dynamics.learner.nodes.session import Session

PERIOD = 50_000_000  # ns, of stamps, between two messages
# ns between two messages of a payload that is being estimated: to find the body that is meant takes
# some milliseconds, for which predictions wait.
PAYLOAD_PERIOD = 500_000_000
LASTS_S = 0.5  # until a marker vanishes that no newer one replaces
METRES_PER_N = 0.01
SHAFT, HEAD, HEAD_LENGTH = 0.015, 0.035, 0.05  # m, of the arrow
INSIDE = np.sqrt(7.815)  # standard deviations of an ellipsoid that 95 % are in, in three dimensions
LARGEST = 0.5  # m, of its half axes: a direction that is not seen has 2.7
CONTACT_SIZE, TEXT_SIZE = 0.08, 0.05  # m
DENSITY = 1000.0  # kg / m^3, of the ball that stands for a payload
ORANGE, SHADE, YELLOW = (1.0, 0.45, 0.1, 1.0), (1.0, 0.45, 0.1, 0.25), (1.0, 0.9, 0.2, 0.8)
RED, BLUE, WHITE = (0.9, 0.1, 0.1, 0.8), (0.25, 0.5, 1.0, 0.6), (1.0, 1.0, 1.0, 1.0)


class MarkerOutput:
    """The topic `~/markers` (MarkerArray), at most 20 times a second, while somebody subscribes."""

    def __init__(self, session: Session, outlet: Outlet) -> None:
        self._session, self.outlet = session, outlet
        self._last = self._weighed = 0
        self._payload: PayloadStatus | None = None

    def due(self, stamp: int) -> bool:
        """True if markers of a sample at `stamp` (ns) are to be published."""
        passed = stamp - self._last
        return not 0 <= passed < PERIOD

    def publish(self, step: Step, estimate: WrenchEstimate) -> None:
        """Publish a sample's markers, with the external wrench that was estimated of it."""
        self._last, learner = step.stamp, self._session.learner
        markers = wrench_markers(self._session.external, step.sample.q, estimate)
        markers += contact_markers(learner.contacts, self._session.model.config.sensor_frame)
        if learner.changes is not None:
            if not 0 <= step.stamp - self._weighed < PAYLOAD_PERIOD:
                self._weighed, self._payload = step.stamp, learner.changes.payload
            markers += payload_markers(learner.changes.causes.link, self._payload)
        for marker in markers:
            marker.header = header(step.stamp, marker.header.frame_id)
        self.outlet.publish(MarkerArray(markers=markers))


def wrench_markers(external: ExternalWrench, q: Array, estimate: WrenchEstimate) -> list[Marker]:
    """The force at the frame's origin as an arrow, and where its tip may be (95 %)."""
    origin = external.origin(q)
    tip = origin + METRES_PER_N * estimate.value[:3]
    arrow = _marker("external force", external.axes, Marker.ARROW, ORANGE)
    arrow.points = [_point(origin), _point(tip)]
    arrow.scale = _vector((SHAFT, HEAD, HEAD_LENGTH))
    variances, axes = np.linalg.eigh(estimate.covariance[:3, :3])
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])  # a rotation, not a reflection
    half = INSIDE * METRES_PER_N * np.sqrt(np.maximum(variances, 0.0))
    cloud = _marker("external force, 95 %", external.axes, Marker.SPHERE, SHADE, tip)
    turn = cloud.pose.orientation
    turn.x, turn.y, turn.z, turn.w = (float(c) for c in pin.Quaternion(axes).coeffs())
    cloud.scale = _vector(2.0 * np.clip(half, 1e-3, LARGEST))
    return [arrow, cloud]


def contact_markers(contacts: ContactEvents, sensor: str) -> list[Marker]:
    """A ball at the link that is touched, or the sensor's, with the force; red for a collision."""
    event = contacts.events[-1] if contacts.touched else None
    if event is None or event.touch is None:  # the first report of a contact has no place yet
        return []
    link, size = event.touch.link or sensor, float(np.linalg.norm(event.touch.force))
    ball = _marker("contact", link, Marker.SPHERE, RED if contacts.hard else YELLOW)
    ball.scale = _vector((CONTACT_SIZE,) * 3)
    return [ball, _text("contact", link, f"{size:.0f} N", CONTACT_SIZE)]


def payload_markers(link: str, payload: PayloadStatus | None) -> list[Marker]:
    """The payload's centre as a ball of water of its mass, with the mass in words."""
    if payload is None or payload.mass <= 0.0:
        return []
    size = (6.0 * payload.mass / (np.pi * DENSITY)) ** (1.0 / 3.0)
    ball = _marker("payload", link, Marker.SPHERE, BLUE, payload.center)
    ball.scale = _vector((size,) * 3)
    text = _text("payload", link, f"{payload.mass:.2f} kg", size, payload.center)
    return [ball, text]


def _marker(
    name: str, frame: str, kind: int, color: Sequence[float], at: Array | None = None
) -> Marker:
    """A marker at a place in a frame; its stamp is still to be set."""
    red, green, blue, alpha = color
    marker = Marker(ns=name, type=kind, action=Marker.ADD, header=header(0, frame))
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=alpha)
    marker.pose = Pose(position=_point(np.zeros(3) if at is None else at))
    marker.lifetime = Duration(nanosec=int(LASTS_S * 1e9))
    return marker


def _text(name: str, frame: str, text: str, above: float, at: Array | None = None) -> Marker:
    marker = _marker(name, frame, Marker.TEXT_VIEW_FACING, WHITE, at)
    marker.id, marker.text, marker.scale.z = 1, text, TEXT_SIZE
    marker.pose.position.z += above
    return marker


def _point(values: Array) -> Point:
    x, y, z = (float(value) for value in values)
    return Point(x=x, y=y, z=z)


def _vector(values: Sequence[float] | Array) -> Vector3:
    x, y, z = (float(value) for value in values)
    return Vector3(x=x, y=y, z=z)
