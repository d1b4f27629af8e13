"""Joint states out of a recording's bytes, quickly where messages look like the one before."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Indices
from semiparam_dynamics.samples.joint_state_block import JointStateBlock
from semiparam_dynamics.samples.stream_config import SECOND

JOINT_STATE = "sensor_msgs/msg/JointState"
LITTLE_ENDIAN = b"\x00\x01"  # the encapsulation header's kind: plain CDR
BODY = 4  # alignments count from behind that header
STAMP = struct.Struct("<iI")
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a message's numbers are, and the bytes that are not numbers."""

    size: int
    head: bytes
    numbers: tuple[tuple[int, int], ...]  # of the three sequences: offset and count
    between: tuple[tuple[int, int, bytes], ...]  # offset, end and bytes of what is before each
    frame: str
    names: list[str]
    fixed: Indices  # where the bytes are that are not numbers
    known: Bytes  # those bytes

    def matches(self, data: bytes | memoryview) -> bool:
        return (
            len(data) == self.size
            and data[:BODY] == self.head
            and all(data[start:end] == known for start, end, known in self.between)
        )


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
        if layout is not None and layout.matches(data):
            return self._by(layout, data)
        message = self._store.deserialize_cdr(data, JOINT_STATE)
        self._layout = self._layout_of(bytes(data), message)
        return message

    def alike(self, data: Sequence[bytes | memoryview]) -> JointStateBlock | None:
        """The first of these messages, as many as have the last one's layout; None where none has.

        Their bytes are as a recording holds them, one message each.
        """
        layout = self._layout
        if layout is None or not data or not layout.matches(data[0]):
            return None
        other = (i for i, one in enumerate(data) if len(one) != layout.size)
        count = next(other, len(data))
        rows = np.frombuffer(b"".join(data[:count]), np.uint8).reshape(count, layout.size)
        same = (rows[:, layout.fixed] == layout.known).all(axis=1)
        count = count if same.all() else int(np.argmin(same))
        if not count:  # but for bytes behind the numbers
            return None
        rows = rows[:count]
        seconds, nanoseconds = _column(rows, BODY, 1, "<i4"), _column(rows, BODY + 4, 1, "<u4")
        position, velocity, effort = (_column(rows, *where, "<f8") for where in layout.numbers)
        return JointStateBlock(
            layout.names,
            seconds[:, 0].astype(np.int64) * SECOND + nanoseconds[:, 0],
            position,
            velocity,
            effort,
            lambda i: self._by(layout, data[i]),
        )

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
        varies = np.zeros(len(data), dtype=bool)
        varies[BODY : BODY + STAMP.size] = True
        for at_numbers, count in numbers:
            varies[at_numbers : at_numbers + 8 * count] = True
        fixed = np.flatnonzero(~varies)
        layout = _Layout(
            len(data),
            data[:BODY],
            tuple(numbers),
            tuple(between),
            message.header.frame_id,
            list(message.name),
            fixed,
            np.frombuffer(data, np.uint8)[fixed],
        )
        if at > len(data) or not _same(self._by(layout, data), message):
            return None
        return layout


def _column(rows: Bytes, start: int, count: int, kind: str) -> Any:
    """(k, count) the numbers that are at a place of each row."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(rows[:, start : start + size].tobytes(), kind).reshape(len(rows), count)


def _aligned(at: int, size: int) -> int:
    return BODY + -(-(at - BODY) // size) * size


def _same(a: Any, b: Any) -> bool:
    if a.header != b.header or a.name != b.name:
        return False
    return all(
        np.asarray(getattr(a, key)).tobytes() == np.asarray(getattr(b, key)).tobytes()
        for key in ("position", "velocity", "effort")
    )
