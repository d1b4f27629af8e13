"""The life of a node's process: start, spin, end cleanly."""

from __future__ import annotations

import gc
import getpass
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from threading import Event
from typing import TypeVar

import rclpy
import rclpy.logging
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes.managed import ManagedNode, is_of_network

HELP = """\
{about}

usage: {name} [--ros-args [-p NAME:=VALUE] [--params-file FILE] [-r TOPIC:=TOPIC] ...]

examples:
  {name} --ros-args --params-file my_robot.yaml
  {name} --ros-args -r __ns:=/left -r joint_states:=/left_arm/joint_states
  ros2 param list /{name}                  the parameters, while it runs
  ros2 param describe /{name} NAME         what one of them means

Every parameter is in config/{name}.yaml of the package and in docs/parameters.md."""
N = TypeVar("N", bound=Node)
KILTED = 9  # rclpy's version
# s for which a thread may keep the interpreter where another one waits for it. A message takes it
# some times; at 1 kHz beside learning, on two cores, Python's own 5 ms made half as many answers
# again come after 1 ms, and 0.2 ms more of switching than of work.
SWITCH_INTERVAL = 0.001
IDLE_WAIT = 0.1  # s: a bound on how long a signal can go unseen
DISCOVERY_DELAY = 0.5  # s: a subscriber may discover a publisher a little later than vice versa
DELIVERY = 2.0  # s that the last message's subscribers have for acknowledging it
REPORT = 10.0  # s between reports of what is awaited
PAGE = "live_page"  # the node's name
UNKNOWN = "_NODE_NAME_UNKNOWN_"  # as rcl has it


def make_executor(context: Context | None = None) -> Executor:
    """The executor that leaves the most of a core to the node: EventsExecutor where there is one.

    At 1 kHz, a JointState in and out, SingleThreadedExecutor takes 0.72 of a core and
    EventsExecutor 0.37, so that on two busy cores the first loses messages where the second loses
    none. EventsExecutor is experimental in rclpy, and nothing but this speed depends on it. Its
    `spin()` runs no callback in some releases, `spin_once` does. Jazzy's does not answer a service
    whose callback is a coroutine (rclpy issue 1473), so it is used from Kilted on.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    if int(version("rclpy").partition(".")[0]) < KILTED:
        return SingleThreadedExecutor(context=context)
    executor: Executor = EventsExecutor(context=context)
    return executor


def spin(executor: Executor) -> None:
    """Run callbacks until shutdown."""
    with suppress(ExternalShutdownException):
        while rclpy.ok():
            executor.spin_once(timeout_sec=IDLE_WAIT)


def spin_node(node: Node, executor: Executor) -> int:
    """Run a node until shutdown; returns the exit code."""
    spin(executor)
    return 0


def spin_for(executor: Executor, seconds: float) -> None:
    """Run callbacks for so long."""
    end = time.monotonic() + seconds
    while rclpy.ok() and (left := end - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=min(left, IDLE_WAIT))


class Pacer:
    """Says how long to wait before the next step.

    After a short stall it catches up; what it is behind beyond `patience` is given up, so that the
    simulation runs slower instead of racing.

    Parameters
    ----------
    period: wall time of one step, s.
    patience: the longest time that is caught up, s.
    """

    def __init__(self, period: float, patience: float = 0.1) -> None:
        self._period = period
        self._patience = patience
        self._due: float | None = None
        self.given_up = 0.0  # s, in all

    def delay(self, now: float) -> float:
        """Seconds until the next step is due, at the clock reading `now`; 0 when it is late."""
        if self._due is None:
            self._due = now
        behind = now - self._due
        if behind > self._patience:
            self.given_up += behind
            self._due = now
        return max(0.0, self._due - now)

    def stepped(self) -> None:
        """Note that the step was made."""
        if self._due is not None:
            self._due += self._period


def count_subscribers(node: Node, publisher: Publisher) -> int:
    """Count a publisher's subscribers without live pages, for which nobody has to wait."""
    infos = node.get_subscriptions_info_by_topic(publisher.topic_name)
    # The graph may not know a node's name yet, nor the publisher a subscriber that the graph has.
    others = sum(info.node_name not in (PAGE, UNKNOWN) for info in infos)
    return min(others, int(publisher.get_subscription_count()))


def await_subscribers(node: Node, executor: Executor, wanted: Mapping[Publisher, int]) -> None:
    """Run callbacks until each publisher has as many subscribers, and these know of it.

    What is published sooner can be lost to them: discovery is not simultaneous on both sides.
    """
    told = time.monotonic()
    while missing := [p for p, n in wanted.items() if count_subscribers(node, p) < n]:
        if not rclpy.ok():
            return
        executor.spin_once(timeout_sec=0.05)
        if time.monotonic() - told > REPORT:
            told = time.monotonic()
            topics = ", ".join(f"{wanted[p]} of {p.topic_name}" for p in missing)
            node.get_logger().info(f"waiting for subscribers: {topics}")
    if any(wanted.values()):
        spin_for(executor, DISCOVERY_DELAY)


def await_delivery(executor: Executor, *publishers: Publisher) -> None:
    """Run callbacks until reliable subscribers have all that was published, or for two seconds.

    A process that ends sooner takes its last messages along.
    """
    end = time.monotonic() + DELIVERY
    while rclpy.ok() and time.monotonic() < end:
        if all(publisher.wait_for_all_acked(Duration()) for publisher in publishers):
            return
        executor.spin_once(timeout_sec=0.02)


@contextmanager
def open_network() -> Iterator[Event]:
    """Connect a process that watches nodes; yields an event that Ctrl-C and SIGTERM set.

    A second signal raises KeyboardInterrupt. The first does not: it would come wherever the process
    is, and within rclpy's compiled part it becomes a RuntimeError. Nor are rclpy's own handlers
    used: they would take the network down before the last messages.
    """
    interrupted = Event()

    def note(*_: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        rclpy.try_shutdown()


def raise_priority(priority: int) -> str:
    """Give all threads of this process a real-time priority (SCHED_FIFO); 0 changes nothing.

    Threads and processes that they start have it, too. Returns why that could not be, as a
    sentence; empty where it was done.
    """
    if not priority:
        return ""
    if sys.platform != "linux":
        return "realtime_priority is left out: it is for Linux"
    try:
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):  # it may have ended
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))
    except PermissionError:
        return (
            f"realtime_priority {priority} is left out, since this user has no right to it: add "
            f"'{_user()} - rtprio {priority}' to /etc/security/limits.conf and log in "
            "again, or in Docker use --cap-add=sys_nice"
        )
    except OSError as error:
        return f"realtime_priority {priority} is left out: {error}"
    return ""


def _user() -> str:
    """The user as limits.conf takes it; in a container one may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f":{os.getuid()}"


def spin_managed(node: ManagedNode, executor: Executor) -> int:
    """Bring the node up, run it until shutdown and end it; returns the exit code."""
    closed = False
    try:
        started = node.start() or not rclpy.ok()  # interrupted is not failed
        if started:
            # Objects that exist now stay: collecting garbage among them would delay messages.
            gc.freeze()
            spin(executor)
    finally:
        closed = node.close()
    return int(not (started and closed))


def wrong_arguments(words: Sequence[str]) -> str:
    """Return the fault of a node's arguments; empty where ROS takes them all."""
    try:
        rest = remove_ros_args([sys.argv[0], *words])[1:]
    except RuntimeError as error:  # RCLError has no public name
        told, _, _ = " ".join(str(error).split()).partition(", at /")
        return f"{told} (--help shows examples)"
    if rest:
        return (
            f"not understood: {' '.join(rest)}; parameters and remappings follow --ros-args "
            "(--help shows examples)"
        )
    return ""


def run(
    name: str,
    make_node: Callable[[], N],
    spin_node: Callable[[N, Executor], int],
    arguments: Sequence[str] | None = None,
) -> int:
    """Start ROS and a node, spin it, and end cleanly on SIGINT and SIGTERM.

    They end at once what has nothing to save: making the node, and whatever it does while it is
    `interruptible`, such as configuring, which may compile for minutes.
    ``--help`` is answered. Arguments that ROS would pass over, mostly since ``--ros-args`` is
    missing, are refused, and so are those that it can't read. A SemiparamError becomes one line of
    the log. Returns the process' exit code, which is that of `spin_node`; 2 for wrong arguments.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not {"-h", "--help"}.isdisjoint(words):
        about, _, _ = (sys.modules[make_node.__module__].__doc__ or "").partition("\n")
        print(HELP.format(name=name, about=about))
        return 0
    if wrong := wrong_arguments(words):
        print(f"{name}: error: {wrong}", file=sys.stderr)
        return 2
    node: N | None = None
    executor: Executor | None = None
    interrupted = False

    # rclpy ends its context on a signal, and the loops end with it. A KeyboardInterrupt on top is
    # for where there is nothing to save yet: later it could come in the midst of saving.
    def interrupt(*_: object) -> None:
        nonlocal interrupted
        again, interrupted = interrupted, True
        if not again and (node is None or getattr(node, "interruptible", False)):
            raise KeyboardInterrupt

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, interrupt)
        # A sample's products are small: spread over threads they wait for each other, and take the
        # cores from everybody else.
        threadpool_limits(limits=1)
        sys.setswitchinterval(SWITCH_INTERVAL)
        rclpy.init(args=[sys.argv[0], *words])
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        return spin_node(node, executor)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except SemiparamError as error:
        rclpy.logging.get_logger(name).fatal(str(error))
        return 1
    except Exception as error:
        ended = interrupted or (node is not None and not rclpy.ok())
        if not (ended and is_of_network(error)):
            raise
    finally:
        interrupted = True  # from here on a signal changes nothing
        if executor is not None:
            # It holds what the node subscribes to: others would go on sending there until they
            # miss its process, 20 s later, and take that for received.
            executor.shutdown()
        if node is not None:
            node.destroy_node()
        else:
            # One that was interrupted, or refused, while it was made would stay as long.
            for half in [one for one in gc.get_objects() if issubclass(type(one), Node)]:
                with suppress(Exception):
                    if half.context is rclpy.get_default_context():  # else it is of others
                        half.destroy_node()
        rclpy.try_shutdown()
        # Until the process has ended: a second Ctrl-C would end it by the signal.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        # The interpreter looks through all that is loaded once more before it ends, which takes
        # longer (0.6 s) than all of the above (5 ms): a supervisor may not wait.
        gc.freeze()
    return 0
