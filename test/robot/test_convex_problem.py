"""The minimum of the convex problem: by hand where that can be done, and the same from anywhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.robot.convex_problem import ConvexProblem
from semiparam_dynamics.robot.inertia import pseudo_inertia

UNIT = np.array([1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 2.0])  # the pseudo-inertia is 1


def body(theta: np.ndarray) -> np.ndarray:
    """(10,) parameters of a body that can exist, whatever theta (10,) is."""
    made = pin.Inertia.FromLogCholeskyParameters(pin.LogCholeskyParameters(theta))
    return made.toDynamicParameters()


def problem(weight: float = 1.0, seed: int = 0) -> ConvexProblem:
    """Two bodies and three effects, and data that neither can explain."""
    rng = np.random.default_rng(seed)
    return ConvexProblem(
        columns=rng.standard_normal((15, 23)),
        target=10.0 * rng.standard_normal(15),
        weight=weight,
        bodies=np.array([body(rng.normal(0.0, 0.3, 10)) for _ in range(2)]),
        effects=np.zeros(3),
        ridge=np.ones(3),
        lower=np.array([0.0, 0.0, -np.inf]),
        upper=np.array([np.inf, np.inf, 0.0]),
    )


def starts(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [
        np.concatenate(
            (
                *(body(rng.normal(0.0, 1.0, 10)) for _ in range(2)),
                rng.uniform(0.0, 3.0, 3) * [1, 1, -1],
            )
        )
        for _ in range(n)
    ]


def test_a_body_whose_mass_alone_is_measured() -> None:
    # With P0 = 1 only the mass moves: 2 a^2 (m - measured) + w (1 - 1 / m) = 0.
    a, measured, w = 3.0, -2.0, 0.5
    columns = np.zeros((1, 10))
    columns[0, 0] = a
    none = np.zeros(0)
    one = ConvexProblem(columns, np.array([a * measured]), w, UNIT[None], none, none, none, none)
    found = one.minimize(UNIT)
    b = w - 2.0 * a**2 * measured
    mass = (-b + np.sqrt(b**2 + 8.0 * a**2 * w)) / (4.0 * a**2)
    assert found[0] == pytest.approx(mass, rel=1e-6)
    assert np.allclose(found[1:], UNIT[1:], atol=1e-7)


def test_without_data_nothing_leaves_the_prior() -> None:
    empty = dataclasses.replace(problem(), columns=np.zeros((1, 23)), target=np.zeros(1))
    found = empty.minimize(starts(1)[0])
    assert np.allclose(found, np.concatenate((empty.bodies.ravel(), np.zeros(3))), atol=1e-5)


@pytest.mark.parametrize("weight", [100.0, 1.0, 1e-3])
def test_every_start_leads_to_one_minimum(weight: float) -> None:
    for seed in range(2):
        convex = problem(weight, seed)
        first, *others = [convex.minimize(start) for start in starts(3)]
        least = convex.objective(first)
        for other in others:
            assert convex.objective(other) == pytest.approx(least, rel=1e-7)
        for body in first[:20].reshape(2, 10):
            assert np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0.0
        assert np.all(first[20:] >= convex.lower) and np.all(first[20:] <= convex.upper)
        rng = np.random.default_rng(seed)
        for _ in range(50):
            near = first + 1e-3 * rng.standard_normal(23)
            near[20:] = np.clip(near[20:], convex.lower, convex.upper)
            assert convex.objective(near) > least


def test_what_can_t_exist_is_infinitely_bad() -> None:
    values = starts(1)[0]
    assert np.isfinite(problem().objective(values))
    values[0] = -1.0
    assert problem().objective(values) == np.inf
