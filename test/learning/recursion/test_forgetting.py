"""Directional forgetting: its formula, and what it keeps that exponential forgetting loses."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.learning.recursion.forgetting import DirectionalForgetting
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

from .cases import RU, information, same_state, triangular

D = 6


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of very different size, and what weights 1, 2, ... make of them."""
    Z = np.random.default_rng(seed).standard_normal((n, D)) * np.geomspace(0.1, 10.0, D)
    return Z, (Z @ np.arange(1.0, D + 1.0))[:, None]


def directions_of(core: RecursiveLeastSquares) -> DirectionalForgetting:
    return DirectionalForgetting(RU(core)[0])


def learned(penalty: float = 0.5) -> RecursiveLeastSquares:
    core = RecursiveLeastSquares(D, 1, penalty)
    core.set_prior(np.ones((D, 1)), ROOT)
    core.update_rows(*rows(200))
    return core


ROOT = np.diag(np.geomspace(0.3, 3.0, D))
ROOT[0, 1], ROOT[1, 3] = 0.1, -0.3
RIDGE = ROOT.T @ ROOT  # for a penalty of 1


@pytest.mark.parametrize("fraction", [1e-3, 0.05, 0.25])
def test_what_is_taken_away_is_a_parallel_sum(fraction: float) -> None:
    core = learned()
    A, G, E = information(core), information(core) - 0.5 * RIDGE, np.zeros((D, D))
    directions = directions_of(core)
    for block in range(6):
        Z, Y = rows(40, seed=block)
        core.update_rows(Z, Y + np.sin(block))
        weights = core.weights()
        core.forget_excited(directions, fraction)
        A, G, E = (sum_ + Z.T @ Z for sum_ in (A, G, (1.0 - fraction) ** 5 * E))
        forever = E * (1.0 - (1.0 - fraction) ** 5) / fraction
        H = 1.25 * fraction * np.linalg.inv(np.linalg.inv(G) + 0.25 * np.linalg.inv(forever))
        A, G = A - H, G - H
        np.testing.assert_allclose(information(core), A, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(core.weights(), weights, rtol=1e-9)
        assert triangular(core)


def test_nothing_is_forgotten_where_nothing_was_excited() -> None:
    core = learned()
    directions, A = directions_of(core), information(core)
    core.forget_excited(directions, 0.2)
    np.testing.assert_allclose(information(core), A, rtol=1e-9)
    Z = np.zeros((100, D))
    Z[:, 0] = 1.0
    core.update_rows(Z, Z[:, :1])
    core.forget_excited(directions, 0.1)
    change = information(core) - A
    assert abs(change[0, 0]) > 1.0
    np.testing.assert_allclose(change[1:, 1:], 0.0, atol=1e-8 * np.abs(A).max())


def test_motion_that_continues_is_remembered_as_with_exponential_forgetting() -> None:
    directional, exponential = learned(1e-6), learned(1e-6)
    directions = directions_of(directional)
    (Z, Y), fraction = rows(30, seed=2), 0.05
    for _ in range(400):
        directional.forget_excited(directions, fraction)
        directional.update_rows(Z, Y)
        exponential.forget(1.0 - fraction)
        exponential.update_rows(Z, Y)
    np.testing.assert_allclose(information(directional), Z.T @ Z / fraction, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(information(directional), information(exponential), rtol=1e-3)


def test_a_motion_that_stops_takes_a_third_with_it_and_no_more() -> None:
    core = learned(1e-6)
    directions, (Z, Y) = directions_of(core), rows(30, seed=2)
    for block in range(1500):
        core.update_rows(Z[: 30 if block < 500 else 0], Y[: 30 if block < 500 else 0])
        core.forget_excited(directions, 0.05)
        if block == 499:
            A = information(core)
    left = np.linalg.eigvals(np.linalg.solve(A, information(core)))
    np.testing.assert_allclose(left, 5.0 ** (-1.25 * 0.2), rtol=0.05)


def test_many_constant_rows_neither_wind_up_nor_lose_what_they_do_not_excite() -> None:
    kept, lost = learned(), learned()
    z = np.zeros((500, D))
    z[:, 2] = 3.0
    for core in (kept, lost):
        directions, probe = directions_of(core), np.linalg.inv(information(core))
        for _ in range(1000):
            core.update_rows(z, 5.0 * z[:, 2:3])  # a weight of 5 where it was 3
            if core is kept:
                core.forget_excited(directions, 0.02)
            else:
                core.forget(0.98)
        A = information(core)
        assert np.all(np.isfinite(core.R)) and triangular(core)
        assert np.linalg.eigvalsh(A - 0.25 * RIDGE).min() > 0.0
        assert A[2, 2] < 2.0 * 9.0 * 500 / 0.02
        assert np.abs(core.weights()).max() < 10.0
        np.testing.assert_allclose(core.weights()[2], 5.0, rtol=1e-3)
        others = np.arange(D) != 2
        now = np.linalg.inv(A)
        if core is kept:
            assert np.all(np.diagonal(now)[others] < 1.01 * np.diagonal(probe)[others])
        else:
            assert np.all(np.diagonal(now)[others] > 10.0 * np.diagonal(probe)[others])
            np.testing.assert_allclose(core.weights()[others], 1.0, atol=1e-3)  # the prior


def test_the_ridge_is_never_forgotten() -> None:
    """However little the rows excite, and whatever directions."""
    core, rng = RecursiveLeastSquares(D, 1, 0.5), np.random.default_rng(4)
    directions, least = directions_of(core), np.inf
    for k in range(1000):
        size = 10.0 ** rng.uniform(-6.0, 2.0)
        Z = size * rng.standard_normal((rng.integers(1, 4), D))
        core.update_rows(Z, np.sin(k) * Z[:, :1])
        core.forget_excited(directions, 0.25)
        least = min(least, np.linalg.eigvalsh(information(core)).min())
    assert least > 0.5 * (1.0 - 1e-6)


def test_a_weight_that_changes_is_followed_and_the_others_stay() -> None:
    core = learned()
    Z = rows(400, seed=3)[0]
    Z[:, 3:] = 0.0
    changed = Z @ np.array([[-1.0], [2.0], [3.0], [0.0], [0.0], [0.0]])
    directions = directions_of(core)
    for k in range(0, 400, 4):
        core.update_rows(Z[k : k + 4], changed[k : k + 4])
        core.forget_excited(directions, 0.1)
    expected = np.array([-1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    np.testing.assert_allclose(core.weights()[:, 0], expected, atol=0.1)


def test_what_has_no_answer_forgets_nothing() -> None:
    core = learned()
    directions = DirectionalForgetting(2.0 * RU(core)[0])  # as if information had been lost since
    before = directions.state()
    R, U = core.R.copy(), core.U.copy()
    core.forget_excited(directions, 0.1)
    assert np.array_equal(core.R, R) and np.array_equal(core.U, U)
    assert same_state(directions.state(), before)


@pytest.mark.parametrize("penalty", [0.01, 40.0])
def test_another_ridge_is_no_information(penalty: float) -> None:
    core = learned()
    directions = directions_of(core)
    core.update_rows(*rows(40, seed=5))
    core.forget_excited(directions, 0.1)

    def recent() -> np.ndarray:
        before, recent = directions.state().values()
        return before.T @ recent @ before

    expected = recent()
    core.set_penalty(penalty)
    directions.rebase(core.R)
    np.testing.assert_allclose(recent(), expected, rtol=1e-8, atol=1e-8)
    A = information(core)
    core.forget_excited(directions, 1e-12)
    np.testing.assert_allclose(information(core), A, rtol=1e-8)
