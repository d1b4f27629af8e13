"""Kernels against scikit-learn's, and their parameters' checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.kernels import (
    MOST_CACHED_ROWS,
    CallableKernel,
    Gaussian,
    GaussianBlocks,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    as_kernel,
)

from .oracles import peak_memory

WIDTHS = np.array([0.5, 2.0, 1.0])
# A kernel, and the same function of (X, C) from scikit-learn.
PAIRS: list[tuple[Kernel, Any]] = [
    (Gaussian(1.7), lambda X, C: pairwise.rbf_kernel(X, C, gamma=0.5 / 1.7**2)),
    (Gaussian(WIDTHS), gaussian_process.RBF(WIDTHS)),
    (Laplacian(1.7), lambda X, C: pairwise.laplacian_kernel(X, C, gamma=1 / 1.7)),
    (
        Laplacian(list(WIDTHS)),
        lambda X, C: pairwise.laplacian_kernel(X / WIDTHS, C / WIDTHS, gamma=1.0),
    ),
    (Matern(0.8, 0.5), gaussian_process.Matern(0.8, nu=0.5)),
    (Matern(WIDTHS, 1.5), gaussian_process.Matern(WIDTHS, nu=1.5)),
    (Matern(0.8, 2.5), gaussian_process.Matern(0.8, nu=2.5)),
    (Polynomial(3, 0.5, 2.0), lambda X, C: pairwise.polynomial_kernel(X, C, 3, 0.5, 2.0)),
    (Linear(1.5), lambda X, C: pairwise.linear_kernel(X, C) + 1.5),
    (CallableKernel(pairwise.cosine_similarity), pairwise.cosine_similarity),
]
KERNELS = [kernel for kernel, _ in PAIRS]


def points(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((70, 3)), rng.standard_normal((50, 3))


def name(kernel: Kernel) -> str:
    return str(kernel).split(" at 0x")[0]  # the same in every process


def of_a_search(kernel: Kernel) -> Kernel:
    """The kernel with NumPy's scalars for parameters, as a search over np.logspace sets them."""
    numbers = {k: v for k, v in kernel.get_params().items() if isinstance(v, float)}
    return clone(kernel).set_params(**{k: np.float64(v) for k, v in numbers.items()})


@pytest.mark.parametrize(("kernel", "expected"), PAIRS, ids=[name(k) for k in KERNELS])
def test_values_are_scikit_learns(kernel: Kernel, expected: Any) -> None:
    X, C = points()
    np.testing.assert_allclose(kernel(X, C), expected(X, C), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), expected(X, X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(expected(X, X)), rtol=1e-12)
    single = kernel(X.astype(np.float32), C.astype(np.float32))
    for same in (kernel, of_a_search(kernel)):
        assert same(X.astype(np.float32), C.astype(np.float32)).dtype == np.float32
        assert same.diagonal(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single, expected(X, C), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_whole_numbers_and_lists_are_computed_with_in_double_precision(kernel: Kernel) -> None:
    X = np.arange(12).reshape(4, 3) % 5
    expected = kernel(X.astype(float))
    for given in (X, X.astype(np.int8), X.tolist(), csr_array(X)):
        if kernel.takes_sparse or not issparse(given):
            found = kernel(given)
            assert found.dtype == float
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_evaluating_leaves_the_data_alone_and_takes_any_number_of_rows(kernel: Kernel) -> None:
    X, C = points()
    copies = X.copy(), C.copy()
    bound = kernel.bind(C)
    whole = bound(X)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(C, copies[1])
    for rows in (slice(0, 1), slice(3, 40)):
        np.testing.assert_allclose(bound(X[rows]), whole[rows], rtol=1e-13)
    if not isinstance(kernel, CallableKernel):
        assert bound(X[:0]).shape == (0, 50)
        assert kernel(X, C[:0]).shape == (70, 0)


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Laplacian(0.1), Matern(0.1)], ids=str)
def test_far_from_the_origin_nothing_cancels(kernel: Kernel) -> None:
    X, C = (np.round(part * 2**10) / 2**10 for part in points())  # sums with 1e6 are exact
    np.testing.assert_allclose(kernel(X + 1e6, C + 1e6), kernel(X, C), rtol=1e-9)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_a_centre_far_from_the_others_leaves_materns_their_digits(nu: float) -> None:
    X, C = points()
    K = Matern(2.0, nu)(X, C)
    C[0, 1] = 1e9
    np.testing.assert_allclose(Matern(2.0, nu)(X, C)[:, 1:], K[:, 1:], rtol=1e-9)


def test_the_gaussian_of_a_row_with_itself_is_one_and_never_more() -> None:
    X = np.random.default_rng(0).uniform(-100.0, 100.0, (200, 4)).astype(np.float32)
    K = Gaussian(3.0)(X)
    assert K.max() <= 1.0
    # Exponents are differences of numbers of about |x|^2 / 2 sigma^2, up to 4000 here.
    np.testing.assert_allclose(np.diag(K), 1.0, atol=8000 * np.finfo(np.float32).eps)


def test_parameters_are_scikit_learns() -> None:
    kernel = clone(Matern(2.0)).set_params(nu=2.5)
    assert kernel.get_params() == {"length_scale": 2.0, "nu": 2.5}
    assert isinstance(as_kernel(None), Gaussian)
    assert as_kernel(kernel) is kernel
    X, C = points()
    np.testing.assert_array_equal(as_kernel(lambda A, B: A @ B.T)(X, C), X @ C.T)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Gaussian(0.0), "must be positive"),
        (Gaussian(np.nan), "must be positive"),
        (Laplacian([1.0, -1.0, 1.0]), "must be positive"),
        (Matern([1.0, 1.0]), "one for each of the 3 inputs"),
        (Gaussian(np.ones((3, 3))), "one for each of the 3 inputs"),
        (Matern(1.0, 1.0), "0.5, 1.5 or 2.5"),
        (Polynomial(0), "whole number"),
        (Polynomial(1.5), "whole number"),  # type: ignore[arg-type]
        (Polynomial(2, -1.0), "scale must be a positive"),
        (Polynomial(np.nan), "whole number"),  # type: ignore[arg-type]
        (Polynomial(2, np.nan), "scale must be a positive"),
        (Linear(-1.0), "must not be negative"),
        (Linear(np.inf), "must be a finite"),
    ],
)
def test_parameters_that_make_no_kernel_are_refused(kernel: Kernel, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kernel(*points())


def test_functions_that_are_no_kernel_are_refused() -> None:
    with pytest.raises(LearningError, match="whole matrix"):
        CallableKernel(lambda X, C: X[:, 0])(*points())
    with pytest.raises(LearningError, match="not finite"):
        CallableKernel(lambda X, C: np.full((len(X), len(C)), np.nan))(*points())
    for wrong in ("rbf", 3, Gaussian):
        with pytest.raises(ConfigurationError, match="kernel must be a kernel"):
            as_kernel(wrong)


# -------------------------------------------------------------------------------------------------
# A Gaussian kernel's blocks and products against naive ones in double precision.

RNG = np.random.default_rng(0)
GAUSSIAN_WIDTHS = np.array([1.5, 2.0, 0.7, 1.0, 3.0])


def naive(X: Any, C: Any, order: int = 0) -> Any:
    """exp(-|x - c|^2 / 2 sigma^2) of the inputs as they are, in double precision; or Matern's."""
    X, C = X.astype(float) / GAUSSIAN_WIDTHS, C.astype(float) / GAUSSIAN_WIDTHS
    if not order:
        return np.exp(-0.5 * cdist(X, C, "sqeuclidean"))
    r = np.sqrt(order) * cdist(X, C)
    return np.exp(-r) * (1.0 + (order > 1) * r + (order > 3) * r**2 / 3.0)


# One row, a few, more than are cached at once; one centre, a few, and so many that fewer rows are.
@pytest.mark.parametrize(
    ("k", "m"),
    [(0, 5), (1, 1), (3, 300), (MOST_CACHED_ROWS, 1), (2 * MOST_CACHED_ROWS + 7, 300), (71, 9000)],
)
@pytest.mark.parametrize(
    ("dtype", "order"), [(np.float32, 0), *((np.float64, order) for order in (0, 1, 3, 5))]
)
def test_products_are_those_of_the_matrix(k: int, m: int, dtype: Any, order: int) -> None:
    X = RNG.standard_normal((k, 5)).astype(dtype)
    C = RNG.standard_normal((m, 5)).astype(dtype)
    C[0] = X[0] if k else C[0]  # no distance, of which the difference of squares keeps no digit
    blocks = GaussianBlocks(C, GAUSSIAN_WIDTHS, order)
    K = blocks(X)
    assert K.dtype == dtype
    np.testing.assert_allclose(K, naive(X, C, order), atol=100 * np.finfo(dtype).eps)
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
    blocks = GaussianBlocks(C, GAUSSIAN_WIDTHS)
    np.testing.assert_allclose(blocks(X), naive(X, C), atol=1e-5)
    np.testing.assert_allclose(blocks.multiply(X, B), blocks(X).astype(float) @ B, rtol=1e-12)


def test_a_product_takes_no_memory_for_the_matrix() -> None:
    X, C = RNG.standard_normal((20_000, 5)), RNG.standard_normal((500, 5))
    blocks = GaussianBlocks(C, GAUSSIAN_WIDTHS)
    blocks.normal(X[:10], np.ones((500, 1)), None, None)  # compiled
    peak = peak_memory(lambda: blocks.normal(X, np.ones((500, 1)), None, None))
    assert peak < 5 * X.nbytes + 8 * MOST_CACHED_ROWS * 500 + 2**16  # K would be 100 times X


@pytest.mark.parametrize("m", [60, 1200])
@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 99_999.0), (np.float64, 1e9)])
def test_a_centre_far_from_the_others_leaves_them_their_digits(
    dtype: Any, far: float, m: int
) -> None:
    C = RNG.standard_normal((m, 5)).astype(dtype)
    K = GaussianBlocks(C, GAUSSIAN_WIDTHS)(C)
    C[:2, 3] = far
    K_far = GaussianBlocks(C, GAUSSIAN_WIDTHS)(C)
    np.testing.assert_allclose(K_far[2:, 2:], K[2:, 2:], atol=100 * np.finfo(dtype).eps)
    assert not K_far[2:, :2].any()


def test_squares_that_overflow_are_said() -> None:
    blocks = GaussianBlocks(np.ones((3, 5), np.float32), GAUSSIAN_WIDTHS)
    with pytest.raises(LearningError, match="overflow in float32: scale the inputs"):
        blocks(np.full((1, 5), 1e20, np.float32))
