"""Factors of bodies and their divergence against pinocchio, formulas and finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.inertia import (
    divergence_jacobian,
    factor_jacobian,
    inertial_parameters,
    is_body,
    nearest_bodies,
    pseudo_inertia,
    upper_cholesky,
)

from ..dynamics.arms import small_arm

UPPER = np.triu_indices(4)


@pytest.fixture(params=range(5))
def entries(request: pytest.FixtureRequest) -> np.ndarray:
    """(10,) of a triangular factor with a positive diagonal, row by row."""
    entries = np.random.default_rng(request.param).normal(0.0, 0.7, 10)
    diagonal = UPPER[0] == UPPER[1]
    entries[diagonal] = np.exp(entries[diagonal])
    return entries


def factor(entries: np.ndarray) -> np.ndarray:
    U = np.zeros((4, 4))
    U[UPPER] = entries
    return U


def body(entries: np.ndarray) -> np.ndarray:
    U = factor(entries)
    return inertial_parameters(U @ U.T)


def differences(function, x: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    step = 1e-6
    steps = step * np.eye(len(x))
    return np.array([(function(x + e) - function(x - e)) / (2 * step) for e in steps]).T


def test_pinocchio_has_the_same_pseudo_inertia_and_it_has_one_factor(entries: np.ndarray) -> None:
    parameters = body(entries)
    P = pin.Inertia.FromDynamicParameters(parameters).toPseudoInertia().toMatrix()
    assert np.allclose(pseudo_inertia(parameters), P, rtol=1e-12, atol=1e-13)
    assert np.allclose(inertial_parameters(P), parameters, atol=1e-13)
    assert np.allclose(upper_cholesky(P)[UPPER], entries, rtol=0, atol=1e-10)


def test_the_jacobian_against_finite_differences(entries: np.ndarray) -> None:
    numeric = differences(body, entries)
    assert np.allclose(factor_jacobian(factor(entries)), numeric, rtol=1e-6, atol=1e-7)


def test_what_is_no_body_is_refused() -> None:
    sphere = np.array([1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.1, 0.0, 0.0, 0.1])
    upper_cholesky(pseudo_inertia(sphere))
    needle = sphere.copy()
    needle[9] = 0.21  # more than the other two together: the triangle inequality is broken
    with pytest.raises(RobotModelError, match="belong to no body"):
        upper_cholesky(pseudo_inertia(needle))


def numbers(entries: np.ndarray) -> np.ndarray:
    """(10,) whose squares sum to the divergence, of the relative factor's entries."""
    on = UPPER[0] == UPPER[1]
    x = np.where(on, entries, 1.0)
    roots = np.sign(x - 1.0) * np.sqrt(np.maximum(x**2 - 2.0 * np.log(x) - 1.0, 0.0))
    return np.where(on, roots, entries)


def test_the_divergence_is_a_sum_of_squares_of_these_slopes(entries: np.ndarray) -> None:
    P0 = pseudo_inertia(body(np.linspace(0.5, 1.5, 10)))
    U = upper_cholesky(P0) @ factor(entries)
    ratio = np.linalg.solve(P0, U @ U.T)
    expected = np.trace(ratio) - np.log(np.linalg.det(ratio)) - 4.0
    assert np.sum(numbers(entries) ** 2) == pytest.approx(expected, rel=1e-8)
    at_rest = np.eye(4)[UPPER]
    for x in (entries, at_rest + 1e-3 * entries):
        numeric = differences(numbers, x)
        assert np.allclose(divergence_jacobian(factor(x)), numeric, rtol=1e-4, atol=1e-4)
    near = divergence_jacobian(factor(at_rest))
    assert np.linalg.matrix_rank(near) == 10
    assert np.allclose(divergence_jacobian(factor(at_rest + 1e-7)), near, atol=1e-5)


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
