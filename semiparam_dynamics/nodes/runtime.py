"""How a node process lives: start, spin with learning in the pauses, end cleanly."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import rclpy
import rclpy.logging
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from threadpoolctl import threadpool_limits

from semiparam_dynamics.errors import SemiparamError
from semiparam_dynamics.nodes.backlog import Backlog

N = TypeVar("N", bound=Node)
IDLE_WAIT = 0.1  # s: a bound on how long a signal can go unseen
# That may be before a pause's mark and are no messages: a service that awaits something is asked
# again and again by EventsExecutor, each time at the end of the queue.
CALLBACKS = 4


def make_executor() -> Executor:
    """The executor with the smaller latency that this rclpy has.

    Measured at 1 kHz, a JointState in and out, two busy cores: EventsExecutor 546 us at the median
    and no message lost, SingleThreadedExecutor 598 us, up to 1.7 % of the messages lost and 1.4
    times the processor time; an empty `spin_once(0)` takes 90 and 151 us. EventsExecutor's `spin()`
    runs no callback in some releases, `spin_once` does; Jazzy has no EventsExecutor.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    executor: Executor = EventsExecutor()
    return executor


def spin_for(executor: Executor, seconds: float) -> None:
    """Run callbacks for so long."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=left)


class Pause:
    """Tells whether no message waits, at the moment when it is asked.

    EventsExecutor runs what is ready in the order of its coming. So a mark is put at the end of
    its queue: if it comes up at once, nothing else was there. That costs 10 us, an empty
    `spin_once(0)` 70 us. SingleThreadedExecutor, which has no such order, is asked the long way.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._in_order = not isinstance(executor, SingleThreadedExecutor)
        self._marked = self._came_up = False

    def now(self, backlog: Backlog[Any]) -> bool:
        """Run at most one message's callback; True if there was no message to run."""
        before = backlog.interruptions
        if not self._in_order:
            # The first call may only finish the round of the last one, without looking again.
            self._executor.spin_once(timeout_sec=0)
            if backlog.interruptions == before:
                self._executor.spin_once(timeout_sec=0)
            return backlog.interruptions == before
        fresh = not self._marked
        if fresh:
            self._marked, self._came_up = True, False
            self._executor.create_task(self._mark)
        for _ in range(CALLBACKS):
            self._executor.spin_once(timeout_sec=0)
            if not self._marked or backlog.interruptions != before:
                break
        # A mark from before the last message says nothing of messages that came after it.
        return fresh and self._came_up and backlog.interruptions == before

    def _mark(self) -> None:
        self._marked, self._came_up = False, True


def spin(executor: Executor, current: Callable[[], Backlog[Any] | None]) -> None:
    """Run callbacks until shutdown, and the backlog one entry at a time while no message waits.

    With pauses between messages the order is message k, its work, message k + 1: a run's numbers
    don't depend on timing. Under load messages go first, for as long as the backlog is patient.
    `current` gives the backlog, which may change in a callback.
    """
    pause = Pause(executor)
    while rclpy.ok():
        backlog = current()
        if not backlog:
            executor.spin_once(timeout_sec=IDLE_WAIT)
        elif (pause.now(backlog) or backlog.late()) and backlog:
            backlog.do_one()


class Work(Protocol):
    """What has a backlog."""

    @property
    def backlog(self) -> Backlog[Any]:
        """Its work that waits for pauses."""


class LearningNode(Protocol):
    """A lifecycle node that has a session while it is configured."""

    @property
    def session(self) -> Work | None:
        """What it does between messages."""

    def start(self) -> bool:
        """Bring it up; False if that failed."""

    def close(self) -> bool:
        """End it; False if that failed."""


def spin_learner(node: LearningNode, executor: Executor) -> int:
    """Bring the node up, run it until shutdown and end it; returns the exit code."""
    closed = False
    try:
        started = node.start() or not rclpy.ok()  # interrupted is not failed
        if started:
            # What is there now stays: looking through it for garbage would keep messages waiting.
            gc.freeze()
            with suppress(ExternalShutdownException):
                spin(executor, lambda: node.session.backlog if node.session else None)
    finally:
        closed = node.close()
    return int(not (started and closed))


def run(
    name: str,
    make_node: Callable[[], N],
    spin_node: Callable[[N, Executor], int],
    arguments: Sequence[str] | None = None,
) -> int:
    """Start ROS and a node, spin it, and end cleanly on SIGINT and SIGTERM.

    A SemiparamError becomes one line of the log. Returns the process' exit code, which is that of
    `spin_node`.
    """
    # A sample's products are small: spread over threads they wait for each other, and take the
    # cores from everybody else.
    threadpool_limits(limits=1)
    # rclpy ends its context on SIGINT, and the loops end with it. A KeyboardInterrupt on top would
    # abort the process where EventsExecutor is just calling into Python, and nothing be saved.
    signal.signal(signal.SIGINT, lambda *_: None)
    rclpy.init(args=None if arguments is None else [sys.argv[0], *arguments])
    node: N | None = None
    try:
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        return spin_node(node, executor)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except SemiparamError as error:
        rclpy.logging.get_logger(name).fatal(str(error))
        return 1
    except Exception:
        # A signal that comes while rclpy calls into Python, to compile the core say, ends the
        # network first and is then seen as an error of whatever used it next.
        if rclpy.ok():
            raise
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
        # The interpreter looks through all that is loaded once more before it ends, which takes
        # longer (0.6 s) than all of the above (5 ms): a supervisor may not wait.
        gc.freeze()
    return 0
