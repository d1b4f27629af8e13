"""The loop that learns between messages, on real topics."""

from __future__ import annotations

import time

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Int32

from semiparam_dynamics.nodes.runtime import Backlog, make_executor, spin


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


@pytest.mark.parametrize("make", [make_executor, SingleThreadedExecutor])
def test_messages_that_never_cease_don_t_keep_work_waiting(ros_environment, make):
    rclpy.init()
    try:
        node = Node("tested")
        publisher = node.create_publisher(Int32, "numbers", QoSProfile(depth=100))
        taken: list[int] = []

        def work(k: int) -> None:
            rclpy.shutdown()

        backlog = Backlog(work, capacity=1, patience=0.05)

        def take(message: Int32) -> None:
            backlog.interrupted()
            taken.append(message.data)
            backlog.add(message.data)
            if message.data < 10_000:
                publisher.publish(Int32(data=message.data + 1))  # there is always one more
                time.sleep(0.001)

        node.create_subscription(Int32, "numbers", take, QoSProfile(depth=100))
        while not publisher.get_subscription_count():
            time.sleep(0.01)
        executor = make()
        executor.add_node(node)
        for k in range(20):
            publisher.publish(Int32(data=k))
        spin(executor, lambda: backlog)
    finally:
        rclpy.try_shutdown()
    assert taken and 10_000 not in taken
