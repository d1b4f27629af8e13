"""Exponential forgetting with a prior, and rows that replace what is known where they are."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.recursion.rls import RecursiveLeastSquares

D = 5
SCALE = np.array([1.0, 4.0, 0.2, 1.0, 1.0])


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)), rng.standard_normal((n, 2))


def with_prior(penalty: float = 0.7, **options: float) -> RecursiveLeastSquares:
    core = RecursiveLeastSquares(D, 2, penalty, **options)
    core.set_prior(np.arange(10.0).reshape(D, 2), SCALE)
    return core


def test_equals_the_weighted_batch_solution_with_a_ridge_to_the_prior() -> None:
    """Whatever the factors: what is beside the weighted rows is a ridge that pulls to the prior."""
    core, prior = with_prior(), np.arange(10.0).reshape(D, 2)
    Z, Y = rows(400)
    factors = np.random.default_rng(1).uniform(0.9, 1.0, 400)
    ridges = []
    for k, (z, y, factor) in enumerate(zip(Z, Y, factors, strict=True)):
        core.forget(factor)
        core.update(z, y)
        weight = np.cumprod(np.append(factors[1 : k + 1], 1.0)[::-1])[::-1]
        data = (Z[: k + 1] * weight[:, None]).T
        rest = core.R.T @ core.R - data @ Z[: k + 1]
        ridge = np.diagonal(rest)
        np.testing.assert_allclose(rest, np.diag(ridge), atol=1e-9)
        A, B = data @ Z[: k + 1] + np.diag(ridge), data @ Y[: k + 1] + ridge[:, None] * prior
        np.testing.assert_allclose(core.weights(), np.linalg.solve(A, B), rtol=1e-6, atol=1e-8)
        ridges.append(ridge / SCALE**2)
    assert np.all(np.array(ridges) > 0.5 * 0.7) and np.all(np.array(ridges) < 1.6 * 0.7)
    np.testing.assert_allclose(np.mean(ridges), 0.7, rtol=0.05)


def test_a_factor_of_one_changes_nothing() -> None:
    core, other = with_prior(), with_prior()
    for z, y in zip(*rows(30), strict=True):
        core.forget(1.0)
        core.update(z, y)
        other.update(z, y)
    for name, value in core.state().items():
        assert np.array_equal(value, other.state()[name])


def test_where_nothing_is_learned_any_more_the_prior_comes_back() -> None:
    core = with_prior()
    core.update_rows(*rows(50))
    for _ in range(3000):
        core.forget(0.99)
    np.testing.assert_allclose(core.weights(), np.arange(10.0).reshape(D, 2), atol=1e-8)


@pytest.mark.parametrize("memory_in_rows", [30.0, 3000.0])
def test_periodic_rows_in_more_dimensions_than_they_span_stay_bounded(
    memory_in_rows: float,
) -> None:
    """Ten rows repeated thousands of times among 40 features."""
    Z = np.random.default_rng(0).standard_normal((10, 40))
    Y = np.random.default_rng(1).standard_normal((10, 1))
    share = -np.expm1(-1.0 / memory_in_rows)
    fading, replacing = (RecursiveLeastSquares(40, 1, 5.0) for _ in range(2))
    for k in range(40_000):
        z, y = Z[k % 10], Y[k % 10]
        if k % 10 == 0:
            fading.forget((1.0 - share) ** 10)
        fading.update(z, y)
        replacing.update_replacing(z, y, share)
    never = RecursiveLeastSquares(40, 1, 5.0)
    never.update_rows(np.tile(Z, (4000, 1)), np.tile(Y, (4000, 1)))
    for core in (fading, replacing):
        assert np.all(np.isfinite(core.R)) and np.all(np.diagonal(core.R) > 0.0)
        assert np.linalg.cond(core.R) < 1e3
        assert np.linalg.norm(core.weights()) < 1.1 * np.linalg.norm(never.weights())
    errors = [float(replacing.predict(z)[0][0] - y[0]) for z, y in zip(Z, Y, strict=True)]
    assert np.abs(errors).max() < 0.02


def test_without_a_share_a_row_is_learned_as_ever() -> None:
    core, other = with_prior(), with_prior()
    for z, y in zip(*rows(60), strict=True):
        core.update_replacing(z, y, 0.0)
        other.update(z, y)
    np.testing.assert_allclose(core.R, other.R, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(core.weights(), other.weights(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.01])
def test_a_row_is_learned_in_full_while_information_grows_by_what_is_new(share: float) -> None:
    """W += A+^-1 z'e and A+ = A + c z'z, in dense matrices."""
    core = with_prior()
    A, W = core.R.T @ core.R, core.weights()
    for z, y in zip(*rows(200), strict=True):
        s = z @ np.linalg.solve(A, z)
        c = max((s - share) / (s + share), 0.0)
        A = A + c * np.outer(z, z)
        W = W + np.outer(np.linalg.solve(A, z), y - z @ W)
        core.update_replacing(z, y, share)
    np.testing.assert_allclose(core.R.T @ core.R, A, rtol=1e-2, atol=1e-9)
    np.testing.assert_allclose(core.weights(), W, rtol=0.0, atol=0.02 * np.abs(W).max())


def test_replacing_follows_here_and_keeps_what_is_elsewhere() -> None:
    core = RecursiveLeastSquares(4, 1, 1.0)
    for z in (np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.5])):
        for _ in range(2000):
            core.update(z, np.array([3.0]))
    here, elsewhere = np.array([1.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.5])
    before = np.append(*core.predict(elsewhere))
    for _ in range(100_000):
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
    core, queries = with_prior(), rows(10, seed=7)[0]
    core.update_rows(*rows(30))
    for _ in range(17):
        core.forget(0.95)
    data = core.R.T @ core.R - np.diag(core._ridge * SCALE**2)
    before = [core.predict(query)[0] for query in queries]
    for penalty in (20.0, 0.1, 0.6):
        core.set_penalty(penalty)
        after = [core.predict(query)[0] for query in queries]
        np.testing.assert_allclose(after, before, rtol=1e-8)
        expected = data + penalty * np.diag(SCALE**2)
        np.testing.assert_allclose(core.R.T @ core.R, expected, rtol=1e-9, atol=1e-9)


def test_state_goes_on_alike_and_one_without_a_ridge_is_taken() -> None:
    core, other, older = with_prior(), with_prior(), with_prior()
    core.update_rows(*rows(20))
    older.restore({n: v for n, v in core.state().items() if n != "ridge"})
    assert np.array_equal(older._ridge, core._ridge)
    for _ in range(7):
        core.forget(0.9)
    other.restore(core.state())
    for model in (core, other):
        for z, y in zip(*rows(20, seed=3), strict=True):
            model.forget(0.97)
            model.update_replacing(z, y, 0.02)
    for name, value in core.state().items():
        assert np.array_equal(value, other.state()[name])
