"""Nyström centres, drawn uniformly or by approximate leverage scores, and their span's basis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrsm, dtrsv
from sklearn.utils import check_array, check_random_state

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    positive,
    positive_count,
)
from semiparam_dynamics.learning.kernels import (
    NO_VALUE,
    NOT_FINITE,
    SCALE_ROWS,
    Kernel,
    as_inputs,
    as_kernel,
    in_format,
    is_sparse,
    stacked,
)
from semiparam_dynamics.learning.products import evaluate_into, upper_factor
from semiparam_dynamics.learning.ridge import (
    FeatureMap,
    NestedRidge,
    accumulate,
    feature_blocks,
    leave_one_out_predictions,
)
from semiparam_dynamics.learning.rows import FLOATS, ArrayRows, Block, Rows, memory_budget, on_host

# -------------------------------------------------------------------------------------------------
# An orthonormal basis of the span of K(c_1, .), ..., K(c_M, .), in the centres' order.

BASIS_BLOCK_ROWS = 128


class NystromBasis:
    """Features phi(x) = L^-1 K(C, x), with L L' = K(C, C).

    With K_mm^+ = S S' and S = L'^-1 these are the columns of A = K_nm S (thesis 4.2 and 4.3.2).
    L is triangular in the centres' order, so the features of the first t centres are the first
    features: whatever is computed on all of them holds the answers for fewer.

    A centre that the ones before it explain, to rounding, adds nothing to the span and gets no
    feature: duplicated centres and a singular K(C, C) are no special case. What is factorised has
    `jitter` K(c, c) added to its diagonal: a pivot that is mostly rounding would else be wrong by
    a factor, and with it what it explains of the centres after it, however large they are.

    Attributes
    ----------
    centers : (M, d).
    kept : (q,), the numbers of those that brought a feature.
    expansion : (M, q), the features of the centres themselves: expansion @ expansion' = K(C, C).
    factor : (q, q), lower triangular, L of the kept centres.
    jitter : 1e-13 about, or 1e-6 where the data are in single precision; the error, relative to
        K(c, c), of the inner products of the centres' features.

    Raises LearningError for a kernel that is zero on all centres, or not finite.
    """

    def __init__(self, kernel: Kernel, centers: Array, *, dtype: np.dtype | None = None) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype or centers.dtype)
        # Above the rounding of K's entries, and, which is in float64, of the factorisation.
        eps = float(np.finfo(self.dtype).eps)
        self.jitter = max(10.0 * eps, 500.0 * float(np.finfo(float).eps))
        self.centers = stacked([as_inputs(centers, float)])  # a copy: given ones are the caller's
        self._upper: Array | None = None
        self.expansion, enough = self._gram(self.centers)
        M = len(self.expansion)
        self.kept: Indices = np.arange(M)
        # Row by row, a lower triangle is column by column an upper one.
        factorised = upper_factor(self.expansion.T, clean=True)
        if factorised and (np.diag(self.expansion) ** 2 > enough).all():
            return
        self.kept = self.kept[:0]
        self.expansion[:] = 0.0
        for start in range(0, M, BASIS_BLOCK_ROWS):
            self._append(slice(start, min(start + BASIS_BLOCK_ROWS, M)))
        if not len(self.kept):
            raise LearningError(f"The kernel is zero on every centre: {NONZERO}")
        self.expansion = self.expansion[:, : self.n_features]

    @property
    def n_centers(self) -> int:
        """M, the number of centres."""
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

    def transform(self, X: Array) -> Array:
        """Features (n, q) of inputs (n, d), in the dtype of X."""
        return nystrom_map(self, X.dtype)(X)

    @property
    def upper(self) -> Array:
        """L' of the kept centres, (q, q), column-wise: no copy where each has a feature."""
        if self._upper is None:
            whole = self.n_features == self.n_centers
            # Row by row, L is its transpose column by column.
            self._upper = np.ascontiguousarray(self.expansion if whole else self.factor).T
        return self._upper

    def to_coefficients(self, weights: Array) -> Array:
        """L'^-1 weights, the kept centres' coefficients, of the features' weights (q, T)."""
        return solve_upper(self.upper, weights)

    def from_coefficients(self, gradient: Array) -> Array:
        """L^-1 gradient, with respect to weights, of that with respect to coefficients (q, T)."""
        return solve_upper(self.upper, gradient, transposed=True)

    def state(self) -> dict[str, Array]:
        """The kept centres and their factor, by which `IncrementalNystromFeatures` continue."""
        return {"centers": self.centers[self.kept], "factor": self.factor}

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
        return self.expansion.T @ coefficients

    def _gram(self, centers: Array) -> tuple[Array, Array]:
        """K(C, C) with the jitter, and what a pivot must exceed.

        Raises LearningError for a value that is not finite.
        """
        K = np.empty((centers.shape[0],) * 2)
        evaluate_into(self.kernel.bind(centers), centers, K)
        largest = float(np.finfo(self.dtype).max)  # that rows' kernels may have
        if not (K.min(initial=0.0) >= -largest and K.max(initial=0.0) <= largest):
            raise LearningError(NOT_FINITE)
        jitter = self.jitter * np.diag(K)
        K[np.diag_indices_from(K)] += jitter
        # Of a duplicate, its own and its twin's are left: 2 of it.
        return K, np.maximum(10.0 * jitter, NO_VALUE)

    def _append(self, rows: slice) -> None:
        """Fill the expansion's `rows`."""
        q, block = self.n_features, self.centers[rows]
        rest, enough = self._gram(block)
        known = self.expansion[rows, :q]
        if q:
            K = self.kernel(block, self.centers[self.kept])
            known[:] = solve_triangular(self.expansion[self.kept, :q], K.T, lower=True).T
            rest -= known @ known.T
        added, kept = factorise(rest, enough)
        self.expansion[rows, q : q + len(kept)] = added
        self.kept = np.concatenate((self.kept, rows.start + kept))


def solve_upper(upper: Array, B: Array, transposed: bool = False) -> Array:
    """U^-1 B, or U'^-1 B, (q, T), of a column-wise upper triangular U (q, q).

    A column of B that is not finite leaves the others alone.
    """
    result: Array
    if B.shape[1] == 1:  # the solver of matrices would copy U
        result = dtrsv(upper, B[:, 0], lower=0, trans=int(transposed))[:, None]
    else:
        result = dtrsm(1.0, upper, B, lower=0, trans_a=int(transposed))
    return result


def factorise(A: Array, enough: Array) -> tuple[Array, Indices]:
    """A Cholesky factor of A (k, k) without the rows whose pivots are at most `enough` (k,).

    Returns F (k, r), lower trapezoidal, with F F' = A up to what was left out, and the numbers
    (r,) of the rows that were kept.
    """
    k = len(A)
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


def nystrom_map(basis: NystromBasis, dtype: np.dtype) -> FeatureMap:
    """The features of a Nyström basis, computed in `dtype`."""
    L = np.asfortranarray(basis.factor, dtype=dtype)

    def finish(K: Array) -> Array:
        phi: Array = solve_triangular(L, K.T, lower=True, overwrite_b=True, check_finite=False)
        return phi.T

    centers = basis.centers[basis.kept].astype(dtype)
    return FeatureMap(basis.n_features, basis.kernel.bind(centers), finish)


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


# -------------------------------------------------------------------------------------------------
# The kernel's width and the penalty where none are given, by the leave-one-out error of some rows.

CHOICE_ROWS, CHOICE_CENTERS = 2000, 500  # at most, by which both are chosen
NONZERO = "take another kernel, such as Gaussian, or other centres."
WIDTH_FACTORS = (4.0, 2.0, 1.0, 0.5)  # of the scale, that are compared
RIDGES = 10.0 ** np.arange(3.0, -8.25, -0.5)  # penalty n, in units of the mean K(x, x)
FEWEST_ROWS = 3  # of which a leave-one-out error says something
PENALTY_OF_FEW = 1e-3  # of fewer, in those units


def distinct_rows(rows: Rows, count: int) -> Block:
    """At most `count` rows (k, d) of weight above zero, drawn uniformly, in random order.

    Equal ones are there once, with the sum of their weights (k,): otherwise one left out would
    still be among the others. The draws are always the same.
    """
    weights = rows.weights()
    numbers = np.arange(rows.n_samples) if weights is None else np.flatnonzero(weights > 0.0)
    numbers = np.random.RandomState(0).permutation(numbers)[:count]
    some = rows.pick(numbers)
    first: dict[bytes, int] = {}
    same = np.array([first.setdefault(_bytes(some, i), len(first)) for i in range(len(some))])
    w = np.ones(len(some)) if weights is None else weights[numbers].astype(float)
    places = np.unique(same, return_index=True)[1]
    return Block(some.X[places], some.Y[places], np.bincount(same, w).astype(float))


def _bytes(block: Block, i: int) -> bytes:
    """The row's numbers, equal for equal rows alone."""
    x: Any = block.X[i : i + 1]
    y = block.Y[i].tobytes()
    parts = (x.indices, x.data) if is_sparse(x) else (x,)
    return b"".join([*(np.ascontiguousarray(part).tobytes() for part in parts), y])


def scaled_kernel(kernel: Any, rows: Rows) -> Kernel:
    """The kernel that a parameter stands for, with the scale of the rows for its width."""
    known = as_kernel(kernel)
    return known.scaled_to(distinct_rows(rows, SCALE_ROWS).X) if known.needs_scale else known


def chosen_by_leave_one_out(
    rows: Rows, kernel: Kernel, memory_limit: int | None = None
) -> tuple[Kernel, float]:
    """The kernel, with a number for its width, and the penalty for all rows.

    Both are those of the least leave-one-out error of Nyström kernel ridge regression on some
    rows and centres, over some multiples of the scale and a grid of penalties that one
    decomposition each serves; each output in units of its root mean square. The ridge,
    penalty times the weights' sum, stays what it is for more rows: it is the noise's variance over
    the function's (Rasmussen, Williams 2006, section 2.2). Time O(k m^2) for k rows and m centres.
    """
    row_bytes = 8 * (4 * CHOICE_CENTERS + 2 * len(RIDGES) * rows.n_outputs)
    room = max(memory_budget(memory_limit) // row_bytes, 10 * FEWEST_ROWS)
    some = distinct_rows(rows, min(CHOICE_ROWS, room))
    factors = WIDTH_FACTORS if kernel.needs_scale else (1.0,)
    if len(some) < FEWEST_ROWS:
        return kernel.scaled_to(some.X), PENALTY_OF_FEW
    kernels = [kernel.scaled_to(some.X, factor) for factor in factors]
    kernels[0].bind(some.X[:1])  # checks the parameters
    scales = [float(np.mean(one.diagonal(some.X).astype(float))) for one in kernels]
    errors = np.array([_errors(some, *each) for each in zip(kernels, scales, strict=True)])
    if not np.isfinite(errors).any():
        return kernel.scaled_to(some.X), PENALTY_OF_FEW
    best, ridge = np.unravel_index(int(np.argmin(errors)), errors.shape)
    assert some.weights is not None
    share = float(some.weights.mean()) / rows.total_weight
    return kernels[best], float(RIDGES[ridge]) * scales[best] * share


def _errors(some: Block, kernel: Kernel, scale: float) -> Array:
    """The mean squared leave-one-out errors of the ridges, (r,); infinite where there is none."""
    assert some.weights is not None
    equal = some.weights.min() == some.weights.max()
    sizes = np.abs(some.Y).max(axis=0, initial=0.0).astype(float)
    Y = some.Y / np.where(sizes > 0.0, sizes, 1.0)
    Y /= np.maximum(np.sqrt(np.mean(Y**2, axis=0)), np.finfo(Y.dtype).tiny)
    rows = ArrayRows(some.X, Y, None if equal else some.weights.astype(some.X.dtype))
    if not NO_VALUE < scale < np.inf:
        return np.full(len(RIDGES), np.inf)
    basis = NystromBasis(kernel, some.X[:CHOICE_CENTERS], dtype=rows.dtype)
    stream = partial(feature_blocks, rows, nystrom_map(basis, rows.dtype))
    system = NestedRidge(basis.n_features, rows.n_outputs)
    for block in stream():
        system.add(*block)
    penalties = (RIDGES * (scale / len(some))).tolist()
    whole = [basis.n_features]
    ((_, predicted),) = leave_one_out_predictions(system, rows, stream, whole, penalties)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.mean((predicted - Y) ** 2, axis=2)
        errors = np.average(squares, axis=1, weights=some.weights)
    return np.asarray(np.nan_to_num(errors, nan=np.inf, posinf=np.inf))


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


@dataclass(frozen=True)
class Sampled:
    """Rows X (k, d) that stand for others, with the shares (k,) that they count with in a mean.

    X is None for all centres, in their order. `indices` are the rows' numbers, (k,); None for
    centres that were given.
    """

    X: Array | None
    share: Array
    indices: Indices | None


def sampled_rows(rows: Rows, centers: Centers, sample: Centers | None) -> list[Sampled]:
    """Rows that Phi' W Phi / n is estimated from: the centres, or with a sample both.

    A centre of weight w that was drawn with probability p stands for w / (n p) rows, with n the
    weights' sum; centres that aren't rows count 1 each. Of a sample, a row that is a centre has
    features unlike those of other rows, so each of the two kinds is weighted by how many of it
    there are; without any of the second kind in the sample, centres stand for all. Centres that
    aren't rows don't count then. A sample of :func:`sample_by_weight` is of the second kind alone.
    """
    w, n, M = _shares(rows), rows.n_samples, centers.points.shape[0]
    if sample is None:
        share, p = np.ones(M), centers.probabilities
        if centers.indices is not None and (rows.weighted or p is not None):
            share = w[centers.indices] * n if p is None else w[centers.indices] / p
        return [Sampled(None, share / M, centers.indices)]
    assert sample.indices is not None
    own, first = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    if centers.indices is not None:
        own, first = np.unique(centers.indices, return_index=True)
    if sample.probabilities is not None:
        share = w[sample.indices] / (len(sample.indices) * sample.probabilities)
        parts = [Sampled(sample.points, share, sample.indices)]
        return [Sampled(centers.points[first], w[own], own), *parts] if len(own) else parts
    if centers.indices is None:
        share = w[sample.indices] * n / len(sample.indices)
        return [Sampled(sample.points, share, sample.indices)]
    other = ~np.isin(sample.indices, own)
    share = w[own] if other.any() else w[own] * n / len(own)
    parts = [Sampled(centers.points[first], share, own)]
    if other.any():
        indices = sample.indices[other]
        share = w[indices] * (n - len(own)) / other.sum()
        parts.append(Sampled(sample.points[other], share, indices))
    return parts


def sample_by_weight(
    rows: Rows, centers: Centers, n_rows: int | None, draw: np.random.RandomState
) -> Centers | None:
    """Draw rows other than the centres for the preconditioner, in proportion to their weights.

    As many as there are centres for None. No sample if all weights are equal: centres, or rows
    that are drawn uniformly, stand for all then. Nor, for None, if the centres were given.
    """
    weights = rows.weights()
    if weights is None or weights.min() == weights.max():
        return None
    if n_rows is None and centers.indices is None:
        return None
    others = weights.astype(float)
    if centers.indices is not None:
        others[centers.indices] = 0.0
    count = centers.points.shape[0] if n_rows is None else n_rows
    return by_weight(rows, others, count, draw)


def _shares(rows: Rows) -> Array:
    """The rows' weights over their sum, (n,)."""
    weights = rows.weights()
    w = np.ones(rows.n_samples) if weights is None else weights.astype(float)
    return np.asarray(w / rows.total_weight)


def least_share(rows: Rows, parts: list[Sampled]) -> float:
    """The least ratio, at most 1, of a row's share in the mean and in the preconditioner's.

    Centres that were given count as rows of mean weight: it is no bound then, but about one.
    """
    w, counted = _shares(rows), np.zeros(rows.n_samples)
    least = 1.0
    for part in parts:
        if part.indices is None:
            least = min(least, 1.0 / (rows.n_samples * float(part.share.max(initial=0.0))))
        else:
            np.add.at(counted, part.indices, part.share)
    some = counted > 0.0
    return min(least, float(np.min(w[some] / counted[some], initial=1.0)))


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
    O(m^2) in addition to the limit.
    """
    rows = _rows(X)
    the_kernel = scaled_kernel(kernel, rows)
    basis = NystromBasis(the_kernel, sketch, dtype=rows.dtype)
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
    for A, _, _ in feature_blocks(rows, features, memory_limit, extra_bytes=8 * basis.n_features):
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
            f"The centres have {points.shape[1]} columns and X has {rows.n_features}: they must be "
            "rows such as X's."
        )
    return Centers(points)


def basis_of(
    estimator: Any, rows: Rows, n_centers: int, draw: Any, memory_limit: int | None
) -> NystromBasis:
    """The basis of an estimator's centres, by leverage scores of its penalty or 1 / sqrt(n)."""
    kernel = estimator.kernel_
    penalty = getattr(estimator, "penalty_", 1.0 / np.sqrt(rows.n_samples))
    centers = choose_centers(
        estimator.centers, rows, n_centers, kernel, penalty, draw, memory_limit
    )
    return NystromBasis(kernel, centers.points, dtype=rows.dtype)


def _rows(X: Any) -> Rows:
    if isinstance(X, Rows):
        return X
    X = check_array(X, dtype=FLOATS, accept_sparse="csr")
    return ArrayRows(as_inputs(X, X.dtype))
