"""Stochastic gradient, on rows and on Nyström mini-batches, against the plain loops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning import sgm
from semiparam_dynamics.learning.kernels import Gaussian, Linear
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.sgm import SGM, NystromSGM

# Left-hand derivatives, written another way than in the package.
DERIVATIVES = {
    "square": lambda y, f: f - y,
    "hinge": lambda y, f: -y * float(1.0 - y * f > 0.0),
    "logistic": lambda y, f: -y * expit(-y * f),
    "absolute": lambda y, f: np.sign(f - y),
    "exponential": lambda y, f: -y * np.exp(-y * f),
    "epsilon_insensitive": lambda y, f: np.sign(f - y) * float(abs(f - y) > 0.1),
}


def data(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def orders(n: int, passes: int, count: int, replacement: Any, seed: int) -> list[np.ndarray]:
    """The rows of each pass, with `count` draws where there is replacement."""
    draw = np.random.RandomState(seed)
    if replacement == "fixed":
        return [draw.permutation(n)] * passes
    return [
        draw.randint(n, size=count) if replacement else draw.permutation(n) for _ in range(passes)
    ]


def loop(
    K: np.ndarray,
    y: np.ndarray,
    loss: str,
    step: float,
    decay: float,
    passes: int,
    seed: int,
    replacement: Any = True,
) -> tuple[np.ndarray, np.ndarray]:
    """The last iterate's coefficients and the weighted mean of the iterates (thesis 6.3, 6.4)."""
    n = len(K)
    w, mean, total, t = np.zeros(n), np.zeros(n), 0.0, 0
    for order in orders(n, passes, n, replacement, seed):
        for j in order:
            t += 1
            size = step * t**-decay
            mean += size * w
            total += size
            w[j] -= size * DERIVATIVES[loss](y[j], K[j] @ w)
    return w, mean / total


@pytest.mark.parametrize("loss", DERIVATIVES)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_it_equals_the_plain_loop(loss: str, average: bool, kept: bool) -> None:
    X, y = data()
    y = np.sign(y) if loss in ("hinge", "logistic", "exponential") else y
    K = rbf_kernel(X, gamma=0.5 / 0.8**2)
    expected = loop(K, y, loss, 0.4, 0.3, 3, 5)[average]
    limit = None if kept else 90 * 90 * 8  # the matrix may take three quarters of it
    given = {"loss": loss, "average": average, "random_state": 5, "memory_limit": limit}
    model = SGM(Gaussian(0.8), step=0.4, decay=0.3, max_iter=3, **given)
    np.testing.assert_allclose(model.fit(X, y).predict(X), K @ expected, rtol=0, atol=1e-12)
    drawn = np.unique(np.random.RandomState(5).randint(90, size=(3, 90)))
    assert len(model.centers_) == len(drawn) == len(model.coef_)


@pytest.mark.parametrize("replacement", [False, "fixed"])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("limit", [None, 90 * 90 * 8])
def test_each_order_of_the_rows_equals_the_plain_loop(
    replacement: Any, average: bool, limit: int | None
) -> None:
    X, y = data()
    K = rbf_kernel(X, gamma=0.5 / 0.8**2)
    expected = loop(K, y, "square", 0.4, 0.3, 3, 5, replacement)[average]
    given = {"average": average, "replacement": replacement}
    model = SGM(Gaussian(0.8), step=0.4, decay=0.3, max_iter=3, **given)
    model.set_params(random_state=5, memory_limit=limit).fit(X, y)
    np.testing.assert_allclose(model.predict(X), K @ expected, rtol=0, atol=1e-12)
    assert len(model.centers_) == 90  # all rows have been seen
    other = loop(K, y, "square", 0.4, 0.3, 3, 5, "fixed" if replacement is False else False)
    assert np.abs(K @ (other[average] - expected)).max() > 1e-6


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_size_of_the_blocks_changes_nothing(size: int, monkeypatch: Any) -> None:
    X, y = data()
    settings = {"kernel": Gaussian(0.8), "max_iter": 2, "step": 0.5, "random_state": 0}
    expected = SGM(**settings).fit(X, y).predict(X)
    monkeypatch.setattr(sgm, "BLOCK_DRAWS", size)
    np.testing.assert_allclose(SGM(**settings).fit(X, y).predict(X), expected, atol=1e-12)


def test_the_best_pass_is_kept_and_patience_ends_the_fit() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 3)), rng.standard_normal(80)  # nothing but noise
    validation = rng.standard_normal((60, 3)), 0.1 * rng.standard_normal(60)
    settings = {"kernel": Gaussian(0.5), "step": 0.5, "random_state": 0}
    model = SGM(max_iter=30, patience=4, **settings).fit(X, y, validation_data=validation)
    errors = model.validation_errors_
    assert model.n_iter_ == 1 + np.argmin(errors)
    assert len(errors) == model.n_iter_ + 4 < 30
    at_best = SGM(max_iter=model.n_iter_, **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), at_best.predict(X), atol=1e-13)
    score = np.mean((model.predict(validation[0]) - validation[1]) ** 2)
    np.testing.assert_allclose(errors.min(), score, rtol=1e-10)


@pytest.mark.parametrize("model", [SGM(random_state=0), NystromSGM(n_centers=9, random_state=0)])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "exponential"])
@pytest.mark.parametrize("form", [lambda X, y: (X, y), lambda X, y: Rows([(X, y)])])
def test_labels_of_validation_data_are_looked_at(model: Any, loss: str, form: Any) -> None:
    X, y = data(120)
    signs = np.sign(y)
    model = clone(model).set_params(loss=loss, max_iter=2)
    model.fit(X, signs, validation_data=form(X, signs))
    with pytest.raises(LearningError, match="-1 or 1"):
        model.fit(X, signs, validation_data=form(X, (signs > 0.0).astype(float)))


def test_a_diverging_step_in_a_path_is_finite_and_hopeless() -> None:
    X, y = data()
    grid = {"step": [0.1, 1e3], "max_iter": [60]}
    (_, good), (_, bad) = SGM(random_state=0).path(X, y, grid, X)
    assert np.mean((good[:, 0] - y) ** 2) < 1.0
    assert np.isfinite(bad).all()
    assert np.abs(bad).min() > 1e6
    np.testing.assert_allclose(
        good[:, 0], SGM(step=0.1, max_iter=60, random_state=0).fit(X, y).predict(X), atol=1e-12
    )


def test_a_tuned_step_classifies_adult_as_in_the_thesis(data_file: Callable[[str], Path]) -> None:
    with np.load(data_file("tables/adult.npz")) as table:
        X, y = table["X_train"][:1000].astype(float), 2.0 * table["y_train"][:1000] - 1.0
        X_test, y_test = table["X_test"].astype(float), 2.0 * table["y_test"] - 1.0
    model = SGM(Gaussian(4.0), loss="hinge", max_iter=1, random_state=0)
    grid = {"step": np.logspace(-3, 0, 30)}
    path = model.path(X[:800], y[:800], grid, X[800:])
    errors = {s["step"]: np.maximum(1 - y[800:] * p[:, 0], 0).mean() for s, p in path}
    best = min(errors, key=lambda step: errors[step])
    predicted = model.set_params(step=best).fit(X, y).predict(X_test)
    # Table 6.2, n = 1000: hinge loss 0.380, 16.6 % errors.
    assert np.maximum(1 - y_test * predicted, 0).mean() < 0.42
    assert np.mean(np.sign(predicted) != y_test) < 0.18


KERNEL = Gaussian(0.8)


def batch_loop(
    X: np.ndarray,
    y: np.ndarray,
    C: np.ndarray,
    batch: int,
    step: float,
    decay: float,
    passes: int,
    replacement: Any = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions at X of the last and of the mean iterate: (2.3) of the paper, with another S.

    S comes from an eigendecomposition; the draws are those of seed 5.
    """
    values, vectors = np.linalg.eigh(rbf_kernel(C, gamma=0.5 / 0.8**2))
    S = vectors / np.sqrt(values)
    A = rbf_kernel(X, C, gamma=0.5 / 0.8**2) @ S
    n = len(X)
    beta, mean, total, t = np.zeros(len(C)), np.zeros(len(C)), 0.0, 0
    count = int(np.ceil(n / batch))
    for order in orders(n, passes, count * batch, replacement, 5):
        for start in range(0, len(order), batch):
            J = order[start : start + batch]
            t += 1
            size = step * t**-decay
            mean += size * beta
            total += size
            beta = beta - size / len(J) * A[J].T @ (A[J] @ beta - y[J])
    return A @ beta, A @ mean / total


@pytest.mark.parametrize("batch", [1, 4, 40, 90])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("limit", [None, 90 * 12 * 8])
def test_batches_equal_the_plain_loop(batch: int, average: bool, limit: int | None) -> None:
    X, y = data()
    C = X[:12]
    expected = batch_loop(X, y, C, batch, 0.7, 0.2, 3)[average]
    model = NystromSGM(
        KERNEL,
        centers=C,
        step=0.7,
        decay=0.2,
        batch_size=batch,
        max_iter=3,
        average=average,
        random_state=5,
        memory_limit=limit,
    )
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected, atol=1e-11)
    assert model.coef_.shape == (12,)


@pytest.mark.parametrize("batch", [4, 40, 200])
@pytest.mark.parametrize("replacement", [False, "fixed"])
@pytest.mark.parametrize(
    ("limit", "features"), [(None, False), (90 * 12 * 8, False), (90 * 12 * 8, True)]
)
def test_batches_without_replacement_equal_the_plain_loop(
    batch: int, replacement: Any, limit: int | None, features: bool | None, monkeypatch: Any
) -> None:
    X, y = data()
    expected = batch_loop(X, y, X[:12], batch, 0.7, 0.2, 3, replacement)
    if features is not None:  # one of the two ways to the same iterates
        made = sgm.NystromDescent.__init__
        monkeypatch.setattr(
            sgm.NystromDescent,
            "__init__",
            lambda self, task, basis, batch: made(self, task, basis, batch, features),
        )
    monkeypatch.setattr(sgm, "BLOCK_DRAWS", 16)  # batches of several blocks, and the reverse
    for average in (False, True):
        model = NystromSGM(KERNEL, centers=X[:12], step=0.7, decay=0.2, batch_size=batch)
        model.set_params(max_iter=3, average=average, random_state=5, memory_limit=limit)
        found = model.set_params(replacement=replacement).fit(X, y).predict(X)
        np.testing.assert_allclose(found, expected[average], atol=1e-11)


def test_default_step_and_batch_follow_the_papers_regimes() -> None:
    X, y = data(100)
    kappa2 = np.max(np.sum(X**2, axis=1))
    pairs: list[tuple[Any, Any]] = [(SGM(Linear()), SGM(Linear(), step=0.1 / kappa2))]
    for batch, explicit, step in ((1, 1, 0.1), (None, 10, 1.0), (5, 5, 0.5), (40, 40, 1.0)):
        default = NystromSGM(Linear(), centers=X[:4], batch_size=batch)
        same = clone(default).set_params(batch_size=explicit, step=step / kappa2)
        pairs.append((default, same))
    for pair in pairs:
        found, expected = (model.set_params(random_state=0).fit(X, y).predict(X) for model in pair)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
