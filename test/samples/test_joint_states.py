"""Joint states' bytes are read as rclpy and rosbags read them, and bad ones are refused."""

from __future__ import annotations

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
        # The bytes that the alignment leaves out may be anything.
        assert content(read(data)) == content(read(data + b"\x00\x07")) == content(one)
        assert len(looked_at) == 1 + (number > 10)
        one.header.frame_id = "tool" if number >= 10 else "base"


@pytest.mark.parametrize("data", [None, b"", b"\0"])
def test_another_encoding_is_refused(data: bytes | None) -> None:
    if data is None:
        data = serialized(message(np.random.default_rng(3)), little_endian=False)
    with pytest.raises(SampleError, match="another encoding"):
        JointStateReader()(data)


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
