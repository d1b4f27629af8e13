"""Delay of trajectories by `trajectory_efforts`, with it and the learner as nodes over DDS.

From sending a trajectory to its coming out with efforts, for several numbers of points, while the
learner learns the seven-joint arm's motion.

python benchmarks/trajectory_efforts_live.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import rclpy
from arms import SEVEN, SEVEN_JOINTS
from output import make_parser, parse
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from semiparam_dynamics.base.nodes.messages import desired_message
from semiparam_dynamics.base.nodes.processes import NodeProcess, use_own_network
from semiparam_dynamics.base.nodes.runtime import spin_for

JOINTS = tuple(str(name) for name in SEVEN_JOINTS["joints"])
ROBOT = {"urdf": SEVEN, "joints": f"[{','.join(JOINTS)}]"}
NODES: dict[str, dict[str, object]] = {
    "inverse_dynamics": {"feedforward": "true"},
    "trajectory_efforts": {"timeout": 5.0},
    "arm_simulator": {"rate": 200.0, "motion": "exciting", "wait_for_subscribers": 1},
}
STARTING_S = 60.0  # in which the nodes come up and efforts are learned
LATEST_S = 30.0  # for a trajectory to come out


class Sender(Node):  # type: ignore[misc]
    """Sends trajectories and hears them as a controller does."""

    def __init__(self) -> None:
        super().__init__("sender")
        self._came: list[JointTrajectory] = []
        controller = "joint_trajectory_controller/joint_trajectory"
        self.create_subscription(JointTrajectory, controller, self._came.append, 10)
        self._topic = self.create_publisher(
            JointTrajectory, "trajectory_efforts/joint_trajectory", 10
        )
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)

    def wait(self, seconds: float) -> None:
        """Listen for so long."""
        spin_for(self._executor, seconds)

    def send(self, points: int) -> tuple[float, bool]:
        """Seconds until a trajectory of so many points comes out, and whether with efforts."""
        t = np.linspace(0.0, 10.0, points)[:, None] * np.ones(len(JOINTS))
        states = (0.3 * np.sin(t), 0.3 * np.cos(t), -0.3 * np.sin(t))
        message = desired_message(0, JOINTS, states, 10.0 / points)
        self._came.clear()
        start = time.perf_counter()
        self._topic.publish(message)
        while not self._came and time.perf_counter() - start < LATEST_S:
            self._executor.spin_once(timeout_sec=0.1)
        took = time.perf_counter() - start
        return took, bool(self._came) and len(self._came[0].points[0].effort) > 0


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rounds", type=int, default=30, help="trajectories of each (default 30)")
    parser.add_argument("--learning", type=float, default=15.0, help="s before (default 15)")
    args = parse(parser)
    use_own_network()
    rclpy.init()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stack.callback(rclpy.try_shutdown)
        nodes = [
            stack.enter_context(NodeProcess(name, {**ROBOT, **given}, Path(folder) / f"{name}.log"))
            for name, given in NODES.items()
        ]
        sender, end = Sender(), time.monotonic() + STARTING_S
        while not sender.send(2)[1]:
            for node in nodes:
                node.check()
            if time.monotonic() > end:
                sys.exit(f"no trajectory came out with efforts within {STARTING_S:g} s")
            sender.wait(0.2)
        sender.wait(args.learning)
        print("| points | median, ms | 90 % | most | with efforts |\n|---|---|---|---|---|")
        for points in args.points:
            times, filled = [], 0
            for _ in range(args.rounds):
                took, has_efforts = sender.send(points)
                times.append(1e3 * took)
                filled += has_efforts
                sender.wait(0.1)
            cells = " | ".join(f"{np.percentile(times, q):.0f}" for q in (50, 90, 100))
            print(f"| {points} | {cells} | {filled} of {args.rounds} |", flush=True)


if __name__ == "__main__":
    main()
