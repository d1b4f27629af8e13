"""The learner node while others come to its network and are killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes.messages import stamp_of

from .forks import Fork

NODE = "/inverse_dynamics"
VISITORS = 4
# As many participants as processes would be, which would take longer to start.
VISIT = """
import sys, time
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from sensor_msgs.msg import JointState

kept = []
for k in range(int(sys.argv[1])):
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node(f"visitor{k}", context=context)
    for name in ("predicted", "external"):
        kept.append(node.create_subscription(JointState, f"/inverse_dynamics/{name}", print, 10))
    kept.append(node.create_subscription(DiagnosticArray, "/diagnostics", print, 10))
    kept.append((node, node.create_publisher(JointState, "/joint_states", 10)))
while any(one[0].count_publishers("/diagnostics") == 0 for one in kept if isinstance(one, tuple)):
    time.sleep(0.05)
for one in kept:
    if isinstance(one, tuple):
        one[1].publish(JointState(name=["no joint of the arm"], position=[0.0]))
print("there", flush=True)
time.sleep(1000)
"""


def handles(pid: int) -> int:
    return len(os.listdir(Path("/proc") / str(pid) / "fd"))


def test_peers_that_are_killed_leave_nothing_open(peer, start, urdf, connect, tmp_path):
    process = start("inverse_dynamics", urdf=urdf)
    predicted = peer.listen(JointState, f"{NODE}/predicted")
    arm = connect()
    arm.move(50)
    before: list[int] = []
    log = tmp_path / "visitors.log"
    log.touch()
    for k in range(2):
        visitors = Fork([sys.executable, "-c", VISIT, str(VISITORS)], str(log))
        try:
            peer.until(lambda k=k: log.read_text().count("there\n") > k, "the visitors")
            arm.move(50)
        finally:
            visitors.send_signal(signal.SIGKILL)  # they don't take their leave
        arm.move(50)
        before.append(handles(process.pid))
    # Joint states are read best effort: where the machine is busy one may be lost.
    peer.until(lambda: len(predicted) >= 245, "predictions all the while")
    assert {stamp_of(message) for message in predicted} <= set(arm.stamps[1:-1])
    peer.until(lambda: int(peer.figures().get("samples learned", 0)) >= 245, "all learned")
    peer.until(lambda: min(before[1], handles(process.pid)) <= before[0], f"closed: {before}")
    assert process.stop() == 0
