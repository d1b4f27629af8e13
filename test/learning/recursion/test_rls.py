"""The recursive core against batch ridge regression, solved independently."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

from .cases import RU, drawn, information, learn, same_bits, same_state, triangular


def batch(Z: np.ndarray, Y: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """Weights by least squares on the augmented rows, in extended precision via QR of float64."""
    A = np.vstack([Z, np.diag(np.sqrt(ridge))])
    B = np.vstack([Y, np.zeros((Z.shape[1], Y.shape[1]))])
    return np.linalg.lstsq(A, B, rcond=None)[0]


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 31, 64, 130])
@pytest.mark.parametrize("outputs", [1, 6])
def test_equals_batch_ridge(d: int, outputs: int) -> None:
    Z, Y = drawn(3 * d + 5, d, outputs)
    core = RecursiveLeastSquares(d, outputs, 0.3)
    learn(core, Z, Y)
    for kept, before in zip((Z, Y), drawn(3 * d + 5, d, outputs), strict=True):
        assert np.array_equal(kept, before)
    assert triangular(core)
    expected = batch(Z, Y, np.full(d, 0.3))
    np.testing.assert_allclose(core.weights(), expected, rtol=1e-9, atol=1e-11)
    query = drawn(1, d, 1, seed=9)[0][0]
    outputs, leverage = core.predict(query)
    np.testing.assert_allclose(outputs, query @ expected, rtol=1e-9, atol=1e-11)
    A = Z.T @ Z + 0.3 * np.eye(d)
    np.testing.assert_allclose(leverage, query @ np.linalg.solve(A, query), rtol=1e-9)
    np.testing.assert_allclose(core.covariance_diagonal(), np.diag(np.linalg.inv(A)), rtol=1e-8)


def learned(n: int, d: int, penalty: float, *, seed: int = 0) -> RecursiveLeastSquares:
    """A recursion of two outputs with n rows of drawn(100, d, 2, seed), and room for two more."""
    core = RecursiveLeastSquares(d, 2, penalty, capacity=d + 2)
    learn(core, *(part[:n] for part in drawn(100, d, 2, seed)))
    return core


@pytest.mark.parametrize("new", [1e-6, 0.02, 0.5, 40.0, 1e6])
def test_another_penalty_changes_no_prediction_by_itself(new: float) -> None:
    core = learned(30, 9, 0.5)
    queries = drawn(20, 9, 1, seed=5)[0]
    before = [core.predict(query)[0] for query in queries]
    core.set_penalty(new)
    assert core.penalty == new
    after = [core.predict(query)[0] for query in queries]
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9 * np.abs(before).max())
    assert triangular(core)
    Z = drawn(100, 9, 2)[0][:30]
    expected = Z.T @ Z + new * np.eye(9)
    np.testing.assert_allclose(information(core), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("new", [0.02, 40.0])
def test_later_learning_is_the_batch_solution_with_the_new_penalty(new: float) -> None:
    """A ridge of the old size still pulls to 0, what was added to it to the weights of then."""
    d, old, k = 7, 0.5, 40
    Z, Y = drawn(100, d, 2)
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


def test_a_penalty_that_rounding_would_lose_is_refused() -> None:
    core = learned(50, 5, 1.0)
    before = {name: value.copy() for name, value in core.state().items()}
    with pytest.raises(LearningError, match=r"can't be lowered from 1 to 1e-14 any more: .* least"):
        core.set_penalty(1e-14)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ConfigurationError):
            core.set_penalty(wrong)
    assert same_state(core.state(), before)


def test_with_forgetting_the_old_penalty_fades() -> None:
    Z, Y = drawn(50, 4, 2)
    core = RecursiveLeastSquares(4, 2, 1.0, forgetting=0.98)
    learn(core, Z, Y)
    before = core.weights()
    core.set_penalty(30.0)
    np.testing.assert_array_equal(core.weights(), before)
    for _ in range(4000):
        core.update(np.zeros(4), np.zeros(2))
    np.testing.assert_allclose(np.diagonal(information(core)), 30.0, rtol=0.1)


# -------------------------------------------------------------------------------------------------
# Exponential forgetting, and rows that replace what is known where they are.

D = 5


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return drawn(n, D, 2, seed)


def begun(penalty: float = 0.7, **options: float) -> RecursiveLeastSquares:
    return RecursiveLeastSquares(D, 2, penalty, **options)


def test_equals_the_weighted_batch_solution_with_a_ridge() -> None:
    """Whatever the factors: what is beside the weighted rows is a ridge that pulls to zero."""
    core = begun()
    Z, Y = rows(400)
    factors = np.random.default_rng(1).uniform(0.9, 1.0, 400)
    ridges = []
    for k, (z, y, factor) in enumerate(zip(Z, Y, factors, strict=True)):
        core.forget(factor)
        core.update(z, y)
        weight = np.cumprod(np.append(factors[1 : k + 1], 1.0)[::-1])[::-1]
        data = (Z[: k + 1] * weight[:, None]).T
        ridge = information(core) - data @ Z[: k + 1]
        np.testing.assert_allclose(ridge, np.diag(np.diagonal(ridge)), atol=1e-8)
        A, B = data @ Z[: k + 1] + ridge, data @ Y[: k + 1]
        np.testing.assert_allclose(core.weights(), np.linalg.solve(A, B), rtol=1e-6, atol=1e-8)
        ridges.append(np.diagonal(ridge))
    assert np.all(np.array(ridges) > 0.5 * 0.7) and np.all(np.array(ridges) < 1.6 * 0.7)
    np.testing.assert_allclose(np.mean(ridges), 0.7, rtol=0.05)


def test_a_constant_row_does_not_wind_up_and_the_others_weights_return_to_zero() -> None:
    core, (Z, Y) = begun(0.5), rows(200)
    core.update_rows(Z, Y + Z @ np.arange(1.0, 11.0).reshape(D, 2))
    before = core.covariance_diagonal()
    z = np.zeros((500, D))
    z[:, 2] = 3.0
    for _ in range(1000):
        core.update_rows(z, 5.0 * z[:, [2, 2]])
        core.forget(0.98)
    A, others = information(core), np.arange(D) != 2
    assert np.all(np.isfinite(core.R)) and triangular(core)
    assert np.linalg.eigvalsh(A).min() > 0.25
    assert A[2, 2] < 2.0 * 9.0 * 500 / 0.02
    np.testing.assert_allclose(core.weights()[2], 5.0, rtol=1e-3)
    np.testing.assert_allclose(core.weights()[others], 0.0, atol=1e-3)
    assert np.all(core.covariance_diagonal()[others] > 10.0 * before[others])


@pytest.mark.parametrize("memory_in_rows", [30.0, 3000.0])
def test_periodic_rows_in_more_dimensions_than_they_span_stay_bounded(
    memory_in_rows: float,
) -> None:
    """Ten rows repeated a thousand times among 40 features."""
    Z = np.random.default_rng(0).standard_normal((10, 40))
    Y = np.random.default_rng(1).standard_normal((10, 1))
    fraction = -np.expm1(-1.0 / memory_in_rows)
    fading, replacing = (RecursiveLeastSquares(40, 1, 5.0) for _ in range(2))
    for k in range(10_000):
        z, y = Z[k % 10], Y[k % 10]
        if k % 10 == 0:
            fading.forget((1.0 - fraction) ** 10)
        fading.update(z, y)
        replacing.update_replacing(z, y, fraction)
    never = RecursiveLeastSquares(40, 1, 5.0)
    never.update_rows(np.tile(Z, (1000, 1)), np.tile(Y, (1000, 1)))
    for core in (fading, replacing):
        assert np.all(np.isfinite(RU(core)[0])) and triangular(core)
        assert np.linalg.cond(core.R) < 1e3
        assert np.linalg.norm(core.weights()) < 1.1 * np.linalg.norm(never.weights())
    errors = [float(replacing.predict(z)[0][0] - y[0]) for z, y in zip(Z, Y, strict=True)]
    assert np.abs(errors).max() < 0.02


def test_without_forgetting_a_row_is_learned_as_by_update() -> None:
    core, other = begun(), begun()
    for z, y in zip(*rows(60), strict=True):
        core.update_replacing(z, y, 0.0)
        other.update(z, y)
    np.testing.assert_allclose(RU(core)[0], RU(other)[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(core.weights(), other.weights(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fraction", [0.3, 0.01])
def test_a_row_is_learned_in_full_while_information_grows_by_what_is_new(fraction: float) -> None:
    """W += A+^-1 z'e and A+ = A + c z'z, in dense matrices."""
    core = begun()
    A, W = information(core), core.weights()
    for z, y in zip(*rows(200), strict=True):
        s = z @ np.linalg.solve(A, z)
        c = max((s - fraction) / (s + fraction), 0.0)
        A = A + c * np.outer(z, z)
        W = W + np.outer(np.linalg.solve(A, z), y - z @ W)
        core.update_replacing(z, y, fraction)
    np.testing.assert_allclose(information(core), A, rtol=1e-2, atol=1e-9)
    np.testing.assert_allclose(core.weights(), W, rtol=0.0, atol=0.02 * np.abs(W).max())


def test_replacing_follows_here_and_keeps_what_is_elsewhere() -> None:
    core = RecursiveLeastSquares(4, 1, 1.0)
    for z in (np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.5])):
        for _ in range(200):
            core.update(z, np.array([3.0]))
    here, elsewhere = np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.5])
    before = np.append(*core.predict(elsewhere))
    for _ in range(5_000):
        core.update_replacing(here, np.array([-2.0]), 0.01)
    np.testing.assert_allclose(np.append(*core.predict(elsewhere)), before, rtol=1e-12)
    np.testing.assert_allclose(core.predict(here)[0], -2.0, rtol=1e-6)
    follows = RecursiveLeastSquares(4, 1, 1.0)
    errors = []
    for k in range(1000):
        errors.append(float(follows.predict(here)[0][0]) - (1.0 if k < 600 else -1.0))
        follows.update_replacing(here, np.array([1.0 if k < 600 else -1.0]), 0.01)
    assert abs(errors[600]) > 1.9 and abs(errors[900]) < 0.2  # 300 rows are three memories


def test_a_penalty_that_changes_after_forgetting_is_the_penalty_at_once() -> None:
    core, queries = begun(), rows(10, seed=7)[0]
    core.update_rows(*rows(30))
    for _ in range(17):
        core.forget(0.95)
    data = information(core) - np.diag(core.state()["ridge"])
    before = [core.predict(query)[0] for query in queries]
    for penalty in (20.0, 0.1, 0.6):
        core.set_penalty(penalty)
        after = [core.predict(query)[0] for query in queries]
        np.testing.assert_allclose(after, before, rtol=1e-8)
        expected = data + penalty * np.eye(D)
        np.testing.assert_allclose(information(core), expected, rtol=1e-9, atol=1e-9)


def forgetful() -> RecursiveLeastSquares:
    """A recursion that has learned and forgotten; its ridge is half restored."""
    core = begun()
    core.update_rows(*rows(20))
    for _ in range(7):
        core.forget(0.9)
    core.update(*(part[0] for part in rows(1, seed=8)))
    return core


@pytest.mark.parametrize("how", ["restore", "copy_from"])
def test_a_restored_one_and_a_copy_continue_alike(how: str) -> None:
    core, other = forgetful(), begun()
    getattr(other, how)(core if how == "copy_from" else core.state())
    for model in (core, other):
        for z, y in zip(*rows(20, seed=3), strict=True):
            model.forget(0.97)
            model.update_replacing(z, y, 0.02)
            model.update(z, y)
        model.set_penalty(3.0)
    assert same_state(core.state(), other.state())


def test_a_state_without_a_ridge_has_that_of_the_penalty() -> None:
    core, other = begun(), begun()
    core.update_rows(*rows(20))
    state = core.state()
    other.restore({name: state[name] for name in ("R", "U", "refreshed")})
    assert same_state(other.state(), state)
    with pytest.raises(LearningError, match="do not belong to a recursion"):
        other.restore(state | {"U": state["U"][:, :1]})


def test_rows_at_once_forget_before_each() -> None:
    core, other = begun(forgetting=0.95), begun()
    Z, Y = rows(30)
    errors, leverages = core.update_rows(Z, Y)
    for k in range(30):
        other.forget(0.95)
        outputs, leverage = other.predict(Z[k])
        np.testing.assert_allclose(errors[k], Y[k] - outputs, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(leverages[k], leverage, rtol=1e-9)
        other.update(Z[k], Y[k])
    assert same_bits(core, other)


@pytest.mark.parametrize("n", [0, 1, 7, 90])
def test_many_rows_are_predicted_as_one_by_one(n: int) -> None:
    rng = np.random.default_rng(n)
    core = RecursiveLeastSquares(n, 2, 0.5)
    core.update_rows(rng.standard_normal((30, n)), rng.standard_normal((30, 2)))
    rows = rng.standard_normal((9, n))
    values, leverages = core.predict_rows(rows)
    np.testing.assert_allclose(values, rows @ core.weights(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(leverages, core.leverages(rows), rtol=1e-9)
