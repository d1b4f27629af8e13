"""Conjugate gradient for several right-hand sides that share each product with the matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array

GROWTH = 1e3  # conjugate gradient's residuals may rise for a while, but hardly by so much

Follow = Callable[[int, Array], bool]


@dataclass(frozen=True)
class Solution:
    """What conjugate gradient found.

    Attributes
    ----------
    x : (q, T), the solution of each column.
    residuals : (t, T), after each iteration, relative to b; a column's last one once it stopped.
    converged : (T,), whether the residual reached the tolerance.
    """

    x: Array
    residuals: Array
    converged: Array

    @property
    def n_iter(self) -> int:
        """The products with the matrix, t."""
        return len(self.residuals)


def conjugate_gradient(
    product: Callable[[Array], Array],
    b: Array,
    *,
    max_iter: int,
    tolerance: float = 1e-8,
    patience: int | None = None,
    follow: Follow | None = None,
) -> Solution:
    """Solve H x = b for a symmetric positive-definite H (q, q) and b (q, T), beginning at zero.

    Each column has its own step sizes, so it gets what it would get alone, and stops alone; the
    columns still at work share each product (Hestenes and Stiefel 1952).

    Parameters
    ----------
    product : P (q, k) -> H P (q, k), k <= T.
    tolerance : a column stops when its residual's norm is at most this part of b's.
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
    active = np.flatnonzero(relative > tolerance)
    residuals: list[Array] = []
    while len(active) and len(residuals) < max_iter:
        with np.errstate(over="ignore", invalid="ignore"):
            product_p = product(p[:, active])
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
        active = active[relative[active] > tolerance]
        if follow is not None and follow(t, x * scale):
            break
    history = np.array(residuals) if residuals else np.empty((0, r.shape[1]))
    return Solution(x * scale, history, relative <= tolerance)
