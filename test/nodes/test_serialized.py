"""Messages as bytes say what the messages themselves do, and bad ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes.messages import effort_message, wrench_message
from semiparam_dynamics.samples.nodes.serialized import read, serialized_effort, serialized_wrench

STAMPS = (0, 1_999_999_999, 1_700_000_000_123_456_789)
STORE = get_typestore(Stores.LATEST)
KIND = "sensor_msgs/msg/JointState"


@pytest.mark.parametrize(
    ("kind", "make", "frame", "size"),
    [
        (serialized_effort, effort_message, ["a"], 1),
        (serialized_effort, effort_message, ["a", "b", "ellbow"], 3),
        (serialized_wrench, wrench_message, "sensor", 6),
        (serialized_wrench, wrench_message, "", 6),
    ],
)
def test_bytes_are_those_of_the_message(kind, make, frame, size: int) -> None:
    rng, serialized = np.random.default_rng(0), kind(frame)
    rows = [rng.normal(size=size), rng.normal(size=(size, 2))[:, 0], np.arange(size, dtype="f4")]
    for stamp, values in zip(STAMPS, rows, strict=True):
        message, found = make(stamp, frame, values), serialized(stamp, values)
        assert deserialize_message(found, type(message)) == message
        # By another reader too; the bytes are not compared, since those that the alignment leaves
        # out are whatever the memory held.
        np.testing.assert_array_equal(numbers_of(found, message), values)


def numbers_of(data: bytes, message: JointState | WrenchStamped) -> list[float]:
    """Efforts, or forces and torques, as rosbags reads them."""
    if isinstance(message, JointState):
        return STORE.deserialize_cdr(data, KIND).effort.tolist()
    wrench = STORE.deserialize_cdr(data, "geometry_msgs/msg/WrenchStamped").wrench
    return [getattr(part, axis) for part in (wrench.force, wrench.torque) for axis in "xyz"]


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x00\x01", b"\x00\x01\x00\x7f\x01\x02\x03"])
def test_a_head_alone_is_no_message(data: bytes) -> None:
    """Some of them end a process that gives them to rclpy."""
    assert read(data, JointState) is None


def test_a_message_is_read_and_a_part_of_one_is_not() -> None:
    message = JointState(name=["elbow"], position=[1.0])
    whole = serialize_message(message)
    assert read(whole, JointState) == message
    assert read(whole[:20], JointState) is None
