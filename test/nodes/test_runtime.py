"""The loop that learns between messages, on real topics."""

from __future__ import annotations

import time

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Int32

from semiparam_dynamics.nodes.backlog import Backlog
from semiparam_dynamics.nodes.runtime import make_executor, spin


@pytest.mark.parametrize("make", [make_executor, SingleThreadedExecutor])
def test_waiting_messages_go_first_and_each_is_learned_before_the_next(ros_environment, make):
    rclpy.init()
    try:
        node = Node("tested")
        publisher = node.create_publisher(Int32, "numbers", QoSProfile(depth=100))
        order: list[tuple[str, int]] = []

        def work(k: int) -> None:
            order.append(("learned", k))
            if k == 35:
                rclpy.shutdown()
            elif k >= 29:
                publisher.publish(Int32(data=k + 1))
                time.sleep(0.02)  # it is there when the loop looks again

        backlog = Backlog(work, capacity=100)

        def take(message: Int32) -> None:
            backlog.interrupted()
            order.append(("predicted", message.data))
            backlog.add(message.data)

        node.create_subscription(Int32, "numbers", take, QoSProfile(depth=100))
        while not publisher.get_subscription_count():
            time.sleep(0.01)
        executor = make()
        executor.add_node(node)
        for k in range(30):
            publisher.publish(Int32(data=k))
        time.sleep(0.3)  # all of them wait now
        spin(executor, lambda: backlog)
    finally:
        rclpy.try_shutdown()
    burst = [("predicted", k) for k in range(30)] + [("learned", k) for k in range(30)]
    one_by_one = [(act, k) for k in range(30, 36) for act in ("predicted", "learned")]
    assert order == burst + one_by_one
