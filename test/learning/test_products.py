"""Products with the kernel matrix against naive ones, within a memory limit that is measured."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning import products
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Matern
from semiparam_dynamics.learning.parallel import map_in_order, n_threads
from semiparam_dynamics.learning.products import KernelRows, evaluate_into
from semiparam_dynamics.learning.rows import Rows

RNG = np.random.default_rng(0)
X, C = RNG.standard_normal((500, 4)), RNG.standard_normal((30, 4))
Y, W, B = RNG.standard_normal((500, 3)), RNG.uniform(0, 2, 500), RNG.standard_normal((30, 3))
TINY = 4 * n_threads() * 30 * 8  # one row at a time


@pytest.mark.parametrize("limit", [None, 500 * 30 * 8, 500 * 30 * 8 - 1, TINY])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_products_equal_the_naive_ones(limit: int | None, keep: bool, weighted: bool) -> None:
    chunks = [(X[i : i + 170], Y[i : i + 170], W[i : i + 170])[: 2 + weighted] for i in (0, 170)]
    chunks.append((X[340:], Y[340:], W[340:])[: 2 + weighted])
    data = KernelRows(Rows(chunks), Gaussian(1.5), C, limit, keep)
    assert data.fits == (keep and limit in (None, 500 * 30 * 8))
    K = Gaussian(1.5)(X, C)
    KW = K.T * W if weighted else K.T
    for _ in range(2):  # the second time K may be there already
        np.testing.assert_allclose(np.concatenate(list(data.multiply(B))), K @ B, rtol=1e-11)
        np.testing.assert_allclose(data.normal(B), KW @ K @ B, rtol=1e-10)
        np.testing.assert_allclose(data.targets(), KW @ Y, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(data.gradient(B), KW @ (K @ B - Y), rtol=1e-9, atol=1e-11)


def test_a_limit_below_one_row_is_said() -> None:
    with pytest.raises(LearningError, match="raise the limit or use fewer centres"):
        KernelRows(Rows([(X, Y)]), Gaussian(), C, TINY - 1)


def test_sums_are_in_double_precision_and_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "CACHE_BYTES", 2**10)
    rows = Rows([(X, Y)], np.float32)
    data = KernelRows(rows, Gaussian(), C, keep=False)
    first = data.normal(B)
    assert first.dtype == np.float64
    for _ in range(5):
        np.testing.assert_array_equal(data.normal(B), first)
    K = Gaussian()(X, C)
    np.testing.assert_allclose(first, K.T @ K @ B, atol=1e-4 * np.abs(K.T @ K @ B).max())


@pytest.mark.parametrize("kernel", [Gaussian(), Matern(nu=2.5)], ids=str)
@pytest.mark.parametrize("limit", [2**22, 2**24, 2**26])
def test_the_limit_holds(kernel: Kernel, limit: int) -> None:
    n, m = 20_000, 300  # K has 48 MB
    inputs, outputs = RNG.standard_normal((n, 2)), RNG.standard_normal((n, 1))
    rows = Rows.from_arrays(inputs, outputs)
    centers, weights = inputs[:m].copy(), np.ones((m, 1))
    tracemalloc.start()
    try:
        data = KernelRows(rows, kernel, centers, limit)
        data.normal(weights)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.fits == (limit == 2**26)
    assert peak < limit


def test_a_matrix_is_filled_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "CACHE_BYTES", 2**10)
    out: Any = np.full((500, 30), np.nan)
    evaluate_into(Gaussian().bind(C), X, out)
    np.testing.assert_allclose(out, Gaussian()(X, C), rtol=1e-13)


def test_blocks_come_in_order_and_errors_come_through() -> None:
    assert list(map_in_order(lambda i: i * i, range(100))) == [i * i for i in range(100)]
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda i: 1 // (50 - i), range(100)))
    read: list[int] = []
    results = map_in_order(lambda i: i, (read.append(i) or i for i in range(100)))
    next(results)
    assert len(read) <= 2 * n_threads() + 1
    results.close()  # type: ignore[attr-defined]
