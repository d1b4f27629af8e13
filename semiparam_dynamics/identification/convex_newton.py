"""Newton's method for consistent parameters: exact where Gauss-Newton's steps get short.

Near the border of what can exist the log-Cholesky coordinates bend, and their least squares creeps.
In the pseudo-inertias themselves the problem is a square of linear terms and -log det, convex and
self-concordant. With P -> U (1 + S) U' a body's divergence is, to second order in S,

    |S + U' P0^-1 U - 1|^2 / 2 + const,

and a step is linear least squares with bounds on the effects (S. Boyd, L. Vandenberghe, Convex
Optimization, 2004, 9.6).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.identification.log_cholesky import (
    inertial_parameters,
    pseudo_inertia,
    upper_cholesky,
)

_STEPS = 200


def _symmetric_basis() -> Array:
    """(10, 4, 4) orthonormal symmetric matrices."""
    basis = []
    for i, j in zip(*np.triu_indices(4), strict=True):
        E = np.zeros((4, 4))
        E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
        basis.append(E)
    return np.array(basis)


_BASIS = _symmetric_basis()


@dataclass(frozen=True)
class ConvexProblem:
    """|columns pi - target|^2 + weight (sum of D(P || P0) + |ridge (effects - prior)|^2)."""

    columns: Array  # (k, n) of ten parameters a body, then the effects
    target: Array  # (k,)
    weight: float
    bodies: Array  # (b, 10) P0
    effects: Array  # (n - 10 b,) the effects' prior
    ridge: Array  # (n - 10 b,)
    lower: Array  # (n - 10 b,) of the effects
    upper: Array

    def objective(self, values: Array) -> float:
        """What is minimised; infinite where a body can't exist."""
        total = float(np.sum((self.columns @ values - self.target) ** 2))
        inertial = self.bodies.size
        total += self.weight * float(np.sum((self.ridge * (values[inertial:] - self.effects)) ** 2))
        for P0, P in zip(_matrices(self.bodies), _matrices(values[:inertial]), strict=True):
            if np.linalg.eigvalsh(P)[0] <= 0.0:
                return float("inf")
            ratio = np.linalg.solve(P0, P)
            total += self.weight * float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0)
        return total

    def minimise(self, values: Array) -> Array:
        """(n,) the only minimum, from any `values` (n,) that are consistent.

        Newton's way to the border is as long as the data are heavier than the prior, so that
        lighter and lighter priors lead to it. Raises LearningError where it isn't reached.
        """
        heavy = max(self.weight, self.objective(values))
        stages = math.ceil(math.log10(heavy / self.weight))
        for power in range(stages, 0, -1):
            near = dataclasses.replace(self, weight=self.weight * 10.0**power)
            values = near._newton(values, 0.01 * near.weight)
        return self._newton(values, 1e-12 * self.weight)

    def improve(self, values: Array, steps: int) -> Array:
        """(n,) at most so many Newton steps nearer to the minimum, from consistent `values` (n,).

        What they lead to is consistent as well, and no worse.
        """
        return self._descend(values, 1e-12 * self.weight, steps)[0]

    def _newton(self, values: Array, enough: float) -> Array:
        """Down from `values` until there is no more than `enough` to gain."""
        values, arrived = self._descend(values, enough, _STEPS)
        if not arrived:
            raise LearningError(
                f"the consistent parameters were not found within {_STEPS} steps: give the URDF "
                "more weight, or leave out what the motion doesn't excite"
            )
        return values

    def _descend(self, values: Array, enough: float, steps: int) -> tuple[Array, bool]:
        """The same in at most so many steps, and whether it got there."""
        inertial, least = self.bodies.size, self.objective(values)
        for _ in range(steps):
            step, gain = self._newton_step(values)
            if gain <= max(enough, 1e-12 * least):
                return values, True
            size = 1.0
            while not (new := self.objective(values + size * step)) <= least - 0.01 * size * gain:
                size *= 0.5
                if size < 1e-12:  # what is left to gain is lost in rounding
                    return values, True
            values, least = values + size * step, new
            # Adding up a step leaves a rounding error beside the bound that it reaches.
            values[inertial:] = np.clip(values[inertial:], self.lower, self.upper)
        return values, False

    def _newton_step(self, values: Array) -> tuple[Array, float]:
        """The step (n,), and by how much the quadratic model says that it lowers the objective."""
        inertial, n = self.bodies.size, len(values)
        to_values, offset = np.eye(n), np.zeros(inertial)
        for k, (P0, P) in enumerate(
            zip(_matrices(self.bodies), _matrices(values[:inertial]), strict=True)
        ):
            own, U = slice(10 * k, 10 * k + 10), upper_cholesky(P)
            to_values[own, own] = inertial_parameters(U @ _BASIS @ U.T).T
            G = U.T @ np.linalg.solve(P0, U) - np.eye(4)
            offset[own] = np.einsum("aij,ij->a", _BASIS, G)
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
