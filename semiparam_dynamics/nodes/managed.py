"""A lifecycle node whose transitions fail with a reason."""

from __future__ import annotations

import math
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.qos import QoSProfile

from semiparam_dynamics.errors import SemiparamError

# -------------------------------------------------------------------------------------------------
# Leaving messages out when they come faster than they can be answered.

LATE = "messages came faster than they could be answered"
PATIENCE = 1.0  # s
INTERVAL = 0.05  # s between a mark that came up and the next
MANY = 100  # messages, of which fewer are no reason: DDS keeps twice as many after a stall
FRESH = 20  # messages: as long as more wait, they are left out


class Tasks(Protocol):
    """What runs a function behind everything that waits: an executor."""

    def create_task(self, callback: Callable[[], None]) -> Any:
        """Have it run."""


class Lag:
    """Tells which messages to leave out, so that not ever more of them wait.

    EventsExecutor notes each message that comes, in one queue with timers and services, and keeps
    the note when DDS has long dropped the message (ros2/rclcpp, issue 3213; rclpy is the same).
    With a callback of 3 ms at 1 kHz that took 100 kB a second for ever, and a timer of 0.5 s fired
    three times in 30 s.

    So now and then a mark is put at the queue's end. When it has not come up in time, nor after
    many messages, messages are left out until hardly any waits: those that are answered then are
    recent, and in one piece, as filters need them. Short of that every message is answered that DDS
    has kept.

    Parameters
    ----------
    lost: where those left out are counted, under `LATE`.
    patience: how long timers and services may be kept waiting, s; it may be changed, to infinity if
        every message is to be answered however late.
    clock: seconds that never go back.
    """

    def __init__(
        self,
        lost: Counter[str],
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience = patience
        self._lost = lost
        self._clock = clock
        self._taken = 0
        self._marked_at: int | None = None  # the message that the mark was put with
        self._since = 0.0  # when that was, or when the next one is due
        self._catching_up = False
        self._before = math.inf  # how many messages came up before the last mark

    def too_late(self, tasks: Tasks | None) -> bool:
        """Whether to leave out the message that came up; `tasks` is its node's executor."""
        if tasks is None:
            return False
        self._taken += 1
        now = self._clock()
        if self._marked_at is None:
            if self._catching_up or now >= self._since:
                self._marked_at, self._since = self._taken, now
                tasks.create_task(self._came_up)
        elif not self._catching_up and now - self._since > self.patience:
            self._catching_up = self._taken - self._marked_at >= MANY
            self._before = math.inf
        self._lost[LATE] += self._catching_up
        return self._catching_up

    def _came_up(self) -> None:
        waited = self._taken - (self._marked_at or 0)
        self._marked_at = None
        self._since = self._clock() + INTERVAL
        # As long as it helps: where even this is too slow, some answers are better than none.
        self._catching_up = self._catching_up and FRESH < waited < self._before
        self._before = waited


# -------------------------------------------------------------------------------------------------
# Publishers that outlive a network that refuses a message.

UNSENT = "not published, the network took too long"


class Outlet:
    """A publisher that drops and counts what the middleware doesn't take.

    Fast DDS waits at most 100 ms for its own locks. On a machine with too much to do its threads
    may hold them longer; rclpy then raises. A node that ended of it would lose all that follows.

    Parameters
    ----------
    node, kind, topic, depth: as for `Node.create_publisher`.
    unsent: where dropped messages are counted, under `UNSENT`; it may be shared.
    """

    def __init__(
        self,
        node: Node,
        kind: type,
        topic: str,
        depth: int | QoSProfile,
        unsent: Counter[str],
    ) -> None:
        self._node = node
        self._publisher = node.create_publisher(kind, topic, depth)
        self._unsent = unsent

    def heard(self) -> bool:
        """Whether somebody listens; at the end of the process nobody does."""
        try:
            return bool(self._publisher.get_subscription_count())
        except RuntimeError:  # RCLError has no public name
            if rclpy.ok():
                raise
            return False

    def publish(self, message: Any) -> None:
        """Publish a message, or drop it."""
        try:
            self._publisher.publish(message)
        except RuntimeError:
            self._unsent[UNSENT] += 1

    def destroy(self) -> None:
        """Take the topic down."""
        self._node.destroy_publisher(self._publisher)


# -------------------------------------------------------------------------------------------------
# Subscriptions that say what is wrong when a topic stays silent.

AT_ONCE = 0.005  # s of messages that are answered before timers and services have their turn


class WatchedTopic:
    """A subscription whose messages are counted.

    Parameters
    ----------
    node: the subscriber. topic, kind, qos: what it subscribes, before remapping.
    callback: called with each message. lag: which of them to leave out; None: none.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        kind: type,
        callback: Callable[[Any], None],
        qos: QoSProfile,
        lag: Lag | None = None,
    ) -> None:
        self._node = node
        self._topic = topic
        self._kind = kind
        self._callback = callback
        self._lag = lag
        package = kind.__module__.split(".")[0]
        self._type_name = f"{package}/msg/{kind.__name__}"
        self._count = 0
        self._last_count = 0
        self._silent_checks = 0
        self._open = True
        self._subscription = node.create_subscription(kind, topic, self._receive, qos)

    def _receive(self, message: Any) -> None:
        """Answer a message, and those that wait behind it: an executor is slower to bring them."""
        if not self._open:
            return  # it was noted before
        end = time.monotonic() + AT_ONCE
        self._answer(message)
        while self._open and time.monotonic() < end and (more := self._waiting()) is not None:
            self._answer(more)

    def _answer(self, message: Any) -> None:
        self._count += 1
        if self._lag is None or not self._lag.too_late(self._node.executor):
            self._callback(message)

    def _waiting(self) -> Any:
        """The next message, if one is there already."""
        handle = self._subscription.handle
        try:
            with handle:
                taken = handle.take_message(self._kind, False)
        except RuntimeError:  # rclpy has ended
            return None
        return None if taken is None else taken[0]

    def problem(self) -> str:
        """Empty if messages came since the last call (once a second), else what is wrong."""
        self._silent_checks = 0 if self._count > self._last_count else self._silent_checks + 1
        self._last_count = self._count
        if not self._count:
            return silence(self._node, self._topic, self._type_name)
        if self._silent_checks > 1:
            name = self._node.resolve_topic_name(self._topic)
            return f"no message on '{name}' for {self._silent_checks} s"
        return ""

    def destroy(self) -> None:
        """Unsubscribe: no message is answered any more."""
        self._open = False
        self._node.destroy_subscription(self._subscription)


def silence(node: Node, topic: str, type_name: str) -> str:
    """A sentence on why nothing may come on `topic`, naming the topics there are of its type.

    Parameters
    ----------
    topic: as the node subscribes it, before remapping.
    type_name: such as ``sensor_msgs/msg/JointState``.
    """
    full = node.resolve_topic_name(topic)
    publishers = node.get_publishers_info_by_topic(full)
    types = {info.topic_type for info in publishers}
    if type_name in types:
        return f"no message on '{full}' yet, though someone publishes there"
    if types:
        return f"'{full}' carries {', '.join(sorted(types))}, not {type_name}"
    others = sorted(
        name
        for name, kinds in node.get_topic_names_and_types()
        if type_name in kinds and name != full and node.count_publishers(name)
    )
    if not others:
        return f"nobody publishes '{full}', nor any other topic of type {type_name}"
    return (
        f"nobody publishes '{full}'; topics of type {type_name}: {', '.join(others)} "
        f"(remap with -r {topic}:={others[0]})"
    )


class ManagedNode(LifecycleNode):  # type: ignore[misc]
    """Lifecycle node with four steps to override, and `/diagnostics` once a second.

    A step that raises SemiparamError fails its transition; the sentence is logged once and kept in
    `problem`. `state` is the lifecycle state's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = "unconfigured"
        self.problem = ""
        self._diagnostics = Outlet(self, DiagnosticArray, "/diagnostics", 10, Counter())
        # Not the node's clock: with use_sim_time and no /clock it would never tell.
        self.create_timer(1.0, self._tell, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def set_up(self) -> None:
        """What configuring does."""

    def begin(self) -> None:
        """What activating does."""

    def pause(self) -> None:
        """What deactivating does."""

    def tear_down(self) -> None:
        """What cleaning up does, and ending in any state."""

    def report(self) -> DiagnosticStatus:
        """The node's state, for `/diagnostics`; a node with more to say overrides it."""
        level = DiagnosticStatus.ERROR if self.problem else DiagnosticStatus.OK
        return self.status(level, self.problem or f"the node is {self.state}", {})

    def bring_to(self, state: str) -> bool:
        """Go to ``active``, ``inactive`` or ``unconfigured``; False if that failed on the way."""
        ladder = ("unconfigured", "inactive", "active")
        up = {"unconfigured": self.trigger_configure, "inactive": self.trigger_activate}
        down = {"active": self.trigger_deactivate, "inactive": self.trigger_cleanup}
        while self.state != state:
            triggers = up if ladder.index(self.state) < ladder.index(state) else down
            if triggers[self.state]() != TransitionCallbackReturn.SUCCESS:
                return False
        return True

    def close(self) -> bool:
        """At the end of the process, when no transition can be made any more; False on failure."""
        return self._attempt("finalized", self.tear_down) is None

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("inactive", self.set_up) or super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("active", self.begin) or super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("inactive", self.pause) or super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("unconfigured", self.tear_down) or super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("finalized", self.tear_down) or super().on_shutdown(state)

    def _attempt(
        self, next_state: str, step: Callable[[], None]
    ) -> TransitionCallbackReturn | None:
        """None where the step succeeded, for the caller to go on with."""
        try:
            step()
        except SemiparamError as error:
            self.problem = str(error)
            self.get_logger().error(self.problem)
            return TransitionCallbackReturn.FAILURE
        except Exception:
            # rclpy swallows it: without this line a mistake in here would leave no trace.
            self.get_logger().fatal(traceback.format_exc())
            raise
        self.state, self.problem = next_state, ""
        return None

    def _tell(self) -> None:
        message = DiagnosticArray(status=[self.report()])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def status(self, level: bytes, summary: str, values: dict[str, str]) -> DiagnosticStatus:
        """A status of this node."""
        pairs = [KeyValue(key="state", value=self.state)]
        pairs += [KeyValue(key=key, value=value) for key, value in values.items()]
        # With its namespace: nodes of one name must be told apart.
        name = self.get_fully_qualified_name().removeprefix("/")
        return DiagnosticStatus(level=level, name=name, message=summary, values=pairs)
