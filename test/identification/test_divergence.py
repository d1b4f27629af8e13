"""The divergence against its formula, and its derivative."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.identification.log_cholesky import (
    divergence_jacobian,
    divergence_residuals,
    factor,
    from_log_cholesky,
    pseudo_inertia,
    upper_cholesky,
)

from .test_log_cholesky import differences


@pytest.fixture(params=range(5))
def theta(request: pytest.FixtureRequest) -> np.ndarray:
    return np.random.default_rng(request.param).normal(0.0, 0.7, 10)


def test_the_divergence_is_the_formula(theta: np.ndarray) -> None:
    P0 = pseudo_inertia(from_log_cholesky(np.linspace(-0.5, 0.5, 10)))
    U = upper_cholesky(P0) @ factor(theta)
    ratio = np.linalg.solve(P0, U @ U.T)
    expected = np.trace(ratio) - np.log(np.linalg.det(ratio)) - 4.0
    assert np.sum(divergence_residuals(theta) ** 2) == pytest.approx(expected, rel=1e-8)


def test_the_divergence_s_jacobian_against_finite_differences(theta: np.ndarray) -> None:
    for x in (theta, 1e-4 * theta):
        numeric = differences(divergence_residuals, x)
        assert np.allclose(divergence_jacobian(x), numeric, rtol=1e-4, atol=1e-4)
    at_rest = divergence_jacobian(np.zeros(10))
    assert np.linalg.matrix_rank(at_rest) == 10
    assert np.allclose(divergence_jacobian(np.full(10, 1e-7)), at_rest, atol=1e-5)
