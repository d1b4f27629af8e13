"""The learner, or a bare echo of its messages, with the executor that is to be measured.

The echo does in rclpy what the learner does, and nothing else: it takes a joint state and publishes
one with names and efforts, of the message before. Any learner written with rclpy takes longer.

    python benchmarks/node_process.py echo --executor events
    python benchmarks/node_process.py learner --arms 2 --ros-args -p urdf:=arm.urdf
"""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Sequence

import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes import runtime

NAMESPACE = "arm"  # of a further node, with its number
SENSORS = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("node", choices=("echo", "learner"))
    parser.add_argument("--executor", choices=("single", "events"), default="single")
    parser.add_argument("--arms", type=int, default=1, help="learners in this process")
    parser.add_argument("--wrench", action="store_true", help="echo wrenches")
    options, rest = parser.parse_known_args(arguments)
    if options.executor == "single":
        runtime.make_executor = SingleThreadedExecutor
    spaces = ["", *(f"{NAMESPACE}{k}" for k in range(1, options.arms))]
    if options.node == "echo":
        return echo(rest, spaces, options.wrench)
    from semiparam_dynamics.learner.nodes.inverse_dynamics import InverseDynamicsNode

    others: list[InverseDynamicsNode] = []

    def make() -> InverseDynamicsNode:
        others.extend(InverseDynamicsNode(namespace=space) for space in spaces[1:])
        return InverseDynamicsNode()

    def spin(node: InverseDynamicsNode, executor: Executor) -> int:
        for other in others:
            executor.add_node(other)
            other.start()
        code = runtime.spin_managed(node, executor)
        for other in others:
            other.close()
        return code

    return runtime.run("inverse_dynamics", make, spin, rest)


def echo(arguments: Sequence[str], spaces: Sequence[str], wrench: bool) -> int:
    rclpy.init(args=[sys.argv[0], *arguments])
    executor = runtime.make_executor()
    for space in spaces:
        node = rclpy.create_node("inverse_dynamics", namespace=space)
        executor.add_node(node)
        (echo_wrenches if wrench else echo_efforts)(node)
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.1)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    rclpy.try_shutdown()
    return 0


def echo_efforts(node: Node) -> None:
    publisher = node.create_publisher(JointState, "~/predicted", 50)
    answer = JointState()

    def take(message: JointState) -> None:
        if answer.name:
            publisher.publish(answer)
        answer.header.stamp = message.header.stamp
        answer.name = message.name
        answer.effort = array("d", message.effort)

    node.create_subscription(JointState, "joint_states", take, SENSORS)


def echo_wrenches(node: Node) -> None:
    """It takes both, as the learner does, and answers a joint state."""
    publisher = node.create_publisher(WrenchStamped, "~/predicted", 50)
    taken: list[WrenchStamped] = []

    def answer(_: JointState) -> None:
        if len(taken) > 1:
            publisher.publish(taken[-2])
            del taken[:-2]

    node.create_subscription(WrenchStamped, "wrench", taken.append, SENSORS)
    node.create_subscription(JointState, "joint_states", answer, SENSORS)


if __name__ == "__main__":
    sys.exit(main())
