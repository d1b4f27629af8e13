"""Joint states' bytes are read as rclpy and rosbags read them, and bad ones are refused."""

from __future__ import annotations

import struct
import time
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.samples.joint_states import JOINT_STATE, JointStateReader

from .bags import STORE

FIELDS = ("position", "velocity", "effort")


def message(rng: np.random.Generator) -> Any:
    """Any joint state; the names and the sizes do not fit each other."""
    words = ("", "a", "arm", "shoulder", "hüfte", "joint_of_a_long_name")
    time_type, header_type = "builtin_interfaces/msg/Time", "std_msgs/msg/Header"
    stamp = int(rng.integers(-(2**31), 2**31)), int(rng.integers(0, 2**32))
    header = STORE.types[header_type](STORE.types[time_type](*stamp), str(rng.choice(words)))
    names = [str(name) for name in rng.choice(words, size=rng.integers(8))]
    numbers = (rng.normal(size=rng.integers(9)) for _ in FIELDS)
    return STORE.types[JOINT_STATE](header, names, *numbers)


def serialized(one: Any, *, little_endian: bool = True) -> bytes:
    return bytes(STORE.serialize_cdr(one, JOINT_STATE, little_endian=little_endian))


def content(one: Any) -> tuple[object, ...]:
    stamp, numbers = one.header.stamp, (getattr(one, field) for field in FIELDS)
    return stamp.sec, stamp.nanosec, one.header.frame_id, one.name, *(n.tobytes() for n in numbers)


def test_what_was_serialized_is_read() -> None:
    rng, read = np.random.default_rng(1), JointStateReader()
    for _ in range(300):
        one = message(rng)
        assert content(read(serialized(one))) == content(one)
        for field in FIELDS:  # the same names, other sizes
            setattr(one, field, rng.normal(size=rng.integers(9)))
        assert content(read(memoryview(serialized(one)))) == content(one)


def test_where_only_numbers_are_new_nothing_else_is_read(monkeypatch) -> None:
    rng, read = np.random.default_rng(2), JointStateReader()
    looked_at, whole = [], JointStateReader._read
    monkeypatch.setattr(
        JointStateReader, "_read", lambda self, data: looked_at.append(1) or whole(self, data)
    )
    one = message(rng)
    one.name, one.header.frame_id = [*one.name, "last"], "base"
    for number in range(20):
        for field in FIELDS:
            setattr(one, field, rng.normal(size=len(getattr(one, field))))
        one.header.stamp.sec, one.header.stamp.nanosec = rng.integers(2**30, size=2).tolist()
        data = serialized(one)
        # The bytes that the alignment leaves out may be anything: after "base" or "tool", say.
        other = data[:21] + rng.bytes(3) + data[24:] + b"\x00\x07"
        assert content(read(data)) == content(read(other)) == content(one)
        assert len(looked_at) == 1 + (number > 10)
        one.header.frame_id = "tool" if number >= 10 else "base"


def test_the_other_byte_order_is_read() -> None:
    rng, read = np.random.default_rng(3), JointStateReader()
    for _ in range(50):
        one = message(rng)
        for little in (False, True, False):
            given = read(serialized(one, little_endian=little))
            assert (given.name, given.header.frame_id) == (one.name, one.header.frame_id)
            for field in FIELDS:
                np.testing.assert_array_equal(getattr(given, field), getattr(one, field))


def test_version_2_of_cdr_is_read() -> None:
    """Numbers are aligned to 4 bytes, and a sequence of strings has its size in front."""
    names = struct.pack("<III", 4 + 8 + 6, 2, 4) + b"arm\0" + struct.pack("<I", 2) + b"b\0"
    data = b"\0\7\0\0" + struct.pack("<iII", 3, 7, 1) + b"\0\0\0\0" + names + b"\0\0"
    for numbers in ((1.0, 2.0), (), (5.0, 6.0)):
        data += struct.pack(f"<I{len(numbers)}d", len(numbers), *numbers)
    given = JointStateReader()(data)
    assert given.header == ((3, 7), "") and given.name == ["arm", "b"]
    assert [getattr(given, field).tolist() for field in FIELDS] == [[1.0, 2.0], [], [5.0, 6.0]]


@pytest.mark.parametrize("kind", [b"", b"\0", b"\0\2", b"\0\3", b"\0\x09", b"\0\x0b"])
def test_another_encoding_is_refused(kind: bytes) -> None:
    data = serialized(message(np.random.default_rng(3)))
    with pytest.raises(SampleError, match="another encoding"):
        JointStateReader()(kind + data[2:] if len(kind) == 2 else kind)


def test_damaged_bytes_are_refused_or_read_as_rosbags_does() -> None:
    rng, refused = np.random.default_rng(4), 0
    good = message(rng)
    whole, read = serialized(good), JointStateReader()
    for k in range(3000):
        damaged = bytearray(whole[: rng.integers(5, len(whole) + 1)] if k % 2 else whole)
        for _ in range(rng.integers(3)):
            damaged[rng.integers(4, len(damaged))] = rng.integers(256)
        data = bytes(damaged)
        try:
            found = read(data)
        except SampleError:
            refused += 1
        else:
            assert content(found) == content(STORE.deserialize_cdr(data, JOINT_STATE))
        assert content(read(whole)) == content(good)
    assert 300 < refused < 2700


def test_a_size_beyond_reason_takes_no_memory() -> None:
    one = message(np.random.default_rng(5))
    one.name, one.position = ["a"], np.zeros(1)
    whole, read = serialized(one), JointStateReader()
    read(whole)
    at = whole.index((1).to_bytes(4, "little") + bytes(8), 20)  # the number of positions
    start = time.perf_counter()
    with pytest.raises(SampleError, match="announced"):
        read(whole[:at] + b"\xff\xff\xff\xff" + whole[at + 4 :])
    assert time.perf_counter() - start < 1.0
