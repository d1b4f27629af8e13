"""Joint states out of a recording's bytes, quickly where messages look like the one before."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

JOINT_STATE = "sensor_msgs/msg/JointState"
LITTLE_ENDIAN = b"\x00\x01"  # the encapsulation header's kind: plain CDR
BODY = 4  # alignments count from behind that header
STAMP = struct.Struct("<iI")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a message's numbers are, and the bytes that are not numbers."""

    size: int
    head: bytes
    numbers: tuple[tuple[int, int], ...]  # of the three sequences: offset and count
    between: tuple[tuple[int, int, bytes], ...]  # offset, end and bytes of what is before each
    frame: str
    names: list[str]


class JointStateDecoder:
    """`store.deserialize_cdr` for sensor_msgs/JointState; the same messages.

    Publishers hardly ever change names and lengths. A message that has all bytes but the stamp and
    the numbers in common with the last one is not parsed again.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._layout: _Layout | None = None

    def __call__(self, data: bytes | memoryview) -> Any:
        """The message. Raises whatever the store does."""
        layout = self._layout
        if layout is not None and len(data) == layout.size and data[:BODY] == layout.head:
            if all(data[start:end] == known for start, end, known in layout.between):
                return self._by(layout, data)
        message = self._store.deserialize_cdr(data, JOINT_STATE)
        self._layout = self._layout_of(bytes(data), message)
        return message

    def _by(self, layout: _Layout, data: bytes | memoryview) -> Any:
        types = self._store.types
        stamp = types["builtin_interfaces/msg/Time"](*STAMP.unpack_from(data, BODY))
        header = types["std_msgs/msg/Header"](stamp, layout.frame)
        numbers = (np.frombuffer(data, "<f8", count, start) for start, count in layout.numbers)
        return types[JOINT_STATE](header, layout.names, *numbers)

    def _layout_of(self, data: bytes, message: Any) -> _Layout | None:
        """The layout of these bytes, None where it can't be relied on."""
        if data[:2] != LITTLE_ENDIAN:
            return None
        at = BODY + STAMP.size
        for text in (message.header.frame_id, None, *message.name):
            at = _aligned(at, 4) + 4
            at += 0 if text is None else len(text.encode()) + 1  # None: the number of names
        numbers, between = [], []
        start = BODY + STAMP.size
        for values in (message.position, message.velocity, message.effort):
            at = _aligned(at, 4) + 4
            if len(values):
                at = _aligned(at, 8)
            numbers.append((at, len(values)))
            between.append((start, at, data[start:at]))
            at += 8 * len(values)
            start = at
        layout = _Layout(
            len(data),
            data[:BODY],
            tuple(numbers),
            tuple(between),
            message.header.frame_id,
            list(message.name),
        )
        if at > len(data) or not _same(self._by(layout, data), message):
            return None
        return layout


def _aligned(at: int, size: int) -> int:
    return BODY + -(-(at - BODY) // size) * size


def _same(a: Any, b: Any) -> bool:
    if a.header != b.header or a.name != b.name:
        return False
    return all(
        np.asarray(getattr(a, key)).tobytes() == np.asarray(getattr(b, key)).tobytes()
        for key in ("position", "velocity", "effort")
    )
