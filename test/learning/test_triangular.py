"""BLAS in place on parts of matrices, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.recursion import blocks as blas
from semiparam_dynamics.recursion.blocks import multiply_triangular, solve_right


def triangle(n: int, rng: np.random.Generator, condition: float = 1.0) -> np.ndarray:
    """A part of a larger matrix, as a recursion's R is."""
    within = np.zeros((n, n + 5))
    R = within[:, :n]
    R[:] = np.triu(rng.standard_normal((n, n))) / np.sqrt(n)
    R[np.arange(n), np.arange(n)] = np.logspace(0.0, -np.log10(condition), n) + 1.0 / condition
    return R


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
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


@pytest.mark.parametrize("n", [1, 5, 128, 129, 300, 515])
def test_triangles_are_multiplied_in_place(n: int) -> None:
    rng = np.random.default_rng(n)
    C, R = triangle(n, rng), triangle(n, rng)
    wanted = C @ R
    multiply_triangular(C, R)
    np.testing.assert_allclose(R, wanted, rtol=1e-12, atol=1e-12)
    assert not np.tril(R, -1).any()


def test_factors_of_the_identity_and_a_product() -> None:
    W = np.random.default_rng(4).standard_normal((30, 50))[:, 2:22]
    rows, columns = np.triu(np.full((30, 30), np.nan)), np.zeros((20, 20))  # whatever is there
    rows[np.tril_indices(30, -1)] = 0.0
    blas.gram_rows(W, rows)
    blas.gram_columns(W, columns)
    for gram, wanted in ((rows, np.eye(30) + W @ W.T), (columns, np.eye(20) + W.T @ W)):
        np.testing.assert_allclose(np.triu(gram), np.triu(wanted), rtol=1e-12)
        assert blas.factorise(gram)
        np.testing.assert_allclose(gram.T @ gram, wanted, rtol=1e-12, atol=1e-12)
        assert not np.tril(gram, -1).any()
    assert not blas.factorise(-np.eye(3))
