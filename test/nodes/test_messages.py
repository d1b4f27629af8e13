"""Messages that are filled again and again say what new ones would."""

from __future__ import annotations

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message

from semiparam_dynamics.nodes.messages import (
    ReusedEffort,
    ReusedWrench,
    effort_message,
    wrench_message,
)

STAMPS = (0, 1_999_999_999, 1_700_000_000_123_456_789)


@pytest.mark.parametrize(
    ("kind", "make", "frame", "size"),
    [
        (ReusedEffort, effort_message, ["a", "b", "c"], 3),
        (ReusedWrench, wrench_message, "sensor", 6),
    ],
)
def test_a_message_filled_again_is_the_one_made_anew(kind, make, frame, size: int) -> None:
    rng, reused = np.random.default_rng(0), kind(frame)
    rows = [rng.normal(size=size), rng.normal(size=(size, 2))[:, 0], np.arange(size, dtype="f4")]
    for stamp, values in zip(STAMPS, rows, strict=True):
        again, made = reused(stamp, values), make(stamp, frame, values)
        assert again == made
        assert deserialize_message(serialize_message(again), type(made)) == made
