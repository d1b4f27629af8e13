"""Nyström kernel ridge regression whose centres grow, without starting again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.feature_blocks import (
    FeatureMap,
    coefficients,
    feature_blocks,
    nystrom_map,
)
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.memory import memory_budget
from semiparam_dynamics.learning.nested_factor import NestedFactor
from semiparam_dynamics.learning.ridge import QR_BELOW, accumulate
from semiparam_dynamics.learning.rows import Rows

KEPT_SHARE = 0.5  # of the memory limit, for the features of all rows


class GrowingNystrom:
    """The system of rows and centres, to which blocks of centres can be appended in BLAS 3.

    Appending k centres to m costs O(n m k) where the rows' features fit into half of the memory
    limit, and are kept; elsewhere they are computed again, O(n m^2). The same holds for a penalty
    so small that Cholesky factors of A'A have too few digits (see ridge.py).

    Parameters
    ----------
    rows, kernel : the data and the kernel.
    penalty : lambda, times the total weight.
    max_centers : how many centres there will be at most.
    memory_limit : bytes.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        penalty: float,
        max_centers: int,
        memory_limit: int | None = None,
    ) -> None:
        self._rows, self._kernel, self._memory_limit = rows, kernel, memory_limit
        self._ridge = penalty * rows.total_weight
        self.basis: NystromBasis | None = None
        self._factor = NestedFactor(np.zeros((0, 0)), np.zeros((0, rows.n_outputs)))
        needed = rows.n_samples * max_centers * rows.dtype.itemsize
        fits = needed <= KEPT_SHARE * memory_budget(memory_limit)
        self._kept = np.empty((rows.n_samples, max_centers), rows.dtype) if fits else None

    def append(self, centers: Array) -> None:
        """Append centres (k, d)."""
        q = 0 if self.basis is None else self.basis.n_features
        if self.basis is None:
            self.basis = NystromBasis(self._kernel, centers, dtype=self._rows.dtype)
        else:
            self.basis.extend(centers)
        k = self.basis.n_features - q
        if not k:
            return
        largest = self._kernel.diagonal(self.basis.centers).max() * self._rows.total_weight
        if self._ridge < QR_BELOW * largest:
            self._start_again(self.basis)
            return
        cross, own = np.zeros((q, k)), self._ridge * np.eye(k)
        moments = np.zeros((k, self._rows.n_outputs))
        for block in self._blocks(self.basis, q):
            _add_products(block, cross, own, moments)
        try:
            self._factor.append(cross, own, moments)
        except np.linalg.LinAlgError:
            self._start_again(self.basis)

    def coefficients(self) -> Array:
        """What multiplies K(x, c_j), (m, T)."""
        if self.basis is None:
            return np.zeros((0, self._rows.n_outputs))
        return coefficients(self.basis, self._factor.weights())

    def _blocks(
        self, basis: NystromBasis, known: int
    ) -> Iterator[tuple[Array, Array, Array | None]]:
        """The rows' features, of which the first `known` may have been kept."""
        if self._kept is None:
            features = nystrom_map(basis, self._rows.dtype)
            yield from feature_blocks(self._rows, features, self._memory_limit)
            return
        L = basis.factor[known:].astype(self._rows.dtype)
        new = FeatureMap(
            len(L), self._kernel.bind(basis.centers[basis.kept[known:]].astype(self._rows.dtype))
        )
        start = 0
        rest = int((1.0 - KEPT_SHARE) * memory_budget(self._memory_limit))
        for K, Y, weights in feature_blocks(self._rows, new, rest, beside=8 * known):
            A = self._kept[start : start + len(K), : known + len(L)]
            # phi_new = L22^-1 (K_new - L21 phi_known)
            K -= A[:, :known] @ L[:, :known].T
            A[:, known:] = solve_triangular(L[:, known:], K.T, lower=True, overwrite_b=True).T
            start += len(K)
            yield A, Y, weights

    def _start_again(self, basis: NystromBasis) -> None:
        features = nystrom_map(basis, self._rows.dtype)
        stream = partial(feature_blocks, self._rows, features, self._memory_limit)
        self._kept = None  # it lacks these centres' features
        system = accumulate(
            stream, basis.n_features, self._rows.n_outputs, self._ridge, largest=np.inf
        )
        self._factor = system.factor(self._ridge)


def _add_products(
    block: tuple[Array, Array, Array | None], cross: Array, own: Array, moments: Array
) -> None:
    """Add A1'WA2, A2'WA2 and A2'WY of a block of rows, with A2 the features after the first q."""
    A, Y, weights = block
    first = A[:, : len(cross)].astype(float, copy=False)
    new = A[:, len(cross) :].astype(float, copy=False)
    weighted = new if weights is None else new * weights[:, None]
    cross += first.T @ weighted
    own += new.T @ weighted
    moments += weighted.T @ Y
