"""Messages as bytes say what the messages themselves do, and bad ones are refused."""

from __future__ import annotations

import time

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.nodes.messages import (
    effort_message,
    joint_state_message,
    wrench_message,
)
from semiparam_dynamics.base.nodes.serialized import (
    JointStateReader,
    read,
    serialized_effort,
    serialized_wrench,
)

STAMPS = (0, 1_999_999_999, 1_700_000_000_123_456_789)
STORE = get_typestore(Stores.LATEST)
KIND = "sensor_msgs/msg/JointState"
FIELDS = ("position", "velocity", "effort")


@pytest.mark.parametrize(
    ("kind", "make", "frame", "size"),
    [
        (serialized_effort, effort_message, ["a"], 1),
        (serialized_effort, effort_message, ["a", "b", "ellbow"], 3),
        (serialized_wrench, wrench_message, "sensor", 6),
        (serialized_wrench, wrench_message, "", 6),
    ],
)
def test_bytes_are_those_of_the_message(kind, make, frame, size: int) -> None:
    rng, serialized = np.random.default_rng(0), kind(frame)
    rows = [rng.normal(size=size), rng.normal(size=(size, 2))[:, 0], np.arange(size, dtype="f4")]
    for stamp, values in zip(STAMPS, rows, strict=True):
        message, found = make(stamp, frame, values), serialized(stamp, values)
        assert deserialize_message(found, type(message)) == message
        # By another reader too; the bytes are not compared, since those that the alignment leaves
        # out are whatever the memory held.
        np.testing.assert_array_equal(numbers_of(found, message), values)


def numbers_of(data: bytes, message: JointState | WrenchStamped) -> list[float]:
    """Efforts, or forces and torques, as rosbags reads them."""
    if isinstance(message, JointState):
        return STORE.deserialize_cdr(data, KIND).effort.tolist()
    wrench = STORE.deserialize_cdr(data, "geometry_msgs/msg/WrenchStamped").wrench
    return [getattr(part, axis) for part in (wrench.force, wrench.torque) for axis in "xyz"]


def random_message(rng: np.random.Generator) -> JointState:
    """A message of any sizes, which need not belong together."""
    names = ["joint" * rng.integers(3) + str(k) for k in range(rng.integers(9))]
    message = JointState(name=names)
    message.header.frame_id = "é" * int(rng.integers(5))
    for field in FIELDS:
        setattr(message, field, rng.normal(size=rng.integers(9)).tolist())
    message.header.stamp.sec = int(rng.integers(-5, 2**31))
    message.header.stamp.nanosec = int(rng.integers(10**9))
    return message


def test_it_reads_what_rclpy_reads() -> None:
    rng, read = np.random.default_rng(1), JointStateReader()
    for _ in range(300):
        message = random_message(rng)
        assert read(serialize_message(message)) == message
        # The same names again, which are read another way.
        for field in FIELDS:
            setattr(message, field, rng.normal(size=rng.integers(9)).tolist())
        message.header.stamp.sec += -1
        assert read(serialize_message(message)) == message


def test_where_only_numbers_are_new_nothing_else_is_read(monkeypatch) -> None:
    rng, read = np.random.default_rng(2), JointStateReader()
    looked_at, whole = [], JointStateReader._read
    monkeypatch.setattr(
        JointStateReader, "_read", lambda self, data: looked_at.append(1) or whole(self, data)
    )
    for number in range(1, 100):
        message = random_message(rng)
        message.name, message.header.frame_id = [*message.name, "last"], "base"
        for _ in range(3):
            for field in FIELDS:
                setattr(message, field, rng.normal(size=len(getattr(message, field))).tolist())
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = rng.integers(2**30, size=2).tolist()
            data = serialize_message(message)
            assert read(data) == message
            # The bytes that the alignment leaves out may be anything.
            assert read(data + b"\x00\x07") == message
        assert len(looked_at) == 2 * number - 1
        message.header.frame_id = "tool"
        assert read(serialize_message(message)) == message
        assert len(looked_at) == 2 * number


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x00\x01", b"\x00\x01\x00\x7f\x01\x02\x03"])
def test_a_head_alone_is_no_message(data: bytes) -> None:
    """Some of them end a process that gives them to rclpy."""
    assert read(data, JointState) is None


def test_a_message_is_read_and_a_part_of_one_is_not() -> None:
    message = JointState(name=["elbow"], position=[1.0])
    whole = serialize_message(message)
    assert read(whole, JointState) == message
    assert read(whole[:20], JointState) is None


def test_another_encoding_is_refused() -> None:
    message = joint_state_message(5, ["one", "two"], *np.arange(6.0).reshape(3, 2))
    theirs = STORE.deserialize_cdr(serialize_message(message), KIND)
    other = bytes(STORE.serialize_cdr(theirs, KIND, little_endian=False))
    for data in (other, b"", b"\0"):
        with pytest.raises(SampleError, match="another encoding"):
            JointStateReader()(data)


def test_damaged_bytes_are_refused_or_read_as_rosbags_does() -> None:
    rng, refused = np.random.default_rng(2), 0
    usual = serialize_message(joint_state_message(5, ["one", "two"], *rng.normal(size=(3, 2))))
    read = JointStateReader()
    for k in range(3000):
        damaged = bytearray(usual[: rng.integers(5, len(usual) + 1)] if k % 2 else usual)
        for _ in range(rng.integers(3)):
            damaged[rng.integers(4, len(damaged))] = rng.integers(256)
        data = bytes(damaged)
        try:
            found = read(data)
        except SampleError:
            refused += 1
        else:
            expected = STORE.deserialize_cdr(data, KIND)
            stamp = found.header.stamp
            assert (stamp.sec, stamp.nanosec) == (
                expected.header.stamp.sec,
                expected.header.stamp.nanosec,
            )
            assert (found.header.frame_id, found.name) == (expected.header.frame_id, expected.name)
            for field in FIELDS:
                np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
        assert read(usual).name == ["one", "two"]
    assert 300 < refused < 2700


def test_a_size_beyond_reason_takes_no_memory() -> None:
    read, message = JointStateReader(), joint_state_message(5, ["a"], *np.zeros((3, 1)))
    usual = serialize_message(message)
    read(usual)
    at = usual.index((1).to_bytes(4, "little") + bytes(8), 20)  # the number of positions
    start = time.perf_counter()
    with pytest.raises(SampleError, match="announced"):
        read(usual[:at] + b"\xff\xff\xff\xff" + usual[at + 4 :])
    assert time.perf_counter() - start < 1.0
