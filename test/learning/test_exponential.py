"""The compiled exponential against NumPy's in extended precision."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from semiparam_dynamics.learning.gaussian_blocks import BYTES, WHOLE, exponentiate


@numba.njit
def exponentials(x: Any, out: Any) -> None:
    for i in range(0, x.size, BYTES // x.itemsize):
        exponentiate(x, i, out, i)


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_it_is_right_to_two_units_in_the_last_place(dtype: Any, lowest: float) -> None:
    even = np.linspace(lowest, 0.0, 300_000)
    x = np.concatenate((even, -np.geomspace(1e-30, -lowest, 10_000))).astype(dtype)
    x = np.maximum(x, dtype(lowest))
    assert len(x) % WHOLE == 0
    out = np.empty_like(x)
    exponentials(x, out)
    expected = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(out - expected) / expected) < 2 * np.finfo(dtype).eps
    assert out.max() <= 1.0
    exponentials(x, x)
    np.testing.assert_array_equal(x, out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends_are_exact(dtype: Any) -> None:
    x = np.array([0.0, -0.0, 1e-3, 50.0, np.inf, -1e4, -1e30, -np.inf] * 3, dtype)
    out = np.full(24, 7.0, dtype)
    exponentials(x[1:17], out[1:17])  # memory of any alignment; nothing else is touched
    expected = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0] * 2)
    np.testing.assert_array_equal(out[1:17], np.roll(expected, -1))
    np.testing.assert_array_equal(out[[0, *range(17, 24)]], 7.0)
