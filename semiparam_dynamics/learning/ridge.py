"""Ridge regression on nested features, one pass for the first 1, ..., q; conjugate gradient.

With A (n, q) the features of the rows, the estimator on the first t features and the ridge r is
beta_t = (A_t' W A_t + r I)^-1 A_t' W Y. The Cholesky factor R of the whole system has those of
all the smaller ones as its leading blocks, and so has U = R'^-1 A'WY its leading rows:
beta_t = R_t^-1 U_t. This is the incremental path of Rudi, Camoriano, Rosasco 2015, algorithm 1
(thesis algorithm 1, appendices C and D), without its updates and downdates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch

import numpy as np
from scipy.linalg import eigh, eigvalsh_tridiagonal, solve_triangular, svd
from scipy.linalg.lapack import dtpqrt

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.kernels import Bound
from semiparam_dynamics.learning.products import add_products, evaluate_into, upper_factor
from semiparam_dynamics.learning.rows import Block, Rows, memory_budget, on_host, rows_within

# -------------------------------------------------------------------------------------------------
# Features of the data, a large block of rows at a time.

FEATURE_BLOCK_BYTES = 2**27
FeatureBlock = tuple[Array, Array, Array | None]  # A (k, q), Y (k, T), weights


@dataclass(frozen=True)
class FeatureMap:
    """x -> features (q,).

    `evaluate` makes of inputs (k, d) values (k, q), on blocks that the processor's cache holds.
    `finish` makes the features of them and uses them up; on large blocks, by BLAS.
    """

    n_features: int
    evaluate: Bound
    finish: Callable[[Array], Array] | None = None

    def __call__(self, X: Array) -> Array:
        """Features (k, q) of inputs (k, d)."""
        values = self.evaluate(X)
        return values if self.finish is None else self.finish(values)


def feature_blocks(
    rows: Rows, features: FeatureMap, memory_limit: int | None = None, extra_bytes: int = 0
) -> Iterator[FeatureBlock]:
    """(A (k, q), Y (k, T), weights (k,) or None), as many rows at a time as the limit lets.

    `extra_bytes` are the caller's for each row of a block, in addition to a few copies of A.

    Small chunks of data are put together, since BLAS is fast on large blocks. The arrays are used
    again for the next block.
    """
    q = features.n_features
    # The values, their copy in double precision, and one in the other order.
    row_bytes = (
        q * (rows.dtype.itemsize + 16) + 8 * (rows.row_numbers + 2 * rows.n_outputs) + extra_bytes
    )
    size = rows_within(memory_budget(memory_limit), row_bytes, "A block of features")
    size = min(size, rows.n_samples, max(FEATURE_BLOCK_BYTES // row_bytes, 256))
    A = np.empty((size, features.n_features), rows.dtype)
    Y = np.empty((size, rows.n_outputs), rows.dtype)
    weights = np.empty(size, rows.dtype) if rows.weighted else None

    def ready(k: int) -> FeatureBlock:
        part = A[:k]
        if features.finish is not None:
            part = features.finish(part)
        return part, Y[:k], None if weights is None else weights[:k]

    filled = 0
    for block in map(on_host, rows.blocks(size)):
        for piece in _pieces(block, size - filled, size):
            end = filled + len(piece)
            evaluate_into(features.evaluate, piece.X, A[filled:end])
            Y[filled:end] = piece.Y
            if weights is not None:
                weights[filled:end] = piece.weights
            filled = end
            if filled == size:
                yield ready(filled)
                filled = 0
    if filled:
        yield ready(filled)


def _pieces(block: Block, room: int, size: int) -> Iterator[Block]:
    """The block in pieces: what fits into `room`, then at most `size` rows each."""
    if room < len(block):
        yield block[:room]
        block = block[room:]
    for i in range(0, len(block), size):
        yield block[i : i + size]


# -------------------------------------------------------------------------------------------------
# The triangular factor that ridge regressions on the first 1, ..., q features share.


@dataclass(frozen=True)
class NestedFactor:
    """The triangular system R beta = U of all leading blocks."""

    R: Array  # (q, q), upper triangular
    U: Array  # (q, T)

    def weights(self, n_features: int | None = None) -> Array:
        """beta_t (t, T) of the first t = `n_features` features; None: of all.

        Raises LearningError if rounding leaves no answer.
        """
        t = len(self.R) if n_features is None else n_features
        if not t:
            return np.zeros((0, self.U.shape[1]))
        try:
            beta: Array = solve_triangular(self.R[:t, :t], self.U[:t], check_finite=False)
        except np.linalg.LinAlgError:
            beta = np.full((t, 1), np.nan)
        if not np.isfinite(beta).all():
            raise LearningError(
                "The system is singular to rounding and the penalty too small to help: "
                "raise the penalty."
            )
        return beta


# Rounding in A'A is an error of 1e-16 times its largest entries, about n times the kernel's largest
# value k. At penalty / k = 1e-9 the largest relative error of predictions was 5e-13 by Cholesky and
# 5e-11 by eigenvectors of A'A, at 1e-12 1e-10 and 6e-6. QR of A, 1e-14, takes twice as long.
QR_BELOW = 1e-9
QR_BLOCK_COLUMNS = 32

Stream = Callable[[], Iterable[FeatureBlock]]


class NestedRidge:
    """A'WA and A'WY, summed up over blocks of rows with q features and T outputs.

    If `orthogonal`, for tiny ridges, the triangular factor of [A Y] in their place, by QR.
    """

    def __init__(self, n_features: int, n_outputs: int, orthogonal: bool = False) -> None:
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.orthogonal = orthogonal
        q, size = n_features, n_features + n_outputs
        if orthogonal:
            self._triangle = np.zeros((size, size), order="F")
        else:
            self._gram = np.zeros((q, q), order="F")  # its upper triangle
            self._moments = np.zeros((q, n_outputs))
        self._last: tuple[float, NestedFactor] | None = None

    def add(self, A: Array, Y: Array, weights: Array | None = None) -> None:
        """Add rows: features A (k, q), outputs Y (k, T), weights (k,)."""
        A, Y = np.asarray(A, dtype=float), np.asarray(Y, dtype=float)
        if weights is not None:
            root = np.sqrt(weights.astype(float))[:, None]
            A, Y = A * root, Y * root
        if self.orthogonal:
            both = np.empty((len(A), A.shape[1] + Y.shape[1]), order="F")
            both[:, : A.shape[1]], both[:, A.shape[1] :] = A, Y
            self._triangle = _append_rows(self._triangle, both, 0)
        else:
            self._gram = add_products(self._gram, A)
            self._moments += A.T @ Y
        self._last = None

    def merged(self, other: NestedRidge) -> NestedRidge:
        """The system of both's rows; neither is changed. They are of one size and kind."""
        result = NestedRidge(self.n_features, self.n_outputs, self.orthogonal)
        if self.orthogonal:
            copies = self._triangle.copy(order="F"), other._triangle.copy(order="F")
            result._triangle = _append_rows(*copies, len(self._triangle))
        else:
            result._gram = self._gram + other._gram
            result._moments = self._moments + other._moments
        return result

    def factor(self, ridge: float, n_features: int | None = None) -> NestedFactor:
        """R and U of the first `n_features` (None: all) with `ridge` on the diagonal.

        Raises numpy's LinAlgError if A'WA + r I isn't positive definite to rounding; never if
        `orthogonal`.
        """
        if n_features is None and self._last is not None and self._last[0] == ridge:
            return self._last[1]
        t = self.n_features if n_features is None else n_features
        diagonal = np.arange(t)
        if self.orthogonal:
            triangle = np.zeros((t + self.n_outputs,) * 2, order="F")
            triangle[:t, :t] = self._triangle[:t, :t]
            triangle[:t, t:] = self._triangle[:t, self.n_features :]
            rows = np.zeros((t, t + self.n_outputs), order="F")
            rows[diagonal, diagonal] = np.sqrt(ridge)
            triangle = _append_rows(triangle, rows, t)
            result = NestedFactor(triangle[:t, :t], triangle[:t, t:])
        else:
            R = self._gram[:t, :t].copy(order="F")
            R[diagonal, diagonal] += ridge
            if not upper_factor(R, clean=True):
                raise np.linalg.LinAlgError("not positive definite")
            result = NestedFactor(R, solve_triangular(R, self._moments[:t], trans=1))
        if n_features is None:
            self._last = ridge, result
        return result

    def spectrum(self, n_features: int | None = None) -> tuple[Array, Array, Array]:
        """Eigenvalues (t,) and vectors V (t, t) of A_t'WA_t, and V'A_t'WY (t, T)."""
        t = self.n_features if n_features is None else n_features
        if not t:
            return np.zeros(0), np.zeros((0, 0)), np.zeros((0, self.n_outputs))
        if self.orthogonal:
            left, roots, right = svd(self._triangle[:t, :t])
            projected = roots[:, None] * (left.T @ self._triangle[:t, self.n_features :])
            return roots**2, right.T, projected
        values, vectors = eigh(self._gram[:t, :t], lower=False, driver="evd")
        return np.maximum(values, 0.0), vectors, vectors.T @ self._moments[:t]

    def second_moments(self) -> tuple[Array, Array]:
        """A'WA (q, q) and A'WY (q, T)."""
        if self.orthogonal:
            R = self._triangle[: self.n_features]
            both = R[:, : self.n_features].T @ R
            return both[:, : self.n_features], both[:, self.n_features :]
        gram = self._gram.copy(order="F")
        for i in range(len(gram) - 1):  # row by row: nothing is copied
            gram[i + 1 :, i] = gram[i, i + 1 :]
        return gram, self._moments


@singledispatch
def second_moments(
    rows: Rows, features: FeatureMap, memory_limit: int | None, orthogonal: bool
) -> NestedRidge:
    """A'WA and A'WY of the rows' features A (n, q), or their triangular factor, in one pass.

    A back end may register its own for its kind of rows.
    """
    system = NestedRidge(features.n_features, rows.n_outputs, orthogonal)
    for A, Y, weights in feature_blocks(rows, features, memory_limit):
        system.add(A, Y, weights)
    return system


def accumulate(add_up: Callable[[bool], NestedRidge], ridge: float, largest: float) -> NestedRidge:
    """The system that add_up(orthogonal) gives, fit for ridges down to `ridge`.

    `largest` bounds the diagonal of A'WA. Below QR_BELOW times it the system is accumulated by
    QR, and also, in another pass, if the Cholesky factor turns out not to exist.
    """
    for orthogonal in (False, True):
        if not orthogonal and ridge < QR_BELOW * largest:
            continue
        system = add_up(orthogonal)
        try:
            system.factor(ridge)
        except np.linalg.LinAlgError:
            continue
        break
    return system


def _append_rows(triangle: Array, rows: Array, trapezoid: int) -> Array:
    """The triangular factor of [triangle; rows]; the last `trapezoid` rows are triangular."""
    block = min(QR_BLOCK_COLUMNS, triangle.shape[1])
    result: Array = dtpqrt(trapezoid, block, triangle, rows, overwrite_a=1, overwrite_b=1)[0]
    return result


# -------------------------------------------------------------------------------------------------
# Leave-one-out predictions of ridge regression on nested features, without n fits.


def leave_one_out_predictions(
    system: NestedRidge,
    rows: Rows,
    stream: Stream,
    sizes: Sequence[int],
    penalties: Sequence[float],
) -> Iterator[tuple[int, Array]]:
    """(number of a size, predictions (penalties, n, T)), by what is fitted to the other rows.

    y_i - (y_i - f_i) / (1 - h_i), with the leverage h_i = w_i a_i' (A'WA + r I)^-1 a_i of row i's
    features a_i. The fit without row i has the ridge r = penalty (n - w_i), and so have f_i and
    h_i here: with the eigenvectors of A'WA, another ridge for each row costs nothing.
    """
    for number, t in enumerate(sizes):
        values, vectors, projected = system.spectrum(t)
        result = np.empty((len(penalties), rows.n_samples, rows.n_outputs))
        start = 0
        for A, Y, weights in stream():
            P = A[:, :t].astype(float) @ vectors
            block = _smoothed(P, values, projected, rows.total_weight, weights, penalties)
            for i, (fitted, leverage) in enumerate(block):
                rest = np.maximum(1.0 - leverage, np.finfo(float).eps)
                result[i, start : start + len(P)] = Y - (Y - fitted) / rest[:, None]
            start += len(P)
        yield number, result


def _smoothed(
    P: Array,
    values: Array,
    projected: Array,
    total: float,
    weights: Array | None,
    penalties: Sequence[float],
) -> Iterator[tuple[Array, Array]]:
    """For each penalty, f_i (k, T) and h_i (k,) of rows with coordinates P (k, t)."""
    squares = P * P
    if weights is None:
        inverses = 1.0 / (values[:, None] + np.multiply(penalties, total - 1.0))
        yield from (
            (P @ (inverse[:, None] * projected), leverage)
            for inverse, leverage in zip(inverses.T, (squares @ inverses).T, strict=True)
        )
        return
    w = weights.astype(float)
    for penalty in penalties:
        ridge = penalty * (total - w)[:, None]
        # Without a ridge no other row has a weight, and their fit is zero.
        inverse = np.where(ridge > 0.0, 1.0 / np.where(ridge > 0.0, values + ridge, 1.0), 0.0)
        fitted = (P * inverse) @ projected
        yield fitted, w * np.einsum("ij,ij->i", squares, inverse)


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
