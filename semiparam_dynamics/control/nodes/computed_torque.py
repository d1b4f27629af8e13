"""The `computed_torque` node: moves an arm by efforts, fed forward by the learner's model.

An example of a controller, and a measure of the learner's use: each joint state is answered with
efforts, and the learner is asked on `inverse_dynamics/desired` about the desired states ahead.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from semiparam_dynamics.base.errors import ConfigurationError, SampleError, SemiparamError
from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.diagnostics import timing_values
from semiparam_dynamics.base.nodes.managed import DEPTH, DescribedNode, Outlet
from semiparam_dynamics.base.nodes.messages import desired_message, efforts, stamp_of
from semiparam_dynamics.control.computed_torque import unbounded
from semiparam_dynamics.control.config import ComputedTorqueNodeConfig
from semiparam_dynamics.control.plan import trajectory_of
from semiparam_dynamics.control.session import ELSEWHERE, NOT_FINITE, OUT_OF_ORDER, ControlSession
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import locked_positions, parse_urdf, read_urdf
from semiparam_dynamics.samples.joint_names import JointMatcher, joint_positions
from semiparam_dynamics.samples.nodes.serialized import serialized_effort

# Joint states that wait longer than this many are outdated.
SENSOR_QOS = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
OTHERS_WITHIN_S = 1.0  # no longer, since an arm without commands may fall
LEARNER = "inverse_dynamics"
ANSWERS = {"semiparametric": "feedforward", "rigid_body": "feedforward_rigid_body"}
INCOMPLETE = "joint states without positions and velocities of all joints"
UNREACHED = "joint states that the desired motion can't begin from"
# Why there may be no command.
IGNORED = (INCOMPLETE, NOT_FINITE, ELSEWHERE, OUT_OF_ORDER, UNREACHED)
FALLBACK_WARNING_SHARE = 0.5  # of the URDF's feed-forward, above which the node warns


class ComputedTorqueNode(DescribedNode):
    """Subscribes `joint_states`, publishes `effort_command`; see the module.

    The motion begins with a joint state, from where the arm stands, as soon as messages have told
    where other joints of the URDF stand that bear on it, a torso's for example, or after a second.
    """

    def __init__(self) -> None:
        super().__init__("computed_torque", ComputedTorqueNodeConfig)
        check_gravity(self._config.gravity_vector)
        parameters.follow(self, self._config, self._configure)
        self._urdf = ""
        self._published: dict[str, float] = {}  # where joints stood at first, rad or m
        self._awaited: set[str] = set()  # joints that are not controlled, but bear on the motion
        self._stood_at = 0.0  # s, when the first joint state came
        self.session: ControlSession | None = None
        self._report: ControlReport | None = None
        self._answers: list[Subscription] = []
        self._partial: dict[int, dict[str, np.ndarray]] = {}  # answers by stamp: values or stds
        self._period = 1.0 / self._config.session.rate
        topic = f"{LEARNER}/desired"
        self._desired = Outlet(self, JointTrajectory, topic, DEPTH, self.unsent)
        self._commands = Outlet(self, JointState, "effort_command", DEPTH, self.unsent)
        self.await_urdf()
        self.create_subscription(JointState, "joint_states", self._measured, SENSOR_QOS)

    def set_up(self, urdf: str) -> None:
        """Make the session of a URDF."""
        self._urdf = read_urdf(urdf)
        tree = parse_urdf(self._urdf)
        joints = self._make_session().joint_names  # here, so that faults are reported at once
        bear = locked_positions(tree, joints, dict.fromkeys(tree.joints, 0.0))
        self._awaited = bear.keys() & set(tree.actuated())

    def _make_session(self) -> RobotModel:
        """Plan a motion of the controlled joints, with the others where they stand."""
        config, tree = self._config, parse_urdf(self._urdf)
        controlled = [name for name in config.joints or tree.actuated() if name in tree.joints]
        model = RobotModel(
            self._urdf,
            joints=config.joints,
            target="effort",
            gravity=config.gravity_vector,
            locked=locked_positions(tree, controlled, self._published),
        )
        names = model.joint_names
        reference = trajectory_of(self._urdf, names, config.motion, config.seed)
        session = ControlSession(model, reference, config.session)
        limitless = unbounded(session.controller.limit)
        if unknown := [name for name, one in zip(names, limitless, strict=True) if one]:
            raise ConfigurationError(
                f"the URDF has no effort limit of {', '.join(unknown)}: set the parameter "
                "'bounds.effort' to what the motors may exert"
            )
        self._names, self._matcher = names, JointMatcher(names)
        self._message = serialized_effort(names)
        self.session, self._report = session, ControlReport(session, names)
        self._listen()
        self.get_logger().info(f"{config.motion.motion} with {', '.join(names)}")
        return model

    def _await_others(self, message: JointState) -> None:
        """Keep where the other joints stand; plan anew when it is known of all, or time is over."""
        now = time.monotonic()
        self._stood_at = self._stood_at or now
        self._published = joint_positions(message, self._awaited) | self._published
        over = now - self._stood_at > OTHERS_WITHIN_S
        if over or self._published.keys() >= self._awaited:
            self._awaited = set()
            try:
                self._make_session()
            except SemiparamError as error:
                self.session = None
                self.refuse(str(error))

    def _configure(self, config: ComputedTorqueNodeConfig) -> None:
        before = self._config.session.control.feedforward
        self._config = config
        if self.session is not None:
            self.session.configure(config.session)
            if config.session.control.feedforward != before:
                self._listen()

    def _listen(self) -> None:
        """Subscribe to the answers of the model that is fed forward."""
        for subscription in self._answers:
            self.destroy_subscription(subscription)
        self._answers, self._partial = [], {}
        answers = ANSWERS.get(self._config.session.control.feedforward)
        for end in ("", "_std") if answers else ():
            take: Callable[[JointTrajectory], None] = partial(self._answered, end)
            topic = f"{LEARNER}/{answers}{end}"
            self._answers.append(self.create_subscription(JointTrajectory, topic, take, DEPTH))

    def _measured(self, message: JointState) -> None:
        session = self.session
        if session is None:
            return
        if self._awaited:
            self._await_others(message)
            return
        size = len(message.name)
        if (
            not self._matcher.match(message.name)
            or not len(message.position) == len(message.velocity) == size
        ):
            session.counts[INCOMPLETE] += 1
            return
        q, dq = (
            np.array(self._matcher.pick(part)) for part in (message.position, message.velocity)
        )
        stamp = stamp_of(message)
        try:
            effort, questions = session.measured(stamp, q, dq)
        except SampleError:  # one measurement must not end the controller
            session.counts[UNREACHED] += 1
            return
        if effort is not None:
            self._commands.publish(self._message(stamp, effort))
        if not self._answers:
            return  # the URDF's feed-forward needs no learner
        for question in questions:
            block = question.block
            states = (block.q, block.dq, block.ddq)
            self._desired.publish(
                desired_message(question.stamp, self._names, states, self._period)
            )

    def _answered(self, end: str, message: JointTrajectory) -> None:
        """Receive efforts or their standard deviations; both together are an answer."""
        session = self.session
        assert session is not None  # noqa: S101
        stamp = stamp_of(message)
        try:
            parts = self._partial.setdefault(stamp, {})
            parts[end] = efforts(message, self._names)
            if len(parts) == 2:
                del self._partial[stamp]
                session.answered(stamp, parts[""], parts["_std"])
        except SampleError as error:
            session.counts[f"answers refused: {error}"] += 1
        while len(self._partial) > DEPTH:
            self._partial.pop(next(iter(self._partial)))

    def report(self) -> tuple[bytes, str, dict[str, str]]:
        """The session's figures since the last report."""
        if self._report is None or self.session is None or (self._awaited and self._stood_at):
            waited = ", ".join(sorted(self._awaited - self._published.keys()))
            positions = f"waiting for the positions of {waited}, for a second"
            return self.waiting(positions if waited else "")
        self.session.counts.update(self.unsent)
        self.unsent.clear()
        return self._report.summary()


def check_gravity(vector: Sequence[float]) -> None:
    """Raise ConfigurationError unless the parameter `gravity_vector` has 3 numbers."""
    if len(vector) != 3:
        raise ConfigurationError("parameter 'gravity_vector' needs 3 numbers")


class ControlReport:
    """Summarizes a session since the last summary, for `/diagnostics`."""

    def __init__(self, session: ControlSession, joint_names: Sequence[str]) -> None:
        self._session, self._names = session, joint_names
        self._last = time.monotonic()
        self._commands = self._begun = self._late = 0
        self._followed = 0.0
        self._ignored: Counter[str] = Counter()

    def summary(self) -> tuple[bytes, str, dict[str, str]]:
        """Return level, sentence and figures."""
        session, controller = self._session, self._session.controller
        now, (begun, late) = time.monotonic(), session.blocks()
        new = controller.commands - self._commands
        rate = new / max(now - self._last, 1e-9)
        followed = (controller.followed - self._followed) / new if new else 0.0
        late_share = (late - self._late) / max(begun - self._begun, 1)
        self._last, self._commands, self._followed = now, controller.commands, controller.followed
        self._begun, self._late = begun, late
        model = controller.config.feedforward
        values = {"feed-forward": model, "commands": str(controller.commands)}
        values |= {"rate [Hz]": f"{rate:.1f}"}
        if model != "urdf":
            values |= {
                "share of the fall-back": f"{1.0 - followed:.3f}",
                "late answers": f"{late} of {begun}",
                "late answers, share in the last second": f"{late_share:.4f}",
            }
        for used, square in session.tracking.items():
            for joint, mean in zip(self._names, square.value, strict=True):
                values[f"tracking error {used} {joint} [rad]"] = f"{np.sqrt(mean):.3g}"
        counts = session.counts + controller.counts + controller.correction.counts
        values |= {reason: str(count) for reason, count in sorted(counts.items())}
        values |= timing_values({"command": session.command_us})
        level = DiagnosticStatus.OK
        summary = f"{rate:.0f} commands per second, {model} feed-forward"
        if not new:
            level, summary = DiagnosticStatus.WARN, "no joint states: no commands"
            if ignored := {one: counts[one] for one in IGNORED if counts[one] > self._ignored[one]}:
                summary = f"no commands: {', '.join(ignored)}"
        elif model != "urdf" and 1.0 - followed > FALLBACK_WARNING_SHARE:
            level = DiagnosticStatus.WARN
            summary += f"; {100 * (1.0 - followed):.0f} % fall-back on the URDF, see the counts"
        self._ignored = counts
        return level, summary, values


main = partial(runtime.run, "computed_torque", ComputedTorqueNode, runtime.spin_node)
