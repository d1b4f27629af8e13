"""Elementary functions in vectors against NumPy's, in higher precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.learning.recursion.vectors import (
    MAX_ANGLE,
    cosines_and_sines,
    powers_of_two,
)


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -126.0), (np.float64, -1022.0)])
def test_powers_are_right_to_two_units_in_the_last_place(dtype: Any, lowest: float) -> None:
    even = np.linspace(lowest, 0.0, 300_000)
    x = np.concatenate((even, -np.geomspace(1e-30, -lowest, 10_003))).astype(dtype)
    x = np.maximum(x, dtype(lowest))
    out = x.copy()
    powers_of_two(out)
    expected = np.exp2(x.astype(np.longdouble))
    assert np.max(np.abs(out - expected) / expected) < 2 * np.finfo(dtype).eps
    assert out.max() <= 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_powers_and_ends_are_exact(dtype: Any) -> None:
    x = np.array([0.0, -0.0, 1e-3, 50.0, np.inf, -1e4, -1e30, -np.inf] * 3, dtype)
    out = x.copy()
    powers_of_two(out[1:18])  # memory of any alignment; nothing else is touched
    expected = np.roll([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0], -1)
    np.testing.assert_array_equal(out[1:18], [*expected, *expected, 1.0])
    np.testing.assert_array_equal(out[[0, *range(18, 24)]], x[[0, *range(18, 24)]])
    whole = -np.arange(float(np.finfo(dtype).minexp * -1 + 3)).astype(dtype)
    powers_of_two(whole)
    tiny = np.finfo(dtype).tiny
    exact = np.exp2(-np.arange(len(whole), dtype=float))
    np.testing.assert_array_equal(whole, np.where(exact < tiny, 0.0, exact))


@pytest.mark.parametrize("largest", [1e-12, 0.8, 10.0, 1e3, MAX_ANGLE])
def test_right_to_the_last_places(largest: float) -> None:
    angles = largest * np.random.default_rng(0).uniform(-1.0, 1.0, (3, 5001))
    found = np.empty((3, 10002))
    cosines_and_sines(angles, 1.0, found)
    wanted = np.concatenate((np.cos(angles), np.sin(angles)), axis=1)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=3e-16)


def test_multiples_of_quarter_turns() -> None:
    angles = np.arange(-9, 10)[None] * (np.pi / 4.0)
    found = np.empty((1, 38))
    cosines_and_sines(angles, 2.0, found)
    wanted = 2.0 * np.concatenate((np.cos(angles), np.sin(angles)), axis=1)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=6e-16)
