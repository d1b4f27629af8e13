"""Spectral filters against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import eval_jacobi

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.krls import (
    PARAMETERS,
    filter_values,
    landweber,
    nu_method,
    parameter_of,
)

SIGMA = np.concatenate(([0.0, 1e-18, 1e-9, 1e-3], np.linspace(0.05, 0.7, 8)))


def test_direct_filters_are_what_they_say() -> None:
    tikhonov = filter_values("tikhonov", SIGMA, [0.1, 1e-6])
    np.testing.assert_allclose(tikhonov[0], 1.0 / (SIGMA + 0.1), rtol=1e-15)
    np.testing.assert_allclose(tikhonov[1], 1.0 / (SIGMA + 1e-6), rtol=1e-15)
    (cutoff,) = filter_values("cutoff", SIGMA, [1e-3])
    np.testing.assert_array_equal(cutoff[:3], 0.0)
    np.testing.assert_allclose(cutoff[3:] * SIGMA[3:], 1.0, rtol=1e-15)
    (ols,) = filter_values("ols", SIGMA, [None])
    assert ols[0] == 0.0
    np.testing.assert_allclose(ols[1:] * SIGMA[1:], 1.0, rtol=1e-15)


def test_landweber_is_gradient_descent() -> None:
    counts = [7, 1, 200]
    found = landweber(SIGMA, counts)
    step = 1.0 / SIGMA.max()
    for t, g in zip(counts, found, strict=True):
        powers = (1.0 - step * SIGMA[:, None]) ** np.arange(t)
        np.testing.assert_allclose(g, step * powers.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
def test_the_nu_methods_residuals_are_jacobi_polynomials(nu: float) -> None:
    # 1 - sigma g_k(sigma) = P_k(1 - 2 sigma) / P_k(1), P the Jacobi polynomials of
    # (2 nu - 1/2, -1/2): Engl, Hanke, Neubauer 1996, section 6.3.
    scaled = SIGMA / SIGMA.max()
    counts = [9, 1, 2, 40]
    for k, g in zip(counts, nu_method(SIGMA, counts, nu), strict=True):
        expected = eval_jacobi(k, 2 * nu - 0.5, -0.5, 1 - 2 * scaled)
        expected /= eval_jacobi(k, 2 * nu - 0.5, -0.5, 1.0)
        np.testing.assert_allclose(1.0 - SIGMA * g, expected, atol=1e-12)


def test_the_nu_method_needs_the_square_root_of_landwebers_iterations() -> None:
    sigma = np.array([1.0, 1e-4])
    (few,) = nu_method(sigma, [200])
    many, fewer = landweber(sigma, [10_000, 200])
    residuals = [abs(1.0 - sigma[1] * g[1]) for g in (few, many, fewer)]
    assert residuals[0] < residuals[1] < 0.4 < 0.9 < residuals[2]


def test_a_zero_matrix_has_finite_filters() -> None:
    for name in PARAMETERS:
        values = filter_values(name, np.zeros(3), [5])
        assert np.isfinite(values[0]).all()


@pytest.mark.parametrize(
    ("name", "value", "nu"),
    [
        ("tikhonov", 0.0, 1.0),
        ("tikhonov", np.nan, 1.0),
        ("cutoff", -1.0, 1.0),
        ("landweber", 0, 1.0),
        ("nu", 2.5, 1.0),
        ("nu", 3, 0.0),
    ],
)
def test_values_out_of_range_are_refused(name: str, value: float, nu: float) -> None:
    with pytest.raises(ConfigurationError, match="must be a"):
        filter_values(name, SIGMA, [value], nu)


def test_an_unknown_filter_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one of tikhonov, cutoff"):
        parameter_of("ridge")
