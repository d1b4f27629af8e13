"""Ridge regression on random features, and the features of each kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from semiparam_dynamics.learning.feature_sampling import (
    SpectralFeatures,
    _leverage,
    fourier_map,
    leverage_importance,
)
from semiparam_dynamics.learning.kernels import Gaussian, Laplacian, Matern
from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS
from semiparam_dynamics.learning.rows import Rows

from .oracles import cube, peak_memory

KERNELS = [
    Gaussian(1.7),
    Gaussian([0.5, 2.0, 1.0]),
    Laplacian(2.0),
    Laplacian([3.0, 1.0, 2.0]),
    Matern(1.5, 0.5),
    Matern([1.0, 2.0, 1.5], 1.5),
    Matern(1.0, 2.5),
]


@pytest.mark.parametrize("kind", ["phase", "pair"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_inner_products_approximate_the_kernel(kernel: Any, kind: str) -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))

    def evaluated(n: int) -> np.ndarray:
        features = SpectralFeatures(kernel, n, 3, kind, 0)
        return fourier_map(features.frequencies, features.offsets, np.float64).evaluate(X)

    psi = evaluated(40_000)
    assert psi.shape == (30, 40_000)
    # Each entry is a mean of 40000 or 20000 values within [-2, 2], of variance 1 / 2 or so.
    assert np.abs(psi @ psi.T / 40_000 - kernel(X)).max() < 0.04
    np.testing.assert_allclose(evaluated(100), psi[:, :100], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["phase", "pair"])
def test_it_equals_scikit_learns_ridge_on_the_same_features(kind: str) -> None:
    X, Y, X_new = cube(T=2)
    model = RandomFeaturesKRLS(Gaussian(0.7), 1e-3, 60, kind, random_state=0).fit(X, Y)
    angle = X @ model.frequencies_.T
    if kind == "phase":
        A = np.sqrt(2.0 / 60) * np.cos(angle + model.offsets_)
    else:
        A = np.stack((np.cos(angle), np.sin(angle)), axis=2).reshape(len(X), 60) / np.sqrt(30)
    expected = Ridge(1e-3 * len(X), fit_intercept=False).fit(A, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_.T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), A @ model.coef_, rtol=1e-9, atol=1e-10)


def test_without_the_scale_the_penalty_weighs_an_mth() -> None:
    X, Y, X_new = cube(T=2)
    scaled = RandomFeaturesKRLS(Gaussian(0.7), 1e-3, 60, random_state=0).fit(X, Y)
    unscaled = RandomFeaturesKRLS(Gaussian(0.7), 0.06, 60, random_state=0, scaled=False).fit(X, Y)
    np.testing.assert_allclose(unscaled.predict(X_new), scaled.predict(X_new), atol=1e-9)
    A = np.sqrt(2.0) * np.cos(X @ unscaled.frequencies_.T + unscaled.offsets_)
    expected = Ridge(0.06 * len(X), fit_intercept=False).fit(A, Y)
    np.testing.assert_allclose(unscaled.coef_, expected.coef_.T, rtol=1e-7, atol=1e-9)


def test_memory_stays_within_the_limit() -> None:
    n, m, limit = 20_000, 150, 4_000_000
    X = np.random.default_rng(0).standard_normal((n, 2))
    rows = Rows.from_arrays(X, X[:, 0])
    model = RandomFeaturesKRLS(n_features=m, random_state=0, memory_limit=limit)
    assert peak_memory(lambda: model.fit(rows)) < limit + 8 * 8 * m * m


@pytest.mark.parametrize("importance", ["leverage", lambda omega, X: np.ones(len(omega))])
def test_draws_by_importance_stay_within_the_limit(importance: Any) -> None:
    X = np.random.default_rng(0).standard_normal((3000, 2))
    model = RandomFeaturesKRLS(
        n_features=50, importance=importance, random_state=0, memory_limit=10_000_000
    )
    rows = Rows.from_arrays(X, X[:, 0])
    assert peak_memory(lambda: model.fit(rows)) < 12_000_000
    assert np.mean((model.predict(X) - X[:, 0]) ** 2) < 0.1


def test_candidates_in_blocks_are_drawn_as_in_one() -> None:
    values = np.random.default_rng(0).standard_normal((40, 90))
    found = _leverage(lambda: iter(np.hsplit(values, [50])), 90, 1e-3, None)
    np.testing.assert_allclose(np.hstack(list(found)), leverage_importance(values, 1e-3))
