"""Features that grow: as those of the incremental transformer, at a constant size."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning import Gaussian, Laplacian, NystromFeatures
from semiparam_dynamics.learning.front_features import GrowingFeatures, fitted_features


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
    assert fitted_features(own, None, 10, None, X[:3]) is own
    other = fitted_features(NystromFeatures(n_centers=2, random_state=0), None, 10, None, X)
    assert other.centers_.shape == (2, 2)
    assert fitted_features(None, None, 10, None, X) is None


def test_what_there_is_not_is_refused() -> None:
    X = np.zeros((3, 2))
    with pytest.raises(ConfigurationError, match="wavelets"):
        fitted_features("wavelets", None, 10, None, X)
    with pytest.raises(ConfigurationError, match="Gaussian"):
        fitted_features("random_fourier", Laplacian(1.0), 10, None, X)
