"""Least squares over bodies that can exist: convex, solved by Newton's method.

Minimized over the pseudo-inertias P of some bodies and further bounded parameters, the effects, is

    |columns pi - target|^2 + weight (sum of D(P || P0) + |ridge (effects - prior)|^2),

with D the entropic divergence of `robot.inertia`. This is a square of linear terms and -log det:
convex and self-concordant in the pseudo-inertias themselves, while least squares in log-Cholesky
coordinates (Rucker and Wensing 2022) makes slow progress near the border of what can exist, where
these coordinates bend.
With P -> U (1 + S) U' a body's divergence is, to second order in S,

    |S + U' P0^-1 U - 1|^2 / 2 + const,

so that a Newton step is linear least squares with bounds on the effects (S. Boyd, L. Vandenberghe,
Convex Optimization, 2004, 9.6).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.robot.inertia import (
    SYMMETRIC,
    body_spreads,
    pseudo_inertia,
    upper_cholesky,
)

_MAX_STEPS = 200


@dataclass(frozen=True)
class ConvexProblem:
    """The module's objective over parameters (n,): ten for each body, then the effects."""

    columns: Array  # (k, n)
    target: Array  # (k,)
    weight: float
    bodies: Array  # (b, 10) parameters of P0
    effects: Array  # (n - 10 b,) the effects' prior
    ridge: Array  # (n - 10 b,)
    lower: Array  # (n - 10 b,) bounds of the effects
    upper: Array

    def objective(self, values: Array) -> float:
        """Value at parameters (n,); infinite where a body can't exist."""
        total = float(np.sum((self.columns @ values - self.target) ** 2))
        inertial = self.bodies.size
        total += self.weight * float(np.sum((self.ridge * (values[inertial:] - self.effects)) ** 2))
        for P0, P in zip(_matrices(self.bodies), _matrices(values[:inertial]), strict=True):
            if np.linalg.eigvalsh(P)[0] <= 0.0:
                return float("inf")
            ratio = np.linalg.solve(P0, P)
            total += self.weight * float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0)
        return total

    def minimize(self, values: Array) -> Array:
        """(n,) the unique minimum, from any consistent `values` (n,).

        The number of Newton steps grows with the weight of the data relative to the prior's, so
        the prior's weight is lowered in stages. Raises LearningError where the minimum isn't
        reached.
        """
        heavy = max(self.weight, self.objective(values))
        stages = math.ceil(math.log10(heavy / self.weight))
        for power in range(stages, 0, -1):
            stage = dataclasses.replace(self, weight=self.weight * 10.0**power)
            values = stage._solve(values, 0.01 * stage.weight)
        return self._solve(values, 1e-12 * self.weight)

    def improve(self, values: Array, steps: int) -> Array:
        """(n,) after at most so many Newton steps towards the minimum, from consistent values (n,).

        The result is consistent too, and no worse.
        """
        return self._descend(values, 1e-12 * self.weight, steps)[0]

    def _solve(self, values: Array, tolerance: float) -> Array:
        """Descend until at most `tolerance` can be gained."""
        values, converged = self._descend(values, tolerance, _MAX_STEPS)
        if not converged:
            raise LearningError(
                f"no consistent parameters were found within {_MAX_STEPS} steps: give the URDF "
                "more weight, or leave out what the motion doesn't excite"
            )
        return values

    def _descend(self, values: Array, tolerance: float, max_steps: int) -> tuple[Array, bool]:
        """The values after at most `max_steps`, and whether they converged."""
        inertial, least = self.bodies.size, self.objective(values)
        for _ in range(max_steps):
            step, gain = self._newton_step(values)
            if gain <= max(tolerance, 1e-12 * least):
                return values, True
            size = 1.0
            while not (new := self.objective(values + size * step)) <= least - 0.01 * size * gain:
                size *= 0.5
                if size < 1e-12:  # the remaining gain is lost in rounding
                    return values, True
            values, least = values + size * step, new
            # Adding up a step leaves a rounding error at the bound that it reaches.
            values[inertial:] = np.clip(values[inertial:], self.lower, self.upper)
        return values, False

    def _newton_step(self, values: Array) -> tuple[Array, float]:
        """The step (n,), and the decrease of the objective that the quadratic model predicts."""
        inertial, n = self.bodies.size, len(values)
        to_values, offset = np.eye(n), np.zeros(inertial)
        for k, (P0, P) in enumerate(
            zip(_matrices(self.bodies), _matrices(values[:inertial]), strict=True)
        ):
            own, U = slice(10 * k, 10 * k + 10), upper_cholesky(P)
            to_values[own, own] = body_spreads(P).T
            G = U.T @ np.linalg.solve(P0, U) - np.eye(4)
            offset[own] = np.einsum("aij,ij->a", SYMMETRIC, G)
        prior = np.concatenate((np.full(inertial, np.sqrt(0.5)), self.ridge))
        prior *= np.sqrt(self.weight)
        left = np.concatenate((offset, values[inertial:] - self.effects))
        rows = np.vstack((self.columns @ to_values, np.diag(prior)))
        rest = np.concatenate((self.columns @ values - self.target, prior * left))
        free = np.full(inertial, np.inf)
        low = np.concatenate((-free, self.lower - values[inertial:]))
        high = np.concatenate((free, self.upper - values[inertial:]))
        scale = np.linalg.norm(rows, axis=0)
        solved = lsq_linear(rows / scale, -rest, (low * scale, high * scale), method="bvls")
        return to_values @ (solved.x / scale), float(rest @ rest - 2.0 * solved.cost)


def _matrices(parameters: Array) -> list[Array]:
    return [pseudo_inertia(body) for body in parameters.reshape(-1, 10)]
