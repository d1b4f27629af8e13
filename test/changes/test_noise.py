"""The noise model beside the process that made the noise."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.changes.innovations import DIAGONAL, NoiseModel


def process(a: np.ndarray, root: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    r = np.zeros((n, len(a)))
    for k in range(1, n):
        r[k] = a * r[k - 1] + root @ rng.standard_normal(len(a))
    return r


A = np.array([0.9, 0.3, 0.0])
ROOT = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 2.0]])


def learned(n: int = 20_000) -> tuple[NoiseModel, np.ndarray]:
    model, r = NoiseModel(3, 0.1, horizon=1000.0), process(A, ROOT, n)
    for before, after in zip(r[:-1], r[1:], strict=True):
        model.update(after, before)
    return model, r


def test_correlation_and_covariance_are_found() -> None:
    model, _ = learned()
    np.testing.assert_allclose(model.correlation, A, atol=0.03)
    expected = ROOT @ ROOT.T
    expected = (1.0 - DIAGONAL) * expected + DIAGONAL * np.diag(np.diag(expected))
    np.testing.assert_allclose(model.covariance, expected, atol=0.15)


def test_what_is_whitened_is_white() -> None:
    model, r = learned()
    white = model.whiten((r[1:] - model.correlation * r[:-1]).T).T[-5000:]
    # The covariance is taken as a tenth less correlated than it is.
    np.testing.assert_allclose(np.var(white, axis=0), 1.0, atol=0.25)
    np.testing.assert_allclose(np.mean(white[1:] * white[:-1], axis=0), 0.0, atol=0.06)


def test_errors_after_some_blocks_are_as_large_as_it_says() -> None:
    model, r = learned()
    power, grown = model.step(3)
    left = r[3:] - power * r[:-3]
    ratio = left.std(axis=0) / np.sqrt(np.diag(model.covariance))
    np.testing.assert_allclose(ratio, grown, rtol=0.1)


def test_a_restored_model_goes_on_alike() -> None:
    model, r = learned(300)
    other = NoiseModel(3, 0.1, horizon=1000.0)
    other.restore(model.state())
    model.update(r[5], r[4])
    other.update(r[5], r[4])
    assert np.array_equal(model.covariance, other.covariance)
    assert np.array_equal(model.correlation, other.correlation)
