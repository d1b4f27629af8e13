"""Nyström and random Fourier features as transformers, and the feature options of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.features import (
    GrowingFeatures,
    NystromFeatures,
    RandomFourierFeatures,
    RandomReLUFeatures,
    feature_option,
)
from semiparam_dynamics.learning.incremental_rlsc import IncrementalRLSC
from semiparam_dynamics.learning.kernels import Gaussian, Laplacian, Linear
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.recursive_rls import RecursiveRLS

from .oracles import cube


def test_inner_products_are_those_of_scikit_learn_at_the_same_centres() -> None:
    X, *_ = cube(150)
    theirs = Nystroem(gamma=0.5 / 0.7**2, n_components=40, random_state=0).fit(X)
    expected = theirs.transform(X)
    centers = X[theirs.component_indices_]
    phi = NystromFeatures(Gaussian(0.7), centers=centers).fit_transform(X)
    assert phi.shape == (150, 40)
    np.testing.assert_allclose(phi @ phi.T, expected @ expected.T, atol=1e-8)


@pytest.mark.parametrize("centers", ["uniform", "leverage_scores"])
def test_they_are_exact_at_the_centres_and_nested(centers: str) -> None:
    X, *_ = cube(150)
    features = NystromFeatures(Laplacian(1.3), 30, centers, random_state=1).fit(X)
    C, phi = features.centers_, features.transform(X)
    kernel = Laplacian(1.3)
    np.testing.assert_allclose(features.transform(C) @ phi.T, kernel(C, X), atol=1e-10)
    fewer = NystromFeatures(Laplacian(1.3), centers=C[:12]).fit(X)
    np.testing.assert_allclose(fewer.transform(X), phi[:, : fewer.n_components], atol=1e-12)


def test_dependent_centres_bring_no_feature() -> None:
    X, *_ = cube(150)
    features = NystromFeatures(Linear(), 50, random_state=0).fit(X)
    assert features.n_components == 3
    assert len(features.get_feature_names_out()) == 3
    np.testing.assert_allclose(features.transform(X) @ features.transform(X).T, X @ X.T, atol=1e-10)
    with pytest.raises(LearningError, match="zero"):
        NystromFeatures(Linear()).fit(np.zeros((4, 2)))


def test_ridge_on_them_is_nystrom_krls_and_random_features_take_their_place() -> None:
    X, y, _ = cube(150)
    ridge = Ridge(1e-3 * len(X), fit_intercept=False)
    found = make_pipeline(NystromFeatures(Gaussian(0.7), 40, random_state=2), ridge).fit(X, y)
    expected = NystromKRLS(Gaussian(0.7), 1e-3, 40, random_state=2).fit(X, y)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-7)
    found.set_params(nystromfeatures=RandomFourierFeatures(600, 0.7, 0)).fit(X, y)
    assert np.mean((found.predict(X) - expected.predict(X)) ** 2) < 0.15 * np.var(y)


@pytest.mark.parametrize("n_centers", [1, 20, 2000])
def test_single_precision_in_single_precision_out(n_centers: int) -> None:
    X, *_ = cube(150)
    features = NystromFeatures(Gaussian(0.7), n_centers, random_state=0).fit(X)
    expected: Any = features.transform(X)
    found = features.transform(X.astype(np.float32))
    assert found.dtype == np.float32
    # Not the features themselves: those of nearly dependent centres magnify the inputs' rounding.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    single = NystromFeatures(Gaussian(0.7), n_centers, random_state=0)
    phi = single.fit_transform(X.astype(np.float32))
    assert phi.dtype == np.float32
    np.testing.assert_allclose(phi @ phi.T, expected @ expected.T, atol=1e-3)


def test_growing_features_give_the_kernel_between_centres() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    features = GrowingFeatures(2, 1.0, 50, 1e-6)
    learned = features.learn(X)
    assert learned.shape == (30, 50)
    Z = features.transform(X)
    np.testing.assert_allclose(Z @ Z.T, Gaussian(1.0)(X, X), atol=1e-5)
    # A row that became a centre has all of its features from then on.
    np.testing.assert_allclose(np.sum(learned**2, axis=1), 1.0, atol=1e-5)


def test_no_more_centres_than_there_is_room_for() -> None:
    X = 5.0 * np.random.default_rng(0).normal(size=(40, 3))
    features = GrowingFeatures(3, 1.0, 10, 1e-3)
    features.learn(X)
    assert len(features.state()["centers"]) == 10
    copy = GrowingFeatures(3, 1.0, 10, 1e-3)
    copy.restore(features.state())
    np.testing.assert_array_equal(copy.transform(X), features.transform(X))


def test_a_fitted_transformer_is_used_as_it_is() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    own = NystromFeatures(n_centers=5, random_state=0).fit(X)
    assert feature_option(own, None, 10, None, X[:3]) is own
    other = feature_option(NystromFeatures(n_centers=2, random_state=0), None, 10, None, X)
    assert other.centers_.shape == (2, 2)
    assert feature_option(None, None, 10, None, X) is None


def test_random_relu_features_approximate_the_arc_cosine_kernel() -> None:
    X = np.random.default_rng(0).standard_normal((30, 5))
    lengths = np.linalg.norm(X, axis=1)
    angles = np.arccos(np.clip(X @ X.T / np.outer(lengths, lengths), -1.0, 1.0))
    exact = np.sin(angles) + (np.pi - angles) * np.cos(angles)
    exact *= np.outer(lengths, lengths) / np.pi
    errors = []
    for n in (200, 20_000):
        phi = RandomReLUFeatures(n, random_state=0).fit_transform(X)
        assert phi.shape == (30, n)
        errors.append(np.abs(phi @ phi.T - exact).max())
    assert errors[1] < 0.4  # of 9, and each entry's deviation is some 0.1
    assert errors[1] < 0.35 * errors[0]
    single = RandomReLUFeatures(20, random_state=0).fit(X).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(
        single, feature_option("random_relu", None, 20, 0, X).transform(X), rtol=1e-4, atol=1e-6
    )
    with pytest.raises(ConfigurationError, match="n_features"):
        RandomReLUFeatures(0).fit(X)


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


def test_random_fourier_features_have_a_width_for_each_input_too() -> None:
    X, y, _ = cube(150)
    widths = np.array([0.5, 2.0, 1.0])
    phi = RandomFourierFeatures(40, widths, 0).fit_transform(X)
    np.testing.assert_allclose(
        phi, RandomFourierFeatures(40, 1.0, 0).fit_transform(X / widths), atol=1e-12
    )
    model = RecursiveRLS(Gaussian(list(widths)), features="random_fourier", n_features=40)
    found = model.set_params(random_state=0).fit(X, y).features_.transform(X)
    np.testing.assert_array_equal(found, phi)


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (RandomFourierFeatures(0), "n_features must be"),
        (RandomFourierFeatures(2.5), "n_features must be"),  # type: ignore[arg-type]
        (RandomFourierFeatures(length_scale=0.0), "length_scale must be positive"),
        (RandomFourierFeatures(length_scale=[1.0, 2.0]), "one for each of the 3 inputs"),
        (IncrementalRLSC(features="nystrom", kernel=Gaussian([1.0, 2.0, 3.0])), "have one width"),
        (IncrementalRLSC(features="nystrom", kernel=Gaussian(0.0)), "length_scale must be"),
        (IncrementalRLSC(features="nystrom", n_features=0), "n_features must be"),
    ],
    ids=str,
)
def test_widths_and_numbers_of_features_that_are_none_are_said(
    features: Any, sentence: str
) -> None:
    X, y, _ = cube(20)
    with pytest.raises(ConfigurationError, match=sentence):
        features.fit(X, y > 0.0)
