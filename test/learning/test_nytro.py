"""NYTRO against its closed form, the papers' formula and separate fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.nytro import NYTRO

from .oracles import peak_memory

KERNEL = Gaussian(0.6)


def data(n: int = 120, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.standard_normal(n)


def gram(X: np.ndarray, C: np.ndarray, width: float = 0.6) -> np.ndarray:
    return rbf_kernel(X, C, gamma=0.5 / width**2)


def root(K: np.ndarray) -> np.ndarray:
    """S with S S' = K^+, another one than the package's: from an eigendecomposition."""
    values, vectors = np.linalg.eigh(K)
    return vectors / np.sqrt(values)


@pytest.mark.parametrize("solver", ["direct", "gram"])
@pytest.mark.parametrize("step", ["kernel", "spectral", 0.8])
def test_it_equals_the_papers_formula(solver: str, step: Any) -> None:
    X, y = data()
    C, n = X[:15], len(X)
    R, K = root(gram(C, C)), gram(X, C)
    largest = np.linalg.norm(K @ R, 2) ** 2 / n
    size = {"kernel": 1.0, "spectral": 1.0 / largest, 0.8: 0.8}[step]
    beta = np.zeros(15)
    for _ in range(40):
        beta = beta - size / n * R.T @ (K.T @ (K @ R @ beta - y))
    model = NYTRO(KERNEL, centers=C, max_iter=40, step=step, solver=solver).fit(X, y)
    np.testing.assert_allclose(model.step_, size, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, R @ beta, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), K @ R @ beta, rtol=0, atol=1e-6)


def test_its_limit_is_the_ridgeless_nystrom_estimator() -> None:
    X, y = data()
    C = X[:10]
    A = gram(X, C, 0.4)
    model = NYTRO(Gaussian(0.4), centers=np.concatenate((C, C[:3])), max_iter=20_000)
    model.set_params(step="spectral").fit(X, y)
    np.testing.assert_allclose(model.predict(X), A @ np.linalg.pinv(A) @ y, atol=1e-8)


def test_the_gram_matrix_changes_nothing() -> None:
    X, y = data()
    settings = {"n_centers": 60, "max_iter": 20, "random_state": 0, "validation": 0.2}
    expected = NYTRO(KERNEL, solver="direct", **settings).fit(X, y)
    model = NYTRO(KERNEL, solver="gram", **settings).fit(X, y)
    np.testing.assert_allclose(model.validation_errors_, expected.validation_errors_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-10)


def test_the_gram_matrix_takes_the_limit_and_a_few_such_matrices() -> None:
    X, m, limit = np.random.default_rng(0).standard_normal((3000, 3)), 500, 8_000_000
    y = np.sin(X[:, 0])
    settings = {"solver": "gram", "max_iter": 2, "step": "kernel", "memory_limit": limit}
    NYTRO(KERNEL, centers=X[:50], **settings).fit(X[:600], y[:600])  # compiled
    peak = peak_memory(lambda: NYTRO(KERNEL, centers=X[:m], **settings).fit(X, y))
    assert peak < limit + 5 * 8 * m**2


@pytest.mark.parametrize("outputs", [1, 3])
def test_validation_errors_in_single_precision_are_those_of_the_path(outputs: int) -> None:
    rng = np.random.default_rng(0)
    X, Xv = (rng.uniform(-2, 2, (n, 2)).astype(np.float32) for n in (200, 100))
    target, held = (np.sin(2 * A[:, :1]) + 0.3 * A[:, 1:] for A in (X, Xv))
    Y = (target + 0.5 * rng.standard_normal((200, outputs))).astype(np.float32)
    held = np.repeat(held, outputs, axis=1)
    model = NYTRO(Gaussian(1.0), centers=X[:30], max_iter=100, solver="gram", patience=None)
    path = model.path(X, Y, {"max_iter": range(1, 101)}, Xv)
    errors = [np.mean((predicted.astype(float) - held) ** 2) for _, predicted in path]
    model.fit(X, Y, validation_data=(Xv, held))
    np.testing.assert_allclose(model.validation_errors_, errors, rtol=1e-6)
    assert model.n_iter_ == 1 + np.argmin(errors)


def test_it_stops_when_the_error_has_not_fallen_by_the_tolerance_within_the_patience() -> None:
    X, y = data(200)
    settings = {"kernel": KERNEL, "max_iter": 500, "random_state": 0, "validation": 0.2}
    everything = NYTRO(patience=None, **settings).fit(X, y)
    stopped = NYTRO(patience=20, tolerance=0.05, **settings).fit(X, y)
    rmse = np.sqrt(everything.validation_errors_)
    count, reference, since = 0, np.inf, 0
    while since < 20:
        since += 1
        if rmse[count] < 0.95 * reference:
            reference, since = rmse[count], 0
        count += 1
    assert 20 < len(stopped.validation_errors_) == count < 500
    np.testing.assert_allclose(stopped.validation_errors_, rmse[:count] ** 2, rtol=1e-9)


def test_the_held_out_share_is_not_learned_from() -> None:
    X, y = data(100)
    held = np.random.RandomState(7).permutation(100)[:20]
    rest = np.setdiff1d(np.arange(100), held)
    settings = {"centers": X[:10], "max_iter": 30, "random_state": 7, "patience": None}
    model = NYTRO(KERNEL, validation=0.2, **settings).fit(X, y)
    given = NYTRO(KERNEL, **settings).fit(X[rest], y[rest], validation_data=(X[held], y[held]))
    np.testing.assert_allclose(model.validation_errors_, given.validation_errors_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_, given.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("solver", ["direct", "gram"])
def test_centres_far_from_all_rows_give_zero(solver: str) -> None:
    X, y = data(60)
    model = NYTRO(KERNEL, centers=X[:9] + 1e3, solver=solver, max_iter=5).fit(X, y)
    assert not model.predict(X).any()
