"""Messages that are filled again and again say what new ones would."""

from __future__ import annotations

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message

from semiparam_dynamics.nodes.messages import (
    ReusedEffort,
    ReusedWrench,
    effort_message,
    wrench_message,
)

STAMPS = (0, 1_999_999_999, 1_700_000_000_123_456_789)


def test_efforts():
    names, rng = ["a", "b", "c"], np.random.default_rng(0)
    reused = ReusedEffort(names)
    rows = [rng.normal(size=3), rng.normal(size=(3, 2))[:, 0], np.float32([1.5, 2.5, 3.5])]
    for stamp, values in zip(STAMPS, rows, strict=True):
        again, made = reused(stamp, values), effort_message(stamp, names, values)
        assert again == made
        assert deserialize_message(serialize_message(again), type(made)) == made


def test_wrenches():
    rng = np.random.default_rng(0)
    reused = ReusedWrench("sensor")
    rows = [rng.normal(size=6), rng.normal(size=(6, 2))[:, 1], np.float32([1, 2, 3, 4, 5, 6])]
    for stamp, values in zip(STAMPS, rows, strict=True):
        again, made = reused(stamp, values), wrench_message(stamp, "sensor", values)
        assert again == made
        assert deserialize_message(serialize_message(again), type(made)) == made
