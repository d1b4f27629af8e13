"""Publishers that outlive a network that refuses a message."""

from __future__ import annotations

from collections import Counter
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile

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
