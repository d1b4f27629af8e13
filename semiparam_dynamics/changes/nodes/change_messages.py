"""Payloads, contacts and other changes as ROS messages."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.nodes.diagnostics import ERROR, OK, WARN
from semiparam_dynamics.base.nodes.messages import header
from semiparam_dynamics.changes.config import (
    BARE,
    COLLISION,
    CONTACT,
    GIVEN_UP,
    OVER,
    UNEXPLAINED,
    ChangeEvent,
    PayloadStatus,
)
from semiparam_dynamics.changes.load import parameters_of
from semiparam_dynamics.changes.touch import ContactEvent

SENTENCES = {
    "payload": "something else is held: it is being estimated",
    "friction": "friction has changed: it is being estimated",
    "offset": "an offset has changed: it is being estimated",
    CONTACT: "contact begins: nothing is learned meanwhile",
    UNEXPLAINED: "this lasts too long for a contact, and nothing explains it: it is learned",
}


def payload_messages(
    stamp: int, link: str, payload: PayloadStatus | None
) -> tuple[InertiaStamped, InertiaStamped]:
    """The payload in the frame of `link`, and its standard deviations; zeros for the bare hand.

    stamp: ns. The inertia is about the centre of mass, along the frame's axes.
    """
    if payload is None:
        none = np.zeros(3), np.zeros(6)
        return _inertia(stamp, link, 0.0, *none), _inertia(stamp, link, 0.0, *none)
    p = payload
    return (
        _inertia(stamp, link, p.mass, p.center, p.inertia),
        _inertia(stamp, link, p.mass_std, p.center_std, p.inertia_std),
    )


def _inertia(stamp: int, frame: str, mass: float, center: Array, six: Array) -> InertiaStamped:
    x, y, z = (float(value) for value in center)
    ixx, ixy, iyy, ixz, iyz, izz = (float(value) for value in six)
    inertia = Inertia(m=float(mass), com=Vector3(x=x, y=y, z=z), ixx=ixx, ixy=ixy, ixz=ixz)
    inertia.iyy, inertia.iyz, inertia.izz = iyy, iyz, izz
    return InertiaStamped(header=header(stamp, frame), inertia=inertia)


def payload_parameters(message: InertiaStamped) -> Array:
    """(10,) the parameters of a payload's message, as `regressor.INERTIAL` names them."""
    one = message.inertia
    about_center = np.array([one.ixx, one.ixy, one.iyy, one.ixz, one.iyz, one.izz])
    return parameters_of(one.m, np.array([one.com.x, one.com.y, one.com.z]), about_center)


def event_message(
    node: str,
    event: ChangeEvent,
    threshold: float,
    external: Mapping[str, float],
    deviations: Mapping[str, float],
) -> DiagnosticArray:
    """An event as one status, with the stamp of the sample at which it was noticed.

    Parameters
    ----------
    node: the node's full name.
    threshold: that the event's statistic passed: a log likelihood ratio, or for contacts a number
        of standard deviations.
    external: measured minus predicted of each axis at that time, N or N m; may be empty.
    deviations: the same in standard deviations.
    """
    seconds = (event.stamp - event.onset) * 1e-9
    values = {"cause": event.cause, "payload": event.name}
    if deviations:
        values["axis"] = max(deviations, key=lambda axis: abs(deviations[axis]))
    if event.evidence > 0.0:
        values |= {"statistic": f"{event.evidence:.4g}", "threshold": f"{threshold:.4g}"}
    values |= {"began [s]": f"{event.onset * 1e-9:.3f}", "delay [s]": f"{seconds:.3f}"}
    values |= {f"external {axis}": f"{value:.4g}" for axis, value in external.items()}
    values |= {f"deviation {axis}": f"{value:.4g}" for axis, value in deviations.items()}
    expected = event.cause == OVER or bool(event.name)
    status = DiagnosticStatus(
        level=OK if expected else WARN,
        name=f"{node.removeprefix('/')}: change",
        message=_sentence(event, seconds),
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    return DiagnosticArray(header=header(event.stamp), status=[status])


def contact_message(node: str, event: ContactEvent) -> DiagnosticArray:
    """A contact's event as one status: a warning, an error where it is a collision.

    node : the node's full name. Forces in N, in the base's axes or the sensor's.
    """
    seconds = event.seconds
    values = {
        "kind": event.kind,
        "began [s]": f"{event.since * 1e-9:.3f}",
        "lasted [s]": f"{seconds:.3f}",
        "deviation [thresholds]": f"{event.deviation:.3g}",
    }
    if (touch := event.touch) is not None:
        values |= {"link": touch.link} if touch.link else {}
        values |= {"link: probability": f"{touch.sure:.2g}"} if touch.link else {}
        values |= {
            f"force {axis} [N]": f"{value:.3g}"
            for axis, value in zip("xyz", touch.force.tolist(), strict=True)
        }
    level = {OVER: OK, COLLISION: ERROR}.get(event.kind, WARN)
    status = DiagnosticStatus(
        level=level,
        name=f"{node.removeprefix('/')}: contact",
        message=_contact_sentence(event, seconds),
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    return DiagnosticArray(header=header(event.stamp), status=[status])


def _contact_sentence(event: ContactEvent, seconds: float) -> str:
    where = ""
    if (touch := event.touch) is not None:
        size = math.sqrt(float(touch.force @ touch.force))
        link = f" on {touch.link}" if touch.link else ""
        where = f", about {size:.2g} N{link}"
    if event.kind == OVER:
        return f"contact is over after {seconds:.2f} s{where}"
    if event.kind == GIVEN_UP:
        why = "what lasts so long counts as the robot's own (see changes.contact_longest)"
        return f"contact is given up after {seconds:.2f} s{where}: {why}"
    return f"{event.kind}{where or ' begins'}"


def _sentence(event: ChangeEvent, seconds: float) -> str:
    if event.cause == OVER:
        return f"contact is over after {seconds:.2f} s"
    if event.name == BARE:
        return "nothing is held any more"
    if event.name:
        return f"'{event.name}' is held"
    return SENTENCES.get(event.cause, event.cause)
