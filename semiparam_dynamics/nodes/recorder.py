"""Recording topics to a bag, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.errors import BagError


class Recorder:
    """Writes the messages of some topics to a rosbag2 in MCAP, as they came; a context manager.

    Raises BagError where the folder exists or can't be made.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        except (OSError, WriterError) as error:
            raise BagError(f"can't make the bag {path}: {error}") from error
        self._types = get_typestore(Stores.ROS2_KILTED)
        self.messages = 0

    def record(
        self,
        node: Node,
        topic: str,
        kind: type,
        qos: QoSProfile,
        also: Callable[[bytes], None] | None = None,
    ) -> None:
        """Subscribe a topic for recording; `also` gets each message's bytes too."""
        latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        name = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
        connection = self._writer.add_connection(
            node.resolve_topic_name(topic),
            name,
            typestore=self._types,
            offered_qos_profiles=[_offered(qos.depth, latched)],
        )

        def take(data: bytes) -> None:
            self._write(connection, data)
            if also is not None:
                also(data)

        node.create_subscription(kind, topic, take, qos, raw=True)

    def _write(self, connection: Connection, data: bytes) -> None:
        self._writer.write(connection, time.time_ns(), data)
        self.messages += 1

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()


def _offered(depth: int, latched: bool) -> Qos:
    """The QoS with which a bag player publishes the topic again."""
    forever = QosTime(9223372036, 854775807)
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=depth,
        reliability=QosReliability.RELIABLE,
        durability=QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        deadline=forever,
        lifespan=forever,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=forever,
        avoid_ros_namespace_conventions=False,
    )
