"""Subscriptions that say what is wrong when a topic stays silent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from semiparam_dynamics.nodes.lag import Lag

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
