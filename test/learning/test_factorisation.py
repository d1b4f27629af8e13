"""Factors and products in their place against NumPy's, also in panels."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.learning import products
from semiparam_dynamics.learning.products import (
    add_products,
    triangle_products,
    upper_factor,
)

RNG = np.random.default_rng(0)


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MAX_BLAS_ROWS", 20)
    monkeypatch.setattr(products, "PANEL_COLUMNS", 16)
    monkeypatch.setattr(products, "PANEL_ROWS", 5)


def positive_definite(n: int) -> np.ndarray:
    Z = RNG.standard_normal((n, n + 3))
    return Z @ Z.T


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize("n", [0, 1, 20, 21, 32, 49])
@pytest.mark.parametrize("clean", [True, False])
def test_the_factor_is_numpys_and_takes_the_matrix_place(n: int, clean: bool) -> None:
    A = positive_definite(n)
    unread = np.full((n, n), np.nan)
    found = np.asfortranarray(np.triu(A) + np.tril(unread, -1))
    assert upper_factor(found, clean=clean)
    expected = np.linalg.cholesky(A).T
    np.testing.assert_allclose(np.triu(found), expected, rtol=1e-11, atol=1e-12)
    if clean:
        np.testing.assert_array_equal(np.tril(found, -1), 0.0)


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize("bad", [3, 18, 40])
def test_what_is_not_positive_definite_has_none(bad: int) -> None:
    A = np.asfortranarray(positive_definite(45))
    A[bad, bad] = -1.0
    assert not upper_factor(A)


def test_a_matrix_that_would_be_copied_is_refused() -> None:
    for A in (np.eye(3)[:, ::2], np.arange(6.0).reshape(2, 3), np.eye(3, dtype=np.float32)):
        with pytest.raises(AssertionError):
            upper_factor(A)


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize("q", [1, 7, 20, 21, 33])
def test_products_are_added_in_place(q: int) -> None:
    A, gram = RNG.standard_normal((9, q)), np.asfortranarray(positive_definite(q))
    expected = gram + A.T @ A
    result = add_products(gram, A)
    assert np.shares_memory(result, gram)
    np.testing.assert_allclose(np.triu(result), np.triu(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 255, 256, 600])
def test_a_triangle_s_products(n: int) -> None:
    L, weights = np.tril(RNG.standard_normal((n, n))), RNG.uniform(0.0, 2.0, n)
    result = triangle_products(L, weights)
    assert result.flags.f_contiguous
    expected = L.T @ (weights[:, None] * L)
    np.testing.assert_allclose(np.triu(result), np.triu(expected), rtol=1e-11, atol=1e-11)
