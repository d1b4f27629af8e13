"""An orthonormal basis of the span of K(c_1, .), ..., K(c_M, .), in the centres' order."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.factorisation import upper_factor
from semiparam_dynamics.learning.kernels import Kernel, evaluate_into
from semiparam_dynamics.learning.sparse import as_inputs, stacked

BLOCK = 128


class NystromBasis:
    """Features phi(x) = L^-1 K(C, x), with L L' = K(C, C), that grow with the centres.

    With K_mm^+ = S S' and S = L'^-1 these are the columns of A = K_nm S (thesis 4.2 and 4.3.2).
    L is triangular in the centres' order, so the features of the first t centres are the first
    features: whatever is computed on all of them holds the answers for fewer.

    A centre that the ones before it explain, to rounding, adds nothing to the span and gets no
    feature: duplicated centres and a singular K(C, C) are no special case. What is factorised has
    `jitter` K(c, c) added to its diagonal: a pivot that is mostly rounding would else be wrong by
    a factor, and with it what it explains of the centres after it, however large they are.

    Attributes
    ----------
    centers : (M, d), all centres so far.
    kept : (q,), the numbers of those that brought a feature.
    expansion : (M, q), the features of the centres themselves: expansion @ expansion' = K(C, C).
    factor : (q, q), lower triangular, L of the kept centres.
    jitter : 1e-13 about, or 1e-6 where the data are in single precision; the error, relative to
        K(c, c), of the inner products of the centres' features.
    """

    def __init__(self, kernel: Kernel, centers: Array, *, dtype: np.dtype | None = None) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype or centers.dtype)
        # Above the rounding of K's entries, and, which is in float64, of the factorisation.
        eps = float(np.finfo(self.dtype).eps)
        self.jitter = max(10.0 * eps, 500.0 * float(np.finfo(float).eps))
        self.centers = as_inputs(centers[:0], float)
        self.kept: Indices = np.empty(0, dtype=np.intp)
        self.expansion = np.empty((0, 0))
        self.extend(centers)

    @property
    def n_centers(self) -> int:
        """M, the number of centres so far."""
        return int(self.centers.shape[0])

    @property
    def n_features(self) -> int:
        """q, the dimension of the span."""
        return len(self.kept)

    @property
    def factor(self) -> Array:
        """L of the kept centres, (q, q)."""
        return self.expansion[self.kept]

    def n_features_of(self, n_centers: int) -> int:
        """The number of features that belong to the first `n_centers` centres."""
        return int(np.searchsorted(self.kept, n_centers))

    def extend(self, centers: Array) -> None:
        """Append centres (k, d); the features so far stay as they are."""
        known, old = self.n_centers, self.n_features
        self.centers = stacked((self.centers, as_inputs(centers, float)))
        if not known and self._start():
            return
        M = self.n_centers
        grown = np.zeros((M, old + M - known))
        grown[:known, :old] = self.expansion
        self.expansion = grown
        if not known or not self._append(slice(known, M), every=True):
            for start in range(known, M, BLOCK):
                self._append(slice(start, min(start + BLOCK, M)))
        self.expansion = self.expansion[:, : self.n_features]

    def transform(self, X: Array) -> Array:
        """Features (n, q) of inputs (n, d), in the dtype of X."""
        C = self.centers[self.kept].astype(X.dtype)
        return self.from_kernel(self.kernel(X, C))

    def from_kernel(self, K: Array) -> Array:
        """Features (n, q) from K(X, kept centres), (n, q); K is used up."""
        L = self.factor.astype(K.dtype)
        phi: Array = solve_triangular(L, K.T, lower=True, overwrite_b=True, check_finite=False)
        return phi.T

    def coefficients(self, weights: Array) -> Array:
        """The kernels' coefficients (M, T) of the q' <= q leading features' weights (q', T)."""
        q = len(weights)
        result = np.zeros((self.n_centers, weights.shape[1]))
        if q:
            L = self.expansion[self.kept[:q], :q]
            result[self.kept[:q]] = solve_triangular(L, weights, lower=True, trans=1)
        return result

    def weights(self, coefficients: Array) -> Array:
        """The features' weights (q, T) of the function sum_j K(., c_j) coefficients_j (M, T)."""
        weights: Array = self.expansion.T @ coefficients
        return weights

    def _start(self) -> bool:
        """Make K(C, C) the expansion, in its place, if each centre brings a feature."""
        K, enough = self._gram(self.centers)
        factor, kept = factorise(K, enough, every=True)
        if not len(kept):
            return False
        self.expansion, self.kept = factor, kept
        return True

    def _gram(self, centers: Array) -> tuple[Array, Array]:
        """K(C, C) with the jitter, and what a pivot must exceed."""
        K = np.empty((centers.shape[0],) * 2)
        evaluate_into(self.kernel.bind(centers), centers, K)
        jitter = self.jitter * np.diag(K)
        K[np.diag_indices_from(K)] += jitter
        return K, 10.0 * jitter  # of a duplicate, its own and its twin's are left: 2 of it

    def _append(self, rows: slice, every: bool = False) -> bool:
        """Fill the expansion's `rows`; with `every`, only if each of them brings a feature."""
        q, block = self.n_features, self.centers[rows]
        rest, enough = self._gram(block)
        known = self.expansion[rows, :q]
        if q:
            K = self.kernel(block, self.centers[self.kept])
            known[:] = solve_triangular(self.expansion[self.kept, :q], K.T, lower=True).T
            rest -= known @ known.T
        added, kept = factorise(rest, enough, every)
        if every and not len(kept):
            return False
        self.expansion[rows, q : q + len(kept)] = added
        self.kept = np.concatenate((self.kept, rows.start + kept))
        return True


def factorise(A: Array, enough: Array, every: bool = False) -> tuple[Array, Indices]:
    """A Cholesky factor of A (k, k) without the rows whose pivots are at most `enough` (k,).

    Returns F (k, r), lower trapezoidal, with F F' = A up to what was left out, and the numbers
    (r,) of the rows that were kept. With `every`, none (r = 0) if any row would be left out, and
    A is used up: F takes its place. Raises LearningError if A has a value that is not finite.
    """
    if not all(np.isfinite(A[i : i + BLOCK]).all() for i in range(0, len(A), BLOCK)):
        raise LearningError("The kernel has values that are not finite on the centres.")
    k = len(A)
    if every:
        L = np.ascontiguousarray(A, dtype=float)
        # Row by row, a lower triangle is column by column an upper one.
        if upper_factor(L.T, clean=True) and (np.diag(L) ** 2 > enough).all():
            return L, np.arange(k)
        return np.empty((k, 0)), np.empty(0, dtype=np.intp)
    try:
        L = cholesky(A, lower=True)
        if (np.diag(L) ** 2 > enough).all():
            return L, np.arange(k)
    except np.linalg.LinAlgError:
        pass
    kept: list[int] = []
    F = np.zeros((k, k))
    rest = A.copy()
    for i in range(k):
        if rest[i, i] > enough[i]:
            column = rest[i:, i] / np.sqrt(rest[i, i])
            rest[i:, i:] -= np.outer(column, column)
            F[i:, len(kept)] = column
            kept.append(i)
    return F[:, : len(kept)], np.array(kept, dtype=np.intp)
