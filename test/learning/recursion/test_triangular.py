"""Triangular solves made of matrix products."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.learning.recursion.triangular import solve_right


def triangle(n: int, rng: np.random.Generator) -> np.ndarray:
    """A part of a larger matrix, as a recursion's R is."""
    R = np.zeros((n, n + 5))[:, :n]
    R[:] = np.triu(rng.standard_normal((n, n))) / np.sqrt(n)
    np.fill_diagonal(R, 2.0)
    return R


@pytest.mark.parametrize("n", [1, 47, 48, 49, 200])
@pytest.mark.parametrize("k", [1, 7, 90])
def test_rows_are_solved_for(n: int, k: int) -> None:
    rng = np.random.default_rng(n + k)
    R, rows = triangle(n, rng), rng.standard_normal((n, k)).T
    before = rows.copy(), R.copy()
    found = solve_right(rows, R)
    np.testing.assert_allclose(found @ R, rows, rtol=1e-11, atol=1e-11)
    assert np.array_equal(rows, before[0]) and np.array_equal(R, before[1])


def test_an_ill_conditioned_block_is_solved_with_to_a_small_residual() -> None:
    rng = np.random.default_rng(3)
    R = np.triu(rng.standard_normal((100, 100))) * np.logspace(0, -12, 100)[:, None]
    rows = rng.standard_normal((20, 100)) @ R
    found = solve_right(rows, R)
    size = np.abs(found) @ np.abs(R)
    assert np.max(np.abs(found @ R - rows) / size) < 1e-14
