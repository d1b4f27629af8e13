"""The bound of a payload's deviations beside the spread of estimates that reach it."""

from __future__ import annotations

import numpy as np
import pytest
from payload_bound import Noise, center_bound, noise_of, parameters_bound, share_within

RNG_SEED = 3
COVARIANCE = np.array([[1.0, 0.4], [0.4, 0.5]])
CORRELATION = np.array([0.7, 0.3])


def errors_of(count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, 2) of the noise above, once it has forgotten its beginning."""
    shocks = rng.multivariate_normal(np.zeros(2), COVARIANCE, count + 50)
    errors = np.zeros_like(shocks)
    for k in range(1, len(shocks)):
        errors[k] = CORRELATION * errors[k - 1] + shocks[k]
    return errors[50:]


def test_finds_the_noises_covariance_and_correlation() -> None:
    noise = noise_of(errors_of(20_000, np.random.default_rng(RNG_SEED)))
    np.testing.assert_allclose(noise.correlation, CORRELATION, atol=0.02)
    np.testing.assert_allclose(noise.covariance, COVARIANCE, atol=0.03)


def test_weighted_least_squares_have_the_bounds_covariance() -> None:
    """Of errors correlated in time the plain sum of information would promise twice too much."""
    rng = np.random.default_rng(RNG_SEED)
    columns = rng.normal(size=(60, 2, 10)).cumsum(axis=0) / 5.0
    noise = Noise(CORRELATION, COVARIANCE)
    bound = parameters_bound(columns, noise)
    root = np.linalg.inv(np.linalg.cholesky(COVARIANCE))
    rows = np.einsum("ij,kja->kia", root, columns[1:] - CORRELATION[:, None] * columns[:-1])
    solve = np.linalg.pinv(rows.reshape(-1, 10))
    found = []
    for _ in range(2000):
        errors = errors_of(60, rng)
        white = (errors[1:] - CORRELATION * errors[:-1]) @ root.T
        found.append(solve @ white.ravel())
    spread = np.cov(np.array(found).T)
    np.testing.assert_allclose(np.diag(spread), np.diag(bound), rtol=0.15)


def test_a_centre_is_as_uncertain_as_its_moment_over_the_mass() -> None:
    covariance = np.diag([0.01, 0.02, 0.03, 0.04, *np.ones(6)]) ** 2
    mass, center = 2.0, np.array([0.1, 0.0, -0.2])
    rng = np.random.default_rng(RNG_SEED)
    drawn = np.array([mass, *(mass * center)]) + rng.normal(size=(200_000, 4)) * np.sqrt(
        np.diag(covariance)[:4]
    )
    spread = np.cov((drawn[:, 1:] / drawn[:, :1]).T)
    np.testing.assert_allclose(center_bound(covariance, mass, center), spread, atol=3e-6)


def test_the_share_within_a_radius() -> None:
    assert share_within(0.01**2 * np.eye(3), 0.01) == pytest.approx(0.1987, abs=0.01)
    assert share_within(np.zeros((3, 3)), 0.01) == 1.0
