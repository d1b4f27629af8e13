"""Features whose inner products approximate the Gaussian kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from sklearn.metrics.pairwise import rbf_kernel

from semiparam_dynamics.learning.features import RandomFourierFeatures
from semiparam_dynamics.recursion.features import IncrementalNystromFeatures


def test_random_fourier_features_approximate_the_kernel() -> None:
    X = np.random.default_rng(0).standard_normal((40, 5))
    exact = rbf_kernel(X, gamma=0.5 / 1.7**2)
    errors = []
    for n in (200, 20_000):
        phi = RandomFourierFeatures(n, length_scale=1.7, random_state=0).fit_transform(X)
        assert phi.shape == (40, n)
        np.testing.assert_allclose(np.sum(phi**2, axis=1), 1.0, rtol=1e-12)
        errors.append(np.abs(phi @ phi.T - exact).max())
    assert errors[1] < 0.04
    assert errors[1] < 0.35 * errors[0]  # falls as 1 / sqrt(n)


def grown(novelty: float, capacity: int = 150) -> tuple[IncrementalNystromFeatures, np.ndarray]:
    X = np.random.default_rng(1).standard_normal((200, 3))
    features = IncrementalNystromFeatures(3, 0.9, capacity, novelty)
    for x in X:
        features.grow(x, features.transform(x))
    return features, X


def test_nystrom_features_equal_those_of_a_factor_made_at_once() -> None:
    features, X = grown(0.3)
    C = features.centers
    assert 5 < len(C) < 150
    gamma = 0.5 / 0.9**2
    L = cholesky(rbf_kernel(C, gamma=gamma), lower=True)
    expected = solve_triangular(L, rbf_kernel(C, X, gamma=gamma), lower=True).T
    for x, phi in zip(X, expected, strict=True):
        np.testing.assert_allclose(features.transform(x), phi, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(features.explained, phi @ phi, rtol=1e-7)


def test_every_point_is_explained_or_the_centres_are_used_up() -> None:
    features, X = grown(0.3)
    for x in X:
        features.transform(x)
        assert features.explained >= 1.0 - 0.3 - 1e-9
    full, _ = grown(0.01, capacity=7)
    assert full.n_centers == 7


def test_features_vanish_far_from_the_centres() -> None:
    features, _ = grown(0.3)
    features.transform(np.full(3, 1e3))
    assert features.explained == 0.0


def test_a_repeated_point_is_no_new_centre() -> None:
    features = IncrementalNystromFeatures(2, 1.0, 10, 1e-6)
    x = np.array([0.3, -0.2])
    assert features.grow(x, features.transform(x))
    assert not features.grow(x, features.transform(x))


@pytest.mark.parametrize("capacity", [20, 150])
def test_rows_that_become_centres_in_blocks_are_those_one_by_one(capacity: int) -> None:
    wanted, X = grown(0.3, capacity)
    features = IncrementalNystromFeatures(3, 0.9, capacity, 0.3)
    rows = IncrementalNystromFeatures(3, 0.9, capacity, 0.3)
    for start in range(0, len(X), 40):
        block = X[start : start + 40]
        phi = features.grow_rows(block)
        assert phi.shape == (40, features.n_centers)
        for x, row in zip(block, phi, strict=True):
            if rows.grow(x, rows.transform(x)):
                rows.transform(x)
            known = rows.transform(x)
            np.testing.assert_allclose(row[: len(known)], known, rtol=1e-9, atol=1e-11)
            assert not row[len(known) :].any()
    assert np.array_equal(features.centers, wanted.centers)
    np.testing.assert_allclose(features.factor, wanted.factor, rtol=1e-9, atol=1e-11)
    expected = np.array([wanted.transform(x) for x in X])
    np.testing.assert_allclose(features.transform_rows(X), expected, rtol=1e-9, atol=1e-11)
