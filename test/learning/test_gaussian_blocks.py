"""A Gaussian kernel's blocks and products against naive ones in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.kernels import MAX_KEPT_ROWS, GaussianBlocks

from .oracles import peak_memory

RNG = np.random.default_rng(0)
WIDTHS = np.array([1.5, 2.0, 0.7, 1.0, 3.0])


def naive(X: Any, C: Any) -> Any:
    """exp(-|x - c|^2 / 2 sigma^2) of the inputs as they are, in double precision."""
    X, C = X.astype(float) / WIDTHS, C.astype(float) / WIDTHS
    return np.exp(-0.5 * cdist(X, C, "sqeuclidean"))


# One row, a few, more than are kept at once; one centre, less than a tile, two tiles, and so many
# that fewer rows are kept.
@pytest.mark.parametrize("k", [0, 1, 3, MAX_KEPT_ROWS, 2 * MAX_KEPT_ROWS + 7])
@pytest.mark.parametrize("m", [1, 5, 300, 9000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_the_matrix(k: int, m: int, dtype: Any) -> None:
    X = RNG.standard_normal((k, 5)).astype(dtype)
    C = RNG.standard_normal((m, 5)).astype(dtype)
    blocks = GaussianBlocks(C, WIDTHS)
    K = blocks(X)
    assert K.dtype == dtype
    np.testing.assert_allclose(K, naive(X, C), atol=100 * np.finfo(dtype).eps)
    wide = K.astype(float)
    B, Y, w = RNG.standard_normal((m, 2)), RNG.standard_normal((k, 2)), RNG.uniform(0.0, 2.0, k)
    error = {"rtol": 1e-10, "atol": 1e-11 * max(m, 1)}
    np.testing.assert_allclose(blocks.multiply(X, B), wide @ B, **error)
    np.testing.assert_allclose(blocks.transposed(X, Y), wide.T @ Y, **error)
    np.testing.assert_allclose(blocks.normal(X, B, None, None), wide.T @ (wide @ B), **error)
    expected = (wide.T * w) @ (wide @ B - Y)
    np.testing.assert_allclose(blocks.normal(X, B, Y, w), expected, **error)


def test_inputs_in_any_layout_and_precision() -> None:
    X = np.asfortranarray(RNG.standard_normal((40, 5)))[::2]
    C = RNG.standard_normal((7, 10)).astype(np.float32)[:, ::2]
    B = np.asfortranarray(RNG.standard_normal((7, 3)))[:, ::-1]
    blocks = GaussianBlocks(C, WIDTHS)
    np.testing.assert_allclose(blocks(X), naive(X, C), atol=1e-5)
    np.testing.assert_allclose(blocks.multiply(X, B), blocks(X).astype(float) @ B, rtol=1e-12)


def test_a_product_takes_no_memory_for_the_matrix() -> None:
    X, C = RNG.standard_normal((20_000, 5)), RNG.standard_normal((500, 5))
    blocks = GaussianBlocks(C, WIDTHS)
    blocks.normal(X[:10], np.ones((500, 1)), None, None)  # compiled
    peak = peak_memory(lambda: blocks.normal(X, np.ones((500, 1)), None, None))
    assert peak < 5 * X.nbytes + 8 * MAX_KEPT_ROWS * 1000  # K would be 100 times X


@pytest.mark.parametrize("m", [60, 1200])
@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 99_999.0), (np.float64, 1e9)])
def test_a_centre_far_from_the_others_leaves_them_their_digits(
    dtype: Any, far: float, m: int
) -> None:
    C = RNG.standard_normal((m, 5)).astype(dtype)
    K = GaussianBlocks(C, WIDTHS)(C)
    C[:2, 3] = far
    K_far = GaussianBlocks(C, WIDTHS)(C)
    np.testing.assert_allclose(K_far[2:, 2:], K[2:, 2:], atol=100 * np.finfo(dtype).eps)
    assert not K_far[2:, :2].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_and_those_of_zeros_and_ones(dtype: Any) -> None:
    C = np.eye(5, dtype=dtype)[RNG.integers(0, 4, 90)]
    C[:, 4] = 7e3
    np.testing.assert_allclose(
        GaussianBlocks(C, WIDTHS)(C), naive(C, C), atol=20 * np.finfo(dtype).eps
    )


def test_squares_that_overflow_are_said() -> None:
    blocks = GaussianBlocks(np.ones((3, 5), np.float32), WIDTHS)
    with pytest.raises(LearningError, match="overflow in float32: scale the inputs"):
        blocks(np.full((1, 5), 1e20, np.float32))
