"""Topics that the `inverse_dynamics` node publishes for each sample."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from semiparam_dynamics.base.arrays import TIMINGS
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError, SampleError
from semiparam_dynamics.base.nodes.diagnostics import timing_values
from semiparam_dynamics.base.nodes.managed import ASKED_PERIOD, DEPTH, LATCHED, Outlet, Outlets
from semiparam_dynamics.base.nodes.messages import (
    covariance_message,
    desired_states,
    parameters_message,
    stamp_of,
    trajectory_effort_message,
)
from semiparam_dynamics.changes.config import CONTACT, OVER, UNEXPLAINED
from semiparam_dynamics.changes.external_wrench import (
    WrenchEstimate,
    unseen_directions,
)
from semiparam_dynamics.changes.nodes.change_messages import (
    contact_message,
    event_message,
    payload_messages,
)
from semiparam_dynamics.changes.touch import ContactEvents
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.learner.learner import Step
from semiparam_dynamics.learner.nodes.markers import PAYLOAD_PERIOD, MarkerOutput
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.learner.nodes.session_report import ChangeReport
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.nodes.serialized import (
    SerializedMessage,
    serialized_effort,
    serialized_wrench,
)

if TYPE_CHECKING:
    from semiparam_dynamics.changes.monitor import ChangeMonitor
    from semiparam_dynamics.dynamics.consistent import RealBodies


# -------------------------------------------------------------------------------------------------
# What the `inverse_dynamics` node publishes of payloads, contacts and other changes.

# A later subscriber gets the present state and the last events.
REMEMBERED = QoSProfile(depth=DEPTH, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ChangeOutputs(Outlets):
    """The topics of a session that looks for changes (`changes.detect`).

    - `~/payload`, `~/payload_std` (InertiaStamped, latched): what is held beyond what the model has
      learned, and its standard deviations, in the frame of `changes.payload_link`. Published when
      it changes and twice a second while it is estimated; a mass of 0 is the bare hand.
    - `~/contact_external`: the `~/external` of samples in contact.
    - `~/external_deviation`: `~/external` in standard deviations, as `changes.contact` is. Both are
      of the samples that are looked at, see `learner.admit`.
    - `~/changes` (DiagnosticArray, the last 50 latched): each event, with its cause, axis,
      statistic and delay.
    """

    def __init__(self, node: Node, session: Session, lost: Counter[str]) -> None:
        super().__init__(node, lost)
        self._name = node.get_fully_qualified_name()
        self._session = session
        self.report = ChangeReport(session.learner)
        kind, self._message = kind_of_output(session.model)
        self._payload = self.outlet(InertiaStamped, "~/payload", LATCHED)
        self._payload_std = self.outlet(InertiaStamped, "~/payload_std", LATCHED)
        self._contact_external = self.outlet(kind, "~/contact_external", DEPTH)
        self._deviation = self.outlet(kind, "~/external_deviation", DEPTH)
        self._changes = self.outlet(DiagnosticArray, "~/changes", REMEMBERED)
        self._monitor: ChangeMonitor | None = None
        self._told = 0  # events of that monitor
        self._held: tuple[object, ...] = ()
        self._held_at = 0
        self.refresh()

    def publish(self, step: Step) -> None:
        """Publish what a sample that was just predicted has changed."""
        self.report.step = step
        monitor = self._session.learner.changes
        # Of more than some 600 a second only some are looked at: what is known of the last of them
        # is not of those in between.
        if monitor is not None and monitor.status.stamp == step.stamp:
            self._publish_looked_at(step.stamp, monitor)
        self.refresh()

    def _publish_looked_at(self, stamp: int, monitor: ChangeMonitor) -> None:
        deviations = self.report.deviations() if self._deviation.has_subscribers() else None
        if deviations is not None:
            self._deviation.publish(self._message(stamp, deviations))
        touched, external = monitor.status.contact, monitor.status.external
        if touched and external is not None and self._contact_external.has_subscribers():
            self._contact_external.publish(self._message(stamp, external))

    def refresh(self) -> None:
        """Publish what has changed since the last call, by a sample or by a service."""
        if (monitor := self._session.learner.changes) is None:
            return
        if monitor is not self._monitor or monitor.counts.total() < self._told:
            self._monitor, self._told, self._held = monitor, 0, ()
        self._tell_events(monitor)
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
        # Or where the clock was set back.
        again = estimating and not 0 <= stamp - self._held_at < PAYLOAD_PERIOD
        if held == self._held and not again:
            return
        self._held, self._held_at = held, stamp
        self.report.payload = monitor.payload
        value, std = payload_messages(stamp, monitor.causes.link, self.report.payload)
        self._payload.publish(value)
        self._payload_std.publish(std)


# -------------------------------------------------------------------------------------------------
# Contacts, with and without other changes.


class ContactOutputs(Outlets):
    """The topics of contacts, for each sample after its prediction.

    - `~/contact`, `~/collision` (Bool, latched): whether there is one; published when it changes.
    - `~/contact_events` (DiagnosticArray, the last 50 latched): when a contact begins, where and
      how hard it is, and for how long it lasted.
    - `~/external_fast`: `~/external` before the narrow low-pass, by which contacts are looked for.
    """

    def __init__(self, node: Node, session: Session, lost: Counter[str]) -> None:
        super().__init__(node, lost)
        self._name = node.get_fully_qualified_name()
        self._session = session
        kind, self._message = kind_of_output(session.model)
        self._contact = self.outlet(Bool, "~/contact", LATCHED)
        self._collision = self.outlet(Bool, "~/collision", LATCHED)
        self._events = self.outlet(DiagnosticArray, "~/contact_events", REMEMBERED)
        self._external = self.outlet(kind, "~/external_fast", DEPTH)
        self._told: ContactEvents | None = None  # and how many of its events
        self._count = 0
        self._last = (True, True)
        self.publish(0)

    def publish(self, stamp: int) -> None:
        """Publish what the last sample, at `stamp` (ns), has changed."""
        learner = self._session.learner
        contacts, external = learner.contacts, learner.external
        felt = learner.external_at == stamp
        if felt and external is not None and self._external.has_subscribers():
            self._external.publish(self._message(stamp, external))
        if contacts is self._told and contacts.total == self._count:
            return
        new = contacts.total - self._count if contacts is self._told else contacts.total
        self._told, self._count = contacts, contacts.total
        for event in list(contacts.events)[len(contacts.events) - new :]:
            self._events.publish(contact_message(self._name, event))
        now = contacts.touched, contacts.hard
        pairs = zip((self._contact, self._collision), now, self._last, strict=True)
        for outlet, is_so, was_so in pairs:
            if is_so != was_so:
                outlet.publish(Bool(data=is_so))
        self._last = now


def kind_of_output(model: RobotModel) -> tuple[type, SerializedMessage]:
    """The type of outputs for each axis, and what makes such a message of a stamp and values."""
    if model.config.target == "wrench":
        return WrenchStamped, serialized_wrench(model.config.sensor_frame)
    return JointState, serialized_effort(model.joint_names)


# -------------------------------------------------------------------------------------------------
# The learner's answers to a controller that asks about desired states.

TOPICS = {"semiparametric": "~/feedforward", "rigid_body": "~/feedforward_rigid_body"}


class DesiredStates(Outlets):
    """Answers `~/desired` on `~/feedforward` and `~/feedforward_rigid_body`.

    Each has beside it a topic with `_std` at its end: the standard deviations, as efforts. An
    answer has the question's stamp and times; only what somebody subscribes to is published.
    Learning waits for the answer, as for a prediction; nothing that is learned changes by it.
    Raises ConfigurationError where the session's target is the wrench.
    """

    def __init__(self, node: LifecycleNode, session: Session, lost: Counter[str]) -> None:
        if session.model.config.target != "effort":
            raise ConfigurationError("feedforward needs the target 'effort'")
        super().__init__(node, lost)
        self._session = session
        self._outlets = {
            model: [self.outlet(JointTrajectory, topic + end, DEPTH) for end in ("", "_std")]
            for model, topic in TOPICS.items()
        }
        self._subscription = node.create_subscription(
            JointTrajectory, "~/desired", self._answer, QoSProfile(depth=DEPTH)
        )
        self._answered = 0
        self._refused: Counter[str] = Counter()
        self._us: deque[float] = deque(maxlen=TIMINGS)

    def _answer(self, message: JointTrajectory) -> None:
        start = time.perf_counter()
        session, names = self._session, self._session.model.joint_names
        try:
            states = desired_states(message, names)
            said, stamp = session.feedforward(*states), stamp_of(message)
        except SampleError as error:
            self._refused[str(error)] += 1
            if len(self._refused) > DEPTH:  # whoever sends nonsense shall not fill the memory
                self._refused = Counter({"several reasons": self._refused.total()})
            return
        stds = said.told_stds()
        for model, outlets in self._outlets.items():
            both = (said.values[model], stds[model])
            for outlet, values in zip(outlets, both, strict=True):
                if outlet.has_subscribers():
                    outlet.publish(trajectory_effort_message(stamp, names, values, message))
        self._answered += 1
        self._us.append((time.perf_counter() - start) * 1e6)

    def values(self) -> dict[str, str]:
        """Counts and timings, for the diagnostics."""
        values = {"desired answered": str(self._answered)}
        values |= {f"desired refused: {why}": str(n) for why, n in sorted(self._refused.items())}
        return values | timing_values({"answer": self._us})

    def destroy(self) -> None:
        """Take the topics down."""
        self._node.destroy_subscription(self._subscription)
        super().destroy()


class Outputs(Outlets):
    """The node's publishers: wrenches in the sensor's frame, or joint efforts with names.

    - `~/predicted`, `~/rigid_body`, `~/measured`: the predictions, and the measurement filtered as
      they are; `~/external` is measured minus predicted.
    - `~/external_wrench`, `~/external_wrench_covariance`: the wrench that the surroundings exert
      at `external_frame`, by `changes.external_wrench`.
    - `~/markers`: see `nodes.markers`.

    - `~/inertial_parameters`: those that are the nearest that real bodies have, where the URDF has
      masses to begin with.
    """

    def __init__(self, node: Node, session: Session, lost: Counter[str]) -> None:
        super().__init__(node, lost)
        self._session, self._model = session, (model := session.model)
        self._estimate: WrenchEstimate | None = None
        self._bodies = _bodies(model)
        kind, self._message = kind_of_output(model)
        self._predicted = self.outlet(kind, "~/predicted", DEPTH)
        self._rigid_body = self.outlet(kind, "~/rigid_body", DEPTH)
        self._measured = self.outlet(kind, "~/measured", DEPTH)
        self._external = self.outlet(kind, "~/external", DEPTH)
        self._wrench_message = serialized_wrench(session.external.axes)
        self._wrench = self.outlet(WrenchStamped, "~/external_wrench", DEPTH)
        self._covariance = self.outlet(Float64MultiArray, "~/external_wrench_covariance", DEPTH)
        self._markers = MarkerOutput(session, self.outlet(MarkerArray, "~/markers", DEPTH))
        self._parameters = self.outlet(Float64MultiArray, "~/inertial_parameters", 1)
        self._outlets = (
            *(self._predicted, self._rigid_body, self._measured, self._external),
            *(self._wrench, self._covariance, self._markers.outlet),
        )
        # Those that anybody subscribes to, asked once in a while: it takes some 2 us for each.
        self._asked: set[Outlet] = set()
        self._asked_at = -math.inf  # s

    def publish(self, step: Step) -> None:
        """Publish a sample's predictions and, where it was measured, what they leave of it.

        That is NaN on a joint whose effort was not measured.
        """
        if (now := time.monotonic()) - self._asked_at >= ASKED_PERIOD:
            self._asked_at = now
            self._asked = {outlet for outlet in self._outlets if outlet.has_subscribers()}
        # Making a message costs as much as half a prediction: only where somebody listens.
        if not (asked := self._asked):
            return
        stamp, y, predicted = step.sample.stamp, step.sample.y, step.prediction.semiparametric
        if self._predicted in asked:
            self._predicted.publish(self._message(stamp, predicted))
        if self._rigid_body in asked:
            bound = self._session.learner.estimator.bound
            rigid_body = bound.within(step.prediction.rigid_body)
            self._rigid_body.publish(self._message(stamp, rigid_body))
        if y is None:
            return
        if self._measured in asked:
            self._measured.publish(self._message(stamp, y))
        external = y - predicted
        if self._external in asked:
            self._external.publish(self._message(stamp, external))
        wanted, drawn = (
            self._wrench in asked,
            self._markers.outlet in asked and self._markers.due(stamp),
        )
        if wanted or drawn or self._covariance in asked:
            external = external - self._session.learner.external_bias
            std = step.prediction.semiparametric_std
            self._estimate = self._session.external.estimate(step.sample.q, external, std, stamp)
            if wanted:
                self._wrench.publish(self._wrench_message(stamp, self._estimate.value))
            if self._covariance in asked:
                self._covariance.publish(covariance_message(self._estimate.covariance))
            if drawn:
                self._markers.publish(step, self._estimate)

    def values(self) -> dict[str, str]:
        """The external wrench's frame, bias and hidden directions, for the diagnostics."""
        at, bias = self._session.external, self._session.learner.external_bias
        values = {"external wrench: at": at.frame, "external wrench: axes of": at.axes}
        if bias.any():
            each = zip(self._model.axes, bias.tolist(), strict=True)
            values["external wrench: tared"] = ", ".join(f"{n} {value:.3g}" for n, value in each)
        if self._estimate is not None:
            hidden = unseen_directions(self._estimate)
            values["external wrench: not seen"] = "; ".join(hidden) or "nothing"
        return values

    def publish_parameters(self, identifier: RigidBodyIdentifier) -> None:
        """Publish the base parameters as they stand, where somebody listens."""
        if not self._parameters.has_subscribers():
            return
        values = identifier.parameters
        if self._bodies is not None:
            # One step a second: it takes some milliseconds, for which predictions wait.
            self._bodies.follow(identifier, steps=1)
            values = self._bodies.base
        message = parameters_message(self._model.labels, values, identifier.standard_deviations())
        self._parameters.publish(message)


def _bodies(model: RobotModel) -> RealBodies | None:
    # Only here: loading it would make every start of a node longer.
    from semiparam_dynamics.dynamics.consistent import RealBodies

    try:
        return RealBodies(model)
    except RobotModelError:
        return None
