"""FALKON's preconditioner, from the Nyström centres alone (Rudi, Carratino, Rosasco 2017)."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.basis import NystromBasis

BLOCK = 512


class Preconditioner:
    """The triangular maps of B = L'^-1 A^-1, with L L' = K_MM and
    A'A = Phi' D^2 Phi / M + penalty I (paper, equation (13) and appendix A, with T = L').

    Phi (M, q) holds the centres' features: ``basis.expansion``, L itself where no centre was
    left out. D_jj = (n p_j)^-1/2 for a centre that was drawn with probability p_j, so that A'A
    is in the mean (Phi_n' Phi_n + penalty n I) / n, the system's matrix in those coordinates.

    Two matrices (M, M) are alive while it is in use: the basis' and A. They are computed in
    place, and none is copied in a product. Time M^3 / 3 multiplications for
    A'A and half as many for A; each solve takes M^2 / 2 for a column.

    Parameters
    ----------
    basis : of the centres.
    penalty : lambda, beside the mean of the features' products.
    importance : (M,), D^2, with the centres' sample weights where there are any; None: ones.
    moments : (q, q), its upper half: a mean of features' products to take in place of that of
        the centres.
    """

    def __init__(
        self,
        basis: NystromBasis,
        penalty: float,
        importance: Array | None = None,
        moments: Array | None = None,
    ) -> None:
        M, q = basis.expansion.shape
        # BLAS wants columns: row-wise L is its transpose, column-wise, and isn't copied so.
        whole = q == M
        self._upper = np.ascontiguousarray(basis.expansion if whole else basis.factor).T
        if not q:
            self._A = np.empty((0, 0))
            return
        share = (np.ones(M) if importance is None else importance) / M
        extra = penalty
        for _ in range(20):
            if moments is not None:
                gram = moments.copy(order="F")
            else:
                gram = _triangular_gram(basis, share) if whole else mean_products(basis, share)
            gram.flat[:: q + 1] += extra
            self._A, failed = dpotrf(gram, lower=0, clean=0, overwrite_a=1)
            if not failed and np.isfinite(np.diagonal(self._A)).all():
                return
            # A penalty below the rounding: a larger one here costs iterations, not accuracy.
            scale = float(np.sum(share * np.einsum("ij,ij->i", basis.expansion, basis.expansion)))
            extra = max(10.0 * extra, np.finfo(float).eps * scale)
        raise LearningError(
            "The preconditioner has no Cholesky factor: are the kernel's values finite?"
        )

    def to_features(self, beta: Array) -> Array:
        """A^-1 beta, features' weights, of the preconditioned unknowns (q, T)."""
        return _solve(self._A, beta)

    def from_features(self, gradient: Array) -> Array:
        """A'^-1 gradient, with respect to beta, of that with respect to features' weights."""
        return _solve(self._A, gradient, transposed=True)

    def to_coefficients(self, weights: Array) -> Array:
        """L'^-1 weights, the kept centres' coefficients, of features' weights (q, T)."""
        return _solve(self._upper, weights)

    def from_coefficients(self, gradient: Array) -> Array:
        """L^-1 gradient, with respect to weights, of that with respect to coefficients (q, T)."""
        return _solve(self._upper, gradient, transposed=True)


def _solve(upper: Array, B: Array, transposed: bool = False) -> Array:
    """U^-1 B, or U'^-1 B, of a column-wise upper triangular U (q, q)."""
    if not B.size:
        return B
    result: Array
    if B.shape[1] == 1:  # the solver of matrices would copy U
        result = dtrsv(upper, B[:, 0], lower=0, trans=int(transposed))[:, None]
    else:
        result = dtrsm(1.0, upper, B, lower=0, trans_a=int(transposed))
    return result


def _triangular_gram(basis: NystromBasis, share: Array) -> Array:
    """Phi' diag(share) Phi of a triangular Phi, its upper half, in one matrix."""
    # LAPACK's lauum reaches half of the matrix products' speed. A block of rows needs only itself
    # and those below it, so that it can take its own place; a twentieth of the matrix at a time.
    gram = basis.expansion * np.sqrt(share)[:, None]
    rows = -(-len(gram) // 20)
    for start in range(0, len(gram), rows):
        end = min(start + rows, len(gram))
        gram[start:end, :end] = gram[start:, start:end].T @ gram[start:, :end]
    return gram.T


def mean_products(basis: NystromBasis, share: Array, X: Array | None = None) -> Array:
    """Phi' diag(share) Phi, its upper half, (q, q), of the features of the centres or of X."""
    q = basis.n_features
    gram = np.zeros((q, q), order="F")
    for i in range(0, len(share), BLOCK):
        here = slice(i, i + BLOCK)
        phi = basis.expansion[here] if X is None else basis.transform(X[here])
        scaled = phi * np.sqrt(share[here])[:, None]
        gram = dsyrk(1.0, scaled.T, beta=1.0, c=gram, lower=0, overwrite_c=1)
    return gram
