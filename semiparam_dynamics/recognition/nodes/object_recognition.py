"""The `object_recognition` node: learns objects while a teacher shows and names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, RegionOfInterest
from std_msgs.msg import Float32, Float32MultiArray, MultiArrayLayout, String
from std_srvs.srv import Trigger

from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.diagnostics import how_often, stopped, timing_values
from semiparam_dynamics.base.nodes.learning_node import LearningNode, answering
from semiparam_dynamics.base.nodes.managed import DEPTH, Outlets
from semiparam_dynamics.base.nodes.messages import labels_layout, scores_message
from semiparam_dynamics.recognition.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.recognition.nodes.recognition_session import RecognitionSession
from semiparam_dynamics.recognition.recognizer import Recognition

# -------------------------------------------------------------------------------------------------
# The outputs of each frame.


class RecognitionOutputs(Outlets):
    """The node's publishers: the box, label, its probability, and the probabilities of all."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, Counter())
        self._label = self.outlet(String, "~/label", DEPTH)
        self._confidence = self.outlet(Float32, "~/confidence", DEPTH)
        self._box = self.outlet(RegionOfInterest, "~/box", DEPTH)
        self._scores = self.outlet(Float32MultiArray, "~/scores", DEPTH)
        self._labels: tuple[str, ...] = ()
        self._layout = MultiArrayLayout()

    def publish(self, recognition: Recognition) -> None:
        """Publish what a frame was recognised as."""
        left, top, width, height = recognition.box or (0, 0, 0, 0)
        self._box.publish(RegionOfInterest(x_offset=left, y_offset=top, width=width, height=height))
        self._label.publish(String(data=recognition.label))
        self._confidence.publish(Float32(data=float(recognition.confidence)))
        # With a thousand classes this costs more than all the rest: only for subscribers.
        if not self._scores.has_subscribers():
            return
        if recognition.labels is not self._labels:
            self._labels, self._layout = recognition.labels, labels_layout(recognition.labels)
        self._scores.publish(scores_message(self._layout, recognition.probabilities))


# -------------------------------------------------------------------------------------------------
# The node's diagnostics.

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
MAX_LISTED = 40  # objects in the diagnostics


class RecognitionReport:
    """Sums a session up, once a second, with what was refused since the last time.

    `unsent` counts answers that were not published.
    """

    def __init__(self, session: RecognitionSession, unsent: Counter[str] | None = None) -> None:
        self._session = session
        self._unsent: Counter[str] = Counter() if unsent is None else unsent
        self._before: Counter[str] = Counter()

    def summary(self, silent: Iterable[str]) -> tuple[bytes, str]:
        """Level and one sentence; `silent` has a sentence for each topic without messages."""
        session = self._session
        if session.problem:
            return ERROR, stopped("recognition", session.problem)
        since = session.refusals.counts - self._before
        self._before = session.refusals.counts.copy()
        if trouble := session.autosave.trouble():
            return WARN, trouble
        if since:
            reason, count = since.most_common(1)[0]
            detail = session.refusals.details[reason]
            return WARN, f"refused {how_often(count)} in the last second: {detail}"
        if problems := list(silent):
            return WARN, "; ".join(problems)
        if session.teacher.label and not session.learning:
            return OK, f"'{session.teacher.label}' is named, but learning is switched off"
        if session.teacher.label:
            return OK, f"learning '{session.teacher.label}'; {session.learned()}"
        return OK, f"recognising; {session.learned()}"

    def values(self) -> dict[str, str]:
        """Counts, timings, refusals, what was chosen, and each class' figures."""
        session = self._session
        recognizer = session.recognizer
        values = {
            "label": session.teacher.label,
            "label refused": session.refused_label[0],
            "label refused: why": session.refused_label[1],
            "frames seen": str(session.seen),
            "frames recognised": str(session.recognized),
            "frames taught": str(session.taught),
            "frames taught, recognised before": str(session.taught_known),
            "frames dropped": str(session.thread.dropped),
            "frames not learned, learning switched off": str(session.not_learned),
            "learning": str(session.learning).lower(),
            "objects": str(len(recognizer.labels)),
            "examples": str(recognizer.n_examples),
            "looked at": session.looked_at(),
            "edits": str(session.edits),
            "last edit": session.last_edit,
            **session.autosave.values(),
        }
        values |= {reason: str(count) for reason, count in self._unsent.items()}
        if (last := session.last) is not None:
            values["last recognised"] = last.label
            values["its probability"] = f"{last.confidence:.3f}"
            values["its novelty"] = f"{last.novelty:.2f}"
            values["probability that it was taught"] = f"{last.known:.3f}"
        for reason, count in sorted(session.refusals.counts.items()):
            values[f"refused: {reason}"] = str(count)
            values[f"last refused: {reason}"] = session.refusals.details[reason]
        values |= timing_values(session.timings)
        if recognizer.labels:
            values |= self._chosen() | self._classes()
        return values

    def _chosen(self) -> dict[str, str]:
        model = self._session.recognizer.model
        return {
            "recoding exponent": f"{model.recoding_:.2f}",
            "ridge": f"{model.ridge_:g}",
            "held-out examples to update": str(model.recursion_.outdated()),
            "unknown objects": self._session.recognizer.unknown_told()[1] or "told apart",
        }

    def _classes(self) -> dict[str, str]:
        """The classes that do worst on held-out examples first; not all where there are many."""
        recognizer = self._session.recognizer
        shares, sizes = recognizer.model.class_accuracy()
        counts = recognizer.model.class_count_
        order = np.argsort(np.where(np.isnan(shares), np.inf, shares), kind="stable")
        values = {}
        for i in order[:MAX_LISTED].tolist():
            held = f"{shares[i]:.3f} of {sizes[i]:.0f} held out" if sizes[i] else "none held out"
            values[f"object: {recognizer.labels[i]}"] = f"{counts[i]:.0f} learned, {held}"
        if len(order) > MAX_LISTED:
            values["objects not listed"] = str(len(order) - MAX_LISTED)
        return values


# Best effort takes reliable publishers too; the other way round nothing would arrive. The newest
# frames count, and an image is large.
FRAMES = {
    reliable: QoSProfile(depth=5, reliability=policy)
    for reliable, policy in (
        (False, ReliabilityPolicy.BEST_EFFORT),
        (True, ReliabilityPolicy.RELIABLE),
    )
}
# A label or an edit that gets lost would teach something wrong.
TEXTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
LOG_PERIOD = 1.0  # s between log lines of the same kind, at least


class ObjectRecognitionNode(LearningNode[RecognitionSession]):
    """Configured it has a session; active it answers frames, labels and edits."""

    def __init__(self) -> None:
        super().__init__("object_recognition", ObjectRecognitionNodeConfig)
        parameters.follow(self, self._config, self._configure)
        self._outputs: RecognitionOutputs | None = None
        self._report: RecognitionReport | None = None
        self.create_service(Trigger, "~/forget", answering(self._forget))

    def set_up(self) -> None:
        """Make the session, with the image network where the input is images."""
        outputs = RecognitionOutputs(self)
        try:
            with self.owning_model_file():
                session = RecognitionSession(self._config, outputs.publish)
                if self._config.autoload:
                    self.load_saved(session)
        except BaseException:
            outputs.destroy()
            raise
        self.session, self._outputs = session, outputs
        self._report = RecognitionReport(session, outputs.lost)

    def begin(self) -> None:
        """Subscribe: each frame is answered from now on, as long as it is the newest."""
        session = self._required_session()
        kind = Image if self._config.input == "image" else Float32MultiArray
        self.listen(self._config.input, kind, session.frame, FRAMES[self._config.reliable])
        self.listen("label", String, session.label, TEXTS)
        self.listen("~/edit", String, self._edited, TEXTS)

    def release_session(self) -> None:
        """Give up the session and its outputs."""
        if self._outputs is not None:
            self._outputs.destroy()
        self._outputs = self._report = None
        super().release_session()

    def _configure(self, config: ObjectRecognitionNodeConfig) -> None:
        self._config = config
        if self.session is not None:
            self.session.configure(config)

    def _edited(self, message: String) -> None:
        session = self._required_session()
        session.edit(message)
        # A flood of edits must not become a flood of log lines.
        self.get_logger().info(session.last_edit, throttle_duration_sec=LOG_PERIOD)

    def _forget(self) -> str:
        return self._required_session().forget_last()

    def report(self) -> DiagnosticStatus:
        """The session's figures and what is wrong, if anything."""
        if self.session is None or self._report is None:
            return super().report()
        self.session.save_if_due()
        frames = [problem for topic in self._inputs[:1] if (problem := topic.problem())]
        with self.session.paused():
            level, summary = self._report.summary(frames)
            values = self._report.values()
        return self.session_status(self.session, level, summary, values)


main = partial(runtime.run, "object_recognition", ObjectRecognitionNode, runtime.spin_managed)
