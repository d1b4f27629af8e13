"""Cosines and sines against the C library's."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.recursion.features import LARGEST, cosines_and_sines, fourier_features


@pytest.mark.parametrize("largest", [1e-12, 0.8, 10.0, 1e3, LARGEST])
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


def test_one_input_many_inputs_and_those_out_of_range_are_alike() -> None:
    rng = np.random.default_rng(1)
    X, frequencies = rng.standard_normal((6, 4)), rng.standard_normal((10, 4))
    many = fourier_features(X, frequencies)
    np.testing.assert_allclose(many[2], fourier_features(X[2], frequencies), atol=1e-15)
    X[4] *= 1e9
    phase = X @ frequencies.T
    wanted = np.concatenate((np.cos(phase), np.sin(phase)), axis=1) / np.sqrt(10.0)
    np.testing.assert_allclose(fourier_features(X, frequencies), wanted, atol=1e-15)
    np.testing.assert_allclose(many[:4], wanted[:4], atol=1e-15)
    with np.errstate(invalid="ignore"):
        assert np.isnan(fourier_features(np.full(4, np.nan), frequencies)).all()
