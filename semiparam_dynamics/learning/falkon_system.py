"""FALKON's linear system, and its preconditioner (Rudi, Carratino, Rosasco 2017)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.centers import Centers, NystromBasis, by_weight, solve_upper
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.products import (
    add_products,
    kernel_rows,
    triangle_products,
    upper_factor,
)
from semiparam_dynamics.learning.rows import Rows

MAX_STALLED_STEPS = 50  # iterations without a smaller residual: rounding lets no more be gained
MOMENT_BLOCK_ROWS = 512  # rows of features at a time
MAX_GAIN_LEFT = 0.1  # of the objective, still to be gained: the estimate is not yet the minimiser
# of the outputs' mean square: their predictions' error is below a thousandth then
NEGLIGIBLE_GAIN = 1e-6

Curvature = Callable[[Array], Array]  # features (k, q) -> what each row counts by, (k,)
# Called after each step with its number, from 1, and a function that gives the coefficients (q, T);
# a true answer ends all.
Follow = Callable[[int, Callable[[], Array]], bool]


@dataclass(frozen=True)
class Solved:
    """The solution for one penalty, of FALKON's system or of the logistic loss."""

    coefficients: Array  # (q, T), of the kernels at the system's ``data.centers``
    residuals: Array  # (t, T), after each of t steps
    far: Callable[[], str]  # a sentence on how far it is from the minimiser; empty where it is near


class FalkonSystem:
    """(Phi' W Phi / n + penalty I) w = Phi' W Y / n, for any number of penalties.

    Phi = K_nM L'^-1 are the rows' features (n, q), and the coefficients are L'^-1 w: the Nyström
    problem's H alpha = K_nM' W Y without the directions that rounding leaves undetermined. The
    preconditioner is made from the rows of `sample`, or from the centres where that is None.

    Attributes
    ----------
    offsets : zeros (T,), of the outputs' functions.
    least : the least that an eigenvalue of the preconditioned matrix can be; about that for centres
        that aren't rows. A row counts in the preconditioner for at most 1 / least of its weight.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        centers: Centers,
        memory_limit: int | None = None,
        sample: Centers | None = None,
        products: Callable[..., Any] = kernel_rows,
    ) -> None:
        self.basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
        self.data = products(rows, kernel, self.basis.centers[self.basis.kept], memory_limit)
        self._parts = _sampled(rows, centers, sample)
        self.least = _least(rows, self._parts)
        self._keep = sample is not None
        self._moments: Array | None = None
        self._targets: Array | None = None
        self._n = rows.total_weight
        self.offsets = np.zeros(rows.n_outputs)

    def preconditioner(self, penalty: float, curvature: Curvature | None = None) -> Preconditioner:
        """Preconditioner of one penalty; free the one before, which is as large.

        With the features' `curvature`, the diagonal C, that of Phi' W C Phi / n + penalty I.
        """
        return Preconditioner(self.basis, penalty, partial(self._mean_products, curvature))

    def _mean_products(self, curvature: Curvature | None) -> Array:
        """See :func:`mean_products`; what a sample gives for all penalties is made once."""
        if curvature is not None or not self._keep:
            return mean_products(self.basis, self._parts, curvature)
        if self._moments is None:
            self._moments = mean_products(self.basis, self._parts)
        return self._moments.copy(order="F")

    def solve(self, penalty: float, max_iter: int, tolerance: float, follow: Follow) -> Solved:
        """Conjugate gradient on the unknowns beta = A w of one penalty's preconditioner."""
        B, basis = self.preconditioner(penalty), self.basis

        def coefficients(beta: Array) -> Array:
            return basis.to_coefficients(B.to_features(beta))

        def product(beta: Array, _: Indices) -> Array:
            weights = B.to_features(beta)
            gradient = self.data.normal(basis.to_coefficients(weights))
            gradient = basis.from_coefficients(gradient) / self._n + penalty * weights
            return B.from_features(gradient)

        if self._targets is None:
            self._targets = self.data.targets()
        b = B.from_features(basis.from_coefficients(self._targets) / self._n)
        # A residual below the kernel's rounding is one of the recurrence only.
        enough = max(tolerance, float(np.finfo(self.data.rows.dtype).eps))
        solution = conjugate_gradient(
            product,
            b,
            max_iter=max_iter,
            tolerance=enough,
            patience=MAX_STALLED_STEPS,
            follow=lambda number, beta: follow(number, lambda: coefficients(beta)),
        )
        far = partial(_far, self, solution)
        return Solved(coefficients(solution.x), solution.residuals, far)


def _far(system: FalkonSystem, solution: Solution) -> str:
    """Sentence on the part of the objective still to be gained, if it is large for any output.

    The preconditioned residual doesn't show that: its norm has no scale of predictions' errors.
    """
    if solution.converged.all():
        return ""
    gain = np.where(solution.converged, 0.0, solution.to_gain(system.least))
    if np.all(gain <= NEGLIGIBLE_GAIN * solution.gained):  # no pass over the data for it
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = system.data.rows.squared_outputs() / system.data.rows.total_weight
        now = np.maximum(outputs - solution.gained, 0.0)
        far = (gain > MAX_GAIN_LEFT * now) & (gain > NEGLIGIBLE_GAIN * outputs)
    if not far.any():
        return ""
    left = np.max(np.minimum(gain[far] / np.maximum(now[far], gain[far]), 1.0))
    return f"about {left:.0%} of the mean squared error, with the penalty, could still be gained"


@dataclass(frozen=True)
class Sampled:
    """Rows X (k, d) that stand for others, with the shares (k,) that they count with in a mean.

    X is None for all centres, in their order. `indices` are the rows' numbers, (k,); None for
    centres that were given.
    """

    X: Array | None
    share: Array
    indices: Indices | None


def _sampled(rows: Rows, centers: Centers, sample: Centers | None) -> list[Sampled]:
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


def _least(rows: Rows, parts: list[Sampled]) -> float:
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


def mean_products(
    basis: NystromBasis, parts: list[Sampled], curvature: Curvature | None = None
) -> Array:
    """The estimate of Phi' W Phi / n from some rows, its upper half, (q, q), column-wise.

    With `curvature` a row also counts by that of its features.
    """
    q = basis.n_features
    gram = np.zeros((q, q), order="F")
    evaluate = basis.kernel.bind(basis.centers[basis.kept])
    for part in parts:
        X = part.X
        if X is None and q == len(part.share):
            share = part.share if curvature is None else part.share * curvature(basis.expansion)
            return triangle_products(basis.expansion, share)
        for i in range(0, len(part.share), MOMENT_BLOCK_ROWS):
            here = slice(i, i + MOMENT_BLOCK_ROWS)
            if X is None:
                phi = basis.expansion[here]
            else:
                phi = basis.from_coefficients(evaluate(X[here].astype(float)).T).T
            each = part.share[here] if curvature is None else part.share[here] * curvature(phi)
            gram = add_products(gram, phi * np.sqrt(each)[:, None])
    return gram


class Preconditioner:
    """The triangular map A^-1 of B = L'^-1 A^-1, with L L' = K_MM and
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
    penalty : lambda, added to the mean of the features' products.
    mean : makes that mean, (q, q), as :func:`mean_products` does; it is used up.
    """

    def __init__(self, basis: NystromBasis, penalty: float, mean: Callable[[], Array]) -> None:
        q, extra = basis.n_features, penalty
        for _ in range(20):
            self._A = mean()
            scale = float(np.trace(self._A))
            self._A[np.diag_indices(q)] += extra
            if upper_factor(self._A) and np.isfinite(np.diagonal(self._A)).all():
                return
            # A penalty below the rounding: a larger one here costs iterations, not accuracy.
            extra = max(10.0 * extra, np.finfo(float).eps * scale)
        raise LearningError(
            "The preconditioner has no Cholesky factor: are the kernel's values finite?"
        )

    def to_features(self, beta: Array) -> Array:
        """A^-1 beta, features' weights, of the preconditioned unknowns (q, T)."""
        return solve_upper(self._A, beta)

    def from_features(self, gradient: Array) -> Array:
        """A'^-1 gradient, with respect to beta, of that with respect to features' weights."""
        return solve_upper(self._A, gradient, transposed=True)


# -------------------------------------------------------------------------------------------------
# Conjugate gradient for several right-hand sides at once.

# times the smallest residual so far: beyond it rounding is tested for
MAX_RESIDUAL_GROWTH = 1e3
MAX_RECURRENCE_ERROR = 0.5  # of a residual that the recurrence may be wrong by


@dataclass(frozen=True)
class Solution:
    """The result of conjugate gradient, after t products with the matrix."""

    x: Array  # (q, T), the solution of each column
    residuals: Array  # (t, T), relative to b; a column's last one once it stopped
    converged: Array  # (T,), whether the residual reached the tolerance
    gained: Array  # (T,), by how much x'Hx - 2 b'x lies below zero
    squares: Array  # (T,), a number that, over H's least eigenvalue, bounds what it lies above
    curvatures: Callable[[], Array]  # -> (T,), estimates from above of H's least eigenvalue

    def to_gain(self, least: float) -> Array:
        """About by how much x'Hx - 2 b'x lies above its minimum still, (T,).

        It is (x - x*)'H (x - x*), x* the solution. `least` : what H's eigenvalues are at least.
        H's least eigenvalue lies between that and what the iterations saw of H; the geometric
        mean of both stands for it, which is wrong by the root of their ratio at most.
        """
        seen = self.curvatures()
        seen = np.where(np.isfinite(seen) & (seen > 0.0), seen, least)
        return self.squares / np.sqrt(np.minimum(least, seen) * seen)


def conjugate_gradient(
    product: Callable[[Array, Indices], Array],
    b: Array,
    *,
    max_iter: int,
    tolerance: float | Array = 1e-8,
    patience: int | None = None,
    follow: Callable[[int, Array], bool] | None = None,
) -> Solution:
    """Solve H x = b for a symmetric positive-definite H (q, q) and b (q, T), beginning at zero.

    Each column has its own step sizes, so it gets what it would get alone, and stops alone; the
    columns still at work share each product (Hestenes and Stiefel 1952).

    Parameters
    ----------
    product : P (q, k) and its columns' numbers (k,) -> H P (q, k), k <= T. H may be another one
        for each column.
    tolerance : a column stops when its residual's norm is at most this part of b's; or (T,).
    patience : a column also stops when so many iterations brought no smaller residual, or one
        left a residual MAX_RESIDUAL_GROWTH times the smallest, if rounding is the reason: if the
        recurrence's residual is not that of x, which another product tells. It goes back to where
        the residual was smallest. Otherwise an ill-conditioned H is, on which residuals stay or
        rise for long while x approaches the solution all the same. None: it never stops for that.
    follow : called with the iteration's number, from 1, and x (q, T), which it must not change;
        a true answer ends all.

    A column also stops where H proves not to be positive definite to rounding, or gives values
    that are not finite, and keeps what it has. The result is finite if b is.
    """
    # Columns are scaled to norm 1, so that neither tiny nor huge ones leave the numbers' range.
    largest = np.max(np.abs(b), axis=0, initial=0.0)
    scale = np.where(largest > 0.0, largest, 1.0)
    scale = scale * np.maximum(np.linalg.norm(b / scale, axis=0), 1.0)
    scaled = b / scale
    r = scaled.copy()
    x, p = np.zeros_like(r), r.copy()
    squared = np.sum(r * r, axis=0)
    relative = np.sqrt(squared)
    # The residual's share in the direction; a column's number of iterations, and their results.
    direct, taken = np.ones_like(relative), np.zeros(r.shape[1], dtype=int)
    steps, ratios = list[Array](), list[Array]()
    now = (x, r, relative, direct, taken)
    best = tuple(each.copy() for each in now)  # where the residual was smallest
    # Where a residual was last found to be that of x, and how large it was.
    tested, trusted = np.zeros_like(taken), np.zeros_like(relative)
    enough = np.broadcast_to(tolerance, relative.shape)
    active = np.flatnonzero(relative > enough)
    residuals: list[Array] = []
    while len(active) and len(residuals) < max_iter:
        with np.errstate(over="ignore", invalid="ignore"):
            product_p = product(p[:, active], active)
            curvature = np.sum(p[:, active] * product_p, axis=0)
        usable = np.isfinite(product_p).all(axis=0) & np.isfinite(curvature) & (curvature > 0.0)
        active, product_p = active[usable], product_p[:, usable]
        step = squared[active] / curvature[usable]
        x[:, active] += step * p[:, active]
        r[:, active] -= step * product_p
        before = squared[active]
        squared[active] = np.sum(r[:, active] ** 2, axis=0)
        p[:, active] = r[:, active] + squared[active] / before * p[:, active]
        relative[active] = np.sqrt(squared[active])
        t = len(residuals) + 1
        direct[active] = 1.0 / (1.0 + squared[active] / (before * direct[active]))
        steps.append(np.zeros_like(relative))
        ratios.append(np.zeros_like(relative))
        steps[-1][active], ratios[-1][active] = step, squared[active] / before
        taken[active] = t
        if patience is not None:
            _copy_columns(now, best, active[relative[active] < best[2][active]])
            waited = t - np.maximum(best[4], tested)[active] >= patience
            risen = relative[active] > MAX_RESIDUAL_GROWTH * np.maximum(best[2], trusted)[active]
            doubtful = active[waited | risen]
            if len(doubtful):
                with np.errstate(over="ignore", invalid="ignore"):
                    true = scaled[:, doubtful] - product(x[:, doubtful], doubtful)
                    off = np.linalg.norm(true - r[:, doubtful], axis=0)
                right = off <= MAX_RECURRENCE_ERROR * relative[doubtful]
                tested[doubtful], trusted[doubtful] = t, relative[doubtful]
                _copy_columns(best, now, doubtful[~right])
                active = active[~np.isin(active, doubtful[~right])]
        residuals.append(relative.copy())
        active = active[relative[active] > enough[active]]
        if follow is not None and follow(t, x * scale):
            break
    history = np.array(residuals) if residuals else np.empty((0, r.shape[1]))
    with np.errstate(over="ignore"):
        gained = np.sum(x * (scaled + r), axis=0) * scale**2
        squares = relative**2 * direct * scale**2
    least = partial(_ritz_values, taken, steps, ratios)
    return Solution(x * scale, history, relative <= enough, gained, squares, least)


def _copy_columns(source: tuple[Array, ...], target: tuple[Array, ...], columns: Indices) -> None:
    for values, place in zip(source, target, strict=True):
        place[..., columns] = values[..., columns]


def _ritz_values(taken: Indices, steps: list[Array], ratios: list[Array]) -> Array:
    """The least eigenvalue of H on the space of each column's iterates, (T,); NaN without any.

    Steps and the residuals' squared ratios are the factors of Lanczos' tridiagonal matrix.
    """
    found = np.full(len(taken), np.nan)
    for column, t in enumerate(taken):
        if not t:
            continue
        step = np.array([each[column] for each in steps[:t]])
        ratio = np.array([each[column] for each in ratios[: t - 1]])
        diagonal = 1.0 / step
        diagonal[1:] += ratio / step[:-1]
        off_diagonal = np.sqrt(ratio) / step[:-1]
        least = eigvalsh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(0, 0))
        found[column] = float(least[0])
    return found
