"""Joint states and wrenches as DDS carries them: bytes, of which only the numbers are new.

What a message costs a thousand times a second is not its conversion alone, of some microseconds,
but that of each name and number by code that is no longer in the processor's caches
(benchmarks/results/node_latency.md has times).

The layout is that of CDR, which every ROS middleware uses (OMG, Common Data Representation): four
bytes of the kind, the fields in order, each aligned to its size counting from the fifth byte.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.nodes.messages import effort_message, wrench_message

KIND = b"\x00\x01"  # plain CDR, little-endian, as on every processor that ROS 2 supports
STAMP = struct.Struct("<iI")  # seconds, nanoseconds
STAMP_AT, STAMP_END = 4, 12
COUNT = struct.Struct("<I")
NUMBER = 8  # bytes of a float64


LEAST = 8  # bytes of a message: Fast CDR ends the process on a head alone that says it is padded


def read(data: bytes, kind: type) -> Any:
    """The message of this kind in serialized bytes, or None where they are none."""
    if len(data) < LEAST:
        return None
    try:
        return deserialize_message(data, kind)
    except RuntimeError:  # RMWError has no public name
        return None


class JointStateReader:
    """Reads serialised sensor_msgs/JointState messages, quickly where only numbers are new.

    Anything may come: unlike `rclpy.serialization.deserialize_message`, which ends the process on
    some bytes that are no message, it refuses them.
    """

    def __init__(self) -> None:
        self._message = JointState()
        # Of the message before: how all of it is laid out, and kind, frame and names, and the
        # counts of positions, velocities and efforts.
        self._layout = struct.Struct("")
        self._same: tuple[bytes | int, ...] = ()

    def __call__(self, data: bytes) -> JointState:
        """The message; it holds until the next call. Raises SampleError where it is none."""
        if self._same and len(data) >= self._layout.size:
            kind, second, nano, head, n, q, n_dq, dq, n_y, y = self._layout.unpack_from(data)
            if (kind, head, n, n_dq, n_y) == self._same:
                return self._filled(second, nano, q, dq, y)
        self._same = ()
        if data[: len(KIND)] != KIND:
            raise SampleError("a joint state in another encoding than CDR, little-endian")
        try:
            return self._read(data)
        except (struct.error, ValueError) as error:
            raise SampleError(f"a joint state that can't be read: {error}") from None

    def _filled(self, second: int, nano: int, *fields: bytes) -> JointState:
        message, stamp = self._message, self._message.header.stamp
        position, velocity, effort = (array("d", field) for field in fields)
        # Arrays of the fields' own type are taken as they are.
        message.position, message.velocity, message.effort = position, velocity, effort
        stamp.sec, stamp.nanosec = second, nano
        return message

    def _read(self, data: bytes) -> JointState:
        """The message, whatever is new in it."""
        second, nano = STAMP.unpack_from(data, STAMP_AT)
        frame, at = _text(data, STAMP_END)
        (count,) = COUNT.unpack_from(data, at := _aligned(at, COUNT.size))
        at += COUNT.size
        names = []
        for _ in range(count):
            name, at = _text(data, _aligned(at, COUNT.size))
            names.append(name)
        end = at = _aligned(at, COUNT.size)
        head, counts, fields = data[STAMP_END:end], [], []
        layout = f"<{len(KIND)}s{STAMP_AT - len(KIND)}xiI{len(head)}s"
        for _ in range(3):
            (count,) = COUNT.unpack_from(data, at)
            begin = at + COUNT.size
            if count:  # before none nothing is aligned
                begin = _aligned(begin, NUMBER)
            layout += f"I{begin - at - COUNT.size}x{NUMBER * count}s"
            at = begin + NUMBER * count
            counts.append(count)
            fields.append(_part(data, begin, at))
        self._message.header.frame_id, self._message.name = frame, names
        message = self._filled(second, nano, *fields)
        self._layout, self._same = struct.Struct(layout), (KIND, head, *counts)
        return message


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A string whose size, the zero at its end included, is at `at`, and where it ends."""
    (size,) = COUNT.unpack_from(data, at)
    at += COUNT.size
    text = _part(data, at, at + size)
    if size and text[-1]:
        raise ValueError("a text without its end")
    return text[:-1].decode(), at + size


def _part(data: bytes, start: int, end: int) -> bytes:
    if end > len(data):
        raise ValueError(f"{end} bytes are announced, and {len(data)} came")
    return data[start:end]


def _aligned(at: int, size: int) -> int:
    return at + -(at - STAMP_AT) % size


class SerializedMessage:
    """A message as bytes, of which the stamp and the numbers at the end are replaced.

    message: with a header first and, last, the numbers `marks`, which are nowhere else in it.
    """

    def __init__(self, message: Any, marks: np.ndarray) -> None:
        data = serialize_message(message)
        end = data.index(marks.tobytes()) + marks.nbytes
        self._bytes = bytearray(data[:end])
        self._numbers = slice(end - marks.nbytes, end)

    def __call__(self, stamp: int, values: np.ndarray) -> bytes:
        """The message at a stamp in ns, with values as many as the marks, ready to be published."""
        STAMP.pack_into(self._bytes, STAMP_AT, *divmod(stamp, SECOND))
        self._bytes[self._numbers] = values.astype("<f8", copy=False).tobytes()
        return bytes(self._bytes)


def serialized_effort(names: Sequence[str]) -> SerializedMessage:
    """What `messages.effort_message` makes of joint efforts (N m or N), as bytes."""
    marks = _marks(len(names))
    return SerializedMessage(effort_message(0, names, marks), marks)


def serialized_wrench(frame: str) -> SerializedMessage:
    """What `messages.wrench_message` makes of forces (N) and torques (N m), as bytes."""
    marks = _marks(6)
    return SerializedMessage(wrench_message(0, frame, marks), marks)


def _marks(size: int) -> np.ndarray:
    return 1000.5 + np.arange(size)
