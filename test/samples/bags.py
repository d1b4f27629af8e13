"""Bags as other recorders, older distributions and accidents leave them, made byte by byte."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.samples.joint_states import JOINT_STATE

STORE = get_typestore(Stores.ROS2_KILTED)
NAMES = ("elbow", "shoulder")
MS = 1_000_000
PLUGINS = {"mcap": StoragePlugin.MCAP, "db3": StoragePlugin.SQLITE3}
# The columns of `topics` and the schema's version in a storage file of each age.
TOPICS = {
    1: "id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT",
    2: "id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT,"
    " offered_qos_profiles TEXT",
    4: "id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT,"
    " offered_qos_profiles TEXT, type_description_hash TEXT",
}
QOS = [
    {
        "history": 3,
        "depth": 0,
        "reliability": 1,
        "durability": 2,
        "deadline": {"sec": 2147483647, "nsec": 4294967295},
        "lifespan": {"sec": 2147483647, "nsec": 4294967295},
        "liveliness": 1,
        "liveliness_lease_duration": {"sec": 2147483647, "nsec": 4294967295},
        "avoid_ros_namespace_conventions": False,
    }
]


def joint_state(k: int) -> tuple[int, Any]:
    """The k-th message and its stamp in ns; the position tells k."""
    stamp = MS * (k + 1)
    header = STORE.types["std_msgs/msg/Header"](
        STORE.types["builtin_interfaces/msg/Time"](*divmod(stamp, 1000 * MS)), ""
    )
    values = np.array([k, -k], dtype=float)
    return stamp, STORE.types[JOINT_STATE](header, list(NAMES), values, values + 0.5, 2.0 * values)


def write(
    path: Path,
    numbers: Iterable[int],
    kind: str = "mcap",
    *,
    mode: CompressionMode = CompressionMode.NONE,
    topics: Sequence[str] = ("/joint_states",),
) -> Path:
    """A folder with the messages of these numbers on each topic."""
    writer = Writer(path, version=9, storage_plugin=PLUGINS[kind])
    if mode != CompressionMode.NONE:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        there = [writer.add_connection(name, JOINT_STATE, typestore=STORE) for name in topics]
        for k in numbers:
            stamp, message = joint_state(k)
            for connection in there:
                writer.write(connection, stamp, STORE.serialize_cdr(message, JOINT_STATE))
    return path


def add_file(folder: Path, other: Path) -> None:
    """Make a split bag of two: the other's file becomes one more of `folder`."""
    moved = shutil.copy(storage(other), folder)
    path = folder / "metadata.yaml"
    metadata = yaml.safe_load(path.read_text())
    metadata["rosbag2_bagfile_information"]["relative_file_paths"].append(Path(moved).name)
    path.write_text(yaml.safe_dump(metadata))


def storage(folder: Path) -> Path:
    """The one storage file of a folder, compressed or not."""
    (file,) = (path for path in folder.iterdir() if path.name != "metadata.yaml")
    return file


def old_bag(path: Path, numbers: Sequence[int], version: int) -> Path:
    """A folder in SQLite as a distribution wrote it whose metadata have this version.

    Foxy 4, Galactic and Humble 4 and 5, Iron 6 and 7, Jazzy 8 and 9; before them the file paths
    had the folder's name in front, and topics no quality of service.
    """
    path.mkdir()
    schema = 4 if version >= 6 else 2 if version >= 4 else 1
    profiles: Any = QOS if version >= 9 else yaml.safe_dump(QOS)
    topic = [1, "/joint_states", JOINT_STATE, "cdr", yaml.safe_dump(QOS), "RIHS01_00"]
    with closing(sqlite3.connect(path / "old_0.db3")) as file:
        if schema > 1:
            file.execute("CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT)")
            file.execute("INSERT INTO schema VALUES (?, 'old')", [max(schema, 3 * (schema > 2))])
        if schema == 4:
            file.execute(
                "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT,"
                " encoding TEXT, encoded_message_definition TEXT, type_description_hash TEXT)"
            )
        file.execute(f"CREATE TABLE topics({TOPICS[schema]})")
        columns = TOPICS[schema].count(",") + 1
        file.execute(f"INSERT INTO topics VALUES ({', '.join('?' * columns)})", topic[:columns])
        file.execute(
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,"
            " data BLOB)"
        )
        for k in numbers:
            stamp, message = joint_state(k)
            data = bytes(STORE.serialize_cdr(message, JOINT_STATE))
            file.execute(
                "INSERT INTO messages(topic_id, timestamp, data) VALUES (1, ?, ?)", (stamp, data)
            )
        file.commit()
    about: dict[str, Any] = {"name": topic[1], "type": topic[2], "serialization_format": "cdr"}
    if version >= 4:
        about["offered_qos_profiles"] = profiles
    information: dict[str, Any] = {
        "version": version,
        "storage_identifier": "sqlite3",
        "relative_file_paths": ["old_0.db3" if version >= 4 else f"{path.name}/old_0.db3"],
        "duration": {"nanoseconds": (len(numbers) - 1) * MS},
        "starting_time": {"nanoseconds_since_epoch": MS},
        "message_count": len(numbers),
        "topics_with_message_count": [{"topic_metadata": about, "message_count": len(numbers)}],
    }
    if version >= 3:
        information |= {"compression_format": "", "compression_mode": ""}
    metadata = {"rosbag2_bagfile_information": information}
    (path / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    return path
