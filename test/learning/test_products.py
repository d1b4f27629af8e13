"""Large matrices by all cores: kernel products, factors and threads."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning import products
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Matern
from semiparam_dynamics.learning.products import (
    KernelRows,
    add_products,
    map_in_order,
    n_threads,
    one_thread,
    triangle_products,
    upper_factor,
)
from semiparam_dynamics.learning.rows import Rows

from .oracles import peak_memory

RNG = np.random.default_rng(0)
X, C = RNG.standard_normal((500, 4)), RNG.standard_normal((30, 4))
Y, W, B = RNG.standard_normal((500, 3)), RNG.uniform(0, 2, 500), RNG.standard_normal((30, 3))


def one_row() -> int:
    """Bytes that one row needs on the way."""
    return 8 * (4 * 30 + 3 * 4) * n_threads()


@pytest.mark.parametrize("limit", ["none", "enough to keep K", "a byte less", "a row"])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_products_equal_the_naive_ones(limit: str, keep: bool, weighted: bool) -> None:
    enough = 500 * 30 * 8 + 64 * one_row()
    most = {"none": None, "enough to keep K": enough, "a byte less": enough - 1}
    chunks = [(X[i : i + 170], Y[i : i + 170], W[i : i + 170])[: 2 + weighted] for i in (0, 170)]
    chunks.append((X[340:], Y[340:], W[340:])[: 2 + weighted])
    data = KernelRows(Rows(chunks), Gaussian(1.5), C, most.get(limit, one_row()), keep)
    assert data.fits == (keep and limit in ("none", "enough to keep K"))
    K = Gaussian(1.5)(X, C)
    KW = K.T * W if weighted else K.T
    for _ in range(2):  # the second time K may be there already
        np.testing.assert_allclose(np.concatenate(list(data.multiply(B))), K @ B, rtol=1e-11)
        np.testing.assert_allclose(data.normal(B), KW @ K @ B, rtol=1e-10)
        np.testing.assert_allclose(data.targets(), KW @ Y, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(data.normal(B, True), KW @ (K @ B - Y), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3, 9])
@pytest.mark.parametrize("n", [1, 6, 499])
def test_compiled_and_matrix_products_are_one(n: int, columns: int, dtype: Any) -> None:
    rows = Rows([(X[:n], np.resize(Y[:n], (n, columns)), W[:n])], dtype)
    data = KernelRows(rows, Gaussian(1.5), C)
    (block,) = rows.blocks(n)
    K, weights = data._bound(block.X).astype(float), block.weights.astype(float)
    B = RNG.standard_normal((30, columns))
    # The kernel is rounded to the data's precision; the products aren't.
    expected = (K.T * weights) @ (K @ B - block.Y)
    np.testing.assert_allclose(data.normal(B, True), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(data.normal(B), (K.T * weights) @ K @ B, rtol=1e-9, atol=1e-11)
    found = products.StoredProducts.multiply(data._bound(block.X), B)
    assert found.shape == (n, columns) and found.dtype == np.float64
    np.testing.assert_allclose(found, K @ B, rtol=1e-9, atol=1e-11)


def test_inputs_are_released_once_their_kernel_is_kept() -> None:
    made: list[weakref.ref[np.ndarray]] = []

    def chunks() -> Iterator[tuple[Any, Any, Any]]:
        for i in range(0, 500, 100):
            inputs = X[i : i + 100].copy()
            made.append(weakref.ref(inputs))
            yield inputs, Y[i : i + 100], W[i : i + 100]

    data = KernelRows(Rows(chunks), Gaussian(1.5), C)
    for _ in range(2):  # made and kept, then used again
        data.normal(B)
        assert data.fits
        assert len(made) == 10 and not any(inputs() is not None for inputs in made)
    K = Gaussian(1.5)(X, C)
    np.testing.assert_allclose(data.transposed(Y), K.T @ Y, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(data.normal(B, True), (K.T * W) @ (K @ B - Y), rtol=1e-9, atol=1e-11)


def test_a_limit_below_one_row_is_said() -> None:
    with pytest.raises(LearningError, match="raise the limit or use fewer centres"):
        KernelRows(Rows([(X, Y)]), Gaussian(), C, one_row() - 1)


def test_sums_are_in_double_precision_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "CACHE_BYTES", 2**10)
    monkeypatch.setattr(products, "TASK_ENTRIES", 2**10)
    rows = Rows([(X, Y)], np.float32)
    data = KernelRows(rows, Gaussian(), C, keep=False)
    assert data.block_rows < 100
    first = data.normal(B)
    assert first.dtype == np.float64
    for _ in range(5):
        np.testing.assert_array_equal(data.normal(B), first)
    K = Gaussian()(X, C)
    np.testing.assert_allclose(first, K.T @ K @ B, atol=1e-4 * np.abs(K.T @ K @ B).max())


@pytest.mark.parametrize("kernel", [Gaussian(), Matern(nu=2.5)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.1, 1.0, 2.0])
def test_the_limit_holds(kernel: Kernel, dtype: Any, share: float) -> None:
    n, m = 20_000, 300
    inputs = RNG.standard_normal((n, 5)).astype(dtype)
    rows = Rows.from_arrays(inputs, RNG.standard_normal((n, 1)))
    centers, weights = inputs[:m].copy(), np.ones((m, 1))
    limit = int(share * n * m * inputs.itemsize)
    made: list[KernelRows] = []

    def product() -> None:
        made.append(KernelRows(rows, kernel, centers, limit))
        made[0].normal(weights)

    product()  # what is imported, or compiled, at the first call is none of it
    made.clear()
    peak = peak_memory(product)
    assert made[0].fits == (share == 2.0)
    assert peak < limit + 2**18  # what doesn't grow with the data


# -------------------------------------------------------------------------------------------------
# Factors and products in their place against NumPy's, also in panels.


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MAX_BLAS_ROWS", 20)
    monkeypatch.setattr(products, "PANEL_COLUMNS", 16)
    monkeypatch.setattr(products, "PANEL_ROWS", 5)


def positive_definite(n: int) -> np.ndarray:
    Z = RNG.standard_normal((n, n + 3))
    return Z @ Z.T


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize("n", [0, 1, 20, 21, 32, 49])
@pytest.mark.parametrize("clean", [True, False])
def test_the_factor_is_numpys_and_takes_the_matrix_place(n: int, clean: bool) -> None:
    A = positive_definite(n)
    unread = np.full((n, n), np.nan)
    found = np.asfortranarray(np.triu(A) + np.tril(unread, -1))
    assert upper_factor(found, clean=clean)
    expected = np.linalg.cholesky(A).T
    np.testing.assert_allclose(np.triu(found), expected, rtol=1e-11, atol=1e-12)
    if clean:
        np.testing.assert_array_equal(np.tril(found, -1), 0.0)


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize("bad", [3, 18, 40])
def test_what_is_not_positive_definite_has_none(bad: int) -> None:
    A = np.asfortranarray(positive_definite(45))
    A[bad, bad] = -1.0
    assert not upper_factor(A)


@pytest.mark.usefixtures("panels")
@pytest.mark.parametrize("q", [1, 7, 20, 21, 33])
def test_products_are_added_in_place(q: int) -> None:
    A, gram = RNG.standard_normal((9, q)), np.asfortranarray(positive_definite(q))
    expected = gram + A.T @ A
    result = add_products(gram, A)
    assert np.shares_memory(result, gram)
    np.testing.assert_allclose(np.triu(result), np.triu(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 255, 256, 600])
def test_a_triangle_s_products(n: int) -> None:
    L, weights = (np.tril(RNG.standard_normal((n, n))), RNG.uniform(0.0, 2.0, n))
    result = triangle_products(L, weights)
    assert result.flags.f_contiguous
    expected = L.T @ (weights[:, None] * L)
    np.testing.assert_allclose(np.triu(result), np.triu(expected), rtol=1e-11, atol=1e-11)


# -------------------------------------------------------------------------------------------------
# Maps of blocks over threads: their order, errors, number, and BLAS' own beside them.


def test_blocks_come_in_order_and_errors_come_through() -> None:
    assert list(map_in_order(lambda i: i * i, range(100))) == [i * i for i in range(100)]
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda i: 1 // (50 - i), range(100)))
    read: list[int] = []
    results = map_in_order(lambda i: i, (read.append(i) or i for i in range(100)))
    next(results)
    assert len(read) <= 2 * n_threads() + 1
    results.close()  # type: ignore[attr-defined]


def threads_of_a_map() -> set[int]:
    return set(map_in_order(lambda _: threading.get_ident(), range(20)))


def test_threads_are_bounded_as_those_of_products_are(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = n_threads()
    for most, wanted in (("1", 1), ("1,4", 1), ("4096", cores), ("0", cores), ("all", cores)):
        monkeypatch.setenv("OMP_NUM_THREADS", most)
        assert n_threads() == wanted
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_of_a_map() == {threading.get_ident()}


def test_one_thread_is_this_one_and_only_here() -> None:
    usual = n_threads()
    elsewhere: list[int] = []
    with one_thread():
        assert n_threads() == 1 and threads_of_a_map() == {threading.get_ident()}
        other = threading.Thread(target=lambda: elsewhere.append(n_threads()))
        other.start()
        other.join()
        with one_thread():
            pass
        assert n_threads() == 1
    assert elsewhere == [usual] and n_threads() == usual
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert n_threads() == usual


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_maps_that_overlap_leave_the_number_of_threads_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "n_threads", lambda: 2)
    products._controller.cache_clear()  # another test may have loaded a BLAS of its own since
    with threadpool_limits(2):
        usual = blas_threads()
        first, second = (map_in_order(abs, range(20)) for _ in range(2))
        assert next(first) == next(second) == 0
        assert blas_threads() == {1}
        assert list(first) == list(range(1, 20))
        assert blas_threads() == {1}  # the second is still at work
        second.close()  # type: ignore[attr-defined]
        assert blas_threads() == usual
