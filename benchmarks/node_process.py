"""The learner, or a bare echo of its messages, with the executor that is to be measured.

The echo does in rclpy what the learner does, and nothing else: it takes a joint state and publishes
one with names and efforts, of the message before. Any learner written with rclpy takes longer.

    python benchmarks/node_process.py echo --executor events
"""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Sequence

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from semiparam_dynamics.nodes import runtime


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("node", choices=("echo", "learner"))
    parser.add_argument("--executor", choices=("single", "events"), default="single")
    options, rest = parser.parse_known_args(arguments)
    if options.executor == "single":
        runtime.make_executor = SingleThreadedExecutor
    if options.node == "echo":
        return echo(rest)
    from semiparam_dynamics.nodes import inverse_dynamics

    return inverse_dynamics.main(rest)


def echo(arguments: Sequence[str]) -> int:
    rclpy.init(args=[sys.argv[0], *arguments])
    node = rclpy.create_node("inverse_dynamics")
    publisher = node.create_publisher(JointState, "~/predicted", 50)
    answer = JointState()

    def take(message: JointState) -> None:
        if answer.name:
            publisher.publish(answer)
        answer.header.stamp = message.header.stamp
        answer.name = message.name
        answer.effort = array("d", message.effort)

    sensors = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(JointState, "joint_states", take, sensors)
    executor = runtime.make_executor()
    executor.add_node(node)
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.1)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
