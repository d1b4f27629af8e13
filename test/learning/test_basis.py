"""The Nyström basis against pseudo-inverses, also of singular kernel matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import cholesky

from semiparam_dynamics.learning.centers import NystromBasis, factorise
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Linear, Polynomial

RNG = np.random.default_rng(0)
DISTINCT = RNG.standard_normal((40, 3))
DUPLICATES = np.concatenate((DISTINCT[:12], DISTINCT[3:7], DISTINCT[12:20], DISTINCT[:2]))
CASES: list[tuple[Kernel, np.ndarray, int]] = [  # kernel, centres, dimension of the span
    (Gaussian(1.0), DISTINCT, 40),
    (Gaussian(1.0), DUPLICATES, 20),
    (Linear(), DISTINCT, 3),
    (Polynomial(2), DISTINCT, 10),
    (Polynomial(2), np.repeat(DISTINCT, 5, axis=0), 10),  # more than one block
    (Linear(), np.zeros((5, 3)), 0),
]
X = RNG.standard_normal((30, 3))


@pytest.mark.parametrize(("kernel", "centers", "rank"), CASES)
def test_features_have_the_inner_products_of_the_nystrom_kernel(
    kernel: Kernel, centers: np.ndarray, rank: int
) -> None:
    basis = NystromBasis(kernel, centers)
    assert rank <= basis.n_features <= 2 * rank
    phi = basis.transform(X)
    K = kernel(X, centers)
    expected = K @ np.linalg.pinv(kernel(centers), rcond=1e-12, hermitian=True) @ K.T
    scale = np.abs(kernel(X)).max()
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-7 * scale)
    grams = basis.expansion @ basis.expansion.T
    np.testing.assert_allclose(grams, kernel(centers), atol=1e-10 * scale)


@pytest.mark.parametrize(("kernel", "centers", "rank"), CASES)
@pytest.mark.parametrize("first", [1, 17])
def test_extending_equals_making_it_at_once(
    kernel: Kernel, centers: np.ndarray, rank: int, first: int
) -> None:
    whole = NystromBasis(kernel, centers)
    grown = NystromBasis(kernel, centers[:first])
    before = grown.expansion.copy()
    for start in range(first, len(centers), 9):
        grown.extend(centers[start : start + 9])
    np.testing.assert_array_equal(grown.expansion[:first, : before.shape[1]], before)
    np.testing.assert_array_equal(grown.kept, whole.kept)
    np.testing.assert_allclose(grown.expansion, whole.expansion, atol=1e-6)
    np.testing.assert_allclose(grown.transform(X), whole.transform(X), atol=1e-6)


def test_the_first_centres_features_are_the_first_features() -> None:
    whole = NystromBasis(Gaussian(), DUPLICATES)
    for t in (1, 12, 14, 16, 30, len(DUPLICATES)):
        part = NystromBasis(Gaussian(), DUPLICATES[:t])
        assert whole.n_features_of(t) == part.n_features
        first = whole.transform(X)[:, : part.n_features]
        np.testing.assert_allclose(first, part.transform(X), atol=1e-8)


def test_the_factor_is_cholesky_s_and_centres_dropped_are_the_later_ones() -> None:
    basis = NystromBasis(Gaussian(), DISTINCT)
    np.testing.assert_allclose(basis.factor, cholesky(Gaussian()(DISTINCT), lower=True), atol=1e-9)
    np.testing.assert_array_equal(
        NystromBasis(Gaussian(), DUPLICATES).kept, [*range(12), *range(16, 24)]
    )


@pytest.mark.parametrize("n_leading", [4, 20])
def test_weights_and_coefficients_are_the_same_function(n_leading: int) -> None:
    basis = NystromBasis(Gaussian(), DUPLICATES)
    weights = np.random.default_rng(1).standard_normal((n_leading, 2))
    coefficients = basis.coefficients(weights)
    assert coefficients.shape == (len(DUPLICATES), 2)
    by_kernel = Gaussian()(X, DUPLICATES) @ coefficients
    np.testing.assert_allclose(by_kernel, basis.transform(X)[:, :n_leading] @ weights, atol=1e-8)
    again = basis.weights(coefficients)
    np.testing.assert_allclose(again[:n_leading], weights, atol=1e-8)
    np.testing.assert_allclose(again[n_leading:], 0.0, atol=1e-8)


def test_single_precision_drops_what_its_rounding_hides() -> None:
    twins = np.concatenate((DISTINCT, DISTINCT + 1e-5))
    assert NystromBasis(Gaussian(), twins).n_features > 40
    single = NystromBasis(Gaussian(), twins.astype(np.float32))
    assert single.n_features <= 40
    phi = single.transform(X.astype(np.float32))
    assert phi.dtype == np.float32
    expected = NystromBasis(Gaussian(), DISTINCT).transform(X)
    np.testing.assert_allclose(phi @ phi.T, expected @ expected.T, atol=5e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_smooth_kernel_on_crowded_centres_keeps_its_precision(d: int, dtype: Any) -> None:
    """Its eigenvalues fall below rounding: most pivots are noise, and must do no harm."""
    crowd = (0.5 * np.random.default_rng(1).standard_normal((300, d))).astype(dtype)
    basis = NystromBasis(Gaussian(), crowd)
    assert basis.n_features < 300
    K = Gaussian()(crowd.astype(float))
    phi = basis.transform(crowd)
    tolerance = 5e-12 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(phi @ phi.T, K, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        basis.expansion @ basis.expansion.T, K, rtol=0, atol=4 * np.sqrt(basis.jitter)
    )


def test_factorise_leaves_out_what_depends_on_the_rows_before() -> None:
    B = np.random.default_rng(2).standard_normal((6, 3))
    A = B @ B.T
    enough = 1e-12 * np.diag(A)
    F, kept = factorise(A, enough)
    np.testing.assert_array_equal(kept, [0, 1, 2])
    np.testing.assert_allclose(F @ F.T, A, atol=1e-12)
    F, kept = factorise(A, enough, every=True)
    assert F.shape == (6, 0)
    assert len(kept) == 0
