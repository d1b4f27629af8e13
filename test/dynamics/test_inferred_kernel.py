"""The inferred kernel: its choice against dense solves, and how far it reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.exact_targets import ExactTargets
from semiparam_dynamics.dynamics.inferred_kernel import (
    KEPT_SAMPLES,
    LENGTHS,
    PIECES,
    RIDGES,
    InferredKernel,
    sum_kernels,
)
from semiparam_dynamics.dynamics.sample import Sample

from .arms import samples, small_arm

MODEL = small_arm()
METRIC = np.array([[1.0, 0.3]])  # of one axis


def inferred_kernel(columns: int = 2, most: int = 60) -> InferredKernel:
    return InferredKernel(METRIC, ExactTargets(1, np.ones((1, columns))), most, 0)


def learn(kernel: InferredKernel, X: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
    for row in zip(X, targets, weights.tolist(), strict=True):
        kernel.learn(*row)


def as_they_are(X: np.ndarray) -> np.ndarray:
    return X


def dense(length: float, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    distance = np.sqrt((((A[:, None] - B[None]) * METRIC[0]) ** 2).sum(-1))
    return np.exp(-distance / length)


def pieces(K: np.ndarray) -> list[np.ndarray]:
    """Of the time; and of samples that are nearest to each that those before it explain least."""
    chosen: list[int] = []
    for _ in range(PIECES):
        of = K[:, chosen]
        explained = np.einsum("ij,ij->i", of @ np.linalg.pinv(K[np.ix_(chosen, chosen)]), of)
        chosen.append(int(np.argmax(1.0 - explained)))
    nearest = np.argmax(K[:, chosen], axis=1)
    states = [np.flatnonzero(nearest == k) for k in range(PIECES)]
    return [*np.array_split(np.arange(len(K)), PIECES), *states]


@pytest.mark.parametrize("size", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("rate", [2.0, 0.3])
def test_width_and_ridge_predict_the_pieces_best(size: float, rate: float) -> None:
    """Among all, by dense solves without each piece; the samples are all centres."""
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((100, 2)), rng.uniform(0.5, 1.0, 100)
    Phi, pi = rng.standard_normal((100, 2)), np.array([0.5, -2.0])
    left = size * np.sin(rate * X[:, 0]) + 0.5 * rng.standard_normal(100) / np.sqrt(weights)
    targets = np.column_stack((Phi @ pi + left, Phi))
    kernel = inferred_kernel(most=100)
    learn(kernel, X, targets, weights)
    kernel.infer(as_they_are, pi)

    whole = [weights[piece] @ left[piece] ** 2 for piece in pieces(dense(1.0, X, X))]
    found = {(0.0, 0): whole}
    for length in LENGTHS:
        K = dense(length, X, X)
        for k, ridge in enumerate(RIDGES):
            found[length, k] = []
            for piece in pieces(K):
                rest = np.setdiff1d(np.arange(100), piece)
                noise = np.diag(ridge / weights[rest])
                solved = np.linalg.solve(K[np.ix_(rest, rest)] + noise, left[rest])
                errors = left[piece] - K[np.ix_(piece, rest)] @ solved
                found[length, k].append(weights[piece] @ errors**2)
    length, k = min(found, key=lambda choice: sum(found[choice]))
    held_out = kernel.held_out(as_they_are, pi)
    np.testing.assert_allclose(held_out[1, 0], found[length, k][PIECES:], rtol=1e-3)
    assert held_out[0].sum() == pytest.approx(weights @ left**2)
    assert size == 0.0 or length > 0.0
    query = rng.standard_normal((20, 2))
    expected = np.zeros((20, 3))
    if length:
        noise = np.diag(RIDGES[k] / weights)
        expected = dense(length, query, X) @ np.linalg.solve(dense(length, X, X) + noise, targets)
        np.testing.assert_allclose(kernel.metrics, METRIC / length)
    moved = pi + rng.standard_normal((20, 2))
    for parameters in (pi, moved):
        told = expected[:, 0] - (expected[:, 1:] * parameters).sum(axis=1)
        predicted = kernel.predict(query, parameters)[:, 0]
        np.testing.assert_allclose(predicted, told, rtol=1e-4, atol=1e-3)
    for x, parameters in zip(query, moved, strict=True):
        found = np.empty(1)
        sum_kernels(kernel.centers, kernel.metrics, x, kernel.weights_of(parameters), found)
        np.testing.assert_array_equal(found, kernel.predict(x[None], parameters)[0])


def test_of_noise_next_to_nothing_is_learned_however_few_samples_there_are() -> None:
    rng, learned = np.random.default_rng(0), []
    for count in (2, 4, 8, 16, 32, 64):
        for _ in range(10):
            kernel = inferred_kernel(columns=0)
            X, left = rng.standard_normal((count, 2)), rng.standard_normal((count, 1))
            learn(kernel, X, left, np.ones(count))
            kernel.infer(as_they_are, np.zeros(0))
            query = rng.standard_normal((50, 2))
            learned.append(np.mean(kernel.predict(query, np.zeros(0)) ** 2))
    assert np.mean(learned) < 0.05 and np.mean(np.array(learned) == 0.0) > 0.5


def test_inputs_that_are_predictions_follow_the_parameters() -> None:
    """The rigid body's prediction, the last input, is that of today's parameters."""
    rng = np.random.default_rng(0)
    Phi, old, new = rng.standard_normal((60, 2)), np.array([1.0, 0.0]), np.array([0.0, 2.0])
    kernel = InferredKernel(METRIC, ExactTargets(1, np.ones((1, 2))), 60, 1)
    X = np.column_stack((rng.standard_normal(60), Phi @ old))
    learn(kernel, X, np.column_stack((rng.standard_normal(60), Phi)), np.ones(60))
    inputs, targets, weights = kernel.samples(as_they_are, new)
    np.testing.assert_allclose(targets[:, 1:], Phi)
    np.testing.assert_allclose(inputs, np.column_stack((X[:, 0], Phi @ new)))
    np.testing.assert_array_equal(weights, 1.0)


def test_samples_are_kept_from_all_of_the_time() -> None:
    rng = np.random.default_rng(0)
    X, left = rng.standard_normal((30_000, 2)), rng.standard_normal((30_000, 1))
    X[:, 0] = np.arange(30_000)
    one, due = inferred_kernel(0), []
    for x, target in zip(X, left, strict=True):
        one.learn(x, target, 0.1)
        due.append(one.due)
    assert due.index(True) == 39
    state = one.state()
    kept = state["inputs"][:, 0]
    assert KEPT_SAMPLES / 2 <= len(kept) < KEPT_SAMPLES and kept[0] < 100.0 and kept[-1] > 29_900.0
    assert np.ptp(np.diff(kept)) <= 5.0  # evenly, but for rounding
    np.testing.assert_array_equal(state["kept"], 1.0)  # each counts as one, whatever it stands for
    assert one.due
    one.infer(as_they_are, np.zeros(0))
    assert not one.due
    other = inferred_kernel(0)
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


@pytest.mark.usefixtures("seldom_inferred")
def test_it_holds_where_the_local_residual_knows_nothing() -> None:
    errors, shown = {}, stream(20.0)
    others = {reach: stream(8.0, reach)[::8] for reach in (0.9, 0.8, 0.6)}
    for most in (200, 0):
        estimator = SemiparametricEstimator(MODEL, **{"nystrom.wide_max_centers": most})
        for sample in shown:
            estimator.update(sample)
        for reach, other in others.items():
            told = [(s, estimator.predict(s)) for s in other]
            both = np.mean([(s.y - p.semiparametric)[1] ** 2 for s, p in told])
            rigid = np.mean([(s.y - p.rigid_body)[1] ** 2 for s, p in told])
            errors[most, reach] = both / rigid
    for reach, most, local in ((0.9, 0.05, 0.1), (0.8, 0.15, 0.4), (0.6, 0.4, 0.8)):
        assert errors[200, reach] < most and errors[0, reach] > local
