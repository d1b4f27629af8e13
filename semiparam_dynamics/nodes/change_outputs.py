"""What the `inverse_dynamics` node publishes of payloads, contacts and other changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.status import CONTACT, OVER, UNEXPLAINED
from semiparam_dynamics.dynamics.learner import Step
from semiparam_dynamics.nodes.change_messages import event_message, payload_messages
from semiparam_dynamics.nodes.change_report import ChangeReport
from semiparam_dynamics.nodes.messages import ReusedEffort, ReusedWrench
from semiparam_dynamics.nodes.publishing import Outlet
from semiparam_dynamics.nodes.session import Session

if TYPE_CHECKING:  # it takes its time to load, and is there when it is needed
    from semiparam_dynamics.changes.monitor import ChangeMonitor

DEPTH = 50
# ns between two messages of a payload that is being estimated: to find the body that is meant takes
# some milliseconds, for which predictions wait.
PERIOD = 500_000_000
# Who comes later is told what holds now, and what the last events were.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
REMEMBERED = QoSProfile(depth=DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ChangeOutputs:
    """The topics of a session that looks for changes (`changes.detect`).

    - `~/payload`, `~/payload_std` (InertiaStamped, latched): what is held beyond what the model has
      learned, and its standard deviations, in the frame of `changes.payload_link`. Published when
      it changes and twice a second while it is estimated; a mass of 0 is the bare hand.
    - `~/contact` (Bool, latched): published when it changes.
    - `~/contact_external`: the `~/external` of samples in contact.
    - `~/external_deviation`: `~/external` in standard deviations, as `changes.contact` is.
    - `~/changes` (DiagnosticArray, the last 50 latched): each event, with its cause, axis,
      statistic and delay.

    `lost` counts what the network did not take.
    """

    def __init__(self, node: Node, session: Session, lost: Counter[str]) -> None:
        self._name = node.get_fully_qualified_name()
        self._session = session
        self.report = ChangeReport(session.learner)
        model = session.model
        wrench = model.config.target == "wrench"
        kind = WrenchStamped if wrench else JointState
        self._message: Callable[[int, Array], WrenchStamped | JointState] = (
            ReusedWrench(model.config.sensor_frame) if wrench else ReusedEffort(model.joint_names)
        )
        self._payload = Outlet(node, InertiaStamped, "~/payload", LATCHED, lost)
        self._payload_std = Outlet(node, InertiaStamped, "~/payload_std", LATCHED, lost)
        self._contact = Outlet(node, Bool, "~/contact", LATCHED, lost)
        self._contact_external = Outlet(node, kind, "~/contact_external", DEPTH, lost)
        self._deviation = Outlet(node, kind, "~/external_deviation", DEPTH, lost)
        self._changes = Outlet(node, DiagnosticArray, "~/changes", REMEMBERED, lost)
        self._monitor: ChangeMonitor | None = None
        self._told = 0  # events of that monitor
        self._held: tuple[object, ...] = ()
        self._held_at = 0
        self._touched: bool | None = None
        self.refresh()

    def publish(self, step: Step) -> None:
        """Publish what a sample that was just predicted has changed."""
        self.report.step = step
        if self._deviation.heard() and (deviations := self.report.deviations()) is not None:
            self._deviation.publish(self._message(step.stamp, deviations))
        if (monitor := self._session.learner.changes) is not None:
            touched, external = monitor.status.contact, monitor.status.external
            if touched and external is not None and self._contact_external.heard():
                self._contact_external.publish(self._message(step.stamp, external))
        self.refresh()

    def refresh(self) -> None:
        """Publish what has changed since the last call, by a sample or by a service."""
        if (monitor := self._session.learner.changes) is None:
            return
        if monitor is not self._monitor or monitor.counts.total() < self._told:
            self._monitor, self._told, self._held = monitor, 0, ()
        self._tell_events(monitor)
        if monitor.status.contact != self._touched:
            self._touched = monitor.status.contact
            self._contact.publish(Bool(data=self._touched))
        self._tell_payload(monitor)

    def _tell_events(self, monitor: ChangeMonitor) -> None:
        new = monitor.counts.total() - self._told
        if not new:
            return
        self._told += new
        self._held = ()  # one without a name may have come in the place of another
        axes, external = self._session.model.axes, monitor.status.external
        deviations = self.report.deviations()
        beside, scaled = {}, {}
        if external is not None and deviations is not None:
            beside = dict(zip(axes, external.tolist(), strict=True))
            scaled = dict(zip(axes, deviations.tolist(), strict=True))
        for event in list(monitor.events)[-new:]:
            of_contact = event.cause in (CONTACT, OVER, UNEXPLAINED)
            threshold = monitor.contact.threshold if of_contact else monitor.threshold
            self._changes.publish(event_message(self._name, event, threshold, beside, scaled))

    def _tell_payload(self, monitor: ChangeMonitor) -> None:
        found, stamp = monitor.correction.estimating, monitor.status.stamp
        estimating = found is not None and found.cause == "payload"
        held = (monitor.correction, monitor.correction.name, estimating)
        if held == self._held and not (estimating and stamp - self._held_at >= PERIOD):
            return
        self._held, self._held_at = held, stamp
        self.report.payload = monitor.payload
        value, std = payload_messages(stamp, monitor.causes.link, self.report.payload)
        self._payload.publish(value)
        self._payload_std.publish(std)

    def destroy(self) -> None:
        """Take the topics down."""
        for outlet in (
            self._payload,
            self._payload_std,
            self._contact,
            self._contact_external,
            self._deviation,
            self._changes,
        ):
            outlet.destroy()
