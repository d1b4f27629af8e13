"""Bounded least squares against SciPy's bounded-variable solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from semiparam_dynamics.learning.recursion.nonnegative import (
    FREE,
    NONNEGATIVE,
    normal_equations,
    solve_nonnegative,
)


def solved(R: np.ndarray, u: np.ndarray, kinds: np.ndarray, held: np.ndarray) -> np.ndarray:
    n, m = len(u), len(kinds)
    work, x = np.full((2 * m + 3, m), np.nan), np.full(n, np.nan)
    normal_equations(R, u, n - m, work)
    solve_nonnegative(R, u, n - m, kinds, held, work, x)
    return x


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_minimum_whatever_it_began_with(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    m = int(rng.integers(0, n + 1))
    A = rng.standard_normal((2 * n, n)) * 10.0 ** rng.uniform(-2, 2, n)
    A[:, -1] = A[:, 0] + 1e-3 * A[:, -1]  # two that are nearly the same
    b = rng.standard_normal(2 * n)
    Q, R = np.linalg.qr(A)
    kinds = rng.choice((FREE, NONNEGATIVE), m)
    x = solved(R, Q.T @ b, kinds, rng.random(m) < 0.5)
    bounded = np.concatenate((np.full(n - m, FREE), kinds))
    assert np.all(x[bounded == NONNEGATIVE] >= 0.0)
    low = np.where(bounded == NONNEGATIVE, 0.0, -np.inf)
    best = lsq_linear(A, b, (low, np.inf), method="bvls", tol=1e-14)
    assert np.sum((A @ x - b) ** 2) <= 2.0 * best.cost * (1.0 + 1e-9)


def test_the_same_bits_from_any_guess() -> None:
    rng = np.random.default_rng(0)
    R, u = np.triu(rng.standard_normal((20, 20))) + 5.0 * np.eye(20), rng.standard_normal(20)
    kinds = np.full(15, NONNEGATIVE)
    answers = [solved(R, u, kinds, guess) for guess in rng.random((20, 15)) < 0.5]
    assert np.any(answers[0] == 0.0) and np.any(answers[0][5:] > 0.0)
    assert all(np.array_equal(answer, answers[0]) for answer in answers)


@pytest.mark.parametrize("apart", [1e-7, 1e-8, 1e-9, 1e-12, 1e-200])
@pytest.mark.parametrize("kind", [FREE, NONNEGATIVE])
def test_unknowns_that_cannot_be_told_apart_have_an_answer(apart: float, kind: int) -> None:
    """Columns that a motion in one direction makes the same, beside a tiny ridge."""
    A = np.random.default_rng(0).standard_normal((40, 6))
    A[:, 3:] = A[:, 2:3]
    b = A @ np.array([1.0, -2.0, 0.5, 0.25, 0.0, 0.25])
    Q, R = np.linalg.qr(np.concatenate((A, apart * np.eye(6))))
    u = Q.T @ np.concatenate((b, np.zeros(6)))
    x = solved(R, u, np.full(5, kind), np.zeros(5, dtype=bool))
    assert np.isfinite(x).all() and (kind == FREE or np.all(x[1:] >= 0.0))
    low = np.array([-np.inf, *([0.0 if kind == NONNEGATIVE else -np.inf] * 2)])
    best = lsq_linear(A[:, :3], b, (low, np.inf))
    assert np.sum((A @ x - b) ** 2) <= 2.0 * best.cost + 1e-4 * np.sum(b**2)
    assert np.abs(x).max() < 100.0
