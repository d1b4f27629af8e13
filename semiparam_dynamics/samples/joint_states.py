"""Joint states from bytes, as DDS carries them and bags hold them.

rclpy and rosbags decode field by field, a name at a time. A driver writes the same names in every
message: everything is at the same place, and only the stamp and the numbers are new. Reading only
those takes a tenth of the time (docs/performance.md).

The layout is that of CDR, which every ROS middleware uses (OMG, Common Data Representation): four
bytes of the encoding, then the fields in order, each aligned to its size from the fifth byte on.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import SampleError

JOINT_STATE = "sensor_msgs/msg/JointState"
# The first two bytes: plain CDR and its version 2, each big- and little-endian; struct's order, and
# the largest alignment, bytes. ROS 2 has the second, on every processor that it supports.
ENCODINGS = {b"\0\0": (">", 8), b"\0\1": ("<", 8), b"\0\6": (">", 4), b"\0\7": ("<", 4)}
STAMP = struct.Struct("<iI")  # seconds, nanoseconds
STAMP_AT, STAMP_END = 4, 12
COUNT_SIZE = 4  # bytes
QUANTITIES = ("position", "velocity", "effort")


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
        # Of the message before: its layout; encoding, frame and names, and the three counts.
        # Between fields, which are aligned, is whatever the sender's memory held.
        self._layout, self._float = struct.Struct(""), np.dtype(np.float64)
        self._same: tuple[bytes | int, ...] = ()
        self._frame, self._names = "", [""]

    def __call__(self, data: bytes | memoryview) -> JointStateMessage:
        """The message of these bytes. Raises SampleError where they are none."""
        while True:
            if self._same and len(data) >= self._layout.size:
                kind, sec, nano, *head, n, q, n_dq, dq, n_y, y = self._layout.unpack_from(data)
                if (kind, *head, n, n_dq, n_y) == self._same:
                    header = Header(Time(sec, nano), self._frame)
                    numbers, end = np.frombuffer(q + dq + y, self._float), n + n_dq
                    parts = numbers[:n], numbers[n:end], numbers[end:]
                    return JointStateMessage(header, self._names, *parts)
            self._same = ()
            with _refused():
                self._read(bytes(data))

    def _read(self, data: bytes) -> None:
        cdr = Cdr(data)
        cdr.unpack("iI")
        cdr.spans.clear()
        frame, names = cdr.text(), cdr.texts()
        at, layout = STAMP_END, f"{cdr.order}2s2xiI"  # encoding and options, stamp
        head: list[bytes] = []
        for begin, end in cdr.spans:
            head.append(data[begin:end])
            layout, at = f"{layout}{begin - at}x{end - begin}s", end
        layout, counts = f"{layout}{cdr.aligned(COUNT_SIZE) - at}x", []
        for _ in range(3):
            begin = cdr.aligned(COUNT_SIZE)
            numbers = cdr.floats()
            counts.append(len(numbers))
            size = numbers.nbytes
            layout += f"I{cdr.at - begin - COUNT_SIZE - size}x{size}s"
        self._frame, self._names, self._float = frame, names, cdr.float
        self._layout, self._same = struct.Struct(layout), (data[:2], *head, *counts)


class Cdr:
    """Goes through the fields of a message in plain CDR, of either byte order and version.

    Version 2 (DDS-XTypes) aligns to 4 bytes at most, and announces the size of what a sequence of
    anything but numbers has. Raises SampleError for other encodings, and struct.error or
    ValueError where the bytes end before the fields do.

    Attributes
    ----------
    order: that of the bytes, for struct. float: the type of numbers. at: where the next field is.
    spans: begin and end of the fields so far, of those without anything between them as one.
    """

    def __init__(self, data: bytes) -> None:
        check_encoding(data)
        self.order, self._largest = ENCODINGS[data[:2]]
        self.float = np.dtype(f"{self.order}f8")
        self.at = STAMP_AT
        self.spans: list[tuple[int, int]] = []
        self._data = data

    def aligned(self, size: int) -> int:
        """Begin of a field of this size in bytes; `at` goes there."""
        self.at += -(self.at - STAMP_AT) % min(size, self._largest)
        return self.at

    def unpack(self, codes: str) -> tuple[Any, ...]:
        """The next fields of 4 bytes, by struct's codes."""
        fields = struct.Struct(self.order + codes)
        values = fields.unpack_from(self._data, self.aligned(COUNT_SIZE))
        self._pass(fields.size)
        return values

    def text(self) -> str:
        """A string."""
        (size,) = self.unpack("I")
        text = self._take(size)
        if size and text[-1]:
            raise ValueError("a text without its end")
        return text[:-1].decode()

    def floats(self, count: int = -1) -> Array:
        """So many float64, as they are in the bytes; -1: a sequence of them."""
        if count < 0:
            (count,) = self.unpack("I")
        if count:  # before none nothing is aligned
            self.aligned(self.float.itemsize)
        return np.frombuffer(self._take(self.float.itemsize * count), self.float)

    def items(self) -> range:
        """To go through a sequence of what is no number."""
        if self._largest < self.float.itemsize:
            self.unpack("I")
        (count,) = self.unpack("I")
        return range(count)

    def texts(self) -> list[str]:
        """A sequence of strings."""
        return [self.text() for _ in self.items()]

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise ValueError(f"{end} bytes are announced, and {len(self._data)} came")
        self._pass(size)
        return self._data[end - size : end]

    def _pass(self, size: int) -> None:
        begin = self.spans.pop()[0] if self.spans and self.spans[-1][1] == self.at else self.at
        self.at += size
        self.spans.append((begin, self.at))


def check_encoding(data: bytes | memoryview, known: Collection[bytes] = ENCODINGS.keys()) -> None:
    """Raise SampleError where the bytes are not in one of the `known` encodings."""
    if bytes(data[:2]) not in known:
        raise SampleError(
            f"a message in another encoding (0x{bytes(data[:2]).hex()}) than plain CDR, in which "
            "ros2 bag records"
        )


@contextmanager
def _refused() -> Iterator[None]:
    """Turn what bytes that are no message lead to into SampleError."""
    try:
        yield
    except (struct.error, ArithmeticError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, SampleError):
            raise
        raise SampleError(f"a joint state that can't be read: {error}") from None


# -------------------------------------------------------------------------------------------------
# Messages of other types that tell the same, of which a recording may have no other.

State = Sequence[Any]  # a joint's name, position, velocity and effort; None where it has none


def read_dynamic_joint_state(data: bytes | memoryview) -> JointStateMessage:
    """The message of a control_msgs/DynamicJointState in CDR; what is no joint is left out.

    Raises SampleError where the bytes are none.
    """
    with _refused():
        cdr = Cdr(bytes(data))
        header = Header(Time(*cdr.unpack("iI")), cdr.text())
        names = cdr.texts()
        values = [dict(zip(cdr.texts(), cdr.floats(), strict=True)) for _ in cdr.items()]
        states = [[n, *map(v.get, QUANTITIES)] for n, v in zip(names, values, strict=True)]
        return _message(header, [s for s in states if s[1:] != [None] * 3])


def read_foxglove_cdr(data: bytes | memoryview) -> JointStateMessage:
    """The message of a foxglove_msgs/JointStates in CDR. Raises SampleError for other bytes."""
    with _refused():
        cdr = Cdr(bytes(data))
        header, states = Header(Time(*cdr.unpack("iI")), ""), []
        for _ in cdr.items():
            name, (q, dq, _, y) = cdr.text(), cdr.floats(4)
            states.append((name, q, dq, y))
        return _message(header, states)


def read_foxglove_json(data: bytes | memoryview) -> JointStateMessage:
    """The message of a foxglove.JointStates in JSON. Raises SampleError for other bytes."""
    with _refused():
        given = json.loads(bytes(data))
        stamp = Time(int(given["timestamp"]["sec"]), int(given["timestamp"]["nsec"]))
        states = [[str(j["name"]), *map(j.get, QUANTITIES)] for j in given["joints"]]
        return _message(Header(stamp, ""), states)


def read_foxglove_protobuf(data: bytes | memoryview) -> JointStateMessage:
    """The message of a foxglove.JointStates in Protobuf. Raises SampleError for other bytes."""
    with _refused():
        fields = list(_protobuf_fields(bytes(data)))
        stamp: dict[int, Any] = {}
        for number, field in fields:
            stamp |= dict(_protobuf_fields(field)) if number == 1 else {}
        states = []
        for joint in (dict(_protobuf_fields(field)) for number, field in fields if number == 2):
            numbers = (joint.get(k) for k in (2, 3, 5))  # 4: acceleration
            values = (None if x is None else struct.unpack("<d", x)[0] for x in numbers)
            states.append((joint.get(1, b"").decode(), *values))
        return _message(Header(Time(stamp.get(1, 0), stamp.get(2, 0)), ""), states)


def _protobuf_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a message: an int, or the bytes of all else."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at] if at < len(data) else -1
            if byte < 0 or shift > 63:
                raise ValueError("a number without its end")
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a field of the unknown kind {kind}")
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        at += size
        if at > len(data):
            raise ValueError("a field without its end")
        yield number, data[at - size : at]


def _message(header: Header, states: Sequence[State]) -> JointStateMessage:
    """The message of these joints; what none of them has is empty, as sensor_msgs has it."""
    values = np.array([state[1:] for state in states], dtype=np.float64).reshape(-1, 3)
    columns = [np.zeros(0) if np.isnan(column).all() else column for column in values.T]
    return JointStateMessage(header, [state[0] for state in states], *columns)


# By type and encoding of the bytes, in the order of preference: makers of what reads a message.
READERS: Mapping[tuple[str, str], Callable[[], Callable[[bytes | memoryview], JointStateMessage]]]
READERS = {
    (JOINT_STATE, "cdr"): JointStateReader,
    ("control_msgs/msg/DynamicJointState", "cdr"): lambda: read_dynamic_joint_state,
    ("foxglove_msgs/msg/JointStates", "cdr"): lambda: read_foxglove_cdr,
    ("foxglove.JointStates", "protobuf"): lambda: read_foxglove_protobuf,
    ("foxglove.JointStates", "json"): lambda: read_foxglove_json,
}
