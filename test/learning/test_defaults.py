"""What is left out is found in the data: the kernel's width, and the penalty."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.learning import (
    KRLS,
    NYTRO,
    Falkon,
    Gaussian,
    KernelClassifier,
    Laplacian,
    NystromFeatures,
    NystromKRLS,
    RandomFeaturesKRLS,
    Rows,
)
from semiparam_dynamics.learning.kernels import median_distance

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 4))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(200)
GRID = {"kernel__length_scale": [0.5, 2.0], "penalty": [1e-4]}


def test_the_scale_is_the_median_distance_between_rows_that_differ() -> None:
    expected = median_distance(X)
    assert 2.0 < expected < 3.5  # sqrt(2 d) for normal inputs
    for factor in (1e-300, 1e-155, 1e155, 1e300):
        np.testing.assert_allclose(median_distance(X * factor) / factor, expected, rtol=1e-6)
    constant = np.column_stack((X, np.full(200, 1e12)))
    np.testing.assert_allclose(median_distance(constant), expected)
    outliers = X.copy()
    outliers[:5] *= 1e200
    np.testing.assert_allclose(median_distance(outliers), expected, rtol=0.1)
    np.testing.assert_allclose(median_distance(csr_array(X)), expected, rtol=1e-6)
    np.testing.assert_allclose(median_distance(X.astype(np.float32)), expected, rtol=1e-6)
    assert median_distance(np.ones((5, 2))) == 1.0
    with pytest.raises(ConfigurationError, match="found by an estimator's fit"):
        Gaussian("scale")(X)


@pytest.mark.parametrize("kernel", [None, "gaussian", Gaussian("scale")])
def test_every_form_of_the_default_is_the_same_and_its_width_can_be_searched(kernel: Any) -> None:
    model = NystromKRLS(kernel, n_centers=50, random_state=0)
    expected = NystromKRLS(n_centers=50, random_state=0).fit(X, Y).predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(X), expected)
    np.testing.assert_allclose(clone(model).fit(Rows([(X, Y)])).predict(X), expected, atol=1e-12)
    searched = GridSearchCV(model, GRID, cv=2).fit(X, Y)
    assert searched.best_estimator_.kernel.length_scale == 2.0
    pipeline = make_pipeline(StandardScaler(), clone(model))
    pipeline.set_params(nystromkrls__kernel__length_scale=2.0).fit(X, Y)
    assert pipeline[-1].kernel_.length_scale == 2.0
    classifier = KernelClassifier().set_params(estimator__kernel__length_scale=3.0)
    assert classifier.estimator.kernel.length_scale == 3.0
    assert isinstance(Falkon("laplacian").fit(X, Y).kernel_, Laplacian)


@pytest.mark.parametrize(
    "model",
    [
        KRLS(),
        NystromKRLS(random_state=0),
        Falkon(random_state=0),
        RandomFeaturesKRLS(random_state=0),
    ],
    ids=str,
)
def test_found_settings_are_near_the_best_and_stay_with_the_model(model: Any) -> None:
    model = clone(model).fit(X[:150], Y[:150])
    error = np.mean((model.predict(X[150:]) - Y[150:]) ** 2)
    best = min(
        np.mean(
            (
                clone(model)
                .set_params(kernel=Gaussian(w), penalty=p)
                .fit(X[:150], Y[:150])
                .predict(X[150:])
                - Y[150:]
            )
            ** 2
        )
        for w in (1.5, 3.0, 6.0, 12.0)
        for p in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    )
    assert error < 1.5 * best
    given = clone(model).set_params(kernel=model.kernel_, penalty=model.penalty_)
    expected = model.predict(X)
    np.testing.assert_array_equal(given.fit(X[:150], Y[:150]).predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    if not isinstance(model, RandomFeaturesKRLS):
        ((_, path),) = clone(model).path(X[:150], Y[:150], {}, X)
        np.testing.assert_allclose(path[:, 0], expected, atol=1e-6)


def test_rows_that_are_there_twice_count_as_their_weight() -> None:
    weights = RNG.integers(0, 3, 200)
    weighted = KRLS().fit(X, Y, weights)
    repeated = KRLS().fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert weighted.kernel_.length_scale == pytest.approx(repeated.kernel_.length_scale, rel=0.2)
    assert weighted.penalty_ == pytest.approx(repeated.penalty_, rel=1e-9)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=0.05)


def test_what_has_no_outputs_or_no_penalty_takes_the_median_distance() -> None:
    expected = median_distance(X)
    for model in (NystromFeatures(random_state=0), NYTRO(random_state=0, max_iter=5)):
        assert model.fit(X, Y).kernel_.length_scale == pytest.approx(expected)
