"""Joint states from bytes, as DDS carries them and bags hold them.

rclpy and rosbags decode field by field, a name at a time. A driver writes the same names in every
message: everything is at the same place, and only the stamp and the numbers are new. Reading only
those takes a tenth of the time (docs/performance.md).

The layout is that of CDR, which every ROS middleware uses (OMG, Common Data Representation): four
bytes of the encoding, then the fields in order, each aligned to its size from the fifth byte on.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import SampleError

JOINT_STATE = "sensor_msgs/msg/JointState"
ENCODING = b"\x00\x01"  # plain CDR, little-endian, as on every processor that ROS 2 supports
STAMP = struct.Struct("<iI")  # seconds, nanoseconds
STAMP_AT, STAMP_END = 4, 12
COUNT = struct.Struct("<I")
FLOAT, FLOAT_SIZE = np.dtype("<f8"), 8  # bytes


class Time(NamedTuple):
    """A stamp, as builtin_interfaces/Time."""

    sec: int
    nanosec: int


class Header(NamedTuple):
    """As std_msgs/Header."""

    stamp: Time
    frame_id: str


class JointStateMessage(NamedTuple):
    """The fields of sensor_msgs/JointState; messages of one layout share the list of names."""

    header: Header
    name: list[str]
    position: Array
    velocity: Array
    effort: Array


class JointStateReader:
    """Reads serialised sensor_msgs/JointState messages, live and recorded.

    Anything may come: unlike `rclpy.serialization.deserialize_message`, which ends the process on
    some bytes that are no message, it refuses them.
    """

    def __init__(self) -> None:
        # Of the message before: its layout; encoding, frame with names, and the three counts.
        self._layout = struct.Struct("")
        self._same: tuple[bytes | int, ...] = ()
        self._frame, self._names = "", [""]

    def __call__(self, data: bytes | memoryview) -> JointStateMessage:
        """The message of these bytes. Raises SampleError where they are none."""
        while True:
            if self._same and len(data) >= self._layout.size:
                kind, sec, nano, head, n, q, n_dq, dq, n_y, y = self._layout.unpack_from(data)
                if (kind, head, n, n_dq, n_y) == self._same:
                    header = Header(Time(sec, nano), self._frame)
                    numbers, end = np.frombuffer(q + dq + y, FLOAT), n + n_dq
                    parts = numbers[:n], numbers[n:end], numbers[end:]
                    return JointStateMessage(header, self._names, *parts)
            self._read_layout(bytes(data))

    def _read_layout(self, data: bytes) -> None:
        self._same = ()
        if data[: len(ENCODING)] != ENCODING:
            raise SampleError("a joint state in another encoding than CDR, little-endian")
        try:
            self._read(data)
        except (struct.error, ValueError) as error:
            raise SampleError(f"a joint state that can't be read: {error}") from None

    def _read(self, data: bytes) -> None:
        STAMP.unpack_from(data, STAMP_AT)
        frame, at = _text(data, STAMP_END)
        (count,) = COUNT.unpack_from(data, at := _aligned(at, COUNT.size))
        at += COUNT.size
        names = []
        for _ in range(count):
            name, at = _text(data, _aligned(at, COUNT.size))
            names.append(name)
        end = at = _aligned(at, COUNT.size)
        head, counts = data[STAMP_END:end], []
        layout = f"<{len(ENCODING)}s{STAMP_AT - len(ENCODING)}xiI{len(head)}s"
        for _ in range(3):
            (count,) = COUNT.unpack_from(data, at)
            begin = at + COUNT.size
            if count:  # before none nothing is aligned
                begin = _aligned(begin, FLOAT_SIZE)
            layout += f"I{begin - at - COUNT.size}x{FLOAT_SIZE * count}s"
            at = begin + FLOAT_SIZE * count
            _check_end(data, at)
            counts.append(count)
        self._frame, self._names = frame, names
        self._layout, self._same = struct.Struct(layout), (ENCODING, head, *counts)


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A string whose size, the zero at its end included, is at `at`, and where it ends."""
    (size,) = COUNT.unpack_from(data, at)
    at += COUNT.size
    _check_end(data, at + size)
    text = data[at : at + size]
    if size and text[-1]:
        raise ValueError("a text without its end")
    return text[:-1].decode(), at + size


def _check_end(data: bytes, end: int) -> None:
    if end > len(data):
        raise ValueError(f"{end} bytes are announced, and {len(data)} came")


def _aligned(at: int, size: int) -> int:
    return at + -(at - STAMP_AT) % size
