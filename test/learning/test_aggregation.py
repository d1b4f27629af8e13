"""Aggregates of Nyström estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.learning.aggregation import NystromAggregator, combination_weights
from semiparam_dynamics.learning.base import hold_out
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.rows import Rows


def data(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (n, 2))
    Y = np.stack([np.sin(5.0 * X.sum(axis=1)), np.cos(2.0 * X[:, 0])], axis=1)
    return X, Y + 0.1 * draw.standard_normal((n, 2)), draw.uniform(-1, 1, (50, 2))


def brownian(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return 1.0 + np.minimum(A, B.T)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("penalty", [1e-3, 1e-11])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("validation", [None, 0.3])
def test_the_weights_are_least_squares_on_the_candidates(
    independent: bool, penalty: float, weighted: bool, validation: float | None
) -> None:
    X, Y, X_new = data()
    w = np.random.default_rng(1).uniform(0.5, 1, len(X)) if weighted else np.ones(len(X))
    model = NystromAggregator(
        Gaussian(0.5),
        penalty,
        (4, 12, 30),
        independent=independent,
        validation=validation,
        random_state=0,
    ).fit(X, Y, w if weighted else None)
    train = held = Rows.from_arrays(X, Y, w)
    if validation is not None:
        train, held = hold_out(train, validation, np.random.RandomState(0))
    (seen,), (unseen,) = (list(rows.blocks(300)) for rows in (train, held))
    for estimator in model.estimators_:
        again = NystromKRLS(Gaussian(0.5), penalty, centers=estimator.centers_)
        again.fit(seen.X, seen.Y, seen.weights)
        np.testing.assert_allclose(estimator.predict(X), again.predict(X), rtol=1e-6, atol=1e-6)
    F = np.stack([estimator.predict(unseen.X) for estimator in model.estimators_])
    root = np.sqrt(unseen.weights)
    for t in range(2):
        expected = np.linalg.lstsq((F[:, :, t] * root).T, unseen.Y[:, t] * root)[0]
        np.testing.assert_allclose(model.weights_[:, t], expected, rtol=1e-6, atol=1e-7)
    combined = sum(
        c * estimator.predict(X_new)
        for c, estimator in zip(model.weights_, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(model.predict(X_new), combined, rtol=1e-7, atol=1e-7)
    assert [len(estimator.centers_) for estimator in model.estimators_] == [4, 12, 30]
    assert len(model.centers_) == (46 if independent else 30)


def test_nested_candidates_are_fits_with_the_first_centres() -> None:
    X, Y, X_new = data()
    model = NystromAggregator(Gaussian(0.5), 1e-3, (7, 25), random_state=0).fit(X, Y[:, 0])
    assert model.weights_.shape == (2,) and model.coef_.shape == (25,)
    for size, candidate in zip((7, 25), model.estimators_, strict=True):
        alone = NystromKRLS(Gaussian(0.5), 1e-3, size, random_state=0).fit(X, Y[:, 0])
        np.testing.assert_allclose(
            candidate.predict(X_new), alone.predict(X_new), rtol=1e-8, atol=1e-9
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equal_candidates_get_equal_shares(dtype: Any) -> None:
    X, Y, X_new = (array.astype(dtype) for array in data())
    model = NystromAggregator(Gaussian(0.5), 1e-5, (40, 40, 40), random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.weights_, model.weights_[[0, 0, 0]], rtol=1e-3)
    assert (np.abs(model.weights_.sum(axis=0) - 1.0) < 0.05).all()
    twice = NystromAggregator(Gaussian(0.5), 1e-5, (5, 40, 40), random_state=0).fit(X, Y)
    once = NystromAggregator(Gaussian(0.5), 1e-5, (5, 40), random_state=0).fit(X, Y)
    np.testing.assert_allclose(twice.predict(X_new), once.predict(X_new), atol=1e-4)
    np.testing.assert_allclose(twice.weights_[1], twice.weights_[2], rtol=1e-3)


def test_combination_weights_of_singular_systems() -> None:
    draw = np.random.default_rng(0)
    f = draw.standard_normal(100)
    y = 2.0 * f
    for noise in (0.0, 1e-12, 1e-9):  # nearly equal candidates, and one that is zero
        F = np.stack([f, f + noise * draw.standard_normal(100), 0.0 * f])
        c = combination_weights((F @ F.T)[None], (F @ y)[None], 2e-15)
        np.testing.assert_allclose(c[:, 0] @ F, y, rtol=1e-6, atol=1e-6)
        assert c[2, 0] == 0.0 and np.abs(c).max() < 3.0
    assert not combination_weights(np.zeros((1, 2, 2)), np.zeros((1, 2)), 1e-15).any()


@pytest.mark.parametrize("independent", [False, True])
def test_the_papers_experiment(independent: bool) -> None:
    """min(x, 1 - x) with noise, K = 1 + min(x, x'), of Kriukova et al. 2017, section 4."""
    x_new = np.linspace(0, 1, 500)[:, None]
    truth = np.minimum(x_new, 1 - x_new)[:, 0]
    errors: list[list[float]] = []
    for n in (256, 1024):
        for run in range(8):
            draw = np.random.default_rng(run)
            x = draw.uniform(0, 1, (n, 1))
            y = np.minimum(x, 1 - x)[:, 0] + np.sqrt(0.2) * draw.standard_normal(n)
            model = NystromAggregator(
                brownian,
                n ** (-2 / 3),
                (int(n**0.4), int(n**0.1)),
                independent=independent,
                random_state=run,
            ).fit(x, y)
            predicted = [e.predict(x_new) for e in model.estimators_] + [model.predict(x_new)]
            errors.append([float(np.sqrt(np.mean((p - truth) ** 2))) for p in predicted])
    large, small, aggregate = np.mean(errors, axis=0)
    assert aggregate <= 1.05 * min(large, small)
    assert aggregate < 0.8 * small
