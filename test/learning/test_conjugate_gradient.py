"""Conjugate gradient: against direct solutions, and in Krylov spaces."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning.falkon_system import (
    conjugate_gradient,
)

RNG = np.random.default_rng(0)


def positive_definite(q: int, condition: float) -> Array:
    Q = np.linalg.qr(RNG.standard_normal((q, q)))[0]
    return (Q * np.geomspace(1.0, condition, q)) @ Q.T


def test_the_solution_is_the_direct_one() -> None:
    H, b = positive_definite(60, 1e4), RNG.standard_normal((60, 3))
    found = conjugate_gradient(lambda P, _: H @ P, b, max_iter=500, tolerance=1e-12)
    assert found.converged.all()
    np.testing.assert_allclose(found.x, np.linalg.solve(H, b), rtol=1e-8)
    true = np.linalg.norm(H @ found.x - b, axis=0) / np.linalg.norm(b, axis=0)
    assert (true < 1e-10).all()


def test_iterates_are_the_minimisers_on_krylov_spaces() -> None:
    H, b = positive_definite(12, 1e2), RNG.standard_normal((12, 1))
    iterates: list[Array] = []

    def follow(number: int, x: Array) -> bool:
        assert number == len(iterates) + 1
        iterates.append(x.copy())
        return False

    conjugate_gradient(lambda P, _: H @ P, b, max_iter=6, follow=follow)
    for t, x in enumerate(iterates, 1):
        krylov = np.hstack([np.linalg.matrix_power(H, i) @ b for i in range(t)])
        Q = np.linalg.qr(krylov)[0]
        expected = Q @ np.linalg.solve(Q.T @ H @ Q, Q.T @ b)
        np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-9)


def test_distinct_eigenvalues_bound_the_iterations() -> None:
    Q = np.linalg.qr(RNG.standard_normal((40, 40)))[0]
    H = (Q * np.repeat([1.0, 3.0, 10.0, 50.0], 10)) @ Q.T
    found = conjugate_gradient(lambda P, _: H @ P, RNG.standard_normal((40, 2)), max_iter=40)
    assert found.n_iter == 4


def test_columns_are_those_of_separate_runs_and_stop_alone() -> None:
    H = np.diag(np.geomspace(1.0, 100.0, 30))
    b = RNG.standard_normal((30, 4)) * [1.0, 1e-200, 1e200, 1.0]
    b[:, 3] = 0.0
    b[7, 3] = 2.0  # an eigenvector: one iteration
    widths: list[int] = []

    def product(P: Array, _: Indices) -> Array:
        widths.append(P.shape[1])
        return H @ P

    together = conjugate_gradient(product, b, max_iter=100)
    assert widths[0] == 4 and widths[1] == 3
    for i in range(4):
        alone = conjugate_gradient(lambda P, _: H @ P, b[:, [i]], max_iter=100)
        largest = np.abs(alone.x).max(initial=1e-300)
        np.testing.assert_allclose(together.x[:, [i]] / largest, alone.x / largest, atol=1e-8)
        direct = b[:, [i]] / np.diag(H)[:, None]
        np.testing.assert_allclose(alone.x / largest, direct / largest, atol=1e-6)
    assert together.residuals[0, 3] < 1e-15 and together.residuals[-1, 3] < 1e-15


def test_zero_and_empty_right_hand_sides() -> None:
    b = np.zeros((5, 2))
    found = conjugate_gradient(lambda P, _: P, b, max_iter=5)
    assert found.n_iter == 0 and found.converged.all() and not found.x.any()
    b[0, 1] = 1.0
    found = conjugate_gradient(lambda P, _: 2.0 * P, b, max_iter=5)
    np.testing.assert_allclose(found.x, b / 2.0)
    empty = conjugate_gradient(lambda P, _: P, np.zeros((0, 2)), max_iter=5)
    assert empty.x.shape == (0, 2) and empty.n_iter == 0


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf])
def test_a_matrix_that_is_not_positive_definite_gives_no_nan(bad: float) -> None:
    H = np.diag([1.0, 2.0, bad])
    b = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])

    def product(P: Array, _: Indices) -> Array:
        result: Array = np.diag(H)[:, None] * np.where(P == 0.0, 0.0, P)
        result[P == 0.0] = 0.0
        return result

    found = conjugate_gradient(product, b, max_iter=10)
    assert np.isfinite(found.x).all() and np.isfinite(found.residuals).all()
    np.testing.assert_allclose(found.x[:, 0], [1.0, 0.5, 0.0])
    assert found.converged.tolist() == [True, False]


def test_a_stuck_column_returns_its_best_iterate() -> None:
    H = positive_definite(50, 1e6)
    b = RNG.standard_normal((50, 1))

    def noisy(P: Array, _: Indices) -> Array:
        return H @ P + 0.3 * RNG.standard_normal(P.shape) * np.abs(P)

    found = conjugate_gradient(noisy, b, max_iter=10_000, patience=10)
    assert found.n_iter < 1000 and not found.converged.any()
    assert found.residuals[-1, 0] == found.residuals.min()
    # The residual that is told is the recurrence's: here it must be true at least in scale.
    assert np.isfinite(found.x).all()


@pytest.mark.parametrize("power", [-0.5, 0.0, 0.25])
def test_residuals_that_rise_or_stay_without_rounding_end_nothing(power: float) -> None:
    values = np.geomspace(1e-10, 1.0, 40)
    b = values[:, None] ** power
    found = conjugate_gradient(
        lambda P, _: values[:, None] * P, b, max_iter=2000, tolerance=1e-10, patience=50
    )
    if power <= 0.0:
        assert found.residuals.max() > 1e3  # as the matrix' condition lets it
    assert found.converged.all()
    np.testing.assert_allclose(found.x, b / values[:, None], rtol=1e-5)


@pytest.mark.parametrize("t", [1, 3, 8, 30])
def test_what_is_still_to_be_gained(t: int) -> None:
    """Its bound by H's least eigenvalue, and what stands for that, on the Krylov space."""
    H, b = positive_definite(30, 1e3), RNG.standard_normal((30, 2)) * [1.0, 1e3]
    found = conjugate_gradient(lambda P, _: H @ P, b, max_iter=t, tolerance=0.0)
    expected = np.linalg.solve(H, b)
    above = np.sum((found.x - expected) * (H @ (found.x - expected)), axis=0)
    below = np.sum(found.x * (2.0 * b - H @ found.x), axis=0)
    np.testing.assert_allclose(found.gained, below, rtol=1e-8)
    least = float(np.linalg.eigvalsh(H)[0])
    assert (above <= found.squares / least * (1.0 + 1e-8) + 1e-20 * below).all()
    seen = found.curvatures()
    for column in range(2):
        krylov = [b[:, column] / np.linalg.norm(b[:, column])]
        for _ in range(t - 1):
            v = H @ krylov[-1]
            for _ in range(2):  # twice is enough
                v -= np.array(krylov).T @ (np.array(krylov) @ v)
            krylov.append(v / np.linalg.norm(v))
        Q = np.array(krylov).T
        if t < 30:  # beyond, rounding ends the space
            ritz = np.linalg.eigvalsh(Q.T @ H @ Q)[0]
            np.testing.assert_allclose(seen[column], ritz, rtol=1e-4)
    assert (seen >= least * (1.0 - 1e-6)).all()
    estimate = found.to_gain(least)
    bound = found.squares / least
    np.testing.assert_allclose(estimate, bound * np.sqrt(least / seen), rtol=1e-6)


def test_a_column_that_went_back_tells_what_is_to_be_gained_there() -> None:
    H, b = positive_definite(50, 1e6), RNG.standard_normal((50, 1))

    def noisy(P: Array, _: Indices) -> Array:
        return H @ P + 0.3 * RNG.standard_normal(P.shape) * np.abs(P)

    found = conjugate_gradient(noisy, b, max_iter=10_000, patience=10)
    expected = np.linalg.solve(H, b)
    above = np.sum((found.x - expected) * (H @ (found.x - expected)))
    assert not found.converged.any()
    assert above <= found.squares[0]  # over H's least eigenvalue, 1
