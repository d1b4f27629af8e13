"""Rows learned in blocks against the same rows one by one, and against the batch solution.

And triangular solves made of matrix products.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from semiparam_dynamics.learning.recursion import blocks
from semiparam_dynamics.learning.recursion.blocks import (
    BlockAnswer,
    predict_block,
    solve_right,
    update_block,
    weighted_block,
)
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares

from ..oracles import ridge
from .cases import RU, information, same_state


@pytest.fixture(params=[True, False])
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether more than a few rows always go through products, or where it is quicker."""
    if request.param:
        monkeypatch.setattr(blocks, "ROTATION_COST", 1e9)
    return bool(request.param)


def begun(
    n: int, outputs: int, penalty: float, *, capacity: int = 0, seen: int = 30
) -> RecursiveLeastSquares:
    """A recursion that knows something."""
    rng = np.random.default_rng(1)
    core = RecursiveLeastSquares(n, outputs, penalty, capacity=capacity or n)
    if seen:
        core.update_rows(rng.standard_normal((seen, n)), rng.standard_normal((seen, outputs)))
    return core


def copy_of(core: RecursiveLeastSquares) -> RecursiveLeastSquares:
    return copy.deepcopy(core)


def one_by_one(core: RecursiveLeastSquares, Z: np.ndarray, Y: np.ndarray) -> BlockAnswer:
    """What a block is to say, by the recursion's own steps; they are learned."""
    asked = [core.predict(z) for z in Z]
    errors, leverages = np.empty_like(Y), np.empty(len(Z))
    for i in range(len(Z)):
        outputs, leverages[i] = core.predict(Z[i])
        errors[i] = Y[i] - outputs
        core.update(Z[i], Y[i])
    outputs, before = zip(*asked, strict=True)
    return BlockAnswer(np.array(outputs), np.array(before), errors, leverages)


def same(got: BlockAnswer, wanted: BlockAnswer, tolerance: float = 1e-10) -> None:
    for name in ("before", "leverage_before", "errors", "leverage"):
        a, b = getattr(got, name), getattr(wanted, name)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max())


def same_factor(got: RecursiveLeastSquares, wanted: RecursiveLeastSquares) -> None:
    for a, b in zip(RU(got), RU(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("n", [1, 7, 40, 90])
@pytest.mark.parametrize("outputs", [1, 6])
@pytest.mark.parametrize("m", [1, 8, 9, 60, 130])
def test_equals_one_by_one(n: int, outputs: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    block = begun(n, outputs, 0.5)
    rows = copy_of(block)
    for _ in range(3):
        Z, Y = rng.standard_normal((m, n)), rng.standard_normal((m, outputs))
        same(update_block(block, Z, Y), one_by_one(rows, Z, Y))
        same_factor(block, rows)
    query = rng.standard_normal((5, n))
    values, leverages = predict_block(block, query)
    np.testing.assert_allclose(values, query @ rows.weights(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(leverages, rows.leverages(query), rtol=1e-9)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("most", [12, 33, 512])
def test_learned_in_parts_it_is_the_same(most: int) -> None:
    rng = np.random.default_rng(2)
    Z, Y = rng.standard_normal((60, 11)), rng.standard_normal((60, 2))
    block = begun(11, 2, 1.0)
    rows = copy_of(block)
    same(update_block(block, Z, Y, most=most), one_by_one(rows, Z, Y))
    same_factor(block, rows)


@pytest.mark.usefixtures("products")
def test_rows_count_by_their_weights() -> None:
    rng = np.random.default_rng(2)
    Z, Y, weights = rng.standard_normal((60, 11)), rng.standard_normal((60, 2)), rng.random(60)
    block = begun(11, 2, 1.0)
    rows = copy_of(block)
    found = weighted_block(block, Z, Y, weights)
    for k in range(60):
        outputs, leverage = rows.predict(Z[k])
        np.testing.assert_allclose(found.errors[k], Y[k] - outputs, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.leverage[k], leverage, rtol=1e-9)
        rows.update(Z[k], Y[k], weights[k])
    same_factor(block, rows)


@pytest.mark.usefixtures("products")
@pytest.mark.parametrize("penalty", [1e-9, 1e-3, 1.0, 1e6])
def test_the_state_is_the_batch_solution_however_small_the_ridge(penalty: float) -> None:
    rng = np.random.default_rng(3)
    n, m = 30, 300
    scale = np.logspace(0, -3, n)
    Z, W = rng.standard_normal((m, n)) * scale, rng.standard_normal((n, 2))
    Y = Z @ W + 0.1 * rng.standard_normal((m, 2))
    core = RecursiveLeastSquares(n, 2, penalty)
    for start in range(0, m, 100):
        update_block(core, Z[start : start + 100], Y[start : start + 100])
    expected = ridge(Z, Y, penalty).astype(float)
    A = Z.T @ Z + penalty * np.eye(n)
    np.testing.assert_allclose(information(core), A, rtol=1e-12, atol=1e-12 * A.max())
    error = np.abs(core.weights() - expected) * scale[:, None]
    assert error.max() <= 1e-11 * np.abs(expected * scale[:, None]).max()


@pytest.mark.usefixtures("products")
def test_new_features_of_zeros_say_what_was_said_without_them() -> None:
    rng = np.random.default_rng(4)
    small = begun(10, 3, 2.0, capacity=14)
    large = copy_of(small)
    Z, Y = rng.standard_normal((40, 14)), rng.standard_normal((40, 3))
    Z[:20, 10:] = 0.0
    for _ in range(4):
        large.add_feature()
    got = update_block(large, Z, Y)
    wanted = one_by_one(small, Z[:20, :10], Y[:20])
    np.testing.assert_allclose(got.errors[:20], wanted.errors, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(got.leverage[:20], wanted.leverage, rtol=1e-10)
    for _ in range(4):
        small.add_feature()
    wanted = one_by_one(small, Z[20:], Y[20:])
    np.testing.assert_allclose(got.errors[20:], wanted.errors, rtol=1e-10, atol=1e-11)
    same_factor(large, small)


@pytest.mark.usefixtures("products")
def test_arguments_are_kept_and_nothing_is_learned_of_no_rows() -> None:
    rng = np.random.default_rng(6)
    core = begun(5, 2, 1.0)
    Z, Y = rng.standard_normal((30, 5)), rng.standard_normal((30, 2))
    before = Z.copy(), Y.copy()
    update_block(core, Z, Y)
    assert np.array_equal(Z, before[0]) and np.array_equal(Y, before[1])
    state = core.state()
    answer = update_block(core, Z[:0], Y[:0])
    assert answer.errors.shape == (0, 2) and len(answer.leverage) == 0
    assert same_state(core.state(), state)


def test_without_features_nothing_is_known_or_learned() -> None:
    core, (Z, Y) = RecursiveLeastSquares(0, 2, capacity=3), (np.empty((20, 0)), np.ones((20, 2)))
    answer = update_block(core, Z, Y)
    assert np.array_equal(answer.errors, Y) and not answer.before.any()
    assert not answer.leverage.any() and not predict_block(core, Z)[0].any()
    assert core.weights().shape == (0, 2)


def test_a_block_of_which_rounding_leaves_no_factor_is_learned_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError

    rng = np.random.default_rng(8)
    Z, Y = rng.standard_normal((60, 11)), rng.standard_normal((60, 2))
    block = begun(11, 2, 1.0)
    rows = copy_of(block)
    monkeypatch.setattr(blocks, "ROTATION_COST", 1e9)
    monkeypatch.setattr(blocks, "cholesky", fail)
    same(update_block(block, Z, Y), one_by_one(rows, Z, Y))
    same_factor(block, rows)


def triangle(n: int, rng: np.random.Generator) -> np.ndarray:
    """A part of a larger matrix, as a recursion's R is."""
    R = np.zeros((n, n + 5))[:, :n]
    R[:] = np.triu(rng.standard_normal((n, n))) / np.sqrt(n)
    np.fill_diagonal(R, 2.0)
    return R


@pytest.mark.parametrize("n", [1, 47, 48, 49, 200])
@pytest.mark.parametrize("k", [1, 7, 90])
def test_rows_are_solved_for(n: int, k: int) -> None:
    rng = np.random.default_rng(n + k)
    R, rows = triangle(n, rng), rng.standard_normal((n, k)).T
    before = rows.copy(), R.copy()
    found = solve_right(rows, R)
    np.testing.assert_allclose(found @ R, rows, rtol=1e-11, atol=1e-11)
    assert np.array_equal(rows, before[0]) and np.array_equal(R, before[1])


def test_an_ill_conditioned_block_is_solved_with_to_a_small_residual() -> None:
    rng = np.random.default_rng(3)
    R = np.triu(rng.standard_normal((100, 100))) * np.logspace(0, -12, 100)[:, None]
    rows = rng.standard_normal((20, 100)) @ R
    found = solve_right(rows, R)
    size = np.abs(found) @ np.abs(R)
    assert np.max(np.abs(found @ R - rows) / size) < 1e-14
