"""What is left out when messages come faster than they can be answered."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable

import pytest
import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Int32

from semiparam_dynamics.nodes.managed import FRESH, INTERVAL, LATE, PATIENCE, Lag, WatchedTopic
from semiparam_dynamics.nodes.runtime import make_executor

PERIOD = 0.001  # s that an answer takes


class Queue:
    """One queue of messages and marks, where `speed` messages come in the time of an answer."""

    def __init__(self, speed: float, **options: float) -> None:
        self.lost: Counter[str] = Counter()
        self.now = 0.0
        self.lag = Lag(self.lost, clock=lambda: self.now, **options)
        self.waiting: deque[Callable[[], None] | None] = deque([None])
        self.speed = speed
        self.answered = self.longest = 0
        self._came = 0.0

    def create_task(self, mark: Callable[[], None]) -> None:
        self.waiting.append(mark)

    def run(self, seconds: float, leaving_out: float = 0.05) -> None:
        """`leaving_out` is what that takes, in answers."""
        end = self.now + seconds
        while self.now < end:
            event = self.waiting.popleft() if self.waiting else None
            if event is not None:
                event()
                continue
            late = self.lag.too_late(self)
            self.answered += not late
            self.pass_by(PERIOD * (leaving_out if late else 1.0))
            while not self.waiting:
                self.pass_by(0.1 * PERIOD)
            self.longest = max(self.longest, len(self.waiting))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self._came += self.speed * seconds / PERIOD
        self.waiting.extend([None] * int(self._came))
        self._came %= 1.0


@pytest.mark.parametrize("speed", [0.1, 0.9])
def test_nothing_is_left_out_where_messages_can_be_answered(speed: float) -> None:
    queue = Queue(speed)
    queue.run(10.0)
    assert not queue.lost.total() and queue.answered >= 9900 * speed


def test_hardly_anything_is_left_out_after_a_stall_that_is_made_up_for() -> None:
    queue = Queue(0.5)
    for _ in range(50):
        queue.run(3.0)
        queue.pass_by(1.1)
    queue.run(5.0)
    assert queue.longest >= 500
    assert queue.lost[LATE] <= FRESH


@pytest.mark.parametrize("speed", [1.2, 2.0, 5.0])
def test_the_queue_stays_bounded_under_any_load_and_some_are_answered(speed: float) -> None:
    queue = Queue(speed)
    queue.run(40.0)
    assert queue.longest < 2.0 * speed * (PATIENCE + INTERVAL) / PERIOD
    assert queue.lost[LATE] > 0.15 * speed * queue.answered
    assert queue.answered + queue.lost[LATE] > 0.9 * speed * 40.0 / PERIOD
    assert queue.answered > 0.5 * 40.0 / PERIOD  # half the time at least


def test_where_leaving_out_is_too_slow_as_well_some_are_answered() -> None:
    queue = Queue(4.0)
    queue.run(20.0, leaving_out=0.4)
    assert queue.answered > 100 and queue.lost[LATE] > 1000


def test_nothing_is_left_out_where_every_message_is_to_be_answered() -> None:
    queue = Queue(2.0, patience=math.inf)
    queue.run(10.0)
    assert not queue.lost.total()


def test_without_an_executor_nothing_is_left_out() -> None:
    lag = Lag(Counter(), patience=0.0)
    assert not any(lag.too_late(None) for _ in range(100))


@pytest.mark.parametrize("make", [make_executor, SingleThreadedExecutor])
def test_timers_fire_in_a_flood(ros_environment, make) -> None:
    """Each message that is answered brings three more: without `Lag` the queue grows for ever."""
    rclpy.init()
    try:
        node, lost, ticks, taken = Node("tested"), Counter(), [], []
        publisher = node.create_publisher(Int32, "numbers", QoSProfile(depth=1))

        def take(message: Int32) -> None:
            taken.append(message.data)
            for k in range(3):
                publisher.publish(Int32(data=k))

        lag = Lag(lost, patience=0.02)
        topic = WatchedTopic(node, "numbers", Int32, take, QoSProfile(depth=50), lag)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(0.05, lambda: ticks.append(len(taken)), clock=clock)
        while not publisher.get_subscription_count():
            time.sleep(0.01)
        executor = make()
        executor.add_node(node)
        publisher.publish(Int32(data=0))
        end = time.monotonic() + 30.0
        while len(ticks) < 20 and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
            if not taken or taken[-1] == len(ticks):  # all were left out: on with the flood
                publisher.publish(Int32(data=0))
        assert len(ticks) == 20 and len(taken) > 100
        topic.destroy()
    finally:
        rclpy.try_shutdown()
