"""What is forgotten against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import pinvh

from semiparam_dynamics.dynamics.moments import (
    PROTECTION,
    WINDOW,
    Excitation,
    Moments,
    forget_excited,
)

ONE = np.ones(1)  # of a row's information


def moments_of(Phi: np.ndarray, y: np.ndarray, weight: float) -> Moments:
    """Of rows (k, n_axes, n) and targets (k, n_axes)."""
    products = np.array([weight * rows.T @ rows for rows in Phi.transpose(1, 0, 2)])
    targets = weight * np.einsum("kjn,kj->jn", Phi, y)
    weights = np.full(y.shape[1], weight * len(y))
    return Moments(np.triu(products), targets, weight * (y**2).sum(axis=0), weights)


def test_what_recent_rows_excite_is_forgotten_and_the_rest_kept() -> None:
    rng = np.random.default_rng(3)
    n = 4
    Phi = rng.normal(size=(100, 1, n))
    y = Phi @ np.ones(n) + 0.1 * rng.normal(size=(100, 1))
    old, new = moments_of(Phi, y, 1.0), rng.normal(size=(30, n)) * [1.0, 1.0, 0.0, 0.0]
    G = np.triu(new.T @ new)
    moments = Moments(old.products + G, *(array.copy() for array in old[1:]))
    moments.targets[0] += (new.T @ new) @ np.ones(n)
    moments.squares[0] += np.sum((new @ np.ones(n)) ** 2)
    whole = moments.products[0] + np.triu(moments.products[0], 1).T
    best, f = np.linalg.solve(whole, moments.targets[0]), 0.1
    before = moments.squared_errors(best)
    excitation = Excitation(np.zeros((1, n, n)), old.products.copy())
    forget_excited(moments, excitation, best, ONE, f)
    left = moments.products[0] + np.triu(moments.products[0], 1).T
    E = (1.0 - (1.0 - f) ** (1.0 / WINDOW)) / f * (new.T @ new)
    # The parallel sum of E with G has E's range, where G counts as its Schur complement there.
    schur = whole[:2, :2] - whole[:2, 2:] @ np.linalg.solve(whole[2:, 2:], whole[2:, :2])
    lost = (1.0 + PROTECTION) * f * pinvh(pinvh(schur) + PROTECTION * pinvh(E[:2, :2]))
    expected = whole.copy()
    expected[:2, :2] -= lost
    np.testing.assert_allclose(left, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.linalg.solve(left, moments.targets[0]), best, rtol=1e-6)
    np.testing.assert_allclose(moments.squared_errors(best), (1.0 - f) * before, rtol=1e-6)
    np.testing.assert_array_equal(excitation.before, moments.products)


# -------------------------------------------------------------------------------------------------
# What it keeps that exponential forgetting loses, in long runs.

D = 6
PI = np.arange(1.0, D + 1.0)
RIDGE = 0.5 * np.diag(np.geomspace(0.3, 3.0, D)) ** 2  # beside the products, and never forgotten


def drawn(k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of very different size, and what parameters 1, 2, ... make of them."""
    Z = np.random.default_rng(seed).standard_normal((k, D)) * np.geomspace(0.1, 10.0, D)
    return Z, Z @ PI


def learn(moments: Moments, Z: np.ndarray, y: np.ndarray) -> None:
    """Rows (k, D) and targets (k,) of the only axis."""
    for array, more in zip(moments, moments_of(Z[:, None], y[:, None], 1.0), strict=True):
        array += more


def learned() -> tuple[Moments, Excitation]:
    """After 200 rows, none of them recent."""
    moments = moments_of(*(part[:, None] for part in drawn(200)), 1.0)
    return moments, Excitation(np.zeros((1, D, D)), moments.products.copy())


def products(moments: Moments) -> np.ndarray:
    return moments.total(np.ones(1))[0]


def best(moments: Moments, ridge: np.ndarray = RIDGE) -> np.ndarray:
    """The parameters that a ridge to ones and the moments make."""
    G, targets = moments.total(np.ones(1))
    return np.linalg.solve(G + ridge, targets + ridge @ np.ones(D))


def least_squared_error(moments: Moments) -> float:
    """Of all parameters."""
    best = np.linalg.lstsq(products(moments), moments.targets[0])[0]
    return float(moments.squares[0] - moments.targets[0] @ best)


@pytest.mark.parametrize("fraction", [1e-3, 0.05, 0.25])
def test_what_is_taken_away_time_after_time_is_a_parallel_sum(fraction: float) -> None:
    moments, excitation = learned()
    G, E = products(moments), np.zeros((D, D))
    for block in range(6):
        Z, y = drawn(40, block)
        learn(moments, Z, y + np.sin(block))
        pi = best(moments)
        errors = moments.squared_errors(pi)
        forget_excited(moments, excitation, pi, ONE, fraction)
        G, E = G + Z.T @ Z, (1.0 - fraction) ** 5 * E + Z.T @ Z
        forever = E * (1.0 - (1.0 - fraction) ** 5) / fraction
        G -= 1.25 * fraction * np.linalg.inv(np.linalg.inv(G) + 0.25 * np.linalg.inv(forever))
        np.testing.assert_allclose(products(moments), G, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(best(moments), pi, rtol=1e-9)
        # The ridge's pull is held by errors that are never less than of any other parameters.
        assert np.all(moments.squared_errors(pi) > (1.0 - fraction) * errors)
        assert least_squared_error(moments) > 0.0


def test_nothing_is_forgotten_where_nothing_was_excited() -> None:
    moments, excitation = learned()
    G = products(moments)
    forget_excited(moments, excitation, best(moments), ONE, 0.2)
    np.testing.assert_allclose(products(moments), G, rtol=1e-9)
    Z = np.zeros((100, D))
    Z[:, 0] = 1.0
    learn(moments, Z, Z[:, 0])
    forget_excited(moments, excitation, best(moments), ONE, 0.1)
    change = products(moments) - G
    assert abs(change[0, 0]) > 1.0
    np.testing.assert_allclose(change[1:, 1:], 0.0, atol=1e-8 * np.abs(G).max())


def test_motion_that_continues_is_remembered_as_with_exponential_forgetting() -> None:
    (moments, excitation), (exponential, _) = learned(), learned()
    (Z, y), fraction = drawn(30, seed=2), 0.05
    for _ in range(250):
        forget_excited(moments, excitation, best(moments), ONE, fraction)
        for array in exponential:
            array *= 1.0 - fraction
        for each in (moments, exponential):
            learn(each, Z, y)
    np.testing.assert_allclose(products(moments), Z.T @ Z / fraction, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(products(moments), products(exponential), rtol=1e-3)
    np.testing.assert_allclose(moments.weights, exponential.weights, rtol=1e-9)


def test_a_motion_that_stops_takes_a_third_with_it_and_no_more() -> None:
    (moments, excitation), (Z, y) = learned(), drawn(30, seed=2)
    for block in range(600):
        if block < 300:
            learn(moments, Z, y)
        forget_excited(moments, excitation, best(moments), ONE, 0.05)
        if block == 299:
            G = products(moments)
    left = np.linalg.eigvals(np.linalg.solve(G, products(moments)))
    np.testing.assert_allclose(left, 5.0 ** (-1.25 * 0.2), rtol=0.05)


def test_many_constant_rows_neither_wind_up_nor_lose_what_they_do_not_excite() -> None:
    moments, excitation = learned()
    before = np.linalg.inv(products(moments) + RIDGE)
    Z = np.zeros((500, D))
    Z[:, 2] = 3.0
    for _ in range(400):
        learn(moments, Z, 5.0 * Z[:, 2])  # a parameter of 5 where it was 3
        forget_excited(moments, excitation, best(moments), ONE, 0.02)
    assert all(np.all(np.isfinite(array)) for array in moments)
    G, pi, others = products(moments), best(moments), np.arange(D) != 2
    assert np.linalg.eigvalsh(G).min() > 0.0
    assert G[2, 2] < 2.0 * 9.0 * 500 / 0.02
    assert np.abs(pi).max() < 10.0
    np.testing.assert_allclose(pi[2], 5.0, rtol=1e-3)
    now = np.linalg.inv(G + RIDGE)
    assert np.all(np.diagonal(now)[others] < 1.01 * np.diagonal(before)[others])


def test_products_stay_positive_semidefinite() -> None:
    """However little the rows excite, and whatever directions."""
    rng, moments = np.random.default_rng(4), Moments.zeros(1, D)
    excitation, least = Excitation(*np.zeros((2, 1, D, D))), np.inf
    for k in range(400):
        size = 10.0 ** rng.uniform(-6.0, 2.0)
        Z = size * rng.standard_normal((rng.integers(1, 4), D))
        learn(moments, Z, np.sin(k) * Z[:, 0])
        forget_excited(moments, excitation, best(moments), ONE, 0.25)
        G = products(moments)
        least = min(least, np.linalg.eigvalsh(G + 0.5 * np.eye(D)).min())
    assert least > 0.5 * (1.0 - 1e-6)
    assert all(np.all(np.isfinite(array)) for array in moments)


def test_a_parameter_that_changes_is_followed_and_the_others_stay() -> None:
    moments, excitation = learned()
    Z = drawn(400, seed=3)[0]
    Z[:, 3:] = 0.0
    y = Z @ np.array([-1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    for k in range(0, 400, 4):
        learn(moments, Z[k : k + 4], y[k : k + 4])
        forget_excited(moments, excitation, best(moments), ONE, 0.1)
    np.testing.assert_allclose(best(moments), [-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], atol=0.1)
