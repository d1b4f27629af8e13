"""Rotations that wait for the next prediction, against QR and solves by other libraries."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.recursion.rls import (
    MOST_FLOAT32_ROWS,
    DeferredRotation,
    aligned_zeros,
    row_length,
)

SIZES = [(1, 1), (2, 1), (7, 3), (8, 8), (9, 6), (16, 1), (31, 7), (64, 17), (83, 1), (130, 9)]


def empty(capacity: int, outputs: int, ridge: float = 1.0, dtype: type = float) -> DeferredRotation:
    factor = DeferredRotation(capacity, outputs, dtype)
    np.fill_diagonal(factor.R, np.sqrt(ridge))
    return factor


def rows(k: int, n: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, n)), rng.standard_normal((k, outputs))


def expected(Z: np.ndarray, Y: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """R and U by LAPACK's QR of all rows at once."""
    n = Z.shape[1]
    Q, R = np.linalg.qr(np.vstack((np.sqrt(ridge) * np.eye(n), Z)))
    sign = np.where(np.diag(R) < 0.0, -1.0, 1.0)
    return R * sign[:, None], (Q.T @ np.vstack((np.zeros((n, Y.shape[1])), Y))) * sign[:, None]


@pytest.mark.parametrize(("n", "outputs"), SIZES)
def test_each_answer_is_that_of_all_rows_so_far(n: int, outputs: int) -> None:
    Z, Y = rows(3 * n + 4, n, outputs)
    factor = empty(n, outputs, 0.3)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        value, leverage = factor.ask(z, n)
        if k % 5 == 0:
            R, U = expected(Z[:k], Y[:k], 0.3)
            v = solve_triangular(R, z, trans=1)
            np.testing.assert_allclose(value, v @ U, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(leverage, v @ v, rtol=1e-10)
            np.testing.assert_allclose(factor.solved(n), v, rtol=1e-9, atol=1e-10)
        factor.learn(z, y, n)
    R, U = expected(Z, Y, 0.3)
    np.testing.assert_allclose(factor.R, R, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(factor.U, U, rtol=1e-10, atol=1e-10)
    assert np.all(np.tril(factor.R, -1) == 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "outputs"), SIZES)
def test_when_it_is_done_changes_no_bit(n: int, outputs: int, dtype: type) -> None:
    now, later, by_rows = (empty(n + 3, outputs, 0.3, dtype) for _ in range(3))
    Z, Y = rows(40, n, outputs)
    for z, y in zip(Z, Y, strict=True):
        now.R  # noqa: B018  (looking at it does what is left to do)
        value, leverage = later.ask(z, n)
        again, same = now.ask(z, n)
        assert leverage == same and np.array_equal(value, again)
        later.learn(z, y, n)
        now.learn(z, y, n)
        by_rows.learn(z, y, n)  # not asked before
    for other in (later, by_rows):
        assert np.array_equal(now.R, other.R) and np.array_equal(now.U, other.U)


def test_rows_asked_in_between_are_not_learned() -> None:
    (Z, Y), (queries, _) = rows(30, 13, 2), rows(60, 13, 1, seed=1)
    plain, asked = empty(13, 2), empty(13, 2)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        plain.learn(z, y, 13)
        asked.ask(z, 13)
        for query in queries[k : k + k % 3]:
            asked.ask(query, 13)
        asked.learn(z, y, 13)
        if k % 2:
            asked.ask(np.full(13, np.nan), 13)
    assert np.array_equal(asked.R, plain.R) and np.array_equal(asked.U, plain.U)


@pytest.mark.parametrize("n", [3, 20])
def test_several_rows_at_once(n: int) -> None:
    Z, Y = rows(9, n, 2)
    factor, other = empty(n, 2), empty(n, 2)
    left = Y.copy()
    if n > 3:
        factor.ask(Z[0], n)  # the first of them may be known already
    factor.learn_rows(Z, left, n)
    for z, y, rest in zip(Z, Y, left, strict=True):
        value, leverage = other.ask(z, n)
        np.testing.assert_allclose(rest, (y - value) / np.sqrt(1.0 + leverage), rtol=1e-12)
        other.learn(z, y, n)
    assert np.array_equal(factor.R, other.R) and np.array_equal(factor.U, other.U)
    factor.learn_rows(Z[:0], Y[:0], n)
    A = np.eye(n) + Z.T @ Z
    wanted = np.einsum("ki,ij,kj->k", Z, np.linalg.inv(A), Z)
    np.testing.assert_allclose(factor.leverages(Z, n), wanted, rtol=1e-10)


def test_a_row_may_enter_scaled_and_all_may_fade() -> None:
    Z, Y = rows(25, 11, 3)
    factor, weight = empty(16, 3, 0.5), np.ones((0, 1))
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        scale, root = 0.5 + 0.1 * k, 0.95
        if k % 3 == 0:
            factor.ask(z, 11)
        factor.learn(z, scale * y, 11, scale)
        weight = np.vstack((weight, [[scale]]))
        if k % 2:
            factor.ask(z, 11)  # so that nothing is left to do, or something is
        if k % 4 != 3:
            factor.fade(root, 11)
            weight *= root
    faded = 0.95 ** (2 * sum(k % 4 != 3 for k in range(25)))
    R, U = expected(weight * Z, weight * Y, 0.5 * faded)
    np.testing.assert_allclose(factor.R[:11, :11], R, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(factor.U[:11], U, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(factor.R[11:, 11:], np.sqrt(0.5) * np.eye(5))


def test_features_not_in_use_stay_as_they_were() -> None:
    """While blocks of rows are half in use, and as features come in."""
    Z, Y = rows(120, 20, 2)
    factor = empty(20, 2, 0.3)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        n = min(5 + k // 6, 20)
        z[n:] = 0.0
        factor.ask(z[:n], n)
        factor.learn(z[:n], y, n)
        np.testing.assert_array_equal(factor.R[n:, n:], np.sqrt(0.3) * np.eye(20 - n))
    R, U = expected(Z, Y, 0.3)
    np.testing.assert_allclose(factor.R, R, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(factor.U, U, rtol=1e-10, atol=1e-11)


def test_a_row_asked_before_a_feature_came_is_learned_with_it() -> None:
    Z, Y = rows(10, 8, 2)
    factor, other = empty(9, 2), empty(9, 2)
    for z, y in zip(Z, Y, strict=True):
        for one in (factor, other):
            one.learn(z, y, 8)
    factor.ask(Z[0], 8)
    for last in (0.0, 0.7):
        row = np.append(Z[0], last)
        factor.learn(row, Y[0], 9)
        other.learn(row, Y[0], 9)
    assert np.array_equal(factor.R, other.R) and np.array_equal(factor.U, other.U)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("ridge", [1e-9, 1.0])
def test_rows_of_any_size_are_rotated_as_exactly_as_qr_does(scale: float, ridge: float) -> None:
    Z, Y = rows(100, 12, 1)
    Z *= scale * np.logspace(0, -6, 12)
    factor = empty(12, 1, ridge)
    for z, y in zip(Z, Y, strict=True):
        factor.learn(z, y, 12)
    R = factor.R
    A = Z.T.astype(np.longdouble) @ Z + ridge * np.eye(12, dtype=np.longdouble)
    size = np.sqrt(np.diag(A))
    error = (R.T.astype(np.longdouble) @ R - A) / np.outer(size, size)
    assert np.abs(error).max() < 1e-13
    assert np.all(np.diag(R) > 0.0)


def test_float32_stores_half_and_loses_half_the_digits() -> None:
    n, outputs = 40, 2
    Z, _ = rows(20_000, n, 1)
    Y = Z @ rows(n, outputs, 1)[0] + 0.1 * rows(20_000, outputs, 1, seed=1)[0]
    double, single = empty(n, outputs), empty(n, outputs, dtype=np.float32)
    for factor in (double, single):
        factor.learn_rows(Z.copy(), Y.copy(), n)
    assert single.R.dtype == np.float32 and single.storage[0].nbytes < double.storage[0].nbytes
    error = np.abs(single.R - double.R).max() / np.abs(double.R).max()
    bound = 2.0 * np.finfo(np.float32).eps * np.sqrt(len(Z))  # rounding walks at random
    assert 1e-9 < error < bound
    for z in rows(20, n, 1, seed=2)[0]:
        (value, leverage), (wanted, exact) = single.ask(z, n), double.ask(z, n)
        np.testing.assert_allclose(value, wanted, atol=bound * np.abs(Y).max())
        np.testing.assert_allclose(leverage, exact, rtol=10.0 * bound)


def test_float32_takes_no_more_rows_than_it_can_tell() -> None:
    factor = empty(3, 1, dtype=np.float32)
    factor.learn(np.ones(3), np.ones(1), 3)
    factor.n_rows = MOST_FLOAT32_ROWS
    before = factor.R.copy()
    with pytest.raises(LearningError, match="Use float64, or forget"):
        factor.learn(np.ones(3), np.ones(1), 3)
    with pytest.raises(LearningError):
        factor.learn_rows(np.ones((2, 3)), np.ones((2, 1)), 3)
    assert np.array_equal(factor.R, before)
    factor.fade(0.99, 3)
    factor.learn(np.ones(3), np.ones(1), 3)
    assert factor.n_rows < MOST_FLOAT32_ROWS


def test_a_pickled_one_goes_on_alike() -> None:
    Z, Y = rows(20, 9, 2)
    factor = empty(9, 2)
    factor.learn_rows(Z, Y.copy(), 9)
    other = pickle.loads(pickle.dumps(factor))
    for z, y in zip(Z, Y, strict=True):
        assert np.array_equal(factor.ask(z, 9)[0], other.ask(z, 9)[0])
        factor.learn(z, y, 9)
        other.learn(z, y, 9)
    assert np.array_equal(factor.R, other.R)


@pytest.mark.parametrize("itemsize", [4, 8])
def test_rows_of_a_block_begin_apart_in_a_page(itemsize: int) -> None:
    for n in (1, 8, 100, 500, 512, 1000, 1024, 2048, 4000, 4096):
        length = row_length(n, itemsize)
        assert n <= length <= n + 4096 // itemsize and length * itemsize % 64 == 0
        starts = np.arange(8) * length * itemsize % 4096
        apart = np.abs(starts[:, None] - starts)[np.triu_indices(8, 1)]
        assert np.minimum(apart, 4096 - apart).min() >= 128
    assert aligned_zeros(3, 5).ctypes.data % 64 == 0


def test_a_step_allocates_its_answer_only() -> None:
    n, outputs = 600, 3
    Z, Y = rows(20, n, outputs)
    factor = empty(n, outputs)
    for trace in (False, True):
        if trace:
            tracemalloc.start()
        for z, y in zip(Z, Y, strict=True):
            factor.ask(z, n)
            factor.learn(z, y, n)
    try:
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now < 1000 and peak < 2000  # bytes: a vector of features has 4800
