"""Residuals that stay right while the rigid body's parameters move."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.dynamics.residual import LocalModel


def model(active: np.ndarray | None, axes: int = 2) -> LocalModel:
    return LocalModel(3, axes, active, length_scale=1.0, capacity=30, novelty=0.3, penalty=0.5)


def data(n: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((n, 2, 4))
    Phi[:, 1, :2] = 0.0  # the second axis does not depend on the first two parameters
    return rng.standard_normal((n, 3)), Phi, rng.standard_normal((n, 2))


def learned(active: np.ndarray | None, X: np.ndarray, Phi: np.ndarray, Y: np.ndarray) -> LocalModel:
    local = model(active)
    for x, phi, y in zip(X, Phi, Y, strict=True):
        local.update(x, local.features.transform(x), local.targets(y, phi))
    return local


def test_equals_a_refit_on_the_residuals_of_todays_parameters() -> None:
    X, Phi, Y = data()
    active = np.abs(Phi).max(axis=0) > 0.0
    exact = learned(active, X, Phi, Y)
    assert exact.core.n_outputs == 2 + 4 + 2
    for seed in range(3):
        pi = np.random.default_rng(seed).standard_normal(4)
        refit = learned(None, X, Phi, Y - Phi @ pi)
        for x in X[:10]:
            expected = refit.predict(x)[0]
            np.testing.assert_allclose(
                exact.residual(exact.predict(x)[0], pi), expected, rtol=1e-8, atol=1e-10
            )


def test_confidence_is_one_minus_the_gaussian_process_variance() -> None:
    X, Phi, Y = data(40)
    local = learned(None, X, Phi, Y)
    C = local.features.centers
    gamma = 0.5

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))

    # Sparse Gaussian process (deterministic training conditional) with noise variance 0.5. A
    # feature that came later is zero in the rows before, so here all centres come first.
    local = model(None)
    for x in X:
        local.features.grow(x, local.features.transform(x))
    C = local.features.centers
    for _ in C:
        local.core.add_feature()
    for x in X:
        local.core.update(local.features.transform(x), np.zeros(2))
    query = np.array([[0.3, -0.2, 0.5]])
    Kcc, Kxc, kc = kernel(C, C), kernel(X, C), kernel(query, C)
    explained = kc @ np.linalg.solve(Kcc, kc.T)
    posterior = 0.5 * kc @ np.linalg.solve(0.5 * Kcc + Kxc.T @ Kxc, kc.T)
    expected = explained.item() - posterior.item()
    np.testing.assert_allclose(local.predict(query[0])[1], expected, rtol=1e-6)


def test_far_from_all_data_it_says_nothing_and_knows_it() -> None:
    local = learned(None, *data())
    outputs, confidence, _ = local.predict(np.full(3, 50.0))
    assert np.all(outputs == 0.0)
    assert confidence == 0.0


def test_features_from_before_a_growth_are_made_anew() -> None:
    X, Phi, Y = data()
    prompt, late = model(None), model(None)
    for x, phi, y in zip(X, Phi, Y, strict=True):
        prompt.update(x, prompt.features.transform(x), prompt.targets(y, phi))
    stale = np.zeros(0)
    for x, phi, y in zip(X, Phi, Y, strict=True):
        late.update(x, stale, late.targets(y, phi))
    assert np.array_equal(prompt.predict(X[0])[0], late.predict(X[0])[0])
