"""The recursive core against batch ridge regression, solved independently."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.learning.recursive import RecursiveLeastSquares


def rows(n: int, d: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((n, outputs))


def batch(Z: np.ndarray, Y: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Weights by least squares on the augmented rows, in extended precision via QR of float64."""
    A = np.vstack([Z, np.diag(np.sqrt(ridge))])
    B = np.vstack([Y, np.zeros((Z.shape[1], Y.shape[1]))])
    return np.linalg.lstsq(A, B, rcond=None)[0]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 31, 64, 130])
@pytest.mark.parametrize("outputs", [1, 6])
def test_equals_batch_ridge(d: int, outputs: int) -> None:
    Z, Y = rows(3 * d + 5, d, outputs)
    core = RecursiveLeastSquares(d, outputs, 0.3)
    for z, y in zip(Z, Y, strict=True):
        core.update(z, y)
    expected = batch(Z, Y, np.full(d, 0.3))
    np.testing.assert_allclose(core.weights(), expected, rtol=1e-9, atol=1e-11)
    query = rows(1, d, 1, seed=9)[0][0]
    np.testing.assert_allclose(core.predict(query), query @ expected, rtol=1e-9, atol=1e-11)
    A = Z.T @ Z + 0.3 * np.eye(d)
    np.testing.assert_allclose(core.leverage, query @ np.linalg.solve(A, query), rtol=1e-9)
    np.testing.assert_allclose(core.covariance_diagonal(), np.diag(np.linalg.inv(A)), rtol=1e-8)


def test_factor_stays_triangular_with_positive_diagonal() -> None:
    Z, Y = rows(500, 12, 2)
    core = RecursiveLeastSquares(12, 2, 1e-6)
    for z, y in zip(Z, Y, strict=True):
        core.update(z, y)
    assert np.all(np.tril(core.R, -1) == 0.0)
    assert np.all(np.diagonal(core.R) > 0.0)
    np.testing.assert_allclose(core.R.T @ core.R, Z.T @ Z + 1e-6 * np.eye(12), rtol=1e-10)


def test_update_keeps_its_arguments() -> None:
    core = RecursiveLeastSquares(3, 2)
    z, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    core.update(z, y)
    assert z.tolist() == [1.0, 2.0, 3.0]
    assert y.tolist() == [4.0, 5.0]


def test_prior_is_where_it_starts_and_what_it_returns_to() -> None:
    prior, scale = np.array([[1.0], [-2.0], [3.0]]), np.array([1.0, 10.0, 0.1])
    core = RecursiveLeastSquares(3, 1, 2.0)
    core.set_prior(prior, scale)
    np.testing.assert_allclose(core.weights(), prior, rtol=1e-14)
    Z, Y = rows(20, 3, 1)
    for z, y in zip(Z, Y, strict=True):
        core.update(z, y)
    ridge = 2.0 * scale**2
    expected = prior + batch(Z, Y - Z @ prior, ridge)
    np.testing.assert_allclose(core.weights(), expected, rtol=1e-10)


def test_features_added_on_the_way_equal_zero_columns_from_the_start() -> None:
    Z, Y = rows(40, 6, 2)
    Z[:20, 4:] = 0.0  # the last two features did not exist yet
    grown = RecursiveLeastSquares(4, 2, 0.5, capacity=6)
    for z, y in zip(Z[:20], Y[:20], strict=True):
        grown.update(z[:4], y)
    grown.add_feature()
    grown.add_feature()
    for z, y in zip(Z[20:], Y[20:], strict=True):
        grown.update(z, y)
    np.testing.assert_allclose(grown.weights(), batch(Z, Y, np.full(6, 0.5)), rtol=1e-10)
    with pytest.raises(IndexError):
        grown.add_feature()


def test_forgetting_weighs_samples_by_age_and_keeps_a_ridge() -> None:
    Z, Y = rows(3000, 5, 1)
    core = RecursiveLeastSquares(5, 1, 1.0, forgetting=0.98)
    for z, y in zip(Z, Y, strict=True):
        core.update(z, y)
    weight = 0.98 ** np.arange(len(Z))[::-1]
    W = np.sqrt(weight)[:, None]
    # The ridge put back a row at a time averages to the penalty, within one cycle's fading.
    expected = batch(W * Z, W * Y, np.ones(5))
    np.testing.assert_allclose(core.weights(), expected, rtol=0.05, atol=5e-3)
    for _ in range(20_000):  # nothing excites the model any more: no wind-up
        core.update(np.zeros(5), np.zeros(1))
    diagonal = np.diagonal(core.R.T @ core.R)
    assert np.all(diagonal > 0.8) and np.all(diagonal < 1.2)


def test_state_round_trip_goes_on_alike() -> None:
    Z, Y = rows(60, 8, 3)
    core = RecursiveLeastSquares(8, 3, 0.1, forgetting=0.999)
    for z, y in zip(Z[:30], Y[:30], strict=True):
        core.update(z, y)
    other = RecursiveLeastSquares(8, 3, 0.1, forgetting=0.999)
    other.restore(core.state())
    for model in (core, other):
        for z, y in zip(Z[30:], Y[30:], strict=True):
            model.update(z, y)
    assert np.array_equal(core.R, other.R)
    assert np.array_equal(core.U, other.U)
