"""Joint states as a recording has them: bytes, nearly all of which are the same each time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array, Stamps

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

JOINT_STATE = "sensor_msgs/msg/JointState"
LITTLE_ENDIAN = b"\x00\x01"  # begins the encapsulation header, whose other two bytes say nothing
BODY, NAMES = 4, 8  # bytes to a message's body, and in it to what follows the stamp
TIME, LENGTH, DOUBLE = struct.Struct("<iI"), struct.Struct("<I"), np.dtype("<f8")


@dataclass(frozen=True)
class JointStateBlock:
    """Joint states that follow each other, with the same names and as many numbers each.

    Attributes
    ----------
    name: (n,) of the joints.
    stamps: (k,) ns.
    position, velocity, effort: (k, any) as many as the messages have, 0 where they have none.
    message: gives the one of that number.
    """

    name: list[str]
    stamps: Stamps
    position: Array
    velocity: Array
    effort: Array
    message: Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a joint state's numbers are, and the bytes that those of the same layout share."""

    size: int  # of the whole message
    frame_id: str
    name: list[str]
    counts: tuple[int, int, int]  # of positions, velocities and efforts
    begins: tuple[int, int, int]  # of these, in the body
    # What lies before each of the three in the body: frame and names, and the number that follows.
    before: tuple[bytes, bytes, bytes]
    ends: tuple[int, int]  # of positions and velocities


class JointStateDecoder:
    """Decodes the joint states of one topic, to the messages that rosbags makes of them.

    rosbags decodes field by field, a name at a time, which was half of what reading a bag took. But
    a driver writes the same names in every message: all is at the same place, and only the stamp
    and the numbers are other bytes. A message in which anything else is new goes through rosbags,
    which alone decides what is refused. Messages of one layout share the list of their names.
    """

    def __init__(self, store: Typestore) -> None:
        self._store = store
        types = store.types
        self._types = (
            types["builtin_interfaces/msg/Time"],
            types["std_msgs/msg/Header"],
            types[JOINT_STATE],
        )
        self._layout: Layout | None = None

    def __call__(self, data: bytes | memoryview) -> Any:
        """The message of these bytes; raises what rosbags does."""
        layout = self._layout
        if layout is not None and len(data) == layout.size and data[:2] == LITTLE_ENDIAN:
            body = bytes(data[BODY:])  # a copy, in which the numbers are aligned
            (q, dq, effort), (q_end, dq_end) = layout.begins, layout.ends
            names, velocities, efforts = layout.before
            if (
                body[NAMES:q] == names
                and body[q_end:dq] == velocities
                and body[dq_end:effort] == efforts
            ):
                n_q, n_dq, n_effort = layout.counts
                time, header, joint_state = self._types
                return joint_state(
                    header(time(*TIME.unpack_from(body)), layout.frame_id),
                    layout.name,
                    np.frombuffer(body, DOUBLE, n_q, q),
                    np.frombuffer(body, DOUBLE, n_dq, dq),
                    np.frombuffer(body, DOUBLE, n_effort, effort),
                )
        message = self._store.deserialize_cdr(data, JOINT_STATE)
        self._layout = _layout(bytes(data), message)
        return message

    def block(self, data: Sequence[bytes | memoryview]) -> JointStateBlock | None:
        """These messages at once; None where one is of another layout than the last one decoded."""
        layout = self._layout
        if layout is None or any(len(one) != layout.size for one in data):
            return None
        rows = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), layout.size)
        body = rows[:, BODY:]
        starts = (NAMES, *layout.ends)
        same = [(rows[:, : len(LITTLE_ENDIAN)], LITTLE_ENDIAN)]
        same += [
            (body[:, start:begin], before)
            for start, begin, before in zip(starts, layout.begins, layout.before, strict=True)
        ]
        if not all((found == np.frombuffer(expected, np.uint8)).all() for found, expected in same):
            return None
        seconds, rest = (
            body[:, k : k + 4].copy().view(kind)[:, 0].astype(np.int64)
            for k, kind in ((0, "<i4"), (4, "<u4"))
        )
        position, velocity, effort = (
            body[:, begin : begin + 8 * n].copy().view(DOUBLE).reshape(len(data), n)
            for begin, n in zip(layout.begins, layout.counts, strict=True)
        )
        stamps = seconds * SECOND + rest
        return JointStateBlock(
            layout.name, stamps, position, velocity, effort, lambda k: self(data[k])
        )


def _layout(data: bytes, message: Any) -> Layout | None:
    """The layout of a message that rosbags has decoded; None where it is big endian."""
    if data[:2] != LITTLE_ENDIAN:
        return None
    body = data[BODY:]
    at = _after_string(body, NAMES)
    at = _aligned(at, 4) + 4
    for _ in message.name:
        at = _after_string(body, _aligned(at, 4))
    start, begins, ends, before = NAMES, [], [], []
    for values in (message.position, message.velocity, message.effort):
        at = _aligned(at, 4) + 4
        begin = _aligned(at, 8) if len(values) else at  # no padding before nothing
        at = begin + 8 * len(values)
        begins.append(begin)
        ends.append(at)
        before.append(body[start:begin])
        start = at
    counts = len(message.position), len(message.velocity), len(message.effort)
    return Layout(
        len(data),
        message.header.frame_id,
        message.name,
        counts,
        (begins[0], begins[1], begins[2]),
        (before[0], before[1], before[2]),
        (ends[0], ends[1]),
    )


def _after_string(body: bytes, at: int) -> int:
    return at + 4 + int(LENGTH.unpack_from(body, at)[0])


def _aligned(at: int, size: int) -> int:
    return (at + size - 1) & -size
