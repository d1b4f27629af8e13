"""Watching the recognition of objects from outside, over its topics alone."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from semiparam_dynamics.recognition.tally import Shown, Tally

QUEUE = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ObjectMonitor(Node):  # type: ignore[misc]
    """Keeps a tally of what is in view, taught or asked, and of what is recognised.

    Parameters
    ----------
    recognition: the recognition's node name.
    done: called with each object that goes out of view, and the answers there were.
    """

    def __init__(self, recognition: str, done: Callable[[Shown], None]) -> None:
        super().__init__("object_monitor")
        self.status: DiagnosticStatus | None = None
        self.tally = Tally()
        self.begun = False  # something was in view
        self._recognition = recognition
        self._done = done
        self._label = ""
        self._answers = f"{recognition}/label"
        self.create_subscription(String, self._answers, self._recognised, QUEUE)
        self.create_subscription(String, "truth", self._in_view, LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._diagnosed, QUEUE)
        self._waiting = self.create_timer(0.05, self._listen_when_connected)

    def _listen_when_connected(self) -> None:
        """Subscribe the teacher's label once the recognition's answers can be heard.

        The stream waits for its subscribers, so that not even the first answer is missed.
        """
        if self.count_publishers(self._answers):
            self.destroy_timer(self._waiting)
            self.create_subscription(String, "label", self._taught, LATCHED)

    def figures(self) -> dict[str, str]:
        """The recognition's last diagnostics by name."""
        return {pair.key: pair.value for pair in self.status.values} if self.status else {}

    def end(self) -> None:
        """Nothing is in view any more."""
        self._show("")

    def _recognised(self, message: String) -> None:
        # What is in view and what is said are topics of their own; both have come before a frame.
        shown = self.tally.now
        self.tally.answer(message.data, teach=bool(shown and shown.name == self._label))

    def _taught(self, message: String) -> None:
        self._label = message.data

    def _in_view(self, message: String) -> None:
        self.begun = True
        self._show(message.data)

    def _show(self, name: str) -> None:
        before = self.tally.show(name)
        if before is not None:
            self._done(before)

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == self._recognition:
                self.status = status
