"""MCAP and SQLite files against rosbags' own readers; channels that are not of ROS 2."""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, Writer
from rosbags.typesys import get_types_from_msg

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.samples.bag import BagReader, Recording, read_measurements
from semiparam_dynamics.samples.joint_states import JOINT_STATE
from semiparam_dynamics.samples.storages import McapFile, SqliteFile

from .bags import MS, NAMES, PLUGINS, STORE, joint_state, storage, write

TWO = ("/joint_states", "/other")


@pytest.mark.parametrize("kind", ["mcap", "db3"])
@pytest.mark.parametrize("mode", [CompressionMode.NONE, CompressionMode.STORAGE])
def test_messages_come_as_rosbags_gives_them(tmp_path: Path, kind: str, mode) -> None:
    """Recorded in no order, so that chunks overlap in time."""
    if kind == "db3" and mode == CompressionMode.STORAGE:
        pytest.skip("the plugin has no compression of its own")
    rng = np.random.default_rng(5)
    writer = Writer(tmp_path / "bag", version=9, storage_plugin=PLUGINS[kind])
    if mode != CompressionMode.NONE:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        there = [writer.add_connection(name, JOINT_STATE, typestore=STORE) for name in TWO]
        for k in range(9000):  # some megabytes, each a chunk
            stamp, message = joint_state(k)
            message.header.frame_id = "x" * 300
            at = stamp + int(rng.integers(-2000, 2000)) * MS + 3000 * MS
            data = STORE.serialize_cdr(message, JOINT_STATE)
            writer.write(there[int(rng.integers(2))], at, data)
    path = storage(tmp_path / "bag")
    file = McapFile(path) if kind == "mcap" else SqliteFile(path)
    with Reader(path) as reader:
        assert (file.count, file.begin, file.end + 1) == (9000, reader.start_time, reader.end_time)
        counts = {c.topic: (c.msgtype, c.msgcount) for c in reader.connections}
        assert {c.topic: (c.type, c.count) for c in file.channels} == counts
        for topics in (TWO, TWO[1:]):
            expected = reader.messages([c for c in reader.connections if c.topic in topics])
            given = file.messages([c for c in file.channels if c.topic in topics])
            for (stamp, channel, data), (c, at, wanted) in zip(given, expected, strict=True):
                assert (stamp, channel.topic) == (at, c.topic) and data == bytes(wanted)
    assert not file.warnings
    file.close()


def test_a_damaged_chunk_costs_no_other(tmp_path: Path) -> None:
    path = storage(write(tmp_path / "bag", range(20_000), mode=CompressionMode.STORAGE))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 500] = bytes(500)
    path.write_bytes(bytes(data))
    given = read_measurements(path, NAMES)
    assert 3_000 < len(given.measurements) < 20_000
    assert any("a chunk of" in told and "is damaged" in told for told in given.warnings)


def test_a_damaged_index_costs_no_message(tmp_path: Path) -> None:
    """The footer, which leads to the index, leads elsewhere."""
    path = storage(write(tmp_path / "bag", range(50)))
    data = bytearray(path.read_bytes())
    for place in (3, 100, len(data) - 50):
        struct.pack_into("<Q", data, len(data) - 28, place)
        path.write_bytes(bytes(data))
        assert len(read_measurements(path, NAMES).measurements) == 50


@pytest.mark.parametrize("name", ["protobuf_beside", "profile_empty"])
def test_other_channels_and_another_profile_cost_nothing(name: str, data_file) -> None:
    joints = [f"joint{k}" for k in range(1, 8)]
    given = read_measurements(data_file(f"field/{name}.mcap"), joints)
    assert len(given.measurements) == 400 and not given.dropped and not given.warnings


def record(opcode: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<BQ", opcode, len(body)) + body


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def mcap(path: Path, kind: str, schema: str, encoding: str, messages: Sequence[bytes]) -> Path:
    """A file without index or chunks, as the specification allows."""
    records = [
        record(0x01, text(""), text("tests")),
        record(0x03, struct.pack("<H", 1), text(kind), text(schema), text(b"\xff\xfe")),
        record(0x04, struct.pack("<HH", 7, 1), text("/arm"), text(encoding), text("")),
    ]
    for k, message in enumerate(messages):
        times = (k + 1) * MS
        records.append(record(0x05, struct.pack("<HIQQ", 7, k, times, times), message))
    records += [record(0x0F, bytes(4)), record(0x02, bytes(20))]
    magic = b"\x89MCAP0\r\n"
    path.write_bytes(magic + b"".join(records) + magic)
    return path


def foxglove_message() -> Any:
    """The class of foxglove.JointStates, by Protobuf's own library."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2", reason="no protobuf")
    from google.protobuf import descriptor_pool, message_factory, timestamp_pb2

    file = descriptor_pb2.FileDescriptorProto(name="joints.proto", package="foxglove")
    file.syntax, file.dependency[:] = "proto3", [timestamp_pb2.DESCRIPTOR.name]
    one = file.message_type.add(name="JointState")
    one.field.add(name="name", number=1, type=9, label=1)
    for number, name in enumerate(("position", "velocity", "acceleration", "effort"), 2):
        one.oneof_decl.add(name=f"_{name}")
        one.field.add(
            name=name, number=number, type=1, label=1, oneof_index=number - 2, proto3_optional=True
        )
    several = file.message_type.add(name="JointStates")
    stamp, joint = ".google.protobuf.Timestamp", ".foxglove.JointState"
    several.field.add(name="timestamp", number=1, type=11, label=1, type_name=stamp)
    several.field.add(name="joints", number=2, type=11, label=3, type_name=joint)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("foxglove.JointStates"))


def by_protobuf(k: int) -> bytes:
    message = foxglove_message()()
    message.timestamp.seconds, message.timestamp.nanos = divmod((k + 1) * MS, 1000 * MS)
    for name, sign in zip(NAMES, (1, -1), strict=True):
        message.joints.add(name=name, position=sign * k, acceleration=3.0, effort=2.0 * k + sign)
    return bytes(message.SerializeToString())


def by_json(k: int) -> bytes:
    joints = [
        {"name": name, "position": sign * k, "acceleration": 3.0, "effort": 2.0 * k + sign}
        for name, sign in zip(NAMES, (1, -1), strict=True)
    ]
    stamp = dict(zip(("sec", "nsec"), divmod((k + 1) * MS, 1000 * MS), strict=True))
    return json.dumps({"timestamp": stamp, "joints": joints}).encode()


def by_dds(kind: str, definition: str, little: bool, k: int) -> bytes:
    """By rosbags, in either byte order."""
    if kind not in STORE.fielddefs:
        STORE.register(get_types_from_msg(definition, kind))
    types = STORE.types
    stamp = types["builtin_interfaces/msg/Time"](*divmod((k + 1) * MS, 1000 * MS))
    nan = float("nan")
    if "foxglove" in kind:
        one = types["foxglove_msgs/msg/JointState"]
        joints = [one(n, s * k, nan, 3.0, 2.0 * k + s) for n, s in zip(NAMES, (1, -1), strict=True)]
        message = types[kind](stamp, joints)
    else:
        value = types["control_msgs/msg/InterfaceValue"]
        header = types["std_msgs/msg/Header"](stamp, "base")
        values = [
            value(["effort", "temperature", "position"], np.array([2.0 * k + s, 40.0, s * k]))
            for s in (1, -1)
        ]
        values.append(value(["force.x"], np.array([1.0])))
        message = types[kind](header, [*NAMES, "wrist_sensor"], values)
    return bytes(STORE.serialize_cdr(message, kind, little_endian=little))


DYNAMIC = """std_msgs/Header header
string[] joint_names
InterfaceValue[] interface_values
================================================================================
MSG: control_msgs/InterfaceValue
string[] interface_names
float64[] values
"""
FOXGLOVE = """builtin_interfaces/Time timestamp
foxglove_msgs/JointState[] joints
================================================================================
MSG: foxglove_msgs/JointState
string name
float64 position
float64 velocity
float64 acceleration
float64 effort
"""


@pytest.mark.parametrize(
    ("kind", "schema", "encoding"),
    [
        ("foxglove.JointStates", "protobuf", "protobuf"),
        ("foxglove.JointStates", "jsonschema", "json"),
        ("foxglove_msgs/msg/JointStates", "ros2msg", "cdr"),
        ("control_msgs/msg/DynamicJointState", "ros2msg", "cdr"),
    ],
)
def test_joint_states_of_other_types_are_the_same(tmp_path, kind, schema, encoding) -> None:
    def serialized(k: int) -> bytes:
        if encoding == "cdr":
            given = DYNAMIC if "control" in kind else FOXGLOVE
            return by_dds(kind, given, k % 2 == 0, k)
        return by_protobuf(k) if encoding == "protobuf" else by_json(k)

    messages = [serialized(k) for k in range(30)]
    path = mcap(tmp_path / "bag.mcap", kind, schema, encoding, messages)
    given = read_measurements(path, NAMES)
    assert given.joint_states_topic == "/arm" and not given.dropped and not given.warnings
    assert len(given.measurements) == 30
    for k, m in enumerate(given.measurements):
        assert m.stamp == (k + 1) * MS and m.dq is None
        assert m.q.tolist() == [k, -k] and m.y.tolist() == [2.0 * k + 1, 2.0 * k - 1]
    damaged = [data[: len(data) // 2] for data in messages]
    path = mcap(tmp_path / "cut.mcap", kind, schema, encoding, [*damaged, messages[0]])
    given = read_measurements(path, NAMES)
    assert len(given.measurements) == 1
    assert sum(given.dropped.values()) == 30  # as no message, or as one that lacks joints


def test_what_is_there_and_what_to_record_is_said(tmp_path: Path) -> None:
    path = mcap(tmp_path / "bag.mcap", "acme.Joints", "protobuf", "protobuf", [b"\x0a\x00"])
    told = r"it has: /arm \(acme.Joints\); joint states are read from sensor_msgs/msg/JointState"
    with pytest.raises(BagError, match=told):
        read_measurements(path, NAMES)
    path = mcap(tmp_path / "other.mcap", JOINT_STATE, "ros2msg", "cdr", [b"\0\x09\0\0" + bytes(40)])
    with pytest.raises(BagError, match=r"1 times undecodable \(a message in another encoding"):
        read_measurements(path, NAMES)


def test_joint_states_are_taken_before_what_tells_the_same(tmp_path: Path) -> None:
    kind = "control_msgs/msg/DynamicJointState"
    data = by_dds(kind, DYNAMIC, True, 1)
    with Writer(tmp_path / "bag", version=9, storage_plugin=PLUGINS["db3"]) as writer:
        beside = writer.add_connection("/dynamic_joint_states", kind, typestore=STORE)
        joints = writer.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        writer.write(beside, 1, data)
        writer.write(joints, 1, STORE.serialize_cdr(joint_state(1)[1], JOINT_STATE))
    with BagReader(tmp_path / "bag") as bag:
        assert bag.choose(JOINT_STATE) == "/joint_states"
        assert bag.choose(JOINT_STATE, "dynamic_joint_states") == "/dynamic_joint_states"


def test_stamps_that_never_change_are_said(tmp_path: Path) -> None:
    data = bytes(STORE.serialize_cdr(joint_state(5)[1], JOINT_STATE))
    path = mcap(tmp_path / "bag.mcap", JOINT_STATE, "ros2msg", "cdr", [data] * 50)
    with pytest.raises(BagError, match="all 50 messages on /arm of .* have one stamp, 0.006 s"):
        read_measurements(path, NAMES)


def test_a_lost_part_without_metadata_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    for number in (1, 2, 4, 10):
        part = write(tmp_path / f"part_{number}", range(10 * number, 10 * number + 5))
        storage(part).rename(folder / f"bag_{number}.mcap")
    given = read_measurements(folder, NAMES)
    assert len(given.measurements) == 20
    told = f"{folder} lacks bag_0.mcap, bag_3.mcap, bag_5.mcap"
    assert any(warning.startswith(told) for warning in given.warnings)


def test_memory_does_not_grow_with_a_recording_s_length(tmp_path: Path) -> None:
    peaks = []
    for count in (5_000, 10_000):
        recording = Recording(write(tmp_path / str(count), range(count)), NAMES)
        tracemalloc.start()
        assert sum(1 for _ in recording) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert recording.share == 1.0
    assert peaks[1] < 1.2 * peaks[0] + 5e5
