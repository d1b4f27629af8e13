"""Ridge regression on nested features, against solves in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.centers import NystromBasis
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.ridge import NestedFactor, NestedRidge, accumulate


def extended_ridge(A: np.ndarray, Y: np.ndarray, ridge: float) -> np.ndarray:
    """Ridge regression by Householder reflections in extended precision."""
    q = A.shape[1]
    below = np.concatenate(
        (np.sqrt(np.longdouble(ridge)) * np.eye(q), np.zeros((q, Y.shape[1]))), 1
    )
    M = np.concatenate((np.concatenate((A, Y), axis=1).astype(np.longdouble), below))
    for j in range(q):
        v = M[j:, j].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        M[j:, j:] -= np.outer(2.0 * v / (v @ v), v @ M[j:, j:])
    beta = np.zeros((q, Y.shape[1]), np.longdouble)
    for i in reversed(range(q)):
        beta[i] = (M[i, q:] - M[i, i + 1 : q] @ beta[i + 1 :]) / M[i, i]
    return beta


def problem(n: int = 300, q: int = 40, T: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.standard_normal((n, q)), draw.standard_normal((n, T)), draw.uniform(0, 2, n)


def system(
    A: np.ndarray, Y: np.ndarray, orthogonal: bool, w: np.ndarray | None = None
) -> NestedRidge:
    result = NestedRidge(A.shape[1], Y.shape[1], orthogonal)
    for i in range(0, len(A), 70):
        part = slice(i, i + 70)
        result.add(A[part], Y[part], None if w is None else w[part])
    return result


@pytest.mark.parametrize("penalty", [1e-6, 1e-9, 1e-12, 1e-15])
def test_tiny_penalties_keep_their_digits(penalty: float) -> None:
    draw = np.random.default_rng(1)
    X = draw.uniform(-1, 1, (300, 2))
    Y = np.sin(3.0 * X.sum(axis=1, keepdims=True)) + 0.1 * draw.standard_normal((300, 1))
    basis = NystromBasis(Gaussian(1.0), X[:80])
    A, A_new = basis.transform(X), basis.transform(draw.uniform(-1, 1, (50, 2)))
    assert np.linalg.cond(A) > 1e5
    ridge = 300 * penalty
    chosen = accumulate(lambda orthogonal: system(A, Y, orthogonal), ridge, 300.0)
    assert chosen.orthogonal == (penalty < 1e-9)
    expected = A_new @ extended_ridge(A, Y, ridge)
    largest = np.abs(expected).max()
    error = np.abs(A_new @ chosen.factor(ridge).weights() - expected).max() / largest
    assert error < 1e-10
    # The same by eigenvectors of A'A, or singular vectors of A.
    values, vectors, projected = chosen.spectrum()
    found = A_new @ (vectors @ (projected / (values + ridge)[:, None]))
    assert np.abs(found - expected).max() / largest < 1e-8


def test_a_cholesky_factor_that_fails_is_replaced_by_qr() -> None:
    draw = np.random.default_rng(2)
    A = np.repeat(draw.standard_normal((50, 5)), 3, axis=1)  # rank 5 of 15
    Y = draw.standard_normal((50, 1))
    with pytest.raises(np.linalg.LinAlgError):
        system(A, Y, False).factor(1e-30)
    found = accumulate(lambda orthogonal: system(A, Y, orthogonal), 1e-9, largest=0.0)
    rescued = accumulate(lambda orthogonal: system(A, Y, orthogonal), 1e-14, largest=0.0)
    assert rescued.orthogonal or not found.orthogonal
    fitted = A @ rescued.factor(1e-14).weights()
    expected = A @ np.linalg.lstsq(A, Y)[0]
    np.testing.assert_allclose(fitted, expected, atol=1e-6)


def test_a_hopeless_system_says_so() -> None:
    factor = NestedFactor(np.diag([1.0, 0.0]), np.ones((2, 1)))
    with pytest.raises(LearningError, match="raise the penalty"):
        factor.weights()
    np.testing.assert_allclose(factor.weights(1), [[1.0]])
