"""RecursiveRLS against batch ridge regression, weighted rows, and a long-double recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.features import NystromFeatures, RandomFourierFeatures
from semiparam_dynamics.learning.kernels import Gaussian, Matern
from semiparam_dynamics.learning.recursive_rls import RecursiveRLS

FEATURES = (None, "random_fourier", "nystrom")


def data(n: int = 80, d: int = 3, outputs: int = 2, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, X_new = rng.standard_normal((n, d)), rng.standard_normal((20, d))
    Y = np.column_stack([np.sin((t + 1) * X[:, 0]) + 0.1 * X[:, -1] for t in range(outputs)])
    return X, Y + 0.1 * rng.standard_normal(Y.shape), X_new


def extended_weights(Z: Any, Y: Any, ridge: float) -> Any:
    """(Z'Z + ridge I)^-1 Z'Y by Gauss-Jordan elimination in extended precision."""
    Z, Y = Z.astype(np.longdouble), Y.astype(np.longdouble)
    A = Z.T @ Z + ridge * np.eye(Z.shape[1], dtype=np.longdouble)
    M = np.concatenate((A, Z.T @ Y), axis=1)
    for i in range(len(A)):
        M[i] /= M[i, i]
        others = np.arange(len(A)) != i
        M[others] -= M[others, i : i + 1] * M[i]
    return M[:, len(A) :]


@pytest.mark.parametrize("features", FEATURES)
def test_it_is_a_scikit_learn_estimator(features: str | None) -> None:
    kernel = None if features is None else Gaussian(6.0)  # as wide as the checks' data
    check_estimator(RecursiveRLS(kernel, features=features, random_state=0))


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 30.0])
def test_equals_ridge_on_the_same_features(features: str | None, penalty: float) -> None:
    X, Y, X_new = data()
    model = RecursiveRLS(
        Gaussian(1.5), penalty, features=features, n_features=30, random_state=0
    ).fit(X, Y)
    Z, Z_new = (X, X_new) if features is None else map(model.features_.transform, (X, X_new))
    ridge = Ridge(alpha=penalty, fit_intercept=False).fit(Z, Y)
    np.testing.assert_allclose(model.predict(X_new), ridge.predict(Z_new), atol=1e-9)
    np.testing.assert_allclose(model.coef_, ridge.coef_.T, atol=1e-8)
    exact = extended_weights(Z, Y, penalty)
    np.testing.assert_allclose(model.predict(X_new), Z_new @ exact, atol=1e-11)


@pytest.mark.parametrize("features", FEATURES)
def test_block_after_block_is_the_same_as_at_once(features: str | None) -> None:
    X, Y, X_new = data()
    model = RecursiveRLS(features=features, n_features=30, random_state=0).fit(X, Y)
    parts = clone(model)
    if features == "nystrom":  # its centres come from the first rows: give both the same
        parts.set_params(features=model.features_)
    for start in range(0, len(X), 7):
        parts.partial_fit(X[start : start + 7], Y[start : start + 7])
    np.testing.assert_allclose(parts.predict(X_new), model.predict(X_new), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(parts.noise_, model.noise_, rtol=1e-12)
    again = model.predict(X_new)
    assert np.array_equal(model.fit(X, Y).predict(X_new), again)  # fit forgets what was


def test_features_are_interchangeable_by_a_parameter_or_a_transformer() -> None:
    X, Y, X_new = data()
    by_name = RecursiveRLS(Gaussian(2.0), features="random_fourier", n_features=20, random_state=3)
    unfitted = RandomFourierFeatures(20, 2.0, random_state=3)
    for features in (unfitted, clone(unfitted).fit(X)):
        given = RecursiveRLS(features=features).fit(X, Y)
        assert np.array_equal(given.predict(X_new), by_name.fit(X, Y).predict(X_new))
    assert not hasattr(unfitted, "frequencies_")  # the parameter stays as it was given
    nystrom = NystromFeatures(Gaussian(2.0), 20, random_state=3)
    by_name.set_params(features="nystrom")
    given = RecursiveRLS(features=nystrom).fit(X, Y)
    assert np.array_equal(given.predict(X_new), by_name.fit(X, Y).predict(X_new))


def test_a_pipeline_s_shapes_and_one_output() -> None:
    X, Y, X_new = data()
    model = make_pipeline(StandardScaler(), RecursiveRLS(features="nystrom", n_features=25))
    both = model.fit(X, Y).predict(X_new)
    assert both.shape == (20, 2)
    one = model.fit(X, Y[:, 0])
    assert one.predict(X_new).shape == (20,)
    assert one[-1].coef_.ndim == 1
    mean, std = one.predict(X_new, return_std=True)
    assert std.shape == mean.shape == (20,)


def test_integer_weights_are_repeated_rows() -> None:
    X, Y, X_new = data()
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = RecursiveRLS().fit(X, Y, sample_weight=weights)
    repeated = RecursiveRLS().fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted.predict(X_new), repeated.predict(X_new), atol=1e-12)


def test_forgetting_weighs_rows_by_their_age() -> None:
    X, Y, X_new = data(n=400)
    mu = 0.97
    model = RecursiveRLS(penalty=1e-6, forgetting=mu).fit(X, Y)
    weights = mu ** np.arange(len(X))[::-1]
    expected = Ridge(alpha=1e-6, fit_intercept=False).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X_new), expected.predict(X_new), atol=1e-5)


@pytest.mark.parametrize("mu", [1.0, 0.95])
def test_noise_is_the_running_mean_of_the_errors_met(mu: float) -> None:
    X, Y, X_new = data(n=60)
    model = RecursiveRLS(penalty=0.7, forgetting=mu).fit(X, Y)
    A, B = 0.7 * np.eye(3), np.zeros((3, 2))
    squares, count, ridge = np.zeros(2), 0.0, np.full(3, 0.7)
    level = 0.7 if mu == 1.0 else 0.7 * 3.0 * np.log(mu) / (mu**3 - 1.0)
    for k, (x, y) in enumerate(zip(X, Y, strict=True)):
        A, B, squares, count = mu * A, mu * B, mu * squares, mu * count
        ridge *= mu
        A[k % 3, k % 3] += level - ridge[k % 3]  # the ridge put back, a feature at a time
        ridge[k % 3] = level
        squares += (y - x @ np.linalg.solve(A, B)) ** 2 / (1.0 + x @ np.linalg.solve(A, x))
        count += 1.0
        A, B = A + np.outer(x, x), B + np.outer(x, y)
    np.testing.assert_allclose(model.predict(X_new), X_new @ np.linalg.solve(A, B), rtol=1e-9)
    np.testing.assert_allclose(model.noise_, squares / count, rtol=1e-9)
    leverage = np.einsum("ij,ji->i", X_new, np.linalg.solve(A, X_new.T))
    _, std = model.predict(X_new, return_std=True)
    np.testing.assert_allclose(std**2, np.outer(1.0 + leverage, model.noise_), rtol=1e-9)


def test_noise_converges_to_the_noise_and_covers_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5))
    y = X @ rng.standard_normal(5) + 0.3 * rng.standard_normal(4000)
    model = RecursiveRLS().fit(X[:3000], y[:3000])
    assert abs(np.sqrt(model.noise_[0]) - 0.3) < 0.02
    mean, std = model.predict(X[3000:], return_std=True)
    assert 0.93 < np.mean(np.abs(y[3000:] - mean) < 2.0 * std) < 0.97


def test_what_is_wrong_is_said() -> None:
    X, Y, _ = data()
    with pytest.raises(ConfigurationError, match="features must be"):
        RecursiveRLS(features="fourier").fit(X, Y)
    with pytest.raises(ConfigurationError, match="Gaussian"):
        RecursiveRLS(Matern(), features="random_fourier").fit(X, Y)
    with pytest.raises(ConfigurationError, match="forgetting"):
        RecursiveRLS(forgetting=0.0).fit(X, Y)
    with pytest.raises(ConfigurationError, match="penalty"):
        RecursiveRLS(penalty=0.0).fit(X, Y)
    model = RecursiveRLS().fit(X, Y)
    with pytest.raises(LearningError, match="1 outputs"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(LearningError, match="negative"):
        model.partial_fit(X, Y, sample_weight=-np.ones(len(X)))
