"""Joint states' bytes: decoded as rosbags does, one by one and many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.samples.joint_states import JOINT_STATE, JointStateDecoder

from .bags import MS, STORE, joint_state


def message(rng: np.random.Generator) -> Any:
    """Any joint state; the names and the sizes do not fit each other."""
    words = ("", "a", "arm", "shoulder", "hüfte", "joint_of_a_long_name")
    n_names, *sizes = rng.choice([0, 1, 2, 3, 7], size=4)
    sec, nanosec = rng.integers(-(2**31), 2**31), rng.integers(0, 2**32)
    time = STORE.types["builtin_interfaces/msg/Time"](int(sec), int(nanosec))
    header = STORE.types["std_msgs/msg/Header"](time, str(rng.choice(words)))
    names = [str(name) for name in rng.choice(words, size=n_names)]
    numbers = (rng.normal(size=size) for size in sizes)
    return STORE.types[JOINT_STATE](header, names, *numbers)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes, or some of them others, or fewer or more of them."""
    changed, kind = bytearray(data), rng.integers(6)
    if kind in (0, 1):
        for at in rng.integers(len(changed), size=int(rng.choice([1, 1, 1, 4]))):
            changed[at] = rng.choice([0, 1, 255, rng.integers(256), changed[at] ^ 1])
    elif kind == 2:
        del changed[rng.integers(len(changed)) :]
    elif kind == 3:
        changed += rng.bytes(rng.integers(1, 12))
    elif kind == 4 and len(changed) > 40:  # other numbers, the same layout
        changed[-8:], changed[4:12] = rng.bytes(8), rng.bytes(8)
    return bytes(changed)


def told(decode: Callable[[Any], Any], data: Any) -> object:
    """All that a decoder says of these bytes, its error's type where it refuses them."""
    try:
        m = decode(data)
    except Exception as error:
        return type(error)
    stamp, numbers = m.header.stamp, (m.position, m.velocity, m.effort)
    arrays = [(a.dtype, a.shape, a.flags.writeable, a.tobytes()) for a in numbers]
    kinds = type(m), type(m.header), type(stamp)
    return kinds, stamp.sec, stamp.nanosec, m.header.frame_id, m.name, arrays


def test_joint_states_are_decoded_as_rosbags_does_and_refused_where_it_refuses() -> None:
    rng, refused, accepted = np.random.default_rng(5), 0, 0
    for _ in range(150):
        decoder, data = JointStateDecoder(STORE), b""
        for _ in range(40):
            if not data or rng.random() < 0.1:
                little = bool(rng.random() < 0.9)
                data = bytes(STORE.serialize_cdr(message(rng), JOINT_STATE, little_endian=little))
            other = mutated(data, rng)
            expected = told(lambda raw: STORE.deserialize_cdr(raw, JOINT_STATE), other)
            assert told(decoder, other) == expected
            assert told(decoder, memoryview(other)) == expected
            refused += isinstance(expected, type)
            accepted += not isinstance(expected, type)
    assert min(refused, accepted) > 1000


def test_joint_states_of_one_layout_are_decoded_without_rosbags(monkeypatch) -> None:
    calls, whole = [], STORE.deserialize_cdr
    monkeypatch.setattr(STORE, "deserialize_cdr", lambda *args: calls.append(1) or whole(*args))
    decoder = JointStateDecoder(STORE)
    for k in range(50):
        stamp, written = joint_state(k)
        read = decoder(bytes(STORE.serialize_cdr(written, JOINT_STATE)))
        assert read.header.stamp.sec * 1000 * MS + read.header.stamp.nanosec == stamp
        np.testing.assert_array_equal(read.effort, [2.0 * k, -2.0 * k])
    assert len(calls) == 1


def test_a_block_has_what_each_of_its_messages_has_and_is_refused_where_one_differs() -> None:
    rng, blocks, refused = np.random.default_rng(6), 0, 0
    for _ in range(400):
        one, raw = message(rng), []
        for _ in range(rng.integers(2, 7)):
            one.position, one.velocity, one.effort = (
                rng.normal(size=len(a)) for a in (one.position, one.velocity, one.effort)
            )
            one.header.stamp.sec = int(rng.integers(-(2**31), 2**31))
            one.header.stamp.nanosec = int(rng.integers(0, 2**32))
            raw.append(bytes(STORE.serialize_cdr(one, JOINT_STATE)))
        decoder = JointStateDecoder(STORE)
        assert decoder.block(raw) is None  # nothing is known of their layout yet
        decoder(raw[0])
        if damaged := bool(rng.random() < 0.5):
            k = rng.integers(len(raw))
            raw[k] = mutated(raw[k], rng)
        block = decoder.block([memoryview(raw[0]), *raw[1:]])
        if block is None:
            assert damaged
            refused += 1
            continue
        blocks += 1
        for k, data in enumerate(raw):
            expected = STORE.deserialize_cdr(data, JOINT_STATE)
            stamp = expected.header.stamp
            assert block.name == expected.name
            assert block.stamps[k] == stamp.sec * SECOND + stamp.nanosec
            for name in ("position", "velocity", "effort"):
                assert getattr(block, name)[k].tobytes() == getattr(expected, name).tobytes()
            assert told(block.message, k) == told(decoder, data)
    assert blocks > 200 and refused > 50
