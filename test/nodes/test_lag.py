"""What is left out when messages come faster than they can be answered."""

from __future__ import annotations

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

from semiparam_dynamics.nodes.lag import LATE, Lag
from semiparam_dynamics.nodes.runtime import make_executor
from semiparam_dynamics.nodes.topics import WatchedTopic

LIMIT = 20


class Queue:
    """One queue of messages and marks, where `speed` messages come while one is answered."""

    def __init__(self, speed: Callable[[int], float]) -> None:
        self.lost: Counter[str] = Counter()
        self.lag = Lag(LIMIT, self.lost)
        self.waiting: deque[Callable[[], None] | None] = deque()
        self.speed = speed
        self.answered = self.longest = 0
        self._came = 0.0

    def create_task(self, mark: Callable[[], None]) -> None:
        self.waiting.append(mark)

    def run(self, rounds: int, leaving_out: float = 0.05) -> None:
        for k in range(rounds):
            self._came += 1.0 if not self.waiting else 0.0
            event = self.waiting.popleft() if self.waiting else None
            if event is not None:
                event()
                continue
            late = self.lag.too_late(self)
            self.answered += not late
            self._came += self.speed(k) * (leaving_out if late else 1.0)
            for _ in range(int(self._came)):
                self.waiting.append(None)
            self._came %= 1.0
            self.longest = max(self.longest, len(self.waiting))


@pytest.mark.parametrize("speed", [0.1, 0.9])
def test_nothing_is_left_out_where_messages_can_be_answered(speed: float) -> None:
    queue = Queue(lambda k: speed)
    queue.run(5000)
    assert not queue.lost.total() and queue.answered > 4000


def test_nothing_is_left_out_after_a_stall_that_is_made_up_for() -> None:
    queue = Queue(lambda k: 0.9 * LIMIT if k % 1000 == 0 else 0.5)
    queue.run(20_000)
    assert queue.longest >= 0.8 * LIMIT
    assert not queue.lost.total()


@pytest.mark.parametrize("speed", [1.2, 2.0, 5.0])
def test_the_queue_stays_bounded_under_any_load_and_some_are_answered(speed: float) -> None:
    queue = Queue(lambda k: speed)
    queue.run(100_000)
    assert queue.longest < 3.0 * LIMIT * speed**2
    assert queue.lost[LATE] > 1000 and queue.answered > 3000
    # Those that are answered come in pieces, not one here and one there.
    assert queue.answered + queue.lost[LATE] > 90_000


def test_where_leaving_out_is_too_slow_as_well_some_are_answered() -> None:
    queue = Queue(lambda k: 4.0)
    queue.run(20_000, leaving_out=0.4)
    assert queue.answered > 10 and queue.lost[LATE] > 1000


def test_without_an_executor_nothing_is_left_out() -> None:
    lag = Lag(1, Counter())
    assert not any(lag.too_late(None) for _ in range(100))


@pytest.mark.parametrize("make", [make_executor, SingleThreadedExecutor])
def test_timers_and_memory_survive_a_flood(ros_environment, make) -> None:
    """Each callback brings two messages more than it takes: without `Lag` the queue grows."""
    rclpy.init()
    try:
        node, lost, ticks, taken = Node("tested"), Counter(), [], []
        publisher = node.create_publisher(Int32, "numbers", QoSProfile(depth=1))

        def take(message: Int32) -> None:
            taken.append(message.data)
            for k in range(3):
                publisher.publish(Int32(data=k))

        topic = WatchedTopic(
            node, "numbers", Int32, take, QoSProfile(depth=LIMIT), Lag(LIMIT, lost)
        )
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
            if not taken:
                publisher.publish(Int32(data=0))
        assert len(ticks) == 20
        # More came between any two ticks than before the first: the queue doesn't grow.
        between = [b - a for a, b in zip(ticks, ticks[1:], strict=False)]
        assert len(taken) > 20 and max(between) < 0.5 * len(taken)
        topic.destroy()
    finally:
        rclpy.try_shutdown()
