"""A lifecycle node whose transitions fail with a reason, its publishers and subscriptions."""

from __future__ import annotations

import math
import os
import time
import traceback
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes import parameters
from semiparam_dynamics.base.nodes.diagnostics import (
    LastingWarnings,
    node_status,
    publish_status,
)

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SUCCESS = TransitionCallbackReturn.SUCCESS
DEPTH = 50  # messages of a topic that are kept for a subscriber that is late
REPORT_PERIOD = 1.0  # s
OFTEN = 100  # messages a second, from which on the report is made in parts after them


def is_of_network(error: Exception) -> bool:
    """True if it may be what a use of the network raises after a signal has ended that.

    Within rclpy's compiled part the signal itself is a RuntimeError, as RCLError is.
    """
    return isinstance(error, RuntimeError) or type(error).__module__.startswith("rclpy")


class ManagedNode(LifecycleNode):  # type: ignore[misc]
    """Lifecycle node with five steps to override, and `/diagnostics` once a second.

    A step that raises SemiparamError fails its transition; the sentence is logged once and kept in
    `problem`. Any other exception is logged with its traceback, everything is torn down, and the
    node is unconfigured. `state` is the lifecycle state's name, the same as rcl's; while the
    node is `interruptible`, which it is when it configures, a signal ends that, see `runtime.run`.
    """

    def __init__(self, name: str, **options: Any) -> None:
        """`options` are those of `rclpy.node.Node`."""
        super().__init__(name, **options)
        self.state = "unconfigured"
        self.problem = ""
        self.interruptible = False
        self.managed = False  # others have changed its state: it changes it no more by itself
        self._changing = False  # it changes its state by itself
        self._lasting = LastingWarnings()
        self._answered = 0  # calls of `continue_report` since the last report was due
        self._left: Iterator[None] = iter(())  # what is left to do of the report
        self._diagnostics = Outlet(self, DiagnosticArray, "/diagnostics", 10, Counter())
        # Not the node's clock: with use_sim_time and no /clock it would never publish.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(REPORT_PERIOD, self._publish_report, clock=steady)

    def set_up(self) -> None:
        """Configure."""

    def begin(self) -> None:
        """Activate."""

    def pause(self) -> None:
        """Deactivate."""

    def finish(self) -> None:
        """Save what would be lost by cleaning up; an exception leaves the node as it is."""

    def release(self) -> None:
        """Give up everything that was made since it is unconfigured, from any state."""

    def _end(self) -> None:
        """Clean up whatever may fail: there is no state to go back to."""
        try:
            self.finish()
        finally:
            self.release()

    def report(self) -> DiagnosticStatus:
        """The node's state, for `/diagnostics`; a node with more to say overrides it.

        One that says it in parts overrides :meth:`report_parts` as well.
        """
        level = DiagnosticStatus.ERROR if self.problem else DiagnosticStatus.OK
        if self.state == "unconfigured" and not self.problem:
            level = DiagnosticStatus.WARN  # it does nothing yet
        return self.status(level, self.problem or f"the node is {self.state}", {})

    def report_parts(self) -> Generator[None, None, DiagnosticStatus]:
        """The same in parts, between which messages are answered; see :meth:`continue_report`."""
        return self.report()
        yield

    def continue_report(self) -> None:
        """Do the next part of a report: a message was answered, no other is due yet.

        All of it together may take a millisecond, for which several messages would have to wait.
        """
        self._answered += 1
        next(self._left, None)

    def drop_report(self) -> None:
        """Leave out the rest of a report, whose subject is gone."""
        self._left = iter(())

    def start(self) -> bool:
        """Bring it up as its parameters say; False if that failed."""
        return True

    def bring_to(self, state: str) -> bool:
        """Go to ``active``, ``inactive`` or ``unconfigured``; False if that failed on the way."""
        ladder = ("unconfigured", "inactive", "active")
        up = {"unconfigured": self.trigger_configure, "inactive": self.trigger_activate}
        down = {"active": self.trigger_deactivate, "inactive": self.trigger_cleanup}
        self._changing = True
        try:
            while self.state != state:
                if self.state not in ladder:
                    return False
                triggers = up if ladder.index(self.state) < ladder.index(state) else down
                if triggers[self.state]() != SUCCESS:
                    return False
        finally:
            self._changing = False
        return True

    def _LifecycleNodeMixin__change_state(self, transition: int) -> TransitionCallbackReturn:  # noqa: N802
        """Refuse a transition that the state does not allow, as later releases do.

        Jazzy's rclpy lets the exception out of the service's callback, which ends the process
        (rclpy issue 1209). Where rclpy has no function of this name, this one is never called.
        """
        try:
            return super()._LifecycleNodeMixin__change_state(transition)
        except RuntimeError as error:  # RCLError has no public name
            self.get_logger().error(f"transition {transition} refused: {error}")
            return TransitionCallbackReturn.ERROR

    def close(self) -> bool:
        """At the end of the process, when no transition can be made any more; False on failure."""
        return bool(self._attempt(self._end, "finalized", "finalized") == SUCCESS)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        self.interruptible = True
        try:
            return self._attempt(self.set_up, "inactive", "unconfigured")
        finally:
            self.interruptible = False

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt(self.begin, "active", "inactive")

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt(self.pause, "inactive", "active")

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        def tear_down() -> None:
            self.finish()
            self.release()

        return self._attempt(tear_down, "unconfigured", "inactive")

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt(self._end, "finalized", "finalized")

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Tear everything down after an unexpected exception; the problem stays known."""
        problem = self.problem
        done = self._attempt(self._end, "unconfigured", "finalized")
        self.problem = problem
        if done != SUCCESS:
            self.state = "finalized"
            return TransitionCallbackReturn.FAILURE
        return SUCCESS

    def _attempt(
        self, step: Callable[[], None], next_state: str, state_on_failure: str
    ) -> TransitionCallbackReturn:
        """Take a step of a transition; `state` then is what rcl makes of the answer."""
        self.managed = self.managed or not self._changing
        try:
            step()
        except SemiparamError as error:
            self.state, self.problem = state_on_failure, str(error)
            self.get_logger().error(self.problem)
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            ended = self.interruptible and not self.context.ok()  # by a signal
            if ended and is_of_network(error):
                raise KeyboardInterrupt from None
            # rclpy swallows it: without this line a mistake in here would leave no trace.
            self.get_logger().fatal(traceback.format_exc())
            if ended:  # no transition can be made any more
                raise SystemExit(1) from error
            self.problem = (
                f"unexpected {type(error).__name__}: {error}; its traceback is in the log"
            )
            return TransitionCallbackReturn.ERROR
        self.state, self.problem = next_state, ""
        return SUCCESS

    def _publish_report(self) -> None:
        if self._answered:  # else nobody has begun it, and the next one says all of it
            deque(self._left, maxlen=0)
        self._left = self._reported()
        if self._answered < OFTEN:
            deque(self._left, maxlen=0)
        self._answered = 0

    def _reported(self) -> Iterator[None]:
        status = yield from self.report_parts()
        yield
        self._log_lasting(status)
        publish_status(self._diagnostics, self, status)

    def _log_lasting(self, status: DiagnosticStatus) -> None:
        """Log a warning once it has lasted, and again now and then."""
        wrong = "" if status.level == DiagnosticStatus.OK else status.message
        if self._lasting.due(wrong) and wrong != self.problem:
            self.get_logger().warning(wrong)

    def status(self, level: bytes, summary: str, values: Mapping[str, str]) -> DiagnosticStatus:
        """Return a status of this node, with its state."""
        return node_status(self, level, summary, {"state": self.state, **values})


NO_TEXT = "a robot_description came without a URDF's text: publish the text, not a file"
OTHERS = 20  # that are reported


def is_text(description: str) -> bool:
    """Return whether a `robot_description` is a URDF's text: one that isn't would name a file.

    No message may name a file.
    """
    return "<" in description


class OtherDescriptions:
    """Warns of each `robot_description` that is not the one that is kept, once."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._told: set[int] = set()

    def report(self, kept: str, description: str) -> None:
        """Take one that came while `kept` is in use."""
        other = hash(description)
        if description == kept or other in self._told or len(self._told) >= OTHERS:
            return
        self._told.add(other)
        self._node.get_logger().warning("another robot_description came; the first one is kept")


def await_description(
    node: Node, urdf: str, set_up: Callable[[str], None], refuse: Callable[[str], None]
) -> None:
    """Set a node up by the file `urdf`, or else by the first `robot_description` that serves.

    refuse: is given the reason why one does not, which is the SemiparamError of `set_up`, or that
        it is no text.
    """
    if urdf:
        set_up(os.path.expanduser(urdf))
        return
    kept: str | None = None
    tried: str | None = None
    others = OtherDescriptions(node)

    def take(message: String) -> None:
        nonlocal kept, tried
        if kept is not None:
            others.report(kept, message.data)
            return
        if message.data == tried:
            return
        tried = message.data
        if not is_text(tried):
            refuse(NO_TEXT)
            return
        try:
            set_up(tried)
        except SemiparamError as error:
            refuse(str(error))
        else:
            kept = tried

    node.create_subscription(String, "robot_description", take, LATCHED)


UNSENT = "not published, the network took too long"
# s for which it holds whether anybody subscribes: to ask takes some 2 us, of seven topics at each
# of a thousand messages a second 1 or 2 % of a core.
ASKED_PERIOD = 0.02


class Outlet:
    """A publisher that drops and counts messages that the middleware refuses.

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
        self._subscribed, self._asked = False, -math.inf  # s

    def has_subscribers(self) -> bool:
        """Return whether anybody subscribed up to `ASKED_PERIOD` ago; at the end nobody does."""
        now = time.monotonic()
        if now - self._asked >= ASKED_PERIOD:
            self._subscribed, self._asked = self._ask(), now
        return self._subscribed

    def _ask(self) -> bool:
        try:
            return bool(self._publisher.get_subscription_count())
        except RuntimeError:  # RCLError has no public name
            if self._node.context.ok():
                raise
            return False

    def publish(self, message: Any) -> bool:
        """Publish a message, or drop it; returns whether it was published."""
        try:
            self._publisher.publish(message)
        except RuntimeError:
            self._unsent[UNSENT] += 1
            return False
        return True

    def destroy(self) -> None:
        """Take the topic down."""
        self._node.destroy_publisher(self._publisher)


class Outlets:
    """Topics that a node publishes and takes down together.

    lost: where messages that the network did not take are counted.
    """

    def __init__(self, node: Node, lost: Counter[str]) -> None:
        self._node, self.lost = node, lost
        self._all: list[Outlet] = []

    def outlet(self, kind: type, topic: str, depth: int | QoSProfile) -> Outlet:
        """One more of them, as `Node.create_publisher` makes it."""
        self._all.append(Outlet(self._node, kind, topic, depth, self.lost))
        return self._all[-1]

    def destroy(self) -> None:
        """Take the topics down."""
        for outlet in self._all:
            outlet.destroy()


class DescribedNode(Node, ABC):  # type: ignore[misc]
    """A node that the robot's URDF sets up, with `/diagnostics` once a second.

    A class of such nodes calls :meth:`await_urdf` at the end of its making.

    Parameters
    ----------
    config_type: of its parameters, `urdf` among them.
    """

    def __init__(self, name: str, config_type: type) -> None:
        super().__init__(name)
        self._config: Any = parameters.declare(self, config_type)
        self.problem = ""  # with the URDF
        self.unsent: Counter[str] = Counter()  # messages that the network refused
        # Not the node's clock: a simulation's may stand still.
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics = Outlet(self, DiagnosticArray, "/diagnostics", 10, self.unsent)
        self.create_timer(REPORT_PERIOD, self._publish_report, clock=self.steady)

    def await_urdf(self) -> None:
        """Have the URDF set the node up, at once or when it comes."""
        await_description(self, self._config.urdf, self._try, self.refuse)

    @abstractmethod
    def set_up(self, urdf: str) -> None:
        """Begin with a URDF's text, or file. Raises SemiparamError where it does not serve."""

    @abstractmethod
    def report(self) -> tuple[bytes, str, dict[str, str]]:
        """Level, sentence and figures for `/diagnostics`."""

    def waiting(self, otherwise: str = "") -> tuple[bytes, str, dict[str, str]]:
        """The report while there is no URDF that serves."""
        level = DiagnosticStatus.ERROR if self.problem else DiagnosticStatus.WARN
        awaited = otherwise or "waiting for the robot's URDF on robot_description"
        return level, self.problem or awaited, {}

    def refuse(self, problem: str) -> None:
        """Note and log why a URDF does not serve."""
        self.problem = problem
        self.get_logger().error(problem)

    def _try(self, urdf: str) -> None:
        self.set_up(urdf)
        self.problem = ""

    def _publish_report(self) -> None:
        publish_status(self._diagnostics, self, node_status(self, *self.report()))


LATE = "messages came faster than they could be answered"
PATIENCE = 1.0  # s
BEHIND = 0.0005  # s that a message waits where others are before it
MARK_PERIOD = 0.005  # s between two marks, at least


class QueueDelay:
    """Decides which messages to leave out where more come than can be answered.

    DDS keeps a number of messages and then drops every other one, say: what is answered is old and
    full of gaps, which filters cannot use. So when messages have waited for longer than `deadline`
    all through the time of `patience`, they are left out until one has not, or for as long again:
    those answered then are recent, and in one piece. Otherwise every message that DDS still holds
    is answered.

    Parameters
    ----------
    lost: where those left out are counted, under `LATE`.
    deadline: s that a message may wait; it may be changed.
    patience: s; it may be changed, to infinity if every message is to be answered however late.
    clock: seconds that never go back.

    Attributes
    ----------
    behind: whether the last message had to wait for others.
    """

    def __init__(
        self,
        lost: Counter[str],
        deadline: float,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.patience = patience
        self.deadline = deadline
        self._lost = lost
        self._clock = clock
        self._since: float | None = None  # when messages began to be late, or to be left out
        self._leaves_out = False
        self.behind = False

    def too_late(self, waited: float) -> bool:
        """Return whether to leave out a message that waited for so many seconds."""
        now, self.behind = self._clock(), waited > BEHIND
        if waited <= self.deadline:
            self._since, self._leaves_out = None, False
        elif self._since is None:
            self._since = now
        elif now - self._since > self.patience:
            self._since, self._leaves_out = now, not self._leaves_out
        self._lost[LATE] += self._leaves_out
        return self._leaves_out


class MonitoredSubscription:
    """A subscription that counts messages and knows why none come.

    Parameters
    ----------
    node: the subscriber. topic, kind, qos: of the subscription, before remapping.
    callback: called with each message; with `raw` as bytes.
    delay: which of them to leave out; None: none.
    """

    def __init__(
        self,
        node: Node,
        topic: str,
        kind: type,
        callback: Callable[[Any], None],
        qos: QoSProfile,
        delay: QueueDelay | None = None,
        *,
        raw: bool = False,
    ) -> None:
        self._node = node
        self._topic = topic
        self._callback = callback
        self._delay = delay
        package = kind.__module__.split(".")[0]
        self._type_name = f"{package}/msg/{kind.__name__}"
        self._count = 0
        self._last_count = 0
        self._silent_checks = 0
        self._open = True
        self._marked: float | None = None  # when a mark was put into the executor's queue
        self._marked_last = 0.0
        receive: Callable[..., None] = self._receive
        if delay is not None:
            in_order = type(node.executor).__name__ == "EventsExecutor"
            receive = self._receive_in_order if in_order else self._receive_with_info
        self._subscription = node.create_subscription(kind, topic, receive, qos, raw=raw)

    def _receive_with_info(self, message: Any, info: Any) -> None:
        came = info["received_timestamp"]  # 0 where the middleware does not know it
        self._receive(message, 1e-9 * (time.time_ns() - came) if came > 0 else 0.0)

    def _receive_in_order(self, message: Any) -> None:
        """For rclpy 9.1's EventsExecutor, which fails where a callback takes the information.

        It runs callbacks and tasks in the order of their coming: as long as a mark has not come up,
        the messages that come up had to wait.
        """
        waited = 0.0 if self._marked is None else time.monotonic() - self._marked
        self._receive(message, waited)
        # Afterwards, and not each time: it takes some 10 us.
        now = time.monotonic()
        if self._marked is None and now - self._marked_last > MARK_PERIOD:
            if self._node.executor is not None:
                self._marked = self._marked_last = now
                self._node.executor.create_task(self._unmark)

    def _unmark(self) -> None:
        self._marked = None

    def _receive(self, message: Any, waited: float = 0.0) -> None:
        if not self._open:
            return  # an executor may have taken it before
        self._count += 1
        if self._delay is None or not self._delay.too_late(waited):
            self._callback(message)

    def problem(self) -> str:
        """Empty if messages came since the last call (once a second), else the reason."""
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
        if type_name in kinds
        and name != full
        and not name.startswith(f"{node.get_fully_qualified_name()}/")  # its own outputs
        and node.count_publishers(name)
    )
    if not others:
        return f"nobody publishes '{full}', nor any other topic of type {type_name}"
    return (
        f"nobody publishes '{full}'; topics of type {type_name}: {', '.join(others)} "
        f"(remap with -r {topic}:={others[0]})"
    )
