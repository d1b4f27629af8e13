"""The factor of the second moments, whichever way rows come in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.recursion.factor import CholeskyFactor


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(0, 80),
    D=st.integers(1, 20),
    cuts=st.lists(st.integers(0, 80), max_size=4),
    scale=st.floats(1e-3, 1e3),
)
def test_it_is_that_of_all_rows_however_they_come(
    n: int, D: int, cuts: list[int], scale: float
) -> None:
    rows = scale * np.random.default_rng(n).normal(size=(n, D))
    factor = CholeskyFactor(D, 0.3)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    for start, end in zip(edges, edges[1:], strict=False):
        factor.update(rows[start:end])
    A = rows.T @ rows + 0.3 * np.eye(D)
    np.testing.assert_allclose(factor.R, np.linalg.cholesky(A).T, atol=1e-10 * np.sqrt(A.max()))
    np.testing.assert_array_equal(factor.R, np.triu(factor.R))


def test_rows_are_kept_as_they_were() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 40))
    before = rows.copy()
    factor = CholeskyFactor(40, 1.0)
    factor.update(rows)
    factor.solve(rows)
    factor.solve(rows[:1])
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_solving_with_the_moments(k: int) -> None:
    rng = np.random.default_rng(0)
    rows, right = rng.normal(size=(60, 12)), rng.normal(size=(k, 12))
    factor = CholeskyFactor(12, 0.5)
    factor.update(rows)
    A = rows.T @ rows + 0.5 * np.eye(12)
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(A, right.T).T, rtol=1e-10)


def test_half_of_it_is_saved_and_restored_bitwise() -> None:
    factor, other = CholeskyFactor(9, 1.0), CholeskyFactor(9, 1.0)
    factor.update(np.random.default_rng(0).normal(size=(5, 9)))
    saved = factor.state()
    assert saved.shape == (45,)
    other.restore(saved)
    np.testing.assert_array_equal(other.R, factor.R)
