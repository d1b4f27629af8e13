"""Ten numbers to a body and back, and their derivatives, beside pinocchio's own."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.identification.log_cholesky import (
    from_log_cholesky,
    inertial_parameters,
    log_cholesky,
    log_cholesky_jacobian,
    pseudo_inertia,
)


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
