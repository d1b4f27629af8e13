"""The classifier on known data sets, and against one regression for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import scale

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.classification import KernelClassifier
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.selection import select
from semiparam_dynamics.learning.sgm import SGM

DIGITS = load_digits(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
RNG = np.random.default_rng(0)


def split(data: Any) -> Any:
    return train_test_split(scale(data[0]), data[1], test_size=0.4, random_state=0)


def falkon(**settings: Any) -> Falkon:
    return Falkon(Gaussian(6.0), 1e-4, 300, random_state=0).set_params(**settings)


@pytest.mark.parametrize(("data", "accuracy"), [(DIGITS, 0.97), (CANCER, 0.95)])
def test_known_data(data: Any, accuracy: float) -> None:
    X, new, y, truth = split(data)
    model = KernelClassifier(falkon()).fit(X, y)
    assert model.score(new, truth) > accuracy


def test_one_fit_is_one_regression_for_each_class() -> None:
    X, new, y, _ = split(DIGITS)
    scores = KernelClassifier(falkon(penalty=1e-3)).fit(X, y).decision_function(new)
    assert scores.shape == (len(new), 10)
    for label in range(10):
        codes = np.where(y == label, 1.0, -1.0)
        model = falkon(penalty=1e-3).fit(X, codes - codes.mean())
        expected = model.predict(new) + codes.mean()
        np.testing.assert_allclose(scores[:, label], expected, atol=1e-6)


def test_exact_ridge_regression_on_weighted_codes() -> None:
    X, new, y, _ = split(CANCER)
    names = np.array(["bad", "good"])[y]
    w = RNG.uniform(0.5, 2.0, len(y))
    model = KernelClassifier(falkon(n_centers=1000)).fit(X, names, w)
    codes = 2.0 * y - 1.0
    mean = np.average(codes, weights=w)
    exact = KernelRidge(alpha=1e-4 * w.sum(), kernel="rbf", gamma=1 / 72)
    expected = exact.fit(X, codes - mean, sample_weight=w).predict(new) + mean
    scores = model.decision_function(new)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert model.classes_.tolist() == ["bad", "good"]
    assert (model.predict(new) == np.where(expected > 0.0, "good", "bad")).all()


def test_balanced_is_weights_of_inverse_frequencies() -> None:
    X, new, y, _ = split(DIGITS)
    few = (y > 2) | (RNG.uniform(size=len(y)) < 0.1)
    X, y = X[few], y[few]
    sizes = np.bincount(y)
    balanced = KernelClassifier(falkon(), "balanced").fit(X, y).decision_function(new)
    by_hand = {label: len(y) / (10 * size) for label, size in enumerate(sizes)}
    as_dict = KernelClassifier(falkon(), by_hand).fit(X, y).decision_function(new)
    weights = (len(y) / (10 * sizes))[y]
    as_weights = KernelClassifier(falkon()).fit(X, y, weights).decision_function(new)
    np.testing.assert_allclose(as_dict, balanced, atol=1e-9)
    np.testing.assert_allclose(as_weights, balanced, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("data", [DIGITS, CANCER], ids=["ten classes", "two"])
def test_the_path_is_what_separate_fits_give(data: Any) -> None:
    X, new, y, _ = split(data)
    model = KernelClassifier(falkon(), "balanced")
    grid = {"estimator__penalty": [1e-1, 1e-3], "estimator__max_iter": [2, 20]}
    steps = list(model.path(X, y, grid, new))
    assert len(steps) == 4
    for setting, labels in steps:
        expected = clone(model).set_params(**setting).fit(X, y).predict(new)
        assert (labels == expected).all()


def test_a_path_and_a_fit_that_fails_leave_a_fitted_classifier_alone() -> None:
    X, new, y, _ = split(CANCER)
    model = KernelClassifier(falkon(penalty=1e-2)).fit(X, y)
    expected = model.decision_function(new)
    others, labels = X[:60, :5], np.array(["a", "b", "c"])[np.arange(60) % 3]
    list(model.path(others, labels, {"estimator__penalty": [1e-1]}, others))
    np.testing.assert_array_equal(model.decision_function(new), expected)
    model.set_params(estimator__memory_limit=1)
    with pytest.raises(LearningError, match="memory_limit"):
        model.fit(X, np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    np.testing.assert_array_equal(model.decision_function(new), expected)
    assert set(model.predict(new)) == {0, 1}


def test_weights_need_an_estimator_that_takes_them() -> None:
    X, _, y, _ = split(CANCER)
    for model, weights in (
        (KernelClassifier(SGM(), "balanced"), {}),
        (KernelClassifier(SGM(loss="hinge")), {"sample_weight": np.ones(len(y))}),
    ):
        with pytest.raises(ConfigurationError, match="SGM takes no sample weights: leave out"):
            model.fit(X, y, **weights)
    search = GridSearchCV(Ridge(), {"alpha": [1.0]})  # passes weights on
    weighted = KernelClassifier(search, "balanced").fit(X, y).decision_function(X)
    direct = KernelClassifier(Ridge(), "balanced").fit(X, y).decision_function(X)
    np.testing.assert_allclose(weighted, direct, rtol=1e-12)


def test_select_goes_over_the_regressors_path() -> None:
    X, _, y, _ = split(DIGITS)
    model = KernelClassifier(falkon())
    grid = {"estimator__penalty": [1e3, 1e-3]}
    chosen = select(model, X, y, grid, validation=3)
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert chosen.best == search.best_params_
    np.testing.assert_allclose(1.0 - chosen.mean, search.cv_results_["mean_test_score"], atol=2e-3)


def test_any_regressor_will_do_and_stays_as_it_was() -> None:
    X, new, y, truth = split(DIGITS)
    ridge = Ridge()
    model = KernelClassifier(ridge).fit(X, y)
    assert model.score(new, truth) > 0.9
    assert not hasattr(ridge, "coef_")
    with pytest.raises(ConfigurationError, match="path"):
        next(model.path(X, y, {"estimator__alpha": [1.0]}, new))
