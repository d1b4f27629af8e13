"""The recursive core against batch ridge regression, solved independently."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.recursion.rls import RecursiveLeastSquares


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
    outputs, leverage = core.predict(query)
    np.testing.assert_allclose(outputs, query @ expected, rtol=1e-9, atol=1e-11)
    A = Z.T @ Z + 0.3 * np.eye(d)
    np.testing.assert_allclose(leverage, query @ np.linalg.solve(A, query), rtol=1e-9)
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


def learned(n: int, d: int, penalty: float, *, seed: int = 0) -> RecursiveLeastSquares:
    """A recursion of two outputs that has learned n of rows(100, d, 2, seed), with room for two."""
    core = RecursiveLeastSquares(d, 2, penalty, capacity=d + 2)
    for z, y in zip(*(part[:n] for part in rows(100, d, 2, seed)), strict=True):
        core.update(z, y)
    return core


@pytest.mark.parametrize("new", [1e-6, 0.02, 0.5, 40.0, 1e6])
def test_another_penalty_changes_no_prediction_by_itself(new: float) -> None:
    core = learned(30, 9, 0.5)
    queries = rows(20, 9, 1, seed=5)[0]
    before = [core.predict(query)[0] for query in queries]
    core.set_penalty(new)
    assert core.penalty == new
    after = [core.predict(query)[0] for query in queries]
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9 * np.abs(before).max())
    assert np.all(np.tril(core.R, -1) == 0.0) and np.all(np.diagonal(core.R) > 0.0)
    Z = rows(100, 9, 2)[0][:30]
    np.testing.assert_allclose(
        (core.R.T @ core.R)[:9, :9], Z.T @ Z + new * np.eye(9), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("new", [0.02, 40.0])
def test_later_learning_is_the_batch_solution_with_the_new_penalty(new: float) -> None:
    """A ridge of the old size still pulls to 0, what was added to it to the weights of then."""
    d, old, k = 7, 0.5, 40
    Z, Y = rows(100, d, 2)
    core = learned(k, d, old)
    kept = core.weights()
    core.set_penalty(new)
    core.add_feature()  # a new one has the new ridge alone
    for z, y in zip(Z[k:], Y[k:], strict=True):
        core.update(np.append(z, z[0] ** 2), y)
    Z = np.column_stack((Z, np.where(np.arange(100) < k, 0.0, Z[:, 0] ** 2)))
    A = Z.T @ Z + new * np.eye(d + 1)
    pulled = np.vstack(((new - old) * kept, np.zeros((1, 2))))
    expected = np.linalg.solve(A, Z.T @ Y + pulled)
    np.testing.assert_allclose(core.weights(), expected, rtol=1e-9, atol=1e-12)


def test_a_penalty_changed_before_anything_is_learned_is_the_penalty() -> None:
    prior, scale = np.array([[1.0], [-2.0], [3.0]]), np.array([1.0, 10.0, 0.1])
    plain, changed = RecursiveLeastSquares(3, 1, 2.0), RecursiveLeastSquares(3, 1, 100.0)
    for core in (plain, changed):
        core.set_prior(prior, scale)
    changed.set_penalty(0.001)
    changed.set_penalty(2.0)
    for z, y in zip(*rows(20, 3, 1), strict=True):
        plain.update(z, y)
        changed.update(z, y)
    np.testing.assert_allclose(changed.weights(), plain.weights(), rtol=1e-9)
    np.testing.assert_allclose(changed.R, plain.R, rtol=1e-9, atol=1e-12)


def test_a_penalty_that_rounding_would_lose_is_refused() -> None:
    core = learned(50, 5, 1.0)
    before = {name: value.copy() for name, value in core.state().items()}
    with pytest.raises(LearningError, match=r"can't be lowered from 1 to 1e-14 any more: .* least"):
        core.set_penalty(1e-14)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ConfigurationError):
            core.set_penalty(wrong)
    for name, value in core.state().items():
        assert np.array_equal(value, before[name])


def test_with_forgetting_the_old_penalty_fades() -> None:
    Z, Y = rows(50, 4, 2)
    core = RecursiveLeastSquares(4, 2, 1.0, forgetting=0.98)
    for z, y in zip(Z, Y, strict=True):
        core.update(z, y)
    before = core.weights()
    core.set_penalty(30.0)
    np.testing.assert_array_equal(core.weights(), before)
    for _ in range(4000):
        core.update(np.zeros(4), np.zeros(2))
    np.testing.assert_allclose(np.diagonal(core.R.T @ core.R), 30.0, rtol=0.1)


def test_a_state_goes_on_with_the_penalty_that_it_had() -> None:
    core, other = learned(30, 6, 0.5), RecursiveLeastSquares(6, 2, 0.5, capacity=8)
    core.set_penalty(9.0)
    other.restore(core.state())
    assert other.penalty == 9.0
    assert np.array_equal(core.R, other.R) and np.array_equal(core.U, other.U)
