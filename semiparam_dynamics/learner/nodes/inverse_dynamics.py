"""The `inverse_dynamics` node: learns an arm's inverse dynamics while it moves."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from semiparam_dynamics.base.errors import ConfigurationError, SampleError, SemiparamError
from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.learning_node import LearningNode, answering
from semiparam_dynamics.base.nodes.managed import (
    LATCHED,
    NO_TEXT,
    PATIENCE,
    MonitoredSubscription,
    OtherDescriptions,
    QueueDelay,
    is_text,
)
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.changes.config import BARE
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import LOCKED, Step
from semiparam_dynamics.learner.nodes.compilation import compile_together, is_compiled
from semiparam_dynamics.learner.nodes.outputs import (
    ChangeOutputs,
    ContactOutputs,
    DesiredStates,
    Outputs,
)
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.learner.nodes.session_report import SessionReport
from semiparam_dynamics.robot.model import check_robot, told_of_urdf
from semiparam_dynamics.robot.urdf import (
    UrdfTree,
    carrying,
    locked_positions,
    parse_urdf,
    positions_told,
    read_urdf,
    turned_up,
)
from semiparam_dynamics.samples.joint_names import (
    FIRST_MESSAGES,
    FIRST_SECONDS,
    joint_positions,
    joints_together,
)
from semiparam_dynamics.samples.joint_states import JointStateMessage, JointStateReader

# Best effort takes reliable publishers too; the other way round nothing would arrive.
# So many may wait: other work holds a node up for half a second at times, and messages of more than
# `PATIENCE` are left out and counted; of fewer DDS would drop some unseen at 4 kHz.
SENSORS = QoSProfile(depth=6000, reliability=ReliabilityPolicy.BEST_EFFORT)
# Samples, some 20 s of motion: those who learned more of a few joints may have meant to.
MIN_KNOWN_SAMPLES = 1000


class InverseDynamicsNode(LearningNode[Session]):
    """Configured it has a session; active it answers messages.

    Without a URDF, or with one that doesn't serve, it can't be configured, and says why on
    /diagnostics. With `autostart` each new `robot_description` is tried, until a manager has
    changed the node's state: then the manager decides.
    """

    def __init__(self, **options: Any) -> None:
        """`options` are those of `rclpy.node.Node`."""
        super().__init__("inverse_dynamics", InverseDynamicsNodeConfig, **options)
        parameters.follow(self, self._config, self._configure, self._refuse)
        # Those of DDS are there by now, and those to come inherit it.
        if problem := runtime.raise_priority(self._config.realtime_priority):
            self.get_logger().warning(problem)
        self._urdf = os.path.expanduser(self._config.urdf)
        self._text = ""  # of the URDF, when it was configured
        self._joints: tuple[str, ...] = ()  # chosen by what is published
        self._published: dict[str, float] = {}  # where the URDF's joints stood at first, rad or m
        # Joints that are not learned are located by the first joint states: so many, until then, s.
        self._locating, self._located, self._locate_until = True, 0, 0.0
        self._tree: UrdfTree | None = None  # of the URDF
        self._found: tuple[str, ...] = ()  # joints that were published together a second ago
        self._told: set[str] = set()  # sentences on the URDF
        self._others = ""  # a sentence on joints that are published and not learned
        self._resumed = 0  # samples that the saved model had learned
        self._waited = 0  # joint states that had come a second ago
        self._outputs: Outputs | None = None
        self._changes: ChangeOutputs | None = None
        self._contacts: ContactOutputs | None = None
        self._report: SessionReport | None = None
        self._lost: Counter[str] = Counter()
        self._delay = QueueDelay(self._lost, self._config.deadline, self._patience())
        self._desired: DesiredStates | None = None
        self._description: MonitoredSubscription | None = None
        self._descriptions = OtherDescriptions(self)
        if self._config.learner.changes.detect:
            for service in ("snapshot", "recall", "release", "forget_snapshot"):
                name_payload = answering(partial(self._name_payload, service))
                self.create_service(Trigger, f"~/{service}", name_payload)
        tare = answering(lambda: self._required_session().tare())
        self.create_service(Trigger, "~/tare", tare)
        if not self._urdf:
            self._description = MonitoredSubscription(
                self, "robot_description", String, self._described, LATCHED
            )

    def start(self) -> bool:
        """With `autostart` come to the active state once there is a URDF; False if that failed."""
        return not self._urdf or super().start()

    def set_up(self) -> None:
        """Make the session. Raises ConfigurationError while there is no URDF."""
        if not self._urdf:
            raise ConfigurationError(self._waiting())
        # Once: when the first messages choose joints, its file may be another, or gone.
        self._text = read_urdf(self._urdf)
        self._tree = parse_urdf(self._text)
        if not is_compiled():
            check_robot(self._text, self._config.learner.robot)  # rather than after all of it
            self.get_logger().info(
                "compiling the numerical core takes 20 to 50 s on two cores, this once "
                "('semiparam compile' does it when installing)"
            )
            compile_together([self._config.learner.estimator.residual])
        self._make_session()

    def _make_session(self) -> None:
        chosen = self._joints
        with self.owning_model_file():
            config = self._with_joints(self._config)
            session = Session(self._text, config, self._locked(config))
            if not self.load_saved(session) and self._joints != chosen:
                # The model that named the joints was of another robot, and is set aside.
                self._joints = chosen
                session = Session(self._text, self._config, self._locked(self._config))
        self.session = session
        self._resumed, self._found, self._others = session.learner.estimator.n_learned, (), ""
        self._lost.clear()
        self._outputs = Outputs(self, session, self._lost)
        self._contacts = ContactOutputs(self, session, self._lost)
        if session.learner.changes is not None:
            self._changes = ChangeOutputs(self, session, self._lost)
        self._report = SessionReport(session, self._lost)
        model = session.model
        self.get_logger().info(
            f"{model.n_joints} joints ({', '.join(model.joint_names)}), target "
            f"{model.config.target}, {model.n_parameters} base parameters"
        )
        for told in told_of_urdf(model):
            if told not in self._told:  # the same joints may be locked elsewhere now
                self.get_logger().warning(told)
            self._told.add(told)
        if model.locked:
            seen = model.locked.keys() <= self._published.keys()
            where = "its published position" if seen else "the saved model's position"
            self.get_logger().info(f"locked at {where}: {positions_told(model.locked)}")

    def begin(self) -> None:
        """Subscribe: from now on each message is answered."""
        session = self._required_session()
        self._answer_desired(session)
        self._answer("joint_states", JointState, Session.joint_state, JointStateReader())
        if session.model.config.target == "wrench":
            self._answer("wrench", WrenchStamped, Session.wrench)

    def _answer_desired(self, session: Session) -> None:
        if self._config.feedforward:
            self._desired = DesiredStates(self, session, self._lost)

    def pause(self) -> None:
        """Unsubscribe and save; what was learned stays, and a contact is over: nobody watches."""
        super().pause()
        if self.session is not None:
            self.session.learner.end_contact()
        if self._contacts is not None:
            self._contacts.publish(0)

    def release(self) -> None:
        """Give up the session and its topics."""
        self._published, self._locating, self._located, self._joints = {}, True, 0, ()
        self._told = set()
        super().release()

    def release_session(self) -> None:
        """Give up the session and its outputs."""
        self.drop_report()
        for outputs in (self._desired, self._outputs, self._changes, self._contacts):
            if outputs is not None:
                outputs.destroy()
        self._outputs = self._changes = self._contacts = self._report = self._desired = None
        super().release_session()

    def _with_joints(self, config: InverseDynamicsNodeConfig) -> InverseDynamicsNodeConfig:
        """The configuration with the joints that are learned where it names none.

        Those chosen by what was published; before that those of the model that is resumed from.
        """
        if not self._joints and not config.learner.robot.joints:
            saved = tuple(self.saved()[0].get("joints", ()))
            if set(saved) <= set(self._known_tree().joints):
                self._joints = saved
        if not self._joints or config.learner.robot.joints:
            return config
        return replace(config, joints=self._joints)

    def _end_contact(self, session: Session) -> None:
        """Tell that a contact is over where no joint state has come for a second: nobody knows."""
        heard = session.stream.received["joint states"]
        if heard == self._waited and session.learner.contacts.touched:
            session.learner.end_contact()
            if self._contacts is not None:
                self._contacts.publish(0)

    def _choose_joints(self, session: Session) -> None:
        """Learn the joints that are published where others of the URDF are not: a gripper's, say.

        Once the joint states of a second have none with all joints, and while the parameter
        `joints` leaves it open.
        """
        stream, model = session.stream, session.model
        waited, self._waited = self._waited, stream.received["joint states"]
        if self._config.learner.robot.joints or self._choose_anew(session):
            return
        if session.measured or not waited:
            return
        joints = joints_together(self._known_tree(), stream.lists, model.joint_names)
        if not joints or joints == model.joint_names or stream.dropped["missing joint"] < waited:
            return
        others = [name for name in model.joint_names if name not in joints]
        unknown = [name for name in others if name not in self._published]
        apart = [name for name in others if name in self._published]
        told = ""
        if unknown:
            told = f"nobody publishes {', '.join(unknown)}: they are taken to stand at 0; "
        if apart:
            told += f"other messages name {', '.join(apart)}: taken to stand still; "
        self.get_logger().warning(
            f"{told}learned are {', '.join(joints)}, which are published together (the parameter "
            "'joints' chooses)"
        )
        self._joints = joints
        self._rebuild()

    def _choose_anew(self, session: Session) -> bool:
        """Learn more joints that turned up where little is known of those chosen; or tell of them.

        A gripper's driver may be there before the arm's, which must not decide what is learned,
        nor may the model that was saved then. True where the session is another one.
        """
        tree, learned = self._known_tree(), session.model.joint_names
        joints = joints_together(tree, session.stream.lately(), tree.actuated())
        # Seen in two seconds, since a single stray message is nothing to begin anew for.
        again, self._found = joints == self._found, joints
        if not again or not turned_up(tree, joints, learned):
            return False
        total = session.learner.estimator.n_learned
        before = min(self._resumed, total)  # less after ~/reset
        known = total - before > MIN_KNOWN_SAMPLES
        # What a saved model knows of an arm stays, whatever hangs on it and is published now.
        if known or (before > MIN_KNOWN_SAMPLES and not carrying(tree, joints, learned)):
            self._tell_others([name for name in joints if name not in learned], learned)
            return False
        self.get_logger().warning(
            f"{', '.join(joints)} are published together: they are learned from now on, instead "
            f"of {', '.join(learned)}, which came first (the parameter 'joints' chooses)"
        )
        self._joints, self._locating, self._located = joints, True, 0
        self._rebuild()
        return True

    def _tell_others(self, others: Sequence[str], learned: Sequence[str]) -> None:
        if not self._others:
            self._others = (
                f"messages name {', '.join(others)}, too, which the model of "
                f"{', '.join(learned)}, of which much is known, leaves out: set the parameter "
                "'joints' to those to be learned"
            )
            self.get_logger().warning(self._others)

    def _known_tree(self) -> UrdfTree:
        if self._tree is None:
            raise ConfigurationError(self._waiting())
        return self._tree

    def _locate(self, message: JointStateMessage) -> None:
        """Lock joints that are not learned where the first messages say that they stand."""
        session = self.session
        if session is None:
            return
        if self._located >= FIRST_MESSAGES and time.monotonic() >= self._locate_until:
            self._locating = False
            return
        tree = self._known_tree()
        found = joint_positions(message, tree.joints)
        new = found.keys() - self._published.keys()
        self._published = found | self._published
        if not self._published.keys() >= set(session.model.joint_names):
            return  # nothing is measured, and other joints may be chosen
        if not self._located:
            self._locate_until = time.monotonic() + FIRST_SECONDS
        self._located += 1
        self._locating = not self._published.keys() >= set(tree.actuated())
        if new and self._locked(self._with_joints(self._config)) != session.model.locked:
            self._rebuild()

    def _locked(self, config: InverseDynamicsNodeConfig) -> dict[str, float]:
        """Positions of joints that are not learned; before any message the saved model's."""
        tree = self._known_tree()
        joints = config.learner.robot.joints or tree.actuated()
        before = self.saved()[1].get(LOCKED, {})
        published = {**before, **self._published}
        return locked_positions(tree, [j for j in joints if j in tree.joints], published, before)

    def _rebuild(self) -> None:
        """Begin anew with other joints or positions; the messages go on coming."""
        learning = True
        if self.session is not None:
            learning = self.session.learning
            self.session.abandon()
        self.release_session()
        try:
            self._make_session()
            session = self._required_session()
            session.learning = learning
            self._answer_desired(session)
        except SemiparamError as error:
            self.problem = str(error)
            self.get_logger().error(self.problem)

    def _unsubscribe(self) -> None:
        super()._unsubscribe()
        if self._desired is not None:
            self._desired.destroy()
            self._desired = None

    def _answer(
        self,
        topic: str,
        kind: type,
        predict: Callable[[Session, Any], Iterator[Step]],
        read: JointStateReader | None = None,
    ) -> None:
        def answer(message: Any) -> None:
            if read is not None:
                try:
                    message = read(message)
                except SampleError:
                    self._lost["malformed"] += 1
                    return
                if self._locating:
                    self._locate(message)
            if (session := self.session) is None or (outputs := self._outputs) is None:
                return
            session.thread.held = behind = self._delay.behind
            for step in predict(session, message):
                outputs.publish(step)
                session.learn(step)
                if self._contacts is not None:
                    self._contacts.publish(step.stamp)
                if self._changes is not None:
                    self._changes.publish(step)
            if not (behind or session.thread.working):
                self.continue_report()

        self.listen(topic, kind, answer, SENSORS, self._delay, raw=read is not None)

    def _name_payload(self, service: str) -> str:
        """Answer a service on the payload of the name `snapshot_name`; returns a sentence.

        The name is one inside the model's file. Where that is saved automatically, it is at once.
        """
        session, name = self._required_session(), self._config.snapshot_name
        if (monitor := session.learner.changes) is None:
            raise ConfigurationError("set the parameter changes.detect to know of payloads")
        if not name and service != "release":
            raise ConfigurationError("set the parameter snapshot_name first: it is empty")
        with session.paused():
            if service == "snapshot":
                held = monitor.payload
                monitor.remember(name)
                assert held is not None  # noqa: S101 # else it was refused
                answer = (
                    f"kept {held.mass:.3g} kg, give or take {held.mass_std:.2g} kg, as '{name}'"
                )
                if not held.settled:
                    answer += "; it is still being estimated, call again when it settled"
            elif service == "forget_snapshot":
                monitor.forget(name)
                answer = f"forgot '{name}'"
            else:
                monitor.recall(BARE if service == "release" else name)
                told = "nothing" if service == "release" else f"'{name}'"
                answer = f"{told} is held from now on"
            session.forget_standing()
            session.note_changes()
            session.autosave.changed()  # a name alone, too
            session.autosave.request()
            session.autosave.step()
        if self._changes is not None:
            self._changes.refresh()
        return answer

    def _configure(self, config: InverseDynamicsNodeConfig) -> None:
        self._config = config
        self._delay.deadline, self._delay.patience = config.deadline, self._patience()
        if self.session is not None:
            try:
                self.session.configure(_learning(self.session, config))
            except ConfigurationError as error:  # by what was learned since it was checked
                self.get_logger().error(str(error))

    def _patience(self) -> float:
        # Learning in step is for a bag's sake, of which every message is to be answered.
        return PATIENCE if self._config.defer_learning else math.inf

    def _refuse(self, config: InverseDynamicsNodeConfig) -> None:
        if self.session is not None:
            self.session.check(_learning(self.session, config))

    def _described(self, message: String) -> None:
        if self.session is not None:
            self._descriptions.report(self._urdf, message.data)
            return
        if not is_text(message.data):
            self._refuse_description()
            return
        if message.data == self._urdf or self.state != "unconfigured":
            return  # it was tried, or the node has ended
        self._urdf, self._joints, self.problem = message.data, (), ""
        self._published, self._locating, self._located = {}, True, 0
        if self._config.autostart and not self.managed:
            self.bring_to("active")

    def _refuse_description(self) -> None:
        if self.problem != NO_TEXT:
            self.get_logger().error(NO_TEXT)
        self.problem = NO_TEXT

    def _waiting(self) -> str:
        if self.problem or self._description is None or self._urdf:
            return super()._waiting()
        return f"waiting for the robot's URDF: {self._description.problem()}"

    def report(self) -> DiagnosticStatus:
        """The session's figures and what is wrong, if anything."""
        parts = self.report_parts()
        while True:
            try:
                next(parts)
            except StopIteration as end:
                status: DiagnosticStatus = end.value
                return status

    def report_parts(self) -> Generator[None, None, DiagnosticStatus]:
        """The same in parts; see the base class."""
        if self.session is not None and self.state == "active":
            self._end_contact(self.session)
            self._choose_joints(self.session)
        session, report, outputs = self.session, self._report, self._outputs
        if session is None or report is None or outputs is None:
            level = DiagnosticStatus.ERROR if self.problem else DiagnosticStatus.WARN
            return self.status(level, self._waiting(), {})
        silent = [problem for topic in self._inputs if (problem := topic.problem())]
        silent += filter(None, [session.stream.moved()])
        with session.paused():
            if self.state == "active":
                outputs.publish_parameters(session.learner.estimator.rigid_body)
            level, summary = report.summary(silent)
        for sentence in session.stream.news():
            self.get_logger().warning(sentence)
        yield
        with session.paused():
            values = report.values()
        session.save_if_due()
        yield
        if (motion := session.first_motion) is not None:
            values |= motion.values()
            for sentence in motion.news():
                self.get_logger().warning(sentence)
        if self._others:
            values["other joints"] = self._others
        values |= outputs.values()
        if self._desired is not None:
            values |= self._desired.values()
        if self._changes is not None:
            self._changes.refresh()
            values |= self._changes.report.values()
            if (going_on := self._changes.report.summary()) and self.state == "active":
                summary = f"{summary}; {going_on}"
        return self.session_status(session, level, summary, values)


def _learning(session: Session, config: InverseDynamicsNodeConfig) -> InverseDynamicsNodeConfig:
    """The configuration with the joints that a session learns."""
    return replace(config, joints=session.model.joint_names)


main = partial(runtime.run, "inverse_dynamics", InverseDynamicsNode, runtime.spin_managed)
