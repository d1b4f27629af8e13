"""Coordinates of bodies and their divergence against pinocchio, formulas and finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.inertia import (
    divergence_jacobian,
    divergence_residuals,
    factor,
    from_log_cholesky,
    inertial_parameters,
    is_body,
    log_cholesky,
    log_cholesky_jacobian,
    nearest_bodies,
    pseudo_inertia,
    upper_cholesky,
)

from ..dynamics.arms import small_arm


@pytest.fixture(params=range(5))
def theta(request: pytest.FixtureRequest) -> np.ndarray:
    return np.random.default_rng(request.param).normal(0.0, 0.7, 10)


def differences(function, x: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    step = 1e-6
    steps = step * np.eye(len(x))
    return np.array([(function(x + e) - function(x - e)) / (2 * step) for e in steps]).T


def test_round_trip(theta: np.ndarray) -> None:
    parameters = from_log_cholesky(theta)
    assert np.allclose(log_cholesky(parameters), theta, rtol=0, atol=1e-10)
    assert np.allclose(inertial_parameters(pseudo_inertia(parameters)), parameters, atol=1e-14)


def test_pinocchio_has_the_same_parametrisation(theta: np.ndarray) -> None:
    body = pin.Inertia.FromLogCholeskyParameters(pin.LogCholeskyParameters(theta))
    assert np.allclose(from_log_cholesky(theta), body.toDynamicParameters(), rtol=1e-12)
    P = pin.Inertia.FromDynamicParameters(from_log_cholesky(theta)).toPseudoInertia().toMatrix()
    assert np.allclose(pseudo_inertia(from_log_cholesky(theta)), P, rtol=1e-12, atol=1e-13)


def test_mass_and_center_stand_for_themselves(theta: np.ndarray) -> None:
    parameters = from_log_cholesky(theta)
    assert parameters[0] == pytest.approx(np.exp(2.0 * theta[0]))
    assert np.allclose(parameters[1:4] / parameters[0], theta[7:])


def test_the_jacobian_against_finite_differences(theta: np.ndarray) -> None:
    numeric = differences(from_log_cholesky, theta)
    assert np.allclose(log_cholesky_jacobian(theta), numeric, rtol=1e-6, atol=1e-7)


def test_what_is_no_body_is_refused() -> None:
    sphere = np.array([1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1])
    log_cholesky(sphere)
    needle = sphere.copy()
    needle[9] = 0.21  # more than the other two together: the triangle inequality is broken
    with pytest.raises(RobotModelError, match="belong to no body"):
        log_cholesky(needle)


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


def test_a_urdf_without_real_bodies_is_repaired() -> None:
    plate = np.array([2.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.02, 0.0, 0.0, 0.02])  # a mere mass
    nothing = np.zeros(10)
    whole = small_arm().inertial_prior[:10]
    repaired = nearest_bodies(np.array([plate, nothing, whole]))
    assert all(is_body(body) for body in repaired)
    assert np.array_equal(repaired[0][:4], plate[:4])
    assert 0.0 < repaired[1][0] < 1e-3
    assert np.array_equal(repaired[2], whole)
    with pytest.raises(RobotModelError, match="no moving link a mass"):
        nearest_bodies(np.zeros((2, 10)))
