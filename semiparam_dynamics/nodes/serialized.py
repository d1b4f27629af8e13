"""Joint states and wrenches as DDS carries them: bytes, of which only the numbers are new.

What a message costs a thousand times a second is not its conversion alone, of some microseconds,
but that of each name and number by code that is no longer in the processor's caches
(docs/performance.md has what it gains).

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

from semiparam_dynamics.arrays import SECOND
from semiparam_dynamics.errors import SampleError
from semiparam_dynamics.nodes.messages import effort_message, wrench_message

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
    """Reads serialised sensor_msgs/JointState messages, quickly where names are the last one's.

    Anything may come: unlike `rclpy.serialization.deserialize_message`, which ends the process on
    some bytes that are no message, it refuses them.
    """

    def __init__(self) -> None:
        self._message = JointState()
        self._head = b""  # frame and names, as bytes, of the message before; empty: not known

    def __call__(self, data: bytes) -> JointState:
        """The message; it holds until the next call. Raises SampleError where it is none."""
        if data[:2] != KIND:
            raise SampleError("a joint state in another encoding than CDR, little-endian")
        message, at = self._message, STAMP_END + len(self._head)
        try:
            stamp = STAMP.unpack_from(data, STAMP_AT)
            if not self._head or data[STAMP_END:at] != self._head:
                at = self._read_head(data)
            position, at = _numbers(data, at)
            velocity, at = _numbers(data, at)
            effort, at = _numbers(data, at)
        except (struct.error, ValueError) as error:
            raise SampleError(f"a joint state that can't be read: {error}") from None
        # Arrays of the fields' own type are taken as they are.
        message.position, message.velocity, message.effort = position, velocity, effort
        message.header.stamp.sec, message.header.stamp.nanosec = stamp
        return message

    def _read_head(self, data: bytes) -> int:
        """Take the frame and the names in; returns where they end."""
        self._head = b""
        frame, at = _text(data, STAMP_END)
        (count,) = COUNT.unpack_from(data, at := _aligned(at, COUNT.size))
        at += COUNT.size
        names = []
        for _ in range(count):
            name, at = _text(data, _aligned(at, COUNT.size))
            names.append(name)
        self._message.header.frame_id, self._message.name = frame, names
        self._head = data[STAMP_END : (at := _aligned(at, COUNT.size))]
        return at


def _numbers(data: bytes, at: int) -> tuple[array[float], int]:
    """A sequence of float64 whose size is at `at`, and where it ends."""
    (count,) = COUNT.unpack_from(data, at)
    at += COUNT.size
    numbers = array("d")
    if count:
        at = _aligned(at, NUMBER)
        end = at + NUMBER * count
        numbers.frombytes(_part(data, at, end))
        at = end
    return numbers, at


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
