"""Subscriptions through the real network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Int32

from semiparam_dynamics.nodes.managed import AT_ONCE, WatchedTopic
from semiparam_dynamics.nodes.runtime import make_executor

QUEUE = QoSProfile(depth=100)


@pytest.fixture
def node(ros_environment: dict[str, str]) -> Iterator[Node]:
    rclpy.init()
    yield Node("tested")
    rclpy.try_shutdown()


def published(node: Node, count: int) -> None:
    """So many messages that wait to be taken."""
    publisher = node.create_publisher(Int32, "numbers", QUEUE)
    end = time.monotonic() + 10.0
    while not publisher.get_subscription_count():
        assert time.monotonic() < end
        time.sleep(0.01)
    for k in range(count):
        publisher.publish(Int32(data=k))
    time.sleep(0.3)  # they are delivered in another thread


@pytest.mark.parametrize("make", [make_executor, SingleThreadedExecutor])
def test_what_waits_is_answered_at_once_and_in_order(
    node: Node, make: Callable[[], Executor]
) -> None:
    taken: list[int] = []
    topic = WatchedTopic(node, "numbers", Int32, lambda m: taken.append(m.data), QUEUE)
    published(node, 50)
    executor = make()
    executor.add_node(node)
    end, turns = time.monotonic() + 30.0, 0
    while len(taken) < 50 and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)
        turns += bool(taken)
    assert taken == list(range(50))
    assert turns < 50  # most of them in few turns of the executor
    assert topic.problem() == ""
    for _ in range(60):  # what the executor noted of messages that are gone brings nothing
        executor.spin_once(timeout_sec=0.0)
    assert len(taken) == 50
    topic.destroy()


def test_timers_have_their_turn_between_slow_messages(node: Node) -> None:
    """Of an executor that gives everybody one; the other goes by the order of coming."""
    ticks: list[int] = []
    taken: list[int] = []

    def slow(message: Int32) -> None:
        time.sleep(AT_ONCE)
        taken.append(message.data)

    topic = WatchedTopic(node, "numbers", Int32, slow, QUEUE)
    clock = Clock(clock_type=ClockType.STEADY_TIME)
    node.create_timer(0.01, lambda: ticks.append(len(taken)), clock=clock)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    published(node, 40)
    end = time.monotonic() + 30.0
    while len(taken) < 40 and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)
    assert taken == list(range(40))
    assert any(0 < count < 40 for count in ticks)
    topic.destroy()


def test_a_callback_may_unsubscribe(node: Node) -> None:
    taken: list[int] = []

    def once(message: Int32) -> None:
        taken.append(message.data)
        topic.destroy()

    topic = WatchedTopic(node, "numbers", Int32, once, QUEUE)
    published(node, 5)
    executor = make_executor()
    executor.add_node(node)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.05)
    assert taken == [0]
