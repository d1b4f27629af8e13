"""All that the rigid body's parameters are identified from: moments of the rows, and forgetting.

Forgetting everything at one rate loses what today's rows do not excite: a robot that stands still
forgets its inertia. Directional forgetting takes information away only where new one came in
(Kulhavy 1987, restricted exponential forgetting; Cao and Schwartz 2000; Lai and Bernstein 2024,
subspace of information forgetting), here by what the rows of a fifth of the memory excite together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array, Mask

PROTECTION = 0.25  # c below: what is excited c times as much as it is known fades half as fast
WINDOW = 0.2  # of the memory, the time over which excitation is averaged
LARGEST_FRACTION = 0.25  # forgotten at a time: the bounds below need (1 + c) fraction < 1
TINY = np.finfo(np.float64).tiny
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

    def whole(self) -> Array:
        """(n_axes, n, n) the products, symmetric."""
        return self.products + np.swapaxes(np.triu(self.products, 1), 1, 2)

    def total(self, factors: Array) -> tuple[Array, Array]:
        """Products (n, n) and targets (n,) of all axes, each times its factor (n_axes,).

        The diagonal has `ROUNDING` of itself more, so that they are positive semidefinite.
        """
        upper = np.tensordot(factors, self.products, 1)
        lower = np.triu(upper, 1).T + np.diag(ROUNDING * np.diag(upper))
        return upper + lower, factors @ self.targets

    def restricted(self, kept: Mask) -> Moments:
        """Those of rows without the parameters that are not `kept` (n,)."""
        products = np.ascontiguousarray(self.products[:, kept][:, :, kept])
        targets = np.ascontiguousarray(self.targets[:, kept])
        return Moments(products, targets, self.squares.copy(), self.weights.copy())

    def predicted(self, parameters: Array) -> Array:
        """(n_axes, n) what the targets would be if y were Phi_j pi."""
        lower = np.swapaxes(np.triu(self.products, 1), 1, 2)
        return np.asarray(self.products @ parameters + lower @ parameters)

    def squared_errors(self, parameters: Array) -> Array:
        """(n_axes,) sum of w (y_j - Phi_j pi)^2."""
        errors = (self.predicted(parameters) - 2.0 * self.targets) @ parameters
        return np.asarray(np.maximum(self.squares + errors, 0.0))


class Excitation(NamedTuple):
    """Recent rows' products, for :func:`forget_excited`."""

    recent: Array  # (n_axes, n, n) products of the recent rows
    before: Array  # (n_axes, n, n) the moments' products when something was last forgotten


def forget_excited(
    moments: Moments, excitation: Excitation, parameters: Array, information: Array, fraction: float
) -> None:
    """Forget only what recent rows excite again; moments and excitation are changed in place.

    Of an axis' products G, those that the recent rows would add up to if they continued for ever
    being E, (1 + c) f G (G + E / c)^-1 E / c is taken away, with f = `fraction`: a parallel sum
    (Anderson and Duffin 1969). Where E = G, as it is when a motion continues, that is f G, as with
    exponential forgetting; where E = c G it is about half as much, and where E = 0 nothing. When a
    motion stops, E fades within a fifth of the memory, and before it has, G loses about a third.

    What is left, M G with M = 1 - l + l G (G + E / c)^-1 and l = (1 + c) f, is a sum of what is
    positive semidefinite. Of the errors that `parameters` (n,) leave f is forgotten; their gradient
    is multiplied by M, too, and by less where other parameters would leave less than no error. Then
    all is as if it had been measured with parameters moved a little, by which the given ones are
    still the best of all axes, whose rows have `information` (n_axes,), beside a prior.
    """
    fraction = min(fraction, LARGEST_FRACTION)
    kept = (1.0 - fraction) ** (1.0 / WINDOW)
    excitation.recent[:] = kept * excitation.recent + moments.products - excitation.before
    gain = (1.0 - kept) / (PROTECTION * fraction)
    lost = (1.0 + PROTECTION) * fraction
    before = moments.squared_errors(parameters)
    errors = (1.0 - fraction) * before
    gradients = moments.targets - moments.predicted(parameters)
    balance = information @ gradients
    for j, (known, recent) in enumerate(zip(moments.products, excitation.recent, strict=True)):
        G, F = (part + np.triu(part, 1).T for part in (known, gain * recent))
        size = np.sqrt(np.maximum(np.diag(G), TINY))
        unit = np.outer(size, size)
        scaled = G / unit, gradients[j] / size
        factor = np.linalg.cholesky(scaled[0] + F / unit + ROUNDING * np.eye(len(G)))
        rows, values = (solve_triangular(factor, part, lower=True) for part in scaled)
        moments.products[j] = np.triu((1.0 - lost) * G + lost * unit * (rows.T @ rows))
        gradients[j] = (1.0 - lost) * gradients[j] + lost * size * (rows.T @ values)
        # By what the best parameters would leave less: their gradient's square over the products.
        less = (1.0 - lost) * before[j] + lost * values @ values
        gradients[j] *= np.sqrt(errors[j] / max(less, errors[j], TINY))
    balance -= information @ gradients
    products = moments.total(information)[0]
    size = np.sqrt(np.maximum(np.diag(products), TINY))
    unit = products / np.outer(size, size) + ROUNDING * np.eye(len(size))
    moved = np.linalg.solve(unit, balance / size) / size
    more = moments.predicted(moved)
    errors += (2.0 * gradients + more) @ moved
    predicted = moments.predicted(parameters)
    moments.targets[:] = predicted + gradients + more
    moments.squares[:] = errors + (2.0 * moments.targets - predicted) @ parameters
    moments.weights[:] *= 1.0 - fraction
    excitation.before[:] = moments.products
