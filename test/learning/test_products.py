"""Products with the kernel matrix against naive ones, within a memory limit that is measured."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning import products
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Matern
from semiparam_dynamics.learning.products import KernelRows, n_threads
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
        np.testing.assert_allclose(data.gradient(B), KW @ (K @ B - Y), rtol=1e-9, atol=1e-11)


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
    np.testing.assert_allclose(data.gradient(B), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(data.normal(B), (K.T * weights) @ K @ B, rtol=1e-9, atol=1e-11)
    found = products.product(data._bound(block.X), B)
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
    np.testing.assert_allclose(data.gradient(B), (K.T * W) @ (K @ B - Y), rtol=1e-9, atol=1e-11)


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
