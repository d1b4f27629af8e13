"""The wide kernel: its ridge against dense covariances, and how far it reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.dynamics.wide_kernel import (
    INFORMATION_SHARE,
    KEPT_SAMPLES,
    LEAST_SHARE,
    PENALTIES,
    WideKernel,
)

from .arms import samples, small_arm

MODEL = small_arm()


def wide_kernel(columns: int = 2, axes: int = 1, most: int = 60) -> WideKernel:
    axis = np.append(np.arange(axes), np.repeat(np.arange(axes), columns))
    return WideKernel(2, 1.0, axis, most)


@pytest.mark.parametrize("size", [0.0, 0.1, 0.5, 3.0])
@pytest.mark.parametrize("most", [40, 150])
def test_the_ridge_is_the_most_probable_one(size: float, most: int) -> None:
    """By the targets' dense covariance, at the noise that is most probable with each ridge."""
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((150, 2)), rng.uniform(0.5, 1.0, 150)
    Phi, pi = rng.standard_normal((150, 2)), np.array([0.5, -2.0])
    left = size * np.sin(2.0 * X[:, 0]) + 0.5 * rng.standard_normal(150) / np.sqrt(weights)
    targets = np.column_stack((Phi @ pi + left, Phi))
    kernel = wide_kernel(most=most)
    kernel.learn(X, targets, weights)
    kernel.infer(pi, np.array([0, 1]))

    # Nyström's approximation of the kernel, on the centres that were chosen.
    C = kernel.centers
    assert len(C) == most

    def K(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-np.sqrt(((A[:, None] - B[None]) ** 2).sum(-1)))

    prior, noise = K(X, C) @ np.linalg.solve(K(C, C), K(C, X)), np.diag(1.0 / weights)
    square, count, evidence = float(weights @ left**2), float(weights.sum()), []
    for ridge in PENALTIES:
        covariance = noise + prior / ridge
        remaining = max(float(left @ np.linalg.solve(covariance, left)) / square, LEAST_SHARE)
        log_det = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(noise)[1]
        evidence.append(-(INFORMATION_SHARE * count * np.log(remaining) + log_det))
    best = int(np.argmax(evidence))
    assert (evidence[best] > 0.0) == (size > 0.2)
    query = rng.standard_normal((20, 2))
    expected = np.zeros((20, 3))
    if size > 0.2:
        gain = K(query, C) @ np.linalg.solve(K(C, C), K(C, X)) / PENALTIES[best]
        expected = gain @ np.linalg.solve(noise + prior / PENALTIES[best], targets)
    np.testing.assert_allclose(kernel.predict_rows(query), expected, rtol=1e-6, atol=1e-8)
    for x, row in zip(query, expected, strict=True):
        np.testing.assert_allclose(kernel.predict(x), row, rtol=1e-6, atol=1e-8)


def test_what_is_noise_is_not_learned_however_few_samples_there_are() -> None:
    rng, silent = np.random.default_rng(0), 0
    for count in (2, 4, 8, 16, 32, 64):
        for _ in range(10):
            kernel = wide_kernel(columns=0)
            left = rng.standard_normal((count, 1))
            kernel.learn(rng.standard_normal((count, 2)), left, np.ones(count))
            kernel.infer(np.zeros(0), np.zeros(0, dtype=np.intp))
            silent += not kernel.weights.any()
    assert silent >= 55


def test_samples_are_kept_from_all_of_the_time_and_parts_are_the_whole() -> None:
    rng = np.random.default_rng(0)
    X, left = rng.standard_normal((30_000, 2)), rng.standard_normal((30_000, 1))
    X[:, 0] = np.arange(30_000)
    one, parts, weights = wide_kernel(0), wide_kernel(0), np.full(30_000, 0.1)
    assert one.until_due(weights) == 40 and not one.due
    one.learn(X, left, weights)
    for start in range(0, 30_000, 1234):
        rows = slice(start, start + 1234)
        parts.learn(X[rows], left[rows], weights[rows])
    state = one.state()
    for name, value in state.items():
        np.testing.assert_array_equal(parts.state()[name], value)
    kept = state["inputs"][:, 0]
    assert KEPT_SAMPLES / 2 <= len(kept) < KEPT_SAMPLES and kept[0] < 100.0 and kept[-1] > 29_900.0
    assert np.ptp(np.diff(kept)) <= 5.0  # evenly, but for rounding
    np.testing.assert_array_equal(state["kept"], 1.0)  # each counts as one, whatever it stands for
    assert one.due
    one.infer(np.zeros(0), np.zeros(0, dtype=np.intp))
    assert not one.due and one.until_due(weights) in (600, 601)
    other = wide_kernel(0)
    other.restore(one.state())
    for name, value in one.state().items():
        np.testing.assert_array_equal(other.state()[name], value)


def stream(seconds: float, reach: float = 1.0) -> list[Sample]:
    """With an effort of the second joint that depends on its position alone; reach 1 is a motion,
    less of it the same about its mean in a smaller space.
    """
    found, stream = samples(MODEL, seconds), []
    mean = np.mean([s.q for s in found], axis=0)
    for s in found:
        q, dq, ddq = mean + reach * (s.q - mean), reach * s.dq, reach * s.ddq
        regressor = MODEL.regressor(q, dq, ddq)
        y = regressor @ MODEL.prior + (np.arange(4) == 1) * np.sin(4.0 * q[1])
        stream.append(replace(s, q=q, dq=dq, ddq=ddq, regressor=regressor, y=y))
    return stream


def test_it_holds_where_the_local_residual_knows_nothing() -> None:
    errors = {}
    for most in (200, 0):
        estimator = SemiparametricEstimator(MODEL, **{"nystrom.wide_max_centers": most})
        for sample in stream(20.0):
            estimator.update(sample)
        for reach in (0.9, 0.8, 0.6):
            told = [(s, estimator.predict(s)) for s in stream(8.0, reach)]
            both = np.mean([(s.y - p.semiparametric)[1] ** 2 for s, p in told])
            rigid = np.mean([(s.y - p.rigid_body)[1] ** 2 for s, p in told])
            errors[most, reach] = both / rigid
    for reach, most, local in ((0.9, 0.05, 0.1), (0.8, 0.15, 0.4), (0.6, 0.4, 0.8)):
        assert errors[200, reach] < most and errors[0, reach] > local
