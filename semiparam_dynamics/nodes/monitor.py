"""Watching a learner of a wrench from outside, over its topics alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from semiparam_dynamics.nodes.messages import stamp_of
from semiparam_dynamics.nodes.recorder import Recorder

QUEUE = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OUTPUTS = ("predicted", "rigid_body", "external")
PENDING = 1000  # samples of which some topic's message has not come yet


class Monitor(Node):  # type: ignore[misc]
    """Records a simulated arm and its learner, and follows the learner's errors.

    Parameters
    ----------
    recorder: takes every message.
    learner: the learner's node name.
    window: seconds over which the errors are averaged.
    """

    def __init__(self, recorder: Recorder, learner: str, window: float) -> None:
        super().__init__("demo_monitor")
        self.status: DiagnosticStatus | None = None
        self.last_stamp = 0  # ns, of the newest joint state
        self.urdf = ""
        self.motion = 0.0  # s of joint states received
        self._learner = learner
        self._window = round(window * 1e9)
        self._pending: dict[int, dict[str, np.ndarray]] = {}
        self._errors: deque[tuple[int, np.ndarray, np.ndarray]] = deque()
        self._recorder = recorder
        record = recorder.record
        record(self, "robot_description", String, LATCHED, self._described)
        for topic in OUTPUTS:
            record(self, f"{learner}/{topic}", WrenchStamped, QUEUE, self._part(topic))
        record(self, f"{learner}/inertial_parameters", Float64MultiArray, QUEUE)
        record(self, "/diagnostics", DiagnosticArray, QUEUE, self._diagnosed)
        self._waiting = self.create_timer(0.05, self._listen_when_connected)

    def _listen_when_connected(self) -> None:
        """Subscribe the arm's readings once the learner's answers can be heard.

        The simulator waits for its subscribers, so that not even the first answer is missed.
        """
        if all(self.count_publishers(f"{self._learner}/{topic}") for topic in OUTPUTS):
            self.destroy_timer(self._waiting)
            self._recorder.record(self, "joint_states", JointState, QUEUE, self._joint_state)
            self._recorder.record(self, "wrench", WrenchStamped, QUEUE)

    def rmse(self) -> dict[str, tuple[float, float]] | None:
        """Force (N) and torque (N m) RMSE of each model over the window, averaged over axes.

        None before the first prediction.
        """
        if not self._errors:
            return None
        newest = self._errors[-1][0]
        while newest - self._errors[0][0] > self._window:
            self._errors.popleft()
        _, rigid, semiparametric = zip(*self._errors, strict=True)
        errors = {"rigid_body": np.array(rigid), "semiparametric": np.array(semiparametric)}
        rmse = {name: np.sqrt(np.mean(error**2, axis=0)) for name, error in errors.items()}
        return {n: (float(e[:3].mean()), float(e[3:].mean())) for n, e in rmse.items()}

    def figures(self) -> dict[str, str]:
        """The learner's last diagnostics by name."""
        return {pair.key: pair.value for pair in self.status.values} if self.status else {}

    def _joint_state(self, data: bytes) -> None:
        stamp = stamp_of(deserialize_message(data, JointState))
        step = (stamp - self.last_stamp) * 1e-9
        self.motion += step if 0.0 < step < 0.5 else 0.0
        self.last_stamp = stamp

    def _described(self, data: bytes) -> None:
        self.urdf = deserialize_message(data, String).data

    def _part(self, topic: str) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            message = deserialize_message(data, WrenchStamped)
            f, t = message.wrench.force, message.wrench.torque
            stamp = stamp_of(message)
            parts = self._pending.setdefault(stamp, {})
            parts[topic] = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
            if len(parts) == len(OUTPUTS):
                del self._pending[stamp]
                # What was measured is not published: it is the prediction plus the difference.
                rigid = parts["predicted"] + parts["external"] - parts["rigid_body"]
                self._errors.append((stamp, rigid, parts["external"]))
            elif len(self._pending) > PENDING:
                del self._pending[next(iter(self._pending))]

        return take

    def _diagnosed(self, data: bytes) -> None:
        for status in deserialize_message(data, DiagnosticArray).status:
            if status.name == self._learner:
                self.status = status
