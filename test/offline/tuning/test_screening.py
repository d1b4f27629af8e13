"""A level's path: every penalty and size as if it had been learned alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from semiparam_dynamics.learning.features import RandomFourierFeatures
from semiparam_dynamics.learning.recursion.features import IncrementalNystromFeatures
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.learning.ridge import NestedRidge
from semiparam_dynamics.offline.tuning.screening import (
    LevelRows,
    delayed_errors,
    fourier_rows,
    level_path,
    nystrom_rows,
    one_step_errors,
)

RNG = np.random.default_rng(2)
X, Y = RNG.standard_normal((130, 4)), RNG.standard_normal((130, 2))
BLOCKS = np.array([90, 100, 107, 130])


def ridge(Z: np.ndarray, Y: np.ndarray, penalty: float) -> np.ndarray:
    return np.linalg.solve(Z.T @ Z + penalty * np.eye(Z.shape[1]), Z.T @ Y)


def test_local_features_of_every_penalty_and_size_are_learned_as_alone() -> None:
    level = nystrom_rows(X, X[90:], 10, 0.6, 60, 0.3)
    assert level.rows.shape[1] > 25
    fits = level_path(level, Y, 10, BLOCKS, [0.5, 4.0], [20, 500])
    for (penalty, size), fit in fits.items():
        Z, F = level.rows[:, :size], level.frozen[:, :size]
        assert np.allclose(fit.frozen, F @ ridge(Z[10:90], Y[10:90], penalty), atol=1e-9)
        for a, b in zip(BLOCKS[:-1], BLOCKS[1:], strict=True):
            expected = Z[a:b] @ ridge(Z[10:a], Y[10:a], penalty)
            assert fit.delayed is not None
            assert np.allclose(fit.delayed[a - 90 : b - 90], expected, atol=1e-9)


def test_centres_that_come_later_are_no_part_of_the_frozen_model() -> None:
    level = nystrom_rows(X, X[90:], 0, 0.3, 120, 0.3)
    centres = int((np.abs(level.rows[:90]) > 0.0).any(axis=0).sum())
    assert centres < level.rows.shape[1]
    assert not level.frozen[:, centres:].any()


def test_without_blocks_nothing_goes_on_being_learned() -> None:
    level = nystrom_rows(X, X[90:], 0, 0.6, 60, 0.3)
    assert all(f.delayed is None for f in level_path(level, Y, 0, None, [1.0], [30]).values())


def test_random_features_of_fewer_functions_are_a_smaller_draw() -> None:
    level = fourier_rows(X, X[90:], 40, 0.9, 7)
    sizes = [10, 40]
    fits = level_path(level, Y, 0, None, [2.0], sizes, [t / 2 for t in sizes])
    for size in sizes:
        features = RandomFourierFeatures(size, 0.9 * np.sqrt(2.0), random_state=7)
        Z = features.fit_transform(X)
        expected = Z[90:] @ ridge(Z[:90], Y[:90], 2.0)
        assert np.allclose(fits[2.0, size].frozen, expected, atol=1e-9)


def test_the_evidence_is_the_gaussian_process_likelihood() -> None:
    Z, y = RNG.standard_normal((30, 8)), RNG.standard_normal((30, 1))
    level = LevelRows(np.concatenate((Z, Z[:3])), Z[:3])
    fit = level_path(level, np.concatenate((y, y[:3])), 0, None, [1.5], [8])[1.5, 8]
    K = np.eye(30) + Z @ Z.T / 1.5
    noise = float(y[:, 0] @ np.linalg.solve(K, y[:, 0])) / 30  # the one that suits best
    exact = multivariate_normal(np.zeros(30), noise * K).logpdf(y[:, 0]) / 30
    assert fit.evidence == pytest.approx(exact, abs=1e-9)


def test_one_step_errors_are_those_before_each_row_alone_was_learned() -> None:
    level = nystrom_rows(X, X[90:], 5, 0.6, 60, 0.3)
    errors = one_step_errors(level, Y, 5, 0.8, 30)
    Z = level.rows[:, :30]
    assert not errors[:5].any()
    for i in (5, 6, 63, 90, 99, 106, 129):
        expected = Y[i] - Z[i] @ ridge(Z[5:i], Y[5:i], 0.8)
        assert np.allclose(errors[i], expected, atol=1e-9)


@pytest.mark.parametrize(("capacity", "first"), [(200, 0), (12, 0), (200, 30)])
def test_rows_of_growing_features_are_those_of_the_learner(capacity: int, first: int) -> None:
    inputs, later = X[:90, :3], X[90:, :3]
    level = nystrom_rows(inputs, later, first, 0.65, capacity, 0.4)
    one = IncrementalNystromFeatures(3, 0.65 * np.sqrt(1.5), capacity, 0.4, sparing=True)
    for i, x in enumerate(inputs):
        if i == len(inputs) - len(later):
            frozen = one.transform_rows(later)
        phi = one.transform(x) if i >= first else np.zeros(0)
        if i >= first and one.grow(x, phi):
            phi = one.transform(x)
        assert np.allclose(level.rows[i, : len(phi)], phi, atol=1e-12)
        assert not level.rows[i, len(phi) :].any()
    assert 5 < one.n_centers <= capacity and level.rows.shape[1] == one.n_centers
    m = frozen.shape[1]
    assert np.allclose(level.frozen[:, :m], frozen, atol=1e-12) and not level.frozen[:, m:].any()


@pytest.mark.parametrize("start", [0, 60])
@pytest.mark.parametrize("step", [1, 7, 300])
def test_delayed_errors_are_those_of_the_recursion(step: int, start: int) -> None:
    Z, T = RNG.standard_normal((520, 23)), RNG.standard_normal((520, 3))
    Z[:150, 15:] = 0.0  # features that come later
    edges = [*range(start, len(Z), step), len(Z)]
    system = NestedRidge(23, 3)
    system.add(Z[:start], T[:start])
    blocks = np.array(edges) - start
    found = delayed_errors(system, Z[start:], T[start:], blocks, [0.7, 9.0], [6, 23])
    assert set(found) == {(0.7, 6), (0.7, 23), (9.0, 6), (9.0, 23)}
    for (ridge, size), errors in found.items():
        one, rows = RecursiveLeastSquares(size, 3, ridge), np.ascontiguousarray(Z[:, :size])
        one.update_rows(rows[:start], T[:start])
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            expected = [T[i] - one.predict(rows[i])[0] for i in range(a, b)]
            assert np.allclose(errors[a - start : b - start], expected, atol=1e-10)
            one.update_rows(rows[a:b], T[a:b])
    # The system has learned all rows.
    assert np.allclose(system.second_moments()[0], Z.T @ Z)


def test_no_features_predict_nothing() -> None:
    edges = np.array([0, 4, 9])
    found = delayed_errors(NestedRidge(0, 2), np.zeros((9, 0)), Y[:9], edges, [1.0], [0])
    assert np.array_equal(found[1.0, 0], Y[:9])
