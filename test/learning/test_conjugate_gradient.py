"""Conjugate gradient: against direct solutions, and in Krylov spaces."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning.ridge import conjugate_gradient

RNG = np.random.default_rng(0)


def positive_definite(q: int, condition: float) -> Array:
    Q = np.linalg.qr(RNG.standard_normal((q, q)))[0]
    return (Q * np.geomspace(1.0, condition, q)) @ Q.T


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
