"""Choosing Nyström centres among the data: uniformly, or by approximate leverage scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils import check_array, check_random_state

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    positive,
    positive_count,
)
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.products import feature_blocks, nystrom_map
from semiparam_dynamics.learning.ridge import NestedRidge, accumulate
from semiparam_dynamics.learning.rows import FLOATS, ArrayRows, Rows, on_host
from semiparam_dynamics.learning.sparse import as_inputs, in_format

# -------------------------------------------------------------------------------------------------
# How many centres, and which penalty, before seeing any validation error.


def subsampling_size(
    n: int, smoothness: float = 0.5, approximation: float = 0.5
) -> tuple[float, int]:
    """(penalty, n_centers) for n rows, that keep the learning rate of the method on all rows.

    For targets f = C^s g with the kernel's covariance operator C and `smoothness` s, and centres
    whose span has ||C^(1/2) (I - P_m)|| = O(m^-beta) with beta = `approximation`:
    penalty = n^(-1 / (2 (s + 1))) and m = n^(1 / (2 beta (2 s + 1))) (Kriukova, Pereverzyev,
    Tkachenko 2017, theorem 2), at most n. Values of 1/2 for both are safe, and give n^(-1/3) and
    sqrt(n). The kernel's values are taken to be of order one.

    Raises ConfigurationError for arguments that aren't positive.
    """
    if n < 1 or not (
        smoothness > 0.0 < approximation and math.isfinite(smoothness + approximation)
    ):
        raise ConfigurationError("n, smoothness and approximation must be positive.")
    penalty = float(n) ** (-1.0 / (2.0 * (smoothness + 1.0)))
    exponent = 1.0 / (2.0 * approximation * (2.0 * smoothness + 1.0))
    # Without the margin, rounding would make 2 out of 4^(1/2) + 1e-16.
    n_centers = math.ceil(float(n) ** min(exponent, 1.0) * (1.0 - 1e-12))
    return penalty, min(max(n_centers, 1), n)


@dataclass(frozen=True)
class Centers:
    """Chosen centres.

    Attributes
    ----------
    points : (m, d).
    indices : (m,), their rows in the data; None for centres that were given.
    probabilities : (m,), with which each was drawn where they differ; None: uniformly. Of draws
        without replacement the mean of a draw's.
    """

    points: Array
    indices: Indices | None = None
    probabilities: Array | None = None


def uniform(X: Any, n_centers: int, random_state: Any = None) -> Centers:
    """`n_centers` different rows of X (n, d), or of :class:`Rows`, each equally likely.

    All rows, in random order, if there are no more than that.
    """
    rows = _rows(X)
    draw = check_random_state(random_state)
    indices = draw.permutation(rows.n_samples)[: positive_count(n_centers, "n_centers")]
    return Centers(rows.take(indices), indices)


def by_weight(rows: Rows, weights: Array, n: int, draw: np.random.RandomState) -> Centers:
    """`n` different rows, each in proportion to its weight (n_samples,); none of weight zero.

    A row that outweighs the rest's share is there for certain, and the others share what remains:
    the sum over the sample of what is summed, over n p, has no error from heavy rows then. All rows
    of positive weight if there are no more than `n`. By systematic sampling in random order
    (Madow 1949).
    """
    heavy = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights > 0.0)]
    n = min(positive_count(n, "n"), len(heavy))
    # The heaviest k are certain where the next one's share of the other n - k draws is below 1.
    rest = np.cumsum(weights[heavy][::-1])[::-1]
    certain = 0
    while certain < n and weights[heavy[certain]] * (n - certain) >= rest[certain]:
        certain += 1
    shares = np.zeros(rows.n_samples)
    if certain < n:
        others = heavy[certain:]
        shares[others] = weights[others] * ((n - certain) / rest[certain])
    order = draw.permutation(heavy[certain:])
    ends = np.cumsum(shares[order]) + draw.uniform()
    drawn = order[np.diff(np.floor(ends), prepend=0.0) > 0.0]
    shares[heavy[:certain]] = 1.0
    indices = np.concatenate((heavy[:certain], drawn))
    return Centers(rows.take(indices), indices, shares[indices] / max(len(indices), 1))


def leverage_scores(
    X: Any,
    n_centers: int,
    kernel: Any = None,
    penalty: float = 1e-3,
    random_state: Any = None,
    memory_limit: int | None = None,
) -> Centers:
    """`n_centers` draws with replacement, in proportion to approximate leverage scores.

    A row drawn twice is there twice: it adds nothing to the span, and counts twice in Falkon's
    preconditioner (thesis 4.2.2; Rudi, Carratino, Rosasco 2017, appendix A).
    """
    rows = _rows(X)
    draw, n_centers = check_random_state(random_state), positive_count(n_centers, "n_centers")
    sketch = uniform(rows, n_centers, draw).points
    scores = approximate_leverage_scores(rows, sketch, kernel, penalty, memory_limit)
    probabilities = scores / scores.sum()
    indices = draw.choice(rows.n_samples, size=n_centers, p=probabilities)
    return Centers(rows.take(indices), indices, probabilities[indices])


def approximate_leverage_scores(
    X: Any,
    sketch: Array,
    kernel: Any = None,
    penalty: float = 1e-3,
    memory_limit: int | None = None,
) -> Array:
    """Approximations, (n,), of the ridge leverage scores (K (K + penalty n I)^-1)_ii.

    With Nyström features A of the centres `sketch` (m, d), the part of row i within their span
    has the score a_i (A'A + penalty n I)^-1 a_i', and the rest, K_ii - |a_i|^2, has at most
    itself over penalty n. With all rows as the sketch the scores are exact. Time O(n m^2), memory
    O(m^2) beside the limit.
    """
    rows, the_kernel = _rows(X), as_kernel(kernel)
    basis = NystromBasis(the_kernel, sketch, dtype=rows.dtype)
    if not basis.n_features:
        raise LearningError("The kernel is zero on every centre of the sketch.")
    ridge = positive(penalty, "penalty") * rows.n_samples
    features = nystrom_map(basis, rows.dtype)

    def moments(orthogonal: bool) -> NestedRidge:
        system = NestedRidge(basis.n_features, 1, orthogonal)
        for A, _, _ in feature_blocks(rows, features, memory_limit):
            system.add(A, np.zeros((len(A), 1)))
        return system

    largest = float(the_kernel.diagonal(basis.centers).max()) * rows.n_samples
    R = accumulate(moments, ridge, largest).factor(ridge).R
    blocks = map(on_host, rows.blocks(4096))
    diagonal = np.concatenate([the_kernel.diagonal(block.X) for block in blocks])
    scores = np.empty(rows.n_samples)
    start = 0
    for A, _, _ in feature_blocks(rows, features, memory_limit, beside=8 * basis.n_features):
        here, wide = slice(start, start + len(A)), A.astype(float)
        outside = diagonal[here] - np.einsum("ij,ij->i", wide, wide)
        half = solve_triangular(R, wide.T, trans=1, check_finite=False)
        inside = np.einsum("ij,ij->j", half, half)
        scores[here] = np.minimum(inside + np.maximum(outside, 0.0) / ridge, 1.0)
        start = here.stop
    return scores


def choose_centers(
    centers: Any,
    rows: Rows,
    n_centers: int,
    kernel: Kernel,
    penalty: float,
    random_state: Any = None,
    memory_limit: int | None = None,
) -> Centers:
    """The centres that an estimator's parameters `centers` and `n_centers` ask for.

    `centers` is "uniform", "leverage_scores", or the centres themselves, (m, d). Rows whose
    sample weight is zero are no different from others here.
    Raises ConfigurationError for another name, and for centres of a wrong shape.
    """
    if isinstance(centers, str):
        if centers == "uniform":
            return uniform(rows, n_centers, random_state)
        if centers == "leverage_scores":
            return leverage_scores(rows, n_centers, kernel, penalty, random_state, memory_limit)
        raise ConfigurationError(
            f'centers must be "uniform", "leverage_scores" or an array, not "{centers}".'
        )
    points = check_array(centers, dtype=rows.dtype, input_name="centers", accept_sparse="csr")
    points = in_format(as_inputs(points, rows.dtype), rows.sparse)
    if points.shape[1] != rows.n_features:
        raise ConfigurationError(
            f"The centres have {points.shape[1]} columns and X has {rows.n_features}."
        )
    return Centers(points)


def basis_of(
    estimator: Any, rows: Rows, draw: np.random.RandomState, memory_limit: int | None
) -> NystromBasis:
    """The basis of an estimator's centres, by leverage scores of the penalty 1 / sqrt(n).

    Raises LearningError for a kernel that is zero on all of them.
    """
    kernel, penalty = as_kernel(estimator.kernel), 1.0 / np.sqrt(rows.n_samples)
    centers = choose_centers(
        estimator.centers, rows, estimator.n_centers, kernel, penalty, draw, memory_limit
    )
    basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
    if not basis.n_features:
        raise LearningError("The kernel is zero on every centre: there is nothing to learn.")
    return basis


def _rows(X: Any) -> Rows:
    if isinstance(X, Rows):
        return X
    X = check_array(X, dtype=FLOATS, accept_sparse="csr")
    return ArrayRows(as_inputs(X, X.dtype))
