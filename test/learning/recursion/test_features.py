"""Nyström features against those made at once, and Fourier features."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from semiparam_dynamics.learning.recursion.features import (
    IncrementalNystromFeatures,
    fourier_features,
)


def test_one_input_many_inputs_and_those_out_of_range_are_alike() -> None:
    rng = np.random.default_rng(1)
    X, frequencies = rng.standard_normal((6, 4)), rng.standard_normal((10, 4))
    many = fourier_features(X, frequencies)
    np.testing.assert_allclose(many[2], fourier_features(X[2], frequencies), atol=1e-15)
    X[4] *= 1e9
    phase = X @ frequencies.T
    wanted = np.concatenate((np.cos(phase), np.sin(phase)), axis=1) / np.sqrt(10.0)
    np.testing.assert_allclose(fourier_features(X, frequencies), wanted, atol=1e-15)
    np.testing.assert_allclose(many[:4], wanted[:4], atol=1e-15)
    with np.errstate(invalid="ignore"):
        assert np.isnan(fourier_features(np.full(4, np.nan), frequencies)).all()


def gaussian(C: np.ndarray, X: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-0.5 * cdist(C, X, "sqeuclidean") / width**2)


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
    L = cholesky(gaussian(C, C, 0.9), lower=True)
    expected = solve_triangular(L, gaussian(C, X, 0.9), lower=True).T
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


def test_features_of_many_rows_are_those_of_each() -> None:
    features, X = grown(0.3, capacity=150)
    expected = np.array([features.transform(x) for x in X])
    np.testing.assert_allclose(features.transform_rows(X), expected, rtol=1e-9, atol=1e-11)
    explained = np.einsum("ij,ij->i", expected, expected)
    np.testing.assert_allclose(features.explained_rows, explained, rtol=1e-9)


def test_sparing_features_keep_centres_for_what_comes_late() -> None:
    """Points on a line, so near that each is half new; then some far away."""
    X = np.linspace(0.0, 20.0, 600)[:, None]
    plain, sparing = (
        IncrementalNystromFeatures(1, 0.5, 40, 0.3, sparing=spare) for spare in (False, True)
    )
    for x in X:
        for one in (plain, sparing):
            one.grow(x, one.transform(x))
    assert plain.n_centers == 40 and plain.centers.max() < 17.0  # none left for the end
    assert 20 < sparing.n_centers <= 40 and sparing.centers.max() > 19.0
    first = sparing.centers[:20]
    np.testing.assert_array_equal(first, plain.centers[:20])
