"""Parameters that fit the data and belong to bodies that can exist.

For every body a positive mass and a positive definite pseudo-inertia, for every joint friction and
rotor inertia of at least 0. What is minimised over them is

    |R (B pi - base)|^2 + weight (sum over bodies of D(P || P0) + sum over effects of ridges),

with R the triangular factor of the regressor's base columns, in units in which each axis' output
has a root mean square of 1, B the combination of `BaseParameters`, and D the divergence from the
URDF's bodies: what a motion does not show stays the URDF's. The problem is convex in pi, so that
there is one minimum; `convex_newton` finds it. How sure the parameters are is told in log-Cholesky
coordinates relative to the URDF, in which D is a sum of squares.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.identification.joint_friction import effect_bounds, effect_prior
from semiparam_dynamics.identification.log_cholesky import (
    divergence_jacobian,
    factor,
    inertial_parameters,
    log_cholesky,
    log_cholesky_jacobian,
    nearest_bodies,
    pseudo_inertia,
    upper_cholesky,
)
from semiparam_dynamics.robot.model import RobotModel, expected_scales

# -------------------------------------------------------------------------------------------------
# All that samples say of linear parameters, in one small triangle for each axis.
#
# For an axis with regressor rows Phi and measurements y, the factor F of [Phi y] = Q F gives the
# squared error of any parameters, |Phi pi - y|^2 = |F [pi; -1]|^2: samples are seen once, and what
# follows costs the same for a minute as for a day.

_CHUNK = 512


class AxisFactors:
    """The factors of `n_axes` axes, fed by `add`.

    Attributes
    ----------
    n_samples: how many measured samples were added.

    """

    def __init__(self, n_axes: int, n_parameters: int) -> None:
        self._factors: Array = np.zeros((n_axes, n_parameters + 1, n_parameters + 1))
        self._sum = np.zeros(n_axes)
        self._rows: list[Array] = []
        self.n_samples = 0

    def add(self, sample: Sample) -> None:
        """Take a sample's regressor and measurement; one without a measurement is passed over."""
        if sample.y is None:
            return
        self._rows.append(np.column_stack((sample.regressor, sample.y)))
        self._sum += sample.y
        self.n_samples += 1
        if len(self._rows) == _CHUNK:
            self._reduce()

    def _reduce(self) -> None:
        if self._rows:
            new = np.stack(self._rows, axis=1)  # (n_axes, rows, n_parameters + 1)
            stacked = np.concatenate((self._factors, new), axis=1)
            self._factors = np.asarray(np.linalg.qr(stacked, mode="r"))
            self._rows.clear()

    @property
    def factors(self) -> Array:
        """(n_axes, n_parameters + 1, n_parameters + 1) upper-triangular, [Phi y] = Q F."""
        self._reduce()
        return self._factors

    def squared_error(self, parameters: Array) -> Array:
        """(n_axes,) mean of (y - Phi pi)^2 over the samples, for parameters (n_parameters,)."""
        left = self.factors @ np.append(parameters, -1.0)
        mean: Array = np.sum(left**2, axis=1) / self._count()
        return mean

    def root_mean_square(self) -> Array:
        """(n_axes,) of the measurements."""
        return np.sqrt(self.squared_error(np.zeros(self.factors.shape[2] - 1)))

    def nmse(self, parameters: Array) -> Array:
        """(n_axes,) squared error over the measurements' variance; nan where they don't vary."""
        variance = self.root_mean_square() ** 2 - (self._sum / self._count()) ** 2
        still = variance <= 1e-12 * self.root_mean_square() ** 2
        return np.where(
            still, np.nan, self.squared_error(parameters) / np.where(still, 1.0, variance)
        )

    def weighted(self, weights: Array) -> tuple[Array, Array, float]:
        """R, U and what no parameters explain: sum of w^2 |Phi pi - y|^2 = |R pi - U|^2 + rest.

        weights: (n_axes,) a factor of each axis' errors. R: (n_parameters, n_parameters) upper
        triangular; U: (n_parameters,).
        """
        stack = (self.factors * weights[:, None, None]).reshape(-1, self.factors.shape[2])
        F: Array = np.asarray(np.linalg.qr(stack, mode="r"))
        return F[:-1, :-1], F[:-1, -1], float(F[-1, -1] ** 2)

    def _count(self) -> int:
        if self.n_samples == 0:
            raise LearningError("there is no measured sample")
        return self.n_samples


# -------------------------------------------------------------------------------------------------
# Newton's method for consistent parameters: exact where Gauss-Newton's steps get short.
#
# Near the border of what can exist the log-Cholesky coordinates bend, and their least squares
# creeps.
# In the pseudo-inertias themselves the problem is a square of linear terms and -log det, convex and
# self-concordant. With P -> U (1 + S) U' a body's divergence is, to second order in S,
#
#     |S + U' P0^-1 U - 1|^2 / 2 + const,
#
# and a step is linear least squares with bounds on the effects (S. Boyd, L. Vandenberghe, Convex
# Optimization, 2004, 9.6).

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


_LEAST_SCALE = 1e-3  # of an effect's column, where the motion leaves it at 0


@dataclass(frozen=True)
class ConsistentParameters:
    """Identified parameters in the order of `model.full_labels`: ten a body, then the effects."""

    values: Array  # (n,) SI units
    prior: Array  # (n,) the URDF's, where it is not consistent the nearest that is
    standard_deviations: Array  # (n,) as if there were no bounds
    excitation: Array  # (n,) 1 - variance / variance by the prior alone: 0 the URDF's, 1 the data's
    transforms: Array  # (bodies, 4, 4) T: each body's pseudo-inertia is T P0 T'
    base: Array  # (k,) the same values as base parameters


def axis_weights(model: RobotModel, data: AxisFactors) -> Array:
    """(n_axes,) one over each axis' root mean square, as `RigidBodyIdentifier` has it at the end.

    It mixes what is measured with what the URDF expects.
    """
    n, expected = data.n_samples, RigidBodyIdentifier.SCALE_SAMPLES
    squares = n * data.root_mean_square() ** 2 + expected * expected_scales(model).output ** 2
    weights: Array = np.sqrt((n + expected) / squares)
    return weights


def unconstrained(model: RobotModel, data: AxisFactors, config: RigidBodyConfig) -> Array:
    """(k,) the base parameters that fit best, with the learner's ridge and no condition."""
    R, U, _ = data.weighted(axis_weights(model, data))
    ridge = np.sqrt(config.penalty) * expected_scales(model).column
    prior = model.prior if config.prior == "urdf" else np.zeros(model.n_parameters)
    rows = np.vstack((R, np.diag(ridge)))
    solution: Array = np.linalg.lstsq(rows, np.concatenate((U, ridge * prior)), rcond=None)[0]
    return solution


def consistent(model: RobotModel, data: AxisFactors, weight: float = 1.0) -> ConsistentParameters:
    """Identify consistent parameters.

    weight: how much the URDF's parameters count: 1 as much as one sample, whose error is as large
    as what is measured. Raises ConfigurationError where it isn't above 0, RobotModelError where
    the URDF has no mass at all, and LearningError without samples or a solution.
    """
    if not weight > 0.0:
        raise ConfigurationError(f"the weight of the URDF must be above 0, not {weight}")
    problem = _Problem(model, data, weight)
    return problem.result(problem.convex(weight).minimise(problem.prior))


class _Problem:
    """What is minimised, and coordinates x of the parameters: ten a body, then the effects."""

    def __init__(self, model: RobotModel, data: AxisFactors, weight: float) -> None:
        self.model, self.root = model, np.sqrt(weight)
        self.n_bodies = len(model.bodies)
        self.inertial = 10 * self.n_bodies
        self.R, self.U, rest = data.weighted(axis_weights(model, data))
        bodies = nearest_bodies(model.inertial_prior.reshape(-1, 10))
        self.factors = np.array([upper_cholesky(pseudo_inertia(body)) for body in bodies])
        self.frames = np.array([_congruence(U0) for U0 in self.factors])
        lower, upper = effect_bounds(model)
        self.effects = np.clip(effect_prior(model), lower, upper)
        self.prior = np.concatenate((bodies.ravel(), self.effects))
        self.columns = self.R @ model.base.combination
        visible = np.linalg.norm(self.columns[:, self.inertial :], axis=0)
        self.ridge = np.maximum(visible / np.sqrt(data.n_samples), _LEAST_SCALE)
        self.lower, self.upper = lower, upper
        self.n_rows, self.rest = data.n_samples * model.n_axes, rest

    def convex(self, weight: float) -> ConvexProblem:
        return ConvexProblem(
            self.columns,
            self.U,
            weight,
            self.prior[: self.inertial].reshape(-1, 10),
            self.effects,
            self.ridge,
            self.lower,
            self.upper,
        )

    def coordinates(self, values: Array) -> Array:
        """(n,) of the parameters (n,)."""
        thetas = []
        for U0, body in zip(self.factors, values[: self.inertial].reshape(-1, 10), strict=True):
            M = np.linalg.solve(U0, upper_cholesky(pseudo_inertia(body)))
            thetas.append(log_cholesky(inertial_parameters(M @ M.T)))
        return np.concatenate((*thetas, values[self.inertial :]))

    def values_jacobian(self, x: Array) -> Array:
        """(n, n) the derivative of the parameters by the coordinates."""
        J = np.eye(len(x))
        for k, theta in enumerate(x[: self.inertial].reshape(-1, 10)):
            own = slice(10 * k, 10 * k + 10)
            J[own, own] = self.frames[k] @ log_cholesky_jacobian(theta)
        return J

    def prior_jacobian(self, x: Array) -> Array:
        """(n, n) the derivative of what is squared in the objective's second part."""
        J = np.zeros((len(x), len(x)))
        for k, theta in enumerate(x[: self.inertial].reshape(-1, 10)):
            own = slice(10 * k, 10 * k + 10)
            J[own, own] = divergence_jacobian(theta)
        effects = np.arange(self.inertial, len(x))
        J[effects, effects] = self.ridge
        return J

    def result(self, values: Array) -> ConsistentParameters:
        x = self.coordinates(values)
        derivative, prior = self.values_jacobian(x), self.root * self.prior_jacobian(x)
        variance = _variances(np.vstack((self.columns @ derivative, prior)), derivative)
        alone = _variances(prior, derivative)
        left = self.columns @ values - self.U
        noise = (left @ left + self.rest) / self.n_rows
        thetas = x[: self.inertial].reshape(-1, 10)
        transforms = [
            U0 @ factor(theta) @ np.linalg.inv(U0)
            for U0, theta in zip(self.factors, thetas, strict=True)
        ]
        return ConsistentParameters(
            values=values,
            prior=self.prior,
            standard_deviations=np.sqrt(noise * variance),
            excitation=np.clip(1.0 - variance / alone, 0.0, 1.0),
            transforms=np.array(transforms),
            base=self.model.base.project(values),
        )


def _variances(residuals: Array, values: Array) -> Array:
    """(n,) of the values, from the derivatives of least squares' residuals and of the values."""
    _, s, Vt = np.linalg.svd(residuals, full_matrices=False)
    spread = values @ (Vt.T / np.maximum(s, 1e-12 * s[0]))
    variances: Array = np.sum(spread**2, axis=1)
    return variances


def _congruence(factor: Array) -> Array:
    """(10, 10) the matrix that takes the parameters of Q to those of factor Q factor'."""
    units = np.array([pseudo_inertia(unit) for unit in np.eye(10)])
    return inertial_parameters(factor @ units @ factor.T).T
