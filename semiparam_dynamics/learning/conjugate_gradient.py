"""Conjugate gradient for several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array, Indices

GROWTH = 1e3  # conjugate gradient's residuals may rise for a while, but hardly by so much

Follow = Callable[[int, Array], bool]


@dataclass(frozen=True)
class Solution:
    """The result of conjugate gradient, after t products with the matrix."""

    x: Array  # (q, T), the solution of each column
    residuals: Array  # (t, T), relative to b; a column's last one once it stopped
    converged: Array  # (T,), whether the residual reached the tolerance

    @property
    def n_iter(self) -> int:
        """The products with the matrix, t."""
        return len(self.residuals)


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
        left a residual GROWTH times the smallest, and goes back to where that was; None: never.
        Rounding can make that necessary, for a product in float32 most of all.
    follow : called with the iteration's number, from 1, and x (q, T), which it must not change;
        a true answer ends all.

    A column also stops where H proves not to be positive definite to rounding, or gives values
    that are not finite, and keeps what it has. The result is finite if b is.
    """
    # Columns are scaled to norm 1, so that neither tiny nor huge ones leave the numbers' range.
    largest = np.max(np.abs(b), axis=0, initial=0.0)
    scale = np.where(largest > 0.0, largest, 1.0)
    scale = scale * np.maximum(np.linalg.norm(b / scale, axis=0), 1.0)
    r = b / scale
    x, p = np.zeros_like(r), r.copy()
    squared = np.sum(r * r, axis=0)
    relative = np.sqrt(squared)
    best, best_x, best_at = relative.copy(), x.copy(), np.zeros(r.shape[1], dtype=int)
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
        if patience is not None:
            better = active[relative[active] < best[active]]
            best[better], best_at[better] = relative[better], t
            best_x[:, better] = x[:, better]
            waited = t - best_at[active] >= patience
            stuck = waited | (relative[active] > GROWTH * best[active])
            x[:, active[stuck]] = best_x[:, active[stuck]]
            relative[active[stuck]] = best[active[stuck]]
            active = active[~stuck]
        residuals.append(relative.copy())
        active = active[relative[active] > enough[active]]
        if follow is not None and follow(t, x * scale):
            break
    history = np.array(residuals) if residuals else np.empty((0, r.shape[1]))
    return Solution(x * scale, history, relative <= enough)
