"""Processes that subscribe and publish on the learner's topics for a while, and are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

# What a person with a terminal, a dashboard or a recorder does: all topics, none ever taken well.
PROGRAM = """
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

rclpy.init()
node = rclpy.create_node("visitor")
for name in ("predicted", "rigid_body", "external"):
    node.create_subscription(JointState, f"inverse_dynamics/{name}", lambda _: None, 10)
node.create_subscription(DiagnosticArray, "/diagnostics", lambda _: None, 10)
publisher = node.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
while True:
    publisher.publish(JointState(name=["no joint of the arm"], position=[0.0]))
    rclpy.spin_once(node, timeout_sec=0.1)
"""


class Visitors:
    """So many at any time, as often as :meth:`renew` is called; each is killed after `stay` s."""

    def __init__(self, count: int, stay: float) -> None:
        self._stay = stay
        self._count = count
        self._present: list[tuple[float, subprocess.Popen[bytes]]] = []
        self.killed = 0

    def renew(self) -> None:
        """Kill those whose time is over and start others in their place."""
        now = time.monotonic()
        self._kill(now - self._stay)
        while len(self._present) < self._count:
            process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL)
            self._present.append((now, process))

    def close(self) -> None:
        """Kill all."""
        self._kill(time.monotonic())

    def _kill(self, before: float) -> None:
        for began, process in [one for one in self._present if one[0] <= before]:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.killed += 1
            self._present.remove((began, process))
