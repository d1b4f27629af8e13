"""Logistic FALKON against scikit-learn's logistic regression on explicit Nyström features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import (
    SGM,
    Falkon,
    Gaussian,
    KernelClassifier,
    Linear,
    Matern,
    RecursiveRLS,
    Rows,
)
from semiparam_dynamics.learning.products import KernelRows

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((900, 4)), RNG.standard_normal((100, 4))
y = np.sign(np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * RNG.standard_normal(len(X)))
WEIGHTS = RNG.uniform(0.0, 3.0, len(X))
KERNEL = Gaussian(2.0)


def logistic(**settings: Any) -> Falkon:
    given = {"kernel": KERNEL, "n_centers": 120, "max_iter": 60, "random_state": 0} | settings
    return Falkon(loss="logistic", **given)


def features(kernel: Any, centers: Array) -> Any:
    """x -> K(x, C) K(C, C)^(-1/2) on the eigenvectors whose eigenvalues aren't rounding."""
    values, Q = eigh(kernel(centers))
    used = values > 1e-12 * values[-1]
    return lambda A: kernel(A, centers) @ (Q[:, used] / np.sqrt(values[used]))


def objective(f: Array, squared_norm: float, penalty: float, weights: Any = None) -> float:
    losses = np.average(np.logaddexp(0.0, -y * f), weights=weights)
    return float(losses + 0.5 * penalty * squared_norm)


@pytest.mark.parametrize("penalty", [1e-1, 1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_logistic_regressions(penalty: float, weighted: bool) -> None:
    w = WEIGHTS if weighted else None
    model = logistic(penalty=penalty).fit(X, y, w)
    phi = features(KERNEL, model.centers_)
    total = WEIGHTS.sum() if weighted else len(X)
    oracle = LogisticRegression(
        C=1.0 / (penalty * total), fit_intercept=False, tol=1e-10, solver="newton-cholesky"
    ).fit(phi(X), y, w)
    u = oracle.coef_[0]
    expected = objective(phi(X) @ u, float(u @ u), penalty, w)
    norm = float(model.coef_ @ KERNEL(model.centers_) @ model.coef_)
    found = objective(model.predict(X), norm, penalty, w)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict(NEW), phi(NEW) @ u, atol=1e-3, rtol=1e-4)
    assert model.residuals_[-1] < 1e-9 and model.n_iter_ < 30


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": Matern(3.0, 2.5)},
        {"memory_limit": 150_000},
        {"preconditioner_rows": 400},
        {"centers": "leverage_scores"},
        {"centers": X[::9]},
    ],
    ids=str,
)
def test_the_gradient_is_zero(settings: dict[str, Any]) -> None:
    model = logistic(penalty=1e-4, **settings).fit(X, y, WEIGHTS)
    K = model.kernel(X, model.centers_)
    slopes = -y / (1.0 + np.exp(y * (K @ model.coef_)))
    loss = K.T @ (WEIGHTS * slopes) / WEIGHTS.sum()
    rest = 1e-4 * model.kernel(model.centers_) @ model.coef_
    assert np.linalg.norm(loss + rest) < 1e-7 * np.linalg.norm(loss)


def products_of(
    model: Falkon, labels: Array, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, Falkon]:
    """The products with the Hessian that a fit takes, and the fitted model."""
    products = 0
    weighted_normal = KernelRows.weighted_normal

    def counted(self: KernelRows, B: Array, weights: Array) -> Array:
        nonlocal products
        products += 1
        return weighted_normal(self, B, weights)

    monkeypatch.setattr(KernelRows, "weighted_normal", counted)
    model.fit(X, labels)
    return products, model


def test_the_preconditioner_sees_the_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    # All rows are centres: the preconditioned Hessian is the identity, a product suffices.
    model = logistic(penalty=1e-4, centers="uniform", n_centers=900)
    products, model = products_of(model, y, monkeypatch)
    assert products <= 2 * model.n_iter_


def test_the_preconditioner_sees_the_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of a rare class the second derivatives are a tenth of what they are without an offset.
    rare = np.where(np.arange(len(X)) % 30 == 0, 1.0, -1.0)
    model = logistic(penalty=1e-3, n_centers=900, fit_intercept=True)
    products, model = products_of(model, rare, monkeypatch)
    assert model.intercept_ < -3.0 and products <= 3 * model.n_iter_


NOISY = X[:, 0] + 3.0 * RNG.standard_normal(len(X))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_one_against_the_rests(n_classes: int) -> None:
    inputs, labels = load_digits(return_X_y=True)
    some = labels < n_classes
    inputs, names = scale(inputs[some]), np.array(list("dbca"))[labels[some]]
    kernel = Gaussian(8.0)
    model = KernelClassifier(logistic(kernel=kernel, penalty=1e-3)).fit(inputs[100:], names[100:])
    phi = features(kernel, model.estimator_.centers_)
    oracle = LogisticRegression(
        C=1e3 / (len(inputs) - 100), fit_intercept=False, tol=1e-10, solver="newton-cholesky"
    )
    many = OneVsRestClassifier(oracle).fit(phi(inputs[100:]), names[100:])
    found = model.predict_proba(inputs[:100])
    np.testing.assert_allclose(found, many.predict_proba(phi(inputs[:100])), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (model.classes_[found.argmax(axis=1)] == model.predict(inputs[:100])).all()
    assert model.score(inputs[:100], names[:100]) > 0.9


def test_probabilities_far_from_all_data() -> None:
    model = KernelClassifier(Falkon(Linear(), 1e-6, loss="logistic", random_state=0))
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    p = model.fit(X, labels).predict_proba(1e6 * NEW)
    assert np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1.0)


def test_only_the_logistic_loss_has_probabilities() -> None:
    assert not hasattr(KernelClassifier(Falkon()), "predict_proba")
    with pytest.raises(AttributeError) as refused:
        KernelClassifier(Falkon()).predict_proba(NEW)
    assert 'Falkon(loss="logistic")' in str(refused.value.__cause__)
    hinge = KernelClassifier(SGM(KERNEL, loss="hinge", random_state=0)).fit(X, y)
    assert not hasattr(hinge, "predict_proba") and hinge.score(X, y) > 0.7
    stochastic = KernelClassifier(SGM(KERNEL, loss="logistic", random_state=0)).fit(X, y)
    assert stochastic.predict_proba(NEW).shape == (100, 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_separable_classes_and_hardly_any_penalty() -> None:
    labels = np.sign(X[:, 0])
    for penalty in (1e-8, 1e-12):
        model = logistic(penalty=penalty).fit(X, labels)
        loss = np.logaddexp(0.0, -labels * model.predict(X)).mean()
        assert np.isfinite(model.coef_).all() and loss < 0.05


def test_chunks_and_single_precision() -> None:
    expected = logistic(penalty=1e-4).fit(X, y, WEIGHTS).predict(NEW)
    parts = [slice(0, 7), slice(7, 500), slice(500, 900)]
    chunks = Rows([(X[part], y[part], WEIGHTS[part]) for part in parts])
    for limit in (None, 150_000):
        model = logistic(penalty=1e-4, memory_limit=limit).fit(chunks)
        np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-6)
    expected = logistic(penalty=1e-2).fit(X, y, WEIGHTS).predict(NEW)
    single = logistic(penalty=1e-2).fit(X.astype(np.float32), y.astype(np.float32), WEIGHTS)
    assert single.predict(NEW.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.predict(NEW), expected, atol=1e-2)


def test_validation_errors_are_mean_losses() -> None:
    labels = np.sign(NEW[:, 0])
    model = logistic(penalty=1e-4).fit(X, y, validation_data=(NEW, labels))
    expected = np.logaddexp(0.0, -labels * model.predict(NEW)).mean()
    np.testing.assert_allclose(model.validation_errors_[-1], expected, rtol=1e-9)
    with pytest.raises(LearningError, match="-1 or 1"):
        clone(model).fit(X, y, validation_data=(NEW, NEW[:, 0]))


@pytest.mark.parametrize("penalty", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_offset_is_logistic_regressions(penalty: float, weighted: bool) -> None:
    uneven = np.where(RNG.random(len(X)) < 0.6, 1.0, y)
    w = WEIGHTS if weighted else None
    total = WEIGHTS.sum() if weighted else len(X)
    model = logistic(penalty=penalty, fit_intercept=True).fit(X, uneven, w)
    phi = features(KERNEL, model.centers_)
    oracle = LogisticRegression(C=1.0 / (penalty * total), tol=1e-10, solver="newton-cholesky")
    oracle.fit(phi(X), uneven, w)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_[0], rtol=1e-4, atol=1e-5)
    expected = oracle.decision_function(phi(NEW))
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-3, rtol=1e-4)
    assert model.residuals_[-1] < 1e-8 and model.n_iter_ < 30
    # The derivatives by the offset and by the coefficients are zero.
    weights = (WEIGHTS if weighted else np.ones(len(X))) / total
    slopes = -weights * uneven / (1.0 + np.exp(uneven * model.predict(X)))
    assert abs(slopes.sum()) < 1e-8 * np.abs(slopes).sum()
    K = KERNEL(X, model.centers_)
    loss, rest = K.T @ slopes, penalty * KERNEL(model.centers_) @ model.coef_
    assert np.linalg.norm(loss + rest) < 1e-6 * np.linalg.norm(rest)
    far = model.predict(np.full((1, 4), 1e3))  # where the kernels vanish
    np.testing.assert_allclose(far, model.intercept_, rtol=1e-12)


def test_offsets_of_columns_paths_and_classifiers() -> None:
    Y = np.column_stack((y, np.where(X[:, 3] > 1.0, 1.0, -1.0)))
    model = logistic(penalty=1e-3, fit_intercept=True)
    both = clone(model).fit(X, Y)
    assert both.intercept_.shape == (2,)
    for t in range(2):
        one = clone(model).fit(X, Y[:, t])
        np.testing.assert_allclose(both.predict(NEW)[:, t], one.predict(NEW), atol=1e-6)
    held = clone(model).fit(X, y, validation_data=(NEW, np.sign(NEW[:, 0])))
    losses = np.logaddexp(0.0, -np.sign(NEW[:, 0]) * held.predict(NEW)).mean()
    np.testing.assert_allclose(held.validation_errors_[-1], losses, rtol=1e-10)
    for setting, found in model.path(X, y, {"penalty": [1e-4, 1e-2]}, NEW):
        expected = clone(model).set_params(**setting).fit(X, y).predict(NEW)
        np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)
    classifier = KernelClassifier(model).fit(X, y)
    np.testing.assert_allclose(
        classifier.decision_function(NEW), clone(model).fit(X, y).predict(NEW), atol=1e-9
    )
    # One class so rare that a zero offset would say even odds far away.
    rare = np.where(np.arange(len(X)) % 30 == 0, 1.0, -1.0)
    far = KernelClassifier(clone(model).set_params(penalty=1.0)).fit(X, rare)
    assert abs(far.predict_proba(np.full((1, 4), 1e3))[0, 1] - 1.0 / 30.0) < 0.003


def test_an_offset_has_its_place() -> None:
    with pytest.raises(ConfigurationError, match="fit_intercept is of the logistic loss"):
        Falkon(fit_intercept=True).fit(X, y)
    with pytest.raises(LearningError, match="without an intercept"):
        RecursiveRLS.from_batch(logistic(fit_intercept=True).fit(X, y), X, y)
    assert logistic().fit(X, y).intercept_ == 0.0 and Falkon(n_centers=9).fit(X, y).intercept_ == 0
