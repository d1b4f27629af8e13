"""What the `object_recognition` node publishes of each frame."""

from __future__ import annotations

from collections import Counter

from rclpy.node import Node
from std_msgs.msg import Float32, Float32MultiArray, MultiArrayLayout, String

from semiparam_dynamics.nodes.messages import labels_layout, scores_message
from semiparam_dynamics.nodes.publishing import Outlet
from semiparam_dynamics.recognition.recognizer import Recognition

DEPTH = 10


class RecognitionOutputs:
    """The node's publishers: the label, its probability, and the probabilities of all classes.

    `unsent` counts what the network did not take.
    """

    def __init__(self, node: Node) -> None:
        self.unsent: Counter[str] = Counter()
        self._label = Outlet(node, String, "~/label", DEPTH, self.unsent)
        self._confidence = Outlet(node, Float32, "~/confidence", DEPTH, self.unsent)
        self._scores = Outlet(node, Float32MultiArray, "~/scores", DEPTH, self.unsent)
        self._labels: tuple[str, ...] = ()
        self._layout = MultiArrayLayout()

    def publish(self, recognition: Recognition) -> None:
        """Publish what a frame was recognised as."""
        self._label.publish(String(data=recognition.label))
        self._confidence.publish(Float32(data=float(recognition.confidence)))
        # With a thousand classes this costs more than all the rest: only where somebody listens.
        if not self._scores.heard():
            return
        if recognition.labels is not self._labels:
            self._labels, self._layout = recognition.labels, labels_layout(recognition.labels)
        self._scores.publish(scores_message(self._layout, recognition.probabilities))

    def destroy(self) -> None:
        """Take the topics down."""
        for outlet in (self._label, self._confidence, self._scores):
            outlet.destroy()
