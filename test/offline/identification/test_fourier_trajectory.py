"""The Fourier series against finite differences and the textbook's sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.offline.identification.fourier_trajectory import (
    FourierTrajectory,
    resting_directions,
    series_basis,
)


def random_series(seed: int = 0, harmonics: int = 4, joints: int = 3) -> FourierTrajectory:
    coefficients = np.random.default_rng(seed).standard_normal((2 * harmonics + 1, joints))
    return FourierTrajectory(coefficients, period=7.0)


def test_it_is_the_sum_of_sines_and_cosines() -> None:
    series = random_series()
    q, _, _ = series([1.3])
    for joint, (offset, *rest) in enumerate(series.coefficients.T):
        expected = offset
        for k in range(1, 5):
            angle = 2 * math.pi * k * 1.3 / 7.0
            expected += rest[k - 1] * math.sin(angle) + rest[4 + k - 1] * math.cos(angle)
        assert q[0, joint] == pytest.approx(expected, rel=1e-12)


def test_velocities_and_accelerations_are_the_derivatives() -> None:
    series, h = random_series(), 1e-5
    t = np.linspace(0.0, 7.0, 50)
    (before, v_before, _), (after, v_after, _) = series(t - h), series(t + h)
    _, dq, ddq = series(t)
    np.testing.assert_allclose((after - before) / (2 * h), dq, atol=1e-7)
    np.testing.assert_allclose((v_after - v_before) / (2 * h), ddq, atol=1e-7)


def test_periods_repeat_after_hours() -> None:
    series = random_series()
    t = np.linspace(0.0, 7.0, 20)
    for early, late in zip(series(t), series(t + 7.0 * 10_000), strict=True):
        np.testing.assert_allclose(late, early, atol=1e-9)


@pytest.mark.parametrize("harmonics", [2, 5, 20])
def test_resting_directions_are_all_that_rest(harmonics: int) -> None:
    directions = resting_directions(harmonics)
    assert directions.shape == (2 * harmonics + 1, 2 * harmonics - 1)
    np.testing.assert_allclose(directions.T @ directions, np.eye(2 * harmonics - 1), atol=1e-12)
    np.testing.assert_array_equal(directions[:, 0], np.eye(2 * harmonics + 1)[0])  # the offset
    for t in (0.0, 7.0):
        _, velocity, acceleration = series_basis([t], harmonics, 7.0)
        np.testing.assert_allclose(velocity @ directions, 0.0, atol=1e-11)
        np.testing.assert_allclose(acceleration @ directions, 0.0, atol=1e-10)


def test_what_makes_no_series_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="odd number"):
        FourierTrajectory(np.zeros((4, 2)), 1.0)
    with pytest.raises(ConfigurationError, match="positive"):
        FourierTrajectory(np.zeros((5, 2)), 0.0)
    with pytest.raises(ConfigurationError, match="at least 2"):
        resting_directions(1)
