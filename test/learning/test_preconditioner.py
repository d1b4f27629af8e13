"""The preconditioner against the matrices of its definition."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.falkon import Preconditioner
from semiparam_dynamics.learning.kernels import Gaussian, Kernel

RNG = np.random.default_rng(0)
C = RNG.standard_normal((120, 3))
TWICE = np.vstack((C, C[:40]))


@pytest.mark.parametrize("centers", [C, TWICE], ids=["distinct", "duplicated"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_factor_is_that_of_the_definition(centers: Array, weighted: bool) -> None:
    basis = NystromBasis(Gaussian(1.0), centers)
    importance = RNG.uniform(0.0, 3.0, len(centers)) if weighted else None
    D2 = np.ones(len(centers)) if importance is None else importance
    B = Preconditioner(basis, 1e-3, importance)
    q = basis.n_features
    assert q == 120
    eye = np.eye(q)
    A = np.linalg.inv(B.to_features(eye))
    gram = (basis.expansion.T * D2) @ basis.expansion / len(centers) + 1e-3 * eye
    np.testing.assert_allclose(A.T @ A, gram, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(B.from_features(eye), B.to_features(eye).T, rtol=1e-10, atol=1e-12)
    L = np.linalg.inv(B.from_coefficients(eye))
    K = Gaussian(1.0)(basis.centers[basis.kept])
    np.testing.assert_allclose(L @ L.T, K, atol=1e-8)
    np.testing.assert_allclose(B.to_coefficients(eye), np.linalg.inv(L).T, rtol=1e-6, atol=1e-6)


def test_what_it_was_given_stays() -> None:
    basis = NystromBasis(Gaussian(1.0), C)
    before, v = basis.expansion.copy(), RNG.standard_normal((120, 2))
    B, kept = Preconditioner(basis, 1e-3), v.copy()
    for solve in (B.to_features, B.from_features, B.to_coefficients, B.from_coefficients):
        solve(v)
    assert (basis.expansion == before).all() and (v == kept).all()


@pytest.mark.parametrize("penalty", [1e-12, 1e-18, 1e-300])
@pytest.mark.parametrize("spread", [1.0, 1e12])
def test_a_penalty_below_rounding_has_a_factor(penalty: float, spread: float) -> None:
    basis = NystromBasis(Gaussian(3.0), C)
    B = Preconditioner(basis, penalty, np.geomspace(1.0 / spread, spread, len(C)))
    assert np.isfinite(B.to_features(np.eye(basis.n_features))).all()


def test_centres_without_weight_leave_the_penalty() -> None:
    basis = NystromBasis(Gaussian(1.0), C)
    B = Preconditioner(basis, 0.25, np.zeros(len(C)))
    np.testing.assert_allclose(B.to_features(np.eye(120)), 2.0 * np.eye(120))


class Nothing(Kernel):
    def bind(self, C: Array):  # type: ignore[no-untyped-def]
        return lambda X: np.zeros((len(X), len(C)))


def test_no_feature_at_all() -> None:
    B = Preconditioner(NystromBasis(Nothing(), C), 1e-3)
    assert B.to_coefficients(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("centers", [C, TWICE], ids=["distinct", "duplicated"])
def test_solves_copy_no_matrix(centers: Array) -> None:
    big = RNG.standard_normal((len(centers) * 6, 8))
    if len(centers) > 120:
        big[-100:] = big[:100]
    basis = NystromBasis(Gaussian(1.0), big)
    square = 8 * len(big) ** 2
    tracemalloc.start()
    try:
        B = Preconditioner(basis, 1e-3)
        built = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        start = tracemalloc.get_traced_memory()[0]
        B.from_features(B.to_features(B.to_coefficients(np.ones((basis.n_features, 1)))))
        solved = tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()
    assert built < (1.1 if len(centers) == 120 else 2.6) * square
    assert solved < 0.05 * square
