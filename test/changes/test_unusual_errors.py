"""Limits of usual errors: what is compiled, beside the same in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semiparam_dynamics.changes.error_sizes import CLIPPED, ScaledErrors
from semiparam_dynamics.changes.unusual_errors import (
    GROWTH,
    LARGEST_HORIZON_S,
    PEAK_STDS,
    SHORT_GROWTH,
    USUAL_FACTOR,
    USUAL_STEP,
    DeviationTest,
    ReversalPeaks,
    as_rare,
)

N = 4  # axes
STEP = 0.01  # s


def drawn(rng: np.random.Generator, stamp: int) -> ScaledErrors:
    """A sample whose deviations have tails."""
    scaled = rng.standard_t(2.0, size=N)
    scaled[rng.random(N) < 0.1] = 0.0  # not measured
    deviations = np.append(np.abs(scaled), np.linalg.norm(scaled))
    turning = rng.integers(0, 2, size=N + 1)
    return ScaledErrors(stamp, scaled, 1.0, np.zeros(N, dtype=np.intp), scaled, deviations, turning)


def samples(count: int) -> list[ScaledErrors]:
    rng = np.random.default_rng(3)
    return [drawn(rng, round((1.0 + STEP * k) * 1e9)) for k in range(count)]


class Peaks:
    """`ReversalPeaks` by arrays."""

    def __init__(self, lasts: float) -> None:
        self.since, self.height = np.zeros(N + 1, dtype=np.int64), np.zeros(N + 1)
        self.lasts = 1e9 * lasts + USUAL_STEP

    def take(self, usual: ScaledErrors) -> np.ndarray:
        large, begun = usual.deviations > PEAK_STDS, self.since > 0
        short = usual.stamp - self.since <= self.lasts
        ended = np.where(begun & ~large & short, self.height, 0.0)
        self.since = np.where(large, np.where(begun, self.since, usual.stamp), 0)
        height = np.maximum(self.height, usual.deviations * usual.turning)
        self.height = np.where(large, height, 0.0)
        return ended


def test_peaks_that_end_are_those_of_arrays() -> None:
    peaks, expected = ReversalPeaks(N + 1, 0.12), Peaks(0.12)
    ended = 0
    for usual in samples(2000):
        found = peaks.take(usual)
        np.testing.assert_array_equal(found, expected.take(usual))
        ended += bool(found.any())
    assert ended > 50


def test_largest_usual_deviations_and_correlation_are_those_of_arrays() -> None:
    errors, peaks = DeviationTest(np.ones(N)), Peaks(0.12)
    largest, correlation, seen, each = np.zeros((2, N + 1)), np.eye(N), 0.0, np.arange(N + 1)
    for k, usual in enumerate(samples(3000)):
        ahead = errors.count(usual)
        assert ahead == pytest.approx(STEP if k else 0.0)
        first = seen < 10.0
        seen += ahead
        grown, ended = math.exp(-ahead / LARGEST_HORIZON_S) * largest, peaks.take(usual)
        now = usual.turning, each
        if first and seen > 5.0:
            grown = np.maximum(grown, usual.deviations)
        elif seen > 5.0:
            most = np.minimum(usual.deviations, (1.0 + GROWTH * ahead) * largest[now])
            grown[now] = np.maximum(grown[now], most)
            grown[1] = np.maximum(grown[1], np.minimum(ended, SHORT_GROWTH * largest[1]))
        largest = grown
        clipped = np.clip(usual.scaled, -CLIPPED, CLIPPED)
        share = 1.0 - math.exp(-ahead / 120.0)
        correlation += share * (np.outer(clipped, clipped) - correlation)
        np.testing.assert_allclose(errors._usual, largest, rtol=1e-12)
    assert largest.min() > 0.0
    np.testing.assert_allclose(errors._correlation, correlation, rtol=1e-9)


@pytest.mark.parametrize("threshold", [6.0, 0.0])
def test_limits_are_the_threshold_and_beyond_the_largest_usual_deviations(
    threshold: float,
) -> None:
    errors = DeviationTest(np.ones(N), above=1.5)
    for usual in samples(1200):
        errors.count(usual)
    least = 1.5 * threshold or math.inf
    expected = np.maximum(USUAL_FACTOR * errors._usual, [*N * [least], as_rare(least, N)])
    np.testing.assert_array_equal(errors._both_limits(threshold), expected)
    assert not threshold or (expected[:, :N] > least).any()  # of tails
