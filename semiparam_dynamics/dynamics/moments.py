"""All that the rigid body's parameters are identified from: moments of the rows, and forgetting.

Forgetting everything at one rate (exponential forgetting) loses what today's rows do not excite:
a robot that stands still forgets its inertia. Directional forgetting takes information away
only where new one came in (Kulhavy 1987, restricted exponential forgetting; Cao and Schwartz 2000;
Lai and Bernstein 2024, subspace of information forgetting). Those take one row at a time, so that
one direction of n is forgotten with each, and what n of them excite together is remembered n times
too long. Here it is what the rows of a fifth of the memory excite together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array

PROTECTION = 0.25  # c below: what is excited c times as much as it is known fades half as fast
WINDOW = 0.2  # of the memory, the time over which excitation is averaged
LARGEST_FRACTION = 0.25  # forgotten at a time: the bounds below need (1 + c) fraction < 1
ROUNDING = 1e-12  # of a parameter's own product, added against rounding


class Moments(NamedTuple):
    """Of each axis' rows Phi_j, of n parameters, with weights w: all that a solution depends on."""

    products: Array  # (n_axes, n, n) sum of w Phi_j'Phi_j, on and above the diagonal
    targets: Array  # (n_axes, n) sum of w Phi_j'y_j
    squares: Array  # (n_axes,) sum of w y_j^2
    weights: Array  # (n_axes,) sum of w, in independent samples

    @classmethod
    def zeros(cls, n_axes: int, n: int) -> Moments:
        """Of no rows."""
        sums = np.zeros((n_axes, n)), np.zeros(n_axes), np.zeros(n_axes)
        return cls(np.zeros((n_axes, n, n)), *sums)

    def total(self, factors: Array) -> tuple[Array, Array]:
        """Products (n, n) and targets (n,) of all axes, each times its factor (n_axes,)."""
        upper = np.tensordot(factors, self.products, 1)
        return upper + np.triu(upper, 1).T, factors @ self.targets

    def squared_errors(self, parameters: Array) -> Array:
        """(n_axes,) sum of w (y_j - Phi_j pi)^2."""
        diagonals = np.diagonal(self.products, axis1=1, axis2=2)
        errors = (2.0 * self.products @ parameters - 2.0 * self.targets) @ parameters
        errors += self.squares - diagonals @ parameters**2
        return np.asarray(np.maximum(errors, 0.0))

    def traces(self, matrix: Array) -> Array:
        """(n_axes,) of the products times a symmetric matrix (n, n)."""
        twice = 2.0 * matrix - np.diag(np.diag(matrix))
        return np.asarray(np.tensordot(self.products, twice, 2))


class Excitation(NamedTuple):
    """Recent rows' products, for :func:`forget_excited`."""

    recent: Array  # (n_axes, n, n) products of the recent rows
    before: Array  # (n_axes, n, n) the moments' products when something was last forgotten


def forget_excited(
    moments: Moments, excitation: Excitation, parameters: Array, fraction: float
) -> None:
    """Forget only what recent rows excite again; moments and excitation are changed in place.

    Of an axis' products G, those that the recent rows would add up to if they continued for ever
    being E, H = (1 + c) f (G^-1 + c E^-1)^-1 is taken away, with f = `fraction`: a parallel sum
    (Anderson and Duffin 1969). Where E = G, as it is when a motion continues, H = f G, as with
    exponential forgetting; where E = c G it is about half as much, and where E = 0 nothing. H is at
    most (1 + c) f G, so that what is left is positive semidefinite. When a motion stops, E fades
    within a fifth of the memory, and before it has, G loses about a third.

    The parameters (n,) stay the best ones, with the errors that they leave.
    """
    fraction = min(fraction, LARGEST_FRACTION)
    kept = (1.0 - fraction) ** (1.0 / WINDOW)
    excitation.recent[:] = kept * excitation.recent + moments.products - excitation.before
    gain = (1.0 - kept) / (PROTECTION * fraction)
    errors = moments.squared_errors(parameters)
    for j, (known, recent) in enumerate(zip(moments.products, excitation.recent, strict=True)):
        G, F = (part + np.triu(part, 1).T for part in (known, gain * recent))
        size = np.sqrt(np.diag(G))
        size[size == 0.0] = 1.0
        scaled, unit = G / np.outer(size, size), np.outer(size, size)
        factor = np.linalg.cholesky(scaled + F / unit + ROUNDING * np.eye(len(G)))
        known = solve_triangular(factor, scaled, lower=True, check_finite=False)
        # G - (G^-1 + c E^-1)^-1 is G (G + E / c)^-1 G: a sum of what is positive semidefinite.
        lost = (1.0 + PROTECTION) * fraction
        left = (1.0 - lost) * G + lost * unit * (known.T @ known)
        moments.targets[j] += (left - G) @ parameters
        moments.squares[j] = (1.0 - fraction) * errors[j]
        moments.squares[j] += (2.0 * moments.targets[j] - left @ parameters) @ parameters
        moments.products[j] = np.triu(left)
    moments.weights[:] *= 1.0 - fraction
    excitation.before[:] = moments.products
