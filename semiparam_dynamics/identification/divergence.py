"""How far a body's parameters are from what its drawing says, as a sum of squares.

The entropic divergence of T. Lee, P. Wensing, F. C. Park, "Geometric robot dynamic identification:
a convex programming approach", IEEE T-RO 36(2), 2020, of pseudo-inertias P from P0:

    D = tr(P0^-1 P) - log det(P0^-1 P) - 4.

It does not depend on units or frames, is convex in P, and is infinite on the border of the
consistent ones: what is identified stays inside. In log-Cholesky coordinates of the relative
factor M = U0^-1 U it is sum_{i<j} M_ij^2 + sum_i (M_ii^2 - 2 log M_ii - 1), each term of which is a
square, so that a least-squares solver takes it as it is.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.identification.log_cholesky import factor, factor_jacobian

_ABOVE = np.triu_indices(4, 1)


def divergence_residuals(theta: Array) -> Array:
    """(10,) the sum of whose squares is D; theta (10,) are M's log-Cholesky numbers."""
    x = _log_diagonal(theta)
    # M_ii^2 - 2 log M_ii - 1 with M_ii = exp(x); its signed root is smooth, sqrt(2) x near 0.
    terms = np.maximum(np.expm1(2.0 * x) - 2.0 * x, 0.0)
    return np.concatenate((factor(theta)[_ABOVE], np.sign(x) * np.sqrt(terms)))


def divergence_jacobian(theta: Array) -> Array:
    """(10, 10) the derivative of `divergence_residuals` by theta (10,)."""
    x, roots = _log_diagonal(theta), divergence_residuals(theta)[6:]
    near = np.abs(x) < 1e-6
    slope = np.where(near, np.sqrt(2.0), np.expm1(2.0 * x) / np.where(near, 1.0, roots))
    jacobian = np.zeros((10, 10))
    jacobian[:6] = factor_jacobian(theta)[:, _ABOVE[0], _ABOVE[1]].T
    jacobian[6:, 0] = slope
    jacobian[6:9, 1:4] = np.diag(slope[:3])
    return jacobian


def _log_diagonal(theta: Array) -> Array:
    x: Array = theta[0] + np.append(theta[1:4], 0.0)
    return x
