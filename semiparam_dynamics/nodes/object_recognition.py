"""The `object_recognition` node: learns objects while a teacher shows and names them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image
from std_msgs.msg import Float32MultiArray, String
from std_srvs.srv import Trigger

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.nodes import parameters, runtime
from semiparam_dynamics.nodes.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.nodes.managed import ManagedNode
from semiparam_dynamics.nodes.model_services import ModelServices, answering
from semiparam_dynamics.nodes.recognition_outputs import RecognitionOutputs
from semiparam_dynamics.nodes.recognition_report import RecognitionReport
from semiparam_dynamics.nodes.recognition_session import RecognitionSession
from semiparam_dynamics.nodes.topics import WatchedTopic

# Best effort takes reliable publishers too; the other way round nothing would arrive. Of frames
# the newest count, and an image is large.
FRAMES = {
    reliable: QoSProfile(depth=5, reliability=policy)
    for reliable, policy in (
        (False, ReliabilityPolicy.BEST_EFFORT),
        (True, ReliabilityPolicy.RELIABLE),
    )
}
# A label or an edit that gets lost would teach something wrong.
WORDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
SHORTEST = 1.0  # s between log lines of the same kind


class ObjectRecognitionNode(ManagedNode):
    """Configured it has a session; active it answers frames, labels and edits."""

    def __init__(self) -> None:
        super().__init__("object_recognition")
        self._config = parameters.declare(self, ObjectRecognitionNodeConfig)
        parameters.follow(self, self._config, self._configure)
        self._model_file = os.path.expanduser(self._config.model_file)
        self.session: RecognitionSession | None = None
        self._outputs: RecognitionOutputs | None = None
        self._report: RecognitionReport | None = None
        self._topics: list[WatchedTopic] = []
        self._model_services = ModelServices(self, self._required_session, self._model_file)
        self.create_service(Trigger, "~/forget", answering(self._forget))

    def start(self) -> bool:
        """With `autostart` come to the active state; False if that failed."""
        return not self._config.autostart or self.bring_to("active")

    def set_up(self) -> None:
        """Make the session, with the image network where images come in."""
        outputs = RecognitionOutputs(self)
        try:
            with self._model_services.claiming(self._config.autosave):
                session = RecognitionSession(self._config, outputs.publish)
                if self._config.autoload:
                    self._model_services.go_on(session)
        except BaseException:
            outputs.destroy()
            raise
        self.session, self._outputs = session, outputs
        self._report = RecognitionReport(session, outputs.unsent)

    def begin(self) -> None:
        """Subscribe: from now on each frame is answered, as long as it is the newest."""
        if self.session is None:
            return
        kind = Image if self._config.input == "image" else Float32MultiArray
        self._listen(self._config.input, kind, self.session.frame, FRAMES[self._config.reliable])
        self._listen("label", String, self.session.label, WORDS)
        self._listen("~/edit", String, self._edited, WORDS)

    def pause(self) -> None:
        """Unsubscribe, and end the teaching; what was learned stays."""
        self._unsubscribe()
        if self.session is not None:
            self._model_services.keep(self.session)

    def tear_down(self) -> None:
        """Give up the session. Raises StorageError where that would lose what it learned."""
        self._unsubscribe()
        if self.session is not None:
            self.session.finish()
        if self._outputs is not None:
            self._outputs.destroy()
        self.session = self._outputs = self._report = None
        self._model_services.give_up()

    def _unsubscribe(self) -> None:
        for topic in self._topics:
            topic.destroy()
        self._topics.clear()

    def _listen(self, topic: str, kind: type, take: Callable[[Any], None], qos: QoSProfile) -> None:
        self._topics.append(WatchedTopic(self, topic, kind, take, qos))

    def _configure(self, config: ObjectRecognitionNodeConfig) -> None:
        self._config = config
        if self.session is not None:
            self.session.configure(config)

    def _edited(self, message: String) -> None:
        session = self._required_session()
        session.edit(message)
        # A flood of edits must not become a flood of log lines.
        self.get_logger().info(session.last_edit, throttle_duration_sec=SHORTEST)

    def _forget(self) -> str:
        return self._required_session().forget_last()

    def _required_session(self) -> RecognitionSession:
        if self.session is None:
            raise ConfigurationError(self.problem or f"the node is {self.state}")
        return self.session

    def report(self) -> DiagnosticStatus:
        """The session's figures and what is wrong, if anything."""
        if self.session is None or self._report is None:
            return super().report()
        self.session.autosave.step()  # one that is due, or had to wait for the one before
        frames = [problem for topic in self._topics[:1] if (problem := topic.problem())]
        level, summary = self._report.summary(frames)
        if self.state != "active" and not self.session.autosave.trouble():
            level, summary = DiagnosticStatus.OK, f"the node is {self.state}"
        return self.status(level, summary, self._report.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return runtime.run("object_recognition", ObjectRecognitionNode, runtime.spin_learner, arguments)


if __name__ == "__main__":
    sys.exit(main())
