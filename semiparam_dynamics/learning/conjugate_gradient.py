"""Conjugate gradient, and plain gradient descent, for several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError

GROWTH = 1e3  # times the smallest residual so far, and it is looked whether rounding is the reason
LOST = 0.5  # of a residual that the recurrence may be wrong by

Follow = Callable[[int, Array], bool]


@dataclass(frozen=True)
class Solution:
    """The result of conjugate gradient, after t products with the matrix."""

    x: Array  # (q, T), the solution of each column
    residuals: Array  # (t, T), relative to b; a column's last one once it stopped
    converged: Array  # (T,), whether the residual reached the tolerance
    gained: Array  # (T,), by how much x'Hx - 2 b'x lies below zero
    squares: Array  # (T,), a number that, over H's least eigenvalue, bounds what it lies above
    curvatures: Callable[[], Array]  # -> (T,), estimates from above of H's least eigenvalue

    @property
    def n_iter(self) -> int:
        """The products with the matrix, t."""
        return len(self.residuals)

    def to_gain(self, least: float) -> Array:
        """About by how much x'Hx - 2 b'x lies above its minimum still, (T,).

        It is (x - x*)'H (x - x*), x* the solution. `least` : what H's eigenvalues are at least.
        H's least eigenvalue lies between that and what the iterations saw of H; the geometric
        mean of both stands for it, which is wrong by the root of their ratio at most.
        """
        seen = self.curvatures()
        seen = np.where(np.isfinite(seen) & (seen > 0.0), seen, least)
        result: Array = self.squares / np.sqrt(np.minimum(least, seen) * seen)
        return result


def conjugate_gradient(
    product: Callable[[Array, Indices], Array],
    b: Array,
    *,
    max_iter: int,
    tolerance: float | Array = 1e-8,
    patience: int | None = None,
    follow: Follow | None = None,
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
        left a residual GROWTH times the smallest, if rounding is the reason: if the recurrence's
        residual is not that of x, which another product tells. It goes back to where the residual
        was smallest. Otherwise an ill-conditioned H is, on which residuals stay or rise for long
        while x approaches the solution all the same. None: it never stops for that.
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
    best, best_at = relative.copy(), np.zeros(r.shape[1], dtype=int)
    best_x, best_r = x.copy(), r.copy()
    # Where a residual was last found to be that of x, and how large it was.
    looked_at, trusted = np.zeros_like(best_at), np.zeros_like(relative)
    enough = np.broadcast_to(tolerance, relative.shape)
    active = np.flatnonzero(relative > enough)
    residuals: list[Array] = []
    # The residual's share in the direction; a column's number of iterations, and their results.
    direct, best_direct = np.ones_like(relative), np.ones_like(relative)
    taken, steps, ratios = np.zeros_like(best_at), list[Array](), list[Array]()
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
            better = active[relative[active] < best[active]]
            best[better], best_at[better] = relative[better], t
            best_x[:, better], best_direct[better] = x[:, better], direct[better]
            best_r[:, better] = r[:, better]
            waited = t - np.maximum(best_at, looked_at)[active] >= patience
            risen = relative[active] > GROWTH * np.maximum(best, trusted)[active]
            doubtful = active[waited | risen]
            if len(doubtful):
                with np.errstate(over="ignore", invalid="ignore"):
                    true = scaled[:, doubtful] - product(x[:, doubtful], doubtful)
                    off = np.linalg.norm(true - r[:, doubtful], axis=0)
                right = off <= LOST * relative[doubtful]
                looked_at[doubtful], trusted[doubtful] = t, relative[doubtful]
                stuck = doubtful[~right]
                x[:, stuck], relative[stuck] = best_x[:, stuck], best[stuck]
                direct[stuck], taken[stuck] = best_direct[stuck], best_at[stuck]
                r[:, stuck] = best_r[:, stuck]
                active = active[~np.isin(active, stuck)]
        residuals.append(relative.copy())
        active = active[relative[active] > enough[active]]
        if follow is not None and follow(t, x * scale):
            break
    history = np.array(residuals) if residuals else np.empty((0, r.shape[1]))
    with np.errstate(over="ignore"):
        gained = np.sum(x * (scaled + r), axis=0) * scale**2
        squares = relative**2 * direct * scale**2
    return Solution(
        x * scale,
        history,
        relative <= enough,
        gained,
        squares,
        lambda: _ritz_values(taken, steps, ratios),
    )


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
        beside = np.sqrt(ratio) / step[:-1]
        least = eigvalsh_tridiagonal(diagonal, beside, select="i", select_range=(0, 0))
        found[column] = float(least[0])
    return found


POWERS = 20  # products for the largest eigenvalue: half of it would be enough to converge


def gradient_descent(
    product: Callable[[Array, Indices], Array],
    b: Array,
    *,
    max_iter: int,
    tolerance: float = 1e-8,
    follow: Follow | None = None,
) -> Solution:
    """Solve H x = b by x_t = x_(t-1) - tau (H x_(t-1) - b), beginning at zero.

    As :func:`conjugate_gradient`, of the same arguments. The step tau, one for all columns, is the
    inverse of H's largest eigenvalue, from POWERS products with one vector beforehand.

    Raises LearningError where the residual grows all the same.
    """
    r, x = b.copy(), np.zeros_like(b)
    norms = np.linalg.norm(b, axis=0)
    norms = np.where(norms > 0.0, norms, 1.0)
    step = 1.0 / _largest_eigenvalue(product, len(b))
    relative = np.linalg.norm(r, axis=0) / norms
    before = relative.copy()
    active = np.flatnonzero(relative > tolerance)
    residuals: list[Array] = []
    while len(active) and len(residuals) < max_iter:
        x[:, active] += step * r[:, active]
        r[:, active] -= step * product(r[:, active], active)
        before[active] = relative[active]
        relative[active] = np.linalg.norm(r[:, active], axis=0) / norms[active]
        if not (relative <= GROWTH).all():
            raise LearningError(
                'Gradient descent diverges: take solver="cg", or raise the penalty.'
            )
        residuals.append(relative.copy())
        active = active[relative[active] > tolerance]
        if follow is not None and follow(len(residuals), x):
            break
    history = np.array(residuals) if residuals else np.empty((0, b.shape[1]))
    with np.errstate(over="ignore"):
        gained, squares = np.sum(x * (b + r), axis=0), (relative * norms) ** 2
    return Solution(
        x,
        history,
        relative <= tolerance,
        gained,
        squares,
        # What is left falls by the factor 1 - step * eigenvalue, in the end by the least one's.
        lambda: np.abs(1.0 - relative / np.where(before > 0.0, before, 1.0)) / step,
    )


def _largest_eigenvalue(product: Callable[[Array, Indices], Array], size: int) -> float:
    """Of a positive-definite H (size, size), by the power method; 1 where there is none."""
    v, found = np.random.default_rng(0).standard_normal((size, 1)), 1.0
    for _ in range(POWERS):
        norm = float(np.linalg.norm(v))
        if not (np.isfinite(norm) and norm > 0.0):
            return 1.0
        v = v / norm
        v = product(v, np.zeros(1, dtype=np.intp))
        found = float(np.linalg.norm(v))
    return found if np.isfinite(found) and found > 0.0 else 1.0
