"""Messages as DDS carries them: bytes, of which only the stamp and the numbers are new.

What a message costs a thousand times a second is not its conversion alone, of some microseconds,
but that of each name and number by code that is no longer in the processor's caches
(benchmarks/results/node_latency.md has times).
The layout is that of CDR, see `joint_states.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.nodes.messages import effort_message, wrench_message
from semiparam_dynamics.samples.joint_states import STAMP, STAMP_AT

MIN_SIZE = 8  # bytes of a message: Fast CDR ends the process on a head alone that says it is padded


def read(data: bytes, kind: type) -> Any:
    """The message of this kind in serialized bytes, or None where they are none."""
    if len(data) < MIN_SIZE:
        return None
    try:
        return deserialize_message(data, kind)
    except RuntimeError:  # RMWError has no public name
        return None


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
    """The message of `messages.effort_message`, of joint efforts (N m or N), as bytes."""
    marks = _marks(len(names))
    return SerializedMessage(effort_message(0, names, marks), marks)


def serialized_wrench(frame: str) -> SerializedMessage:
    """The message of `messages.wrench_message`, of forces (N) and torques (N m), as bytes."""
    marks = _marks(6)
    return SerializedMessage(wrench_message(0, frame, marks), marks)


def _marks(size: int) -> np.ndarray:
    return 1000.5 + np.arange(size)
