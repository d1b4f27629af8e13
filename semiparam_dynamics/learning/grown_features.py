"""Features of a whole recording as a learner that grows its centres on the way would see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.jit import compiled
from semiparam_dynamics.recursion.features import (
    IncrementalNystromFeatures,
    gaussian_row,
    solve_lower,
)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GrownFeatures:
    """Rows of features in the order in which their inputs came.

    Attributes
    ----------
    rows : (n, m); a row has zeros for the centres that came after it.
    counts : (n,), how many centres there were when the row was learned, its own included.
    centers : (m, d).
    factor : (m, m), lower triangular, L with L L' = k(C, C).
    """

    rows: Array
    counts: Counts
    centers: Array
    factor: Array
    gamma: float

    def transform(self, X: Array, n_centers: int) -> Array:
        """Features (k, m) of inputs X (k, d) by the first centres, zeros for the others."""
        phi = np.zeros((len(X), len(self.centers)))
        if n_centers:
            kernel = np.exp(-self.gamma * cdist(self.centers[:n_centers], X, "sqeuclidean"))
            L = self.factor[:n_centers, :n_centers]
            phi[:, :n_centers] = solve_triangular(L, kernel, lower=True, check_finite=False).T
        return phi


def grow_features(
    X: Array, length_scale: float, capacity: int, novelty: float, start: int = 0
) -> GrownFeatures:
    """What `IncrementalNystromFeatures` gives for each row of X (n, d), growing by it first.

    The rows before `start` are passed over: zeros, and no centres.
    """
    X = np.ascontiguousarray(X, dtype=float)
    n, d = X.shape
    capacity = min(capacity, n)
    features = IncrementalNystromFeatures(d, length_scale, capacity, novelty)
    centers, factor = np.zeros((capacity, d)), np.zeros((capacity, capacity))
    rows, counts = np.zeros((n, capacity)), np.zeros(n, dtype=np.int64)
    _grow(X, features.gamma, novelty, start, centers, factor, rows, counts)
    m = int(counts[-1]) if n else 0
    return GrownFeatures(
        np.ascontiguousarray(rows[:, :m]), counts, centers[:m], factor[:m, :m], features.gamma
    )


@compiled
def _grow(
    X: Array,
    gamma: float,
    novelty: float,
    start: int,
    centers: Array,
    factor: Array,
    rows: Array,
    counts: Counts,
) -> None:
    m = 0
    kernel = np.empty(len(centers))
    for i in range(start, len(X)):
        phi = rows[i]
        gaussian_row(centers, X[i], gamma, kernel, m)
        rest = 1.0 - solve_lower(factor, kernel, phi, m)
        if m < len(centers) and rest > novelty:
            centers[m] = X[i]
            factor[m, :m] = phi[:m]
            factor[m, m] = np.sqrt(rest)
            phi[m] = factor[m, m]
            m += 1
        counts[i] = m
