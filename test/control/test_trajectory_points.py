"""The motion between points against scipy's polynomials from derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BPoly

from semiparam_dynamics.control.trajectory_efforts import Waypoints, resampled, states_at
from semiparam_dynamics.errors import SampleError

K, N = 7, 3
NANO = 1e-9
MOST = 1000


def given(degree: int, seed: int = 0) -> Waypoints:
    """Random points at random times, with as many derivatives as the degree needs."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(100_000_000, 700_000_000, K))
    q, dq, ddq = rng.normal(size=(3, K, N))
    missing = np.full((K, N), np.nan)
    return Waypoints(times, q, dq if degree > 1 else missing, ddq if degree > 3 else missing)


def motion(points: Waypoints) -> BPoly:
    """The trajectory (t in s) that scipy makes of positions and what derivatives there are."""
    rows = np.stack((points.q, points.dq, points.ddq), axis=1)
    kept = [row[np.isfinite(row).all(axis=1)] for row in rows]
    return BPoly.from_derivatives(NANO * points.times, kept)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_states_at_points_are_those_of_the_motion(degree: int) -> None:
    points = given(degree)
    q, dq, ddq = states_at(points)
    t, oracle = NANO * points.times, motion(points)
    np.testing.assert_array_equal(q, points.q)
    # Left and right of each inner point, in the middle between them.
    pieces = [BPoly(oracle.c[:, [i]], oracle.x[i : i + 2]) for i in range(K - 1)]
    for k, found in ((1, dq), (2, ddq)):
        after = np.array([piece.derivative(k)(t[i]) for i, piece in enumerate(pieces)])
        before = np.array([piece.derivative(k)(t[i + 1]) for i, piece in enumerate(pieces)])
        np.testing.assert_allclose(found[0], after[0], rtol=1e-9, atol=1e-9)
        mean = 0.5 * (after[1:] + before[:-1])
        np.testing.assert_allclose(found[1:-1], mean, rtol=1e-9, atol=1e-9)
        if degree > 1:  # a straight motion ends at rest
            np.testing.assert_allclose(found[-1], before[-1], rtol=1e-9, atol=1e-9)
    if degree == 1:
        assert not dq[-1].any() and not ddq.any()
    if degree > 1:
        np.testing.assert_allclose(dq, points.dq, atol=1e-9)
    if degree > 3:
        np.testing.assert_allclose(ddq, points.ddq, atol=1e-8)


def test_the_last_point_is_held_where_its_velocity_is_zero() -> None:
    points = given(3)
    points.dq[-1] = 0.0
    _, dq, ddq = states_at(points)
    assert not dq[-1].any() and not ddq[-1].any()
    only = Waypoints(points.times[:1], points.q[:1], points.dq[:1], points.ddq[:1])
    _, dq, ddq = states_at(only)
    np.testing.assert_array_equal(dq, points.dq[:1])
    assert not ddq.any()


def test_each_segment_has_the_degree_of_what_both_its_ends_have() -> None:
    points = given(5)
    points.ddq[2] = np.nan
    points.dq[4] = points.ddq[4] = np.nan
    fine = resampled(points, 0.01, MOST)
    place = np.searchsorted(points.times, fine.times, side="right") - 1
    for i, degree in enumerate((5, 3, 3, 1, 1, 5)):
        inside = (place == i) & (fine.times != points.times[i])
        assert inside.any()
        assert np.isfinite(fine.dq[inside]).all() == (degree > 1)
        assert np.isfinite(fine.ddq[inside]).all() == (degree > 3)
        ends = [
            [row[j] for row in (points.q, points.dq, points.ddq)[: (degree + 1) // 2]]
            for j in (i, i + 1)
        ]
        oracle = BPoly.from_derivatives(NANO * points.times[i : i + 2], ends)
        np.testing.assert_allclose(fine.q[inside], oracle(NANO * fine.times[inside]), atol=1e-9)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_added_points_change_nothing_in_the_motion(degree: int) -> None:
    points = given(degree)
    fine = resampled(points, 0.05, MOST)
    steps = np.diff(fine.times)
    assert steps.max() <= 50_000_000 and steps.min() > 25_000_000
    kept = np.isin(fine.times, points.times)
    assert kept.sum() == K
    for before, after in zip(
        (points.q, points.dq, points.ddq), (fine.q, fine.dq, fine.ddq), strict=True
    ):
        np.testing.assert_array_equal(after[kept], before)
    t = NANO * np.linspace(points.times[0], points.times[-1], 5000)
    np.testing.assert_allclose(motion(fine)(t), motion(points)(t), atol=1e-8)
    exact = motion(points).derivative()(NANO * fine.times[~kept])
    _, dq, _ = states_at(fine)
    np.testing.assert_allclose(dq[~kept], exact, atol=1e-8)


def test_there_are_never_too_many_points() -> None:
    points = given(3)
    for most in (K, K + 1, 12, 100):
        fine = resampled(points, 1e-6, most)
        assert K <= len(fine.times) <= most
        assert most < 100 or len(fine.times) > 80
    assert resampled(points, 0.0, MOST) is points
    centuries = Waypoints(np.array([0, 2**62]), points.q[:2], points.dq[:2], points.ddq[:2])
    assert len(resampled(centuries, 1e-3, MOST).times) <= MOST


def test_points_without_a_motion_are_refused() -> None:
    points = given(5)
    for times in (points.times[::-1].copy(), np.zeros(K, dtype=np.int64), points.times - 10**12):
        with pytest.raises(SampleError, match="must increase"):
            Waypoints(times, points.q, points.dq, points.ddq)
    with pytest.raises(SampleError, match="accelerations and no velocities"):
        Waypoints(points.times, points.q, np.full((K, N), np.nan), points.ddq)
    far = Waypoints(np.arange(K), 1e300 * points.q, points.dq, np.full((K, N), np.nan))
    with pytest.raises(SampleError, match="not finite"):
        states_at(far)
