"""Joint states decoded by their layout against rosbags' own decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.samples.joint_state_decoder import JOINT_STATE, JointStateDecoder

STORE = get_typestore(Stores.ROS2_KILTED)


def message(k: int, names: list[str], frame: str, lengths: tuple[int, int, int]) -> Any:
    rng = np.random.default_rng(k)
    stamp = STORE.types["builtin_interfaces/msg/Time"](k, 7 * k)
    header = STORE.types["std_msgs/msg/Header"](stamp, frame)
    return STORE.types[JOINT_STATE](header, names, *(rng.standard_normal(n) for n in lengths))


def encoded(given: Any, little_endian: bool = True) -> bytes:
    return bytes(STORE.serialize_cdr(given, JOINT_STATE, little_endian=little_endian))


def same(a: Any, b: Any) -> bool:
    return (
        a.header == b.header
        and list(a.name) == list(b.name)
        and all(
            np.array_equal(getattr(a, key), getattr(b, key), equal_nan=True)
            for key in ("position", "velocity", "effort")
        )
    )


@pytest.mark.parametrize("names", [[], ["a"], ["a", "bb", "ccc"], ["gelenk_ä", "", "x" * 50]])
@pytest.mark.parametrize("frame", ["", "base", "base_link"])
@pytest.mark.parametrize("filled", [(1, 1, 1), (1, 0, 1), (1, 0, 0), (0, 0, 0)])
def test_messages_of_one_layout(names: list[str], frame: str, filled: tuple[int, ...]) -> None:
    decode = JointStateDecoder(STORE)
    n = len(names)
    for k in range(4):
        given = message(k, names, frame, tuple(n * one for one in filled))
        for data in (encoded(given), memoryview(encoded(given))):
            assert same(decode(data), given)
    assert decode._layout is not None


def test_layouts_that_change() -> None:
    decode = JointStateDecoder(STORE)
    shapes = [
        (["a", "b"], "base", (2, 2, 2)),
        (["b", "a"], "base", (2, 2, 2)),  # as long as the one before
        (["b", "a"], "tool", (2, 2, 2)),
        (["b", "a"], "tool", (2, 0, 4)),  # so are these two
        (["b", "a"], "tool", (4, 0, 2)),
        (["a", "b", "c"], "base", (3, 3, 3)),
    ]
    for k in range(20):
        given = message(k, *shapes[k % 6 if k < 12 else (k // 2) % 6])
        assert same(decode(encoded(given)), given)
    given = message(1, *shapes[0])
    assert same(decode(encoded(given, little_endian=False)), given)
    assert same(decode(encoded(given)), given)


def test_damaged_bytes_are_told_as_the_store_tells_them() -> None:
    rng = np.random.default_rng(0)
    good = encoded(message(0, ["a", "bb"], "base", (2, 2, 2)))
    decode = JointStateDecoder(STORE)
    for _ in range(400):
        decode(good)
        damaged = bytearray(good)
        damaged[rng.integers(len(good))] = rng.integers(256)
        data = bytes(damaged[: rng.integers(len(good) - 8, len(good) + 1)])
        try:
            wanted = STORE.deserialize_cdr(data, JOINT_STATE)
        except Exception as error:  # whatever it is
            with pytest.raises(type(error)):
                decode(data)
        else:
            assert same(decode(data), wanted)
