"""Aggregation of Nyström estimators with different numbers of centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, eigh
from sklearn.utils import check_random_state

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, positive_count
from semiparam_dynamics.learning.base import KernelRegressor, fitted_rows, hold_out, predictor
from semiparam_dynamics.learning.kernels import Kernel, stacked
from semiparam_dynamics.learning.nystrom import NystromKRLS, NystromProblem
from semiparam_dynamics.learning.rows import Rows

MAX_SEED = 2**31 - 1
Candidate = tuple[Array, Array]  # centres (m, d) and coefficients (m, T)


@dataclass(eq=False, repr=False)
class NystromAggregator(KernelRegressor):
    """The best linear combination of Nyström estimators f_1, ..., f_l with m_1, ..., m_l centres.

    f = sum_i c_i f_i, with c = G^-1 g of G_ij = (1/n) sum_k w_k f_i(x_k) f_j(x_k) and
    g_i = (1/n) sum_k w_k y_k f_i(x_k), for each output (Kriukova, Pereverzyev, Tkachenko 2017,
    section 3 and theorem 3): about as good as the best one, without knowing which that is. Its
    guarantee is for few candidates that are regularised: the sums are over the training rows, on
    which the candidate with the most centres looks best. With `validation` they are over rows
    that the candidates haven't seen, and c is safe for any penalty.

    Where G is singular to rounding, c is the smallest such vector: equal candidates get equal
    shares.

    Parameters
    ----------
    kernel, penalty, centers, random_state, memory_limit : as those of :class:`NystromKRLS`.
    n_centers : m_1, ..., m_l.
    independent : draw the centres of each anew, as the paper does. Otherwise the smaller sets are
        the first centres of the largest, and one pass over the data gives all candidates, G and g.
    validation : a share of the rows, held out of the candidates' training, for G and g; None: the
        training rows, as in the paper.

    Attributes
    ----------
    estimators_ : the l candidates, fitted :class:`NystromKRLS`.
    weights_ : c, (l,) or (l, T) where y had two dimensions.
    centers_, coef_ : of the combination.
    """

    kernel: Any = None
    penalty: float | None = None
    n_centers: Any = (100, 300, 1000)
    centers: Any = "uniform"
    independent: bool = False
    validation: float | None = None
    random_state: Any = None
    memory_limit: int | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NystromAggregator:
        """Fit to inputs X (n, d) and outputs y (n,) or (n, T), or to :class:`Rows` alone."""
        each = np.atleast_1d(np.asarray(self.n_centers, dtype=object))  # values as they are
        sizes = [positive_count(m, "n_centers") for m in each]
        if not sizes:
            raise ConfigurationError("n_centers must be one number or more, not none.")
        if self.independent and not isinstance(self.centers, str):
            raise ConfigurationError("Centres that are given can't be drawn independently.")
        rows = fitted_rows(self, X, y, sample_weight)
        kernel, held = self.kernel_, None
        if self.validation is not None:
            rows, held = hold_out(rows, self.validation, check_random_state(self.random_state))
        together = self._independent if self.independent else self._nested
        candidates, G, g = together(rows, kernel, sizes)
        if held is not None:
            G, g = _moments(held, kernel, candidates, self.memory_limit)
        weights = combination_weights(G, g, 10.0 * float(np.finfo(rows.dtype).eps))
        self.estimators_ = [self._estimator(rows, *candidate) for candidate in candidates]
        self.weights_ = weights[:, 0] if rows.one_output else weights
        self._combine(rows, candidates, weights)
        return self

    def _nested(
        self, rows: Rows, kernel: Kernel, sizes: Sequence[int]
    ) -> tuple[list[Candidate], Array, Array]:
        """Candidates (centres (m, d), coefficients (m, T)), G (T, l, l) and g (T, l)."""
        problem = NystromProblem.of(self, rows, max(sizes), self.penalty_, self.random_state)
        basis, T = problem.basis, rows.n_outputs
        factor = problem.system.factor(self.penalty_ * rows.total_weight)
        betas = np.zeros((T, basis.n_features, len(sizes)))
        candidates = []
        for i, m in enumerate(sizes):
            beta = factor.weights(basis.n_features_of(m))
            betas[:, : len(beta), i] = beta.T
            candidates.append((basis.centers[:m], basis.coefficients(beta)[:m]))
        gram, moments = problem.system.second_moments()
        transposed = betas.transpose(0, 2, 1)
        return candidates, transposed @ (gram @ betas), (transposed @ moments.T[..., None])[..., 0]

    def _independent(
        self, rows: Rows, kernel: Kernel, sizes: Sequence[int]
    ) -> tuple[list[Candidate], Array, Array]:
        """As `_nested`, with centres of each candidate's own; G and g take one more pass."""
        draw = check_random_state(self.random_state)
        candidates = []
        for m in sizes:
            problem = NystromProblem.of(self, rows, m, self.penalty_, draw.randint(MAX_SEED))
            beta = problem.system.factor(self.penalty_ * rows.total_weight).weights()
            candidates.append((problem.basis.centers, problem.basis.coefficients(beta)))
        return candidates, *_moments(rows, kernel, candidates, self.memory_limit)

    def _combine(self, rows: Rows, candidates: list[Candidate], weights: Array) -> None:
        parts = [a * c for (_, a), c in zip(candidates, weights, strict=True)]
        if self.independent:
            centers = stacked([points for points, _ in candidates])
            self._keep(rows, centers, np.concatenate(parts))
            return
        centers, _ = max(candidates, key=lambda candidate: len(candidate[1]))
        total = np.zeros((centers.shape[0], rows.n_outputs))
        for part in parts:
            total[: len(part)] += part
        self._keep(rows, centers, total)

    def _estimator(self, rows: Rows, centers: Array, alpha: Array) -> NystromKRLS:
        size, limit = len(alpha), self.memory_limit
        estimator = NystromKRLS(self.kernel_, self.penalty_, size, self.centers, memory_limit=limit)
        estimator.kernel_, estimator.penalty_ = self.kernel_, self.penalty_
        estimator._keep(rows, centers, alpha)
        estimator.n_features_in_ = rows.n_features
        return estimator


def _moments(
    rows: Rows, kernel: Kernel, candidates: list[Candidate], memory_limit: int | None
) -> tuple[Array, Array]:
    """G (T, l, l) and g (T, l) of the candidates on the rows, in one pass over them."""
    centers = stacked([points for points, _ in candidates])
    predict = predictor(rows, kernel, centers, memory_limit, keep=False)
    F = predict(block_diag(*(alpha for _, alpha in candidates))).astype(float)  # (n, l T)
    F = F.reshape(len(F), -1, rows.n_outputs).transpose(1, 0, 2)
    weights, both = rows.weights(), np.concatenate((F, rows.outputs()[None]))  # (l + 1, n, T)
    weighted = F if weights is None else F * weights[:, None]
    total: Array = weighted.transpose(2, 0, 1) @ both.transpose(2, 1, 0)
    return total[:, :, :-1], total[:, :, -1]


def combination_weights(G: Array, g: Array, rounding: float) -> Array:
    """c (l, T) with G c = g for each output, from G (T, l, l) and g (T, l); any scale of both.

    Directions in which the candidates, scaled to the same norm, are equal to relative `rounding`
    of G's entries get nothing. A candidate that is zero gets no weight. Raises LearningError where
    the squares of outputs overflow.
    """
    n_outputs, n_candidates = g.shape
    if not (np.isfinite(G).all() and np.isfinite(g).all()):
        raise LearningError("The outputs' squares overflow: scale y.")
    result = np.zeros((n_candidates, n_outputs))
    for t in range(n_outputs):
        norms = np.sqrt(np.maximum(np.diag(G[t]), 0.0))
        used = norms > 0.0
        if not used.any():
            continue
        values, vectors = eigh(G[t][np.ix_(used, used)] / np.outer(norms[used], norms[used]))
        enough = values > n_candidates * rounding
        projected = vectors[:, enough].T @ (g[t, used] / norms[used])
        scaled = vectors[:, enough] @ (projected / values[enough])
        result[used, t] = scaled / norms[used]
    return result
