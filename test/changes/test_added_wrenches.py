"""Ellipsoids of external wrenches that are held to cover wrenches added to errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from semiparam_dynamics.changes.added_wrenches import (
    ADDED,
    EVERY_S,
    LIMIT,
    MISSED,
    OVER_S,
    AddedWrenches,
)
from semiparam_dynamics.changes.external_wrench import SIZE, ExternalWrench

from .test_external_wrench import MODEL, states

PRIOR = np.repeat(SIZE, 3)
STEP = 50_000_000  # ns


def counted(target: AddedWrenches, lengths: np.ndarray, stamp: int = 10**9) -> int:
    """Count so many; returns the stamp after them."""
    for length in lengths:
        assert target.is_due(stamp, True)
        target.count(stamp, float(length))
        stamp += STEP
    return stamp


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_the_factor_is_the_errors_over_what_is_told_of_them(scale: float) -> None:
    """Of normal errors scaled so, nine of ten are within."""
    target, rng = AddedWrenches(), np.random.default_rng(0)
    lengths = scale**2 * rng.chisquare(6, 4000)
    stamp, factors = 10**9, []
    for length in lengths:
        stamp = counted(target, np.array([length]), stamp)
        factors.append(target.factor)
    expected = scale * np.sqrt(chi2.ppf(1.0 - MISSED, 6) / LIMIT)
    assert np.mean(factors[1000:]) == pytest.approx(expected, rel=0.05)
    assert chi2.cdf(LIMIT, 6) == pytest.approx(0.95)


def test_nothing_is_counted_in_a_contact_and_shortly_after_it() -> None:
    target = AddedWrenches()
    assert target.is_due(10**9, True)
    assert not target.is_due(2 * 10**9, False)
    over = 2 * 10**9 + round(OVER_S * 1e9)
    assert not target.is_due(over - 1, True) and target.is_due(over, True)
    target.count(over, 0.0)
    assert not target.is_due(over + round(EVERY_S * 1e9) - 1, True)
    assert target.is_due(over + round(EVERY_S * 1e9), True)
    assert target.is_due(10**9, True)  # the clock went back


def test_the_factor_has_bounds() -> None:
    for length, bound in ((np.inf, 5.0), (0.0, 0.2)):
        target = AddedWrenches()
        counted(target, np.full(2000, length))
        assert target.factor == pytest.approx(bound)


def drawn(k: int) -> np.ndarray:
    return PRIOR * ADDED[k % len(ADDED)]


def lead(target: ExternalWrench, seconds: int, untouched: bool) -> float:
    """The share of held-out wrenches covered, by errors of two joints that come together."""
    rng, covered, mixed = np.random.default_rng(1), [], np.eye(7)
    mixed[1, 0] = mixed[3, 2] = 2.5
    poses = states(20 * seconds, seed=4)
    for k, q in enumerate(poses):
        stamp = 10**9 + k * STEP
        errors = mixed @ rng.normal(size=7)
        target.estimate(q, errors, np.ones(7), stamp, untouched)
        if 2 * k > len(poses):
            wrench = drawn(7 * k + 3)
            left = errors - target._motion.jacobian(q).T @ wrench
            factor, target._stamp = target.added.factor, stamp - STEP
            found = target.estimate(q, left, np.ones(7), stamp)
            assert target.added.factor == factor
            off = found.value - wrench
            covered.append(off @ np.linalg.solve(found.covariance, off) <= LIMIT)
    return float(np.mean(covered))


def test_errors_larger_than_told_and_not_independent_are_covered_once_they_were_seen() -> None:
    """As many of those touched are missed as are to be; without learning it many more are."""
    assert lead(ExternalWrench(MODEL), 60, untouched=False) < 0.85
    assert lead(ExternalWrench(MODEL), 60, untouched=True) == pytest.approx(0.9, abs=0.03)


def test_the_wrench_itself_is_told_as_before() -> None:
    one, other = ExternalWrench(MODEL), ExternalWrench(MODEL)
    rng = np.random.default_rng(2)
    for k, q in enumerate(states(200, seed=3)):
        external, stamp = 3.0 * rng.normal(size=7), 10**9 + k * STEP
        first = one.estimate(q, external, np.ones(7), stamp, True)
        second = other.estimate(q, external, np.ones(7), stamp, False)
        np.testing.assert_array_equal(first.value, second.value)
    assert one.added.factor != 1.0 == other.added.factor
    np.testing.assert_allclose(first.covariance, one.added.factor**2 * second.covariance)
    one.forget()
    assert one.added.factor == 1.0
