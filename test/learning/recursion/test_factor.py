"""Factors that rows are rotated into, against QR and solves by other libraries."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.recursion import features, rotation
from semiparam_dynamics.learning.recursion.factor import CholeskyFactor, DeferredRotation

from .cases import RU, by_qr, drawn, learn, same_bits

SIZES = [(1, 1), (2, 1), (7, 3), (8, 8), (9, 6), (16, 1), (31, 7), (64, 17), (83, 1), (130, 9)]


def empty(n: int, outputs: int, ridge: float = 1.0, capacity: int = 0) -> DeferredRotation:
    return DeferredRotation(np.full(n, np.sqrt(ridge)), outputs, capacity)


@pytest.mark.parametrize(("n", "outputs"), SIZES)
def test_each_answer_is_that_of_all_rows_so_far(n: int, outputs: int) -> None:
    Z, Y = drawn(3 * n + 4, n, outputs)
    factor = empty(n, outputs, 0.3)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        value, leverage = factor.predict(z)
        if k % 5 == 0:
            R, U = by_qr(Z[:k], Y[:k], 0.3)
            v = solve_triangular(R, z, trans=1)
            np.testing.assert_allclose(value, v @ U, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(leverage, v @ v, rtol=1e-10)
        factor.update(z, y)
    R, U = by_qr(Z, Y, 0.3)
    np.testing.assert_allclose(RU(factor)[0], R, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(factor.U, U, rtol=1e-10, atol=1e-10)
    assert np.all(np.tril(factor.R, -1) == 0.0)


@pytest.mark.parametrize(("n", "outputs"), SIZES)
def test_when_it_is_done_changes_no_bit(n: int, outputs: int) -> None:
    now, later, unasked = (empty(n, outputs, 0.3, capacity=n + 3) for _ in range(3))
    for z, y in zip(*drawn(40, n, outputs), strict=True):
        now.apply_pending()
        value, leverage = later.predict(z)
        again, same = now.predict(z)
        assert leverage == same and np.array_equal(value, again)
        for factor in (now, later, unasked):
            factor.update(z, y)
    assert same_bits(now, later) and same_bits(now, unasked)


def test_rows_predicted_in_between_are_not_learned() -> None:
    (Z, Y), (queries, _) = drawn(30, 13, 2), drawn(60, 13, 1, seed=1)
    plain, asked = empty(13, 2), empty(13, 2)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        plain.update(z, y)
        asked.predict(z)
        for query in queries[k : k + k % 3]:
            asked.predict(query)
        asked.update(z, y)
        if k % 2:
            asked.predict(np.full(13, np.nan))
    assert same_bits(plain, asked)


def test_what_is_pending_is_not_read_and_nothing_read_is_written_to() -> None:
    factor = empty(4, 2)
    factor.update(np.ones(4), np.ones(2))
    for name in ("R", "U"):
        with pytest.raises(LearningError, match=r"call apply_pending\(\) before"):
            getattr(factor, name)
    factor.apply_pending()
    for array in (factor.R, factor.U):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("n", [3, 20])
def test_several_rows_at_once(n: int) -> None:
    Z, Y = drawn(9, n, 2)
    factor, other = empty(n, 2), empty(n, 2)
    if n > 3:
        factor.predict(Z[0])  # the first of them may be known already
    errors, leverages = factor.update_rows(Z, Y)
    for k in range(9):
        value, leverage = other.predict(Z[k])
        np.testing.assert_allclose(errors[k], Y[k] - value, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(leverages[k], leverage, rtol=1e-12)
        other.update(Z[k], Y[k])
    assert same_bits(factor, other)
    assert len(factor.update_rows(Z[:0], Y[:0])[0]) == len(factor.leverages(Z[:0])) == 0
    A = np.eye(n) + Z.T @ Z
    wanted = np.einsum("ki,ij,kj->k", Z, np.linalg.inv(A), Z)
    np.testing.assert_allclose(factor.leverages(Z), wanted, rtol=1e-10)


def test_a_row_may_enter_scaled_and_all_may_fade() -> None:
    Z, Y = drawn(25, 11, 3)
    factor, weight = empty(11, 3, 0.5, capacity=16), np.ones((0, 1))
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        scale, root = 0.5 + 0.1 * k, 0.95
        if k % 3 == 0:
            factor.predict(z)
        factor.update(z, scale * y, scale)
        weight = np.vstack((weight, [[scale]]))
        if k % 2:
            factor.predict(z)  # so that nothing is pending, or something is
        if k % 4 != 3:
            factor.fade(root)
            weight *= root
    faded = 0.95 ** (2 * sum(k % 4 != 3 for k in range(25)))
    R, U = by_qr(weight * Z, weight * Y, 0.5 * faded)
    np.testing.assert_allclose(RU(factor)[0], R, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(factor.U, U, rtol=1e-10, atol=1e-11)


def test_features_that_come_are_zeros_until_then() -> None:
    """While blocks of rows are half in use, whether a row was predicted before they came or not."""
    Z, Y = drawn(120, 20, 2)
    factor = empty(5, 2, 0.3, capacity=20)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        n = min(5 + k // 6, 20)
        z[n:] = 0.0
        while factor.n < n:
            if k % 4:
                factor.predict(z[: factor.n])
            factor.grow(np.sqrt(0.3))
        if k % 3:
            factor.predict(z[:n])
        factor.update(z[:n], y)
    R, U = by_qr(Z, Y, 0.3)
    np.testing.assert_allclose(RU(factor)[0], R, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(factor.U, U, rtol=1e-10, atol=1e-11)
    with pytest.raises(LearningError, match="capacity of 20 features is used up"):
        factor.grow(1.0)


@pytest.mark.parametrize("last", [0.0, 0.7])
def test_a_row_predicted_before_a_feature_came_is_learned_with_it(last: float) -> None:
    Z, Y = drawn(10, 8, 2)
    factor, other = empty(8, 2, capacity=9), empty(8, 2, capacity=9)
    for one in (factor, other):
        one.update_rows(Z, Y)
    factor.predict(Z[0])
    for one in (factor, other):
        one.grow(1.0)
        one.update(np.append(Z[0], last), Y[0])
    assert same_bits(factor, other)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("ridge", [1e-9, 1.0])
def test_rows_of_any_size_are_rotated_as_exactly_as_qr_does(scale: float, ridge: float) -> None:
    Z, Y = drawn(100, 12, 1)
    Z *= scale * np.logspace(0, -6, 12)
    factor = empty(12, 1, ridge)
    factor.update_rows(Z, Y)
    R, _ = RU(factor)
    A = Z.T.astype(np.longdouble) @ Z + ridge * np.eye(12, dtype=np.longdouble)
    size = np.sqrt(np.diag(A))
    error = (R.T.astype(np.longdouble) @ R - A) / np.outer(size, size)
    assert np.abs(error).max() < 1e-13
    assert np.all(np.diag(R) > 0.0)


@pytest.mark.parametrize("n", [3, 9, 20])
def test_another_r_and_u_take_their_place(n: int) -> None:
    """Of fewer or more features than before, and whatever is pending."""
    R, U = by_qr(*drawn(30, n, 2, seed=1), 0.5)
    factor, new = empty(9, 2, capacity=20), empty(n, 2, capacity=20)
    factor.update_rows(*drawn(20, 9, 2))
    factor.replace(R, U)
    new.replace(R, U)
    for z, y in zip(*drawn(12, 20, 2, seed=2), strict=True):
        if factor.n < 20:
            factor.grow(0.7)
            new.grow(0.7)
        factor.update(z[: factor.n], y)
        new.update(z[: factor.n], y)
    assert same_bits(factor, new)
    for wrong in ((R, U[:, :1]), (R[:, :1], U), (np.eye(21), np.zeros((21, 2)))):
        with pytest.raises(LearningError, match="do not belong to a recursion of at most 20"):
            factor.replace(*wrong)


@pytest.mark.parametrize("pending", [False, True])
def test_a_copy_in_its_place_continues_alike(pending: bool) -> None:
    factor, other = empty(9, 2, capacity=30), empty(26, 2, capacity=30)
    for one in (factor, other):
        one.update_rows(*drawn(20, one.n, 2))
    if not pending:
        factor.apply_pending()
    memory = [array.ctypes.data for array in RU(other)]
    other.copy_from(factor)
    assert memory == [array.ctypes.data for array in RU(other)] and other.n == 9
    before = [array.copy() for array in RU(other)]
    learn(factor, *drawn(12, 9, 2, seed=3))
    assert all(np.array_equal(a, b) for a, b in zip(RU(other), before, strict=True))
    other.copy_from(factor)
    for z, y in zip(*drawn(12, 10, 2, seed=4), strict=True):
        for one in (factor, other):
            if one.n == 9:
                one.grow(0.5)
            one.update(z, y)
    assert same_bits(factor, other)
    with pytest.raises(LearningError, match="at most 9 features and 2 outputs does not fit"):
        factor.copy_from(empty(9, 2))


def test_a_pickled_one_continues_alike() -> None:
    factor = empty(9, 2)
    factor.update_rows(*drawn(20, 9, 2))
    other = pickle.loads(pickle.dumps(factor))
    for z, y in zip(*drawn(20, 9, 2), strict=True):
        assert np.array_equal(factor.predict(z)[0], other.predict(z)[0])
        factor.update(z, y)
        other.update(z, y)
    assert same_bits(factor, other)


def test_a_step_allocates_its_answer_only() -> None:
    n, outputs = 600, 3
    Z, Y = drawn(20, n, outputs)
    factor = empty(n, outputs)
    for trace in (False, True):
        if trace:
            tracemalloc.start()
        for z, y in zip(Z, Y, strict=True):
            factor.predict(z)
            factor.update(z, y)
    try:
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now < 1000 and peak < 2000  # bytes: a vector of features has 4800


@pytest.mark.parametrize("module", [features, rotation])
def test_compiled_loops_let_other_threads_run(module: ModuleType) -> None:
    loops_of_it = [value for value in vars(module).values() if hasattr(value, "targetoptions")]
    assert loops_of_it and all(loop.targetoptions["nogil"] for loop in loops_of_it)


PLAIN = """
import sys
import numpy as np
from semiparam_dynamics.learning.recursion.rotation import note_row, predict_row, rotate_pending
R, U, work, side = np.eye(24), np.zeros((24, 8)), np.zeros((6, 24)), np.zeros((2, 8))
Z, Y = (np.random.default_rng(k).standard_normal((30, n)) for k, n in enumerate((19, 3)))
for k in range(30):
    predict_row(R, U, work, side, Z[k], 19, k > 0, False)
    note_row(work, side, Y[k], 19, 1.0)
rotate_pending(R, U, work, side, 19)
np.savez(sys.argv[1], R=R[:19, :19], U=U[:19, :3])
"""


def test_a_processor_without_wide_vectors_gives_the_same(tmp_path: Path) -> None:
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    environment = os.environ | generic | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = tmp_path / "found.npz"
    subprocess.run([sys.executable, "-c", PLAIN, str(found)], check=True, env=environment)
    Z, Y = (np.random.default_rng(k).standard_normal((30, n)) for k, n in enumerate((19, 3)))
    R, U = by_qr(Z, Y, 1.0)
    with np.load(found) as arrays:
        np.testing.assert_allclose(arrays["R"], R, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(arrays["U"], U, rtol=1e-10, atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(0, 80),
    D=st.integers(1, 20),
    cuts=st.lists(st.integers(0, 80), max_size=4),
    scale=st.floats(1e-3, 1e3),
)
def test_moments_are_those_of_all_rows_however_they_come(
    n: int, D: int, cuts: list[int], scale: float
) -> None:
    rows = scale * np.random.default_rng(n).normal(size=(n, D))
    factor = CholeskyFactor(D, 0.3)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    for start, end in zip(edges, edges[1:], strict=False):
        factor.learn(rows[start:end])
    A = rows.T @ rows + 0.3 * np.eye(D)
    np.testing.assert_allclose(factor.R, np.linalg.cholesky(A).T, atol=1e-10 * np.sqrt(A.max()))
    np.testing.assert_array_equal(factor.R, np.triu(factor.R))
