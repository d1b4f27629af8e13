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

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.scales import expected_scales
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.identification.axis_factors import AxisFactors
from semiparam_dynamics.identification.convex_newton import ConvexProblem
from semiparam_dynamics.identification.divergence import divergence_jacobian
from semiparam_dynamics.identification.joint_friction import effect_bounds, effect_prior
from semiparam_dynamics.identification.log_cholesky import (
    factor,
    inertial_parameters,
    log_cholesky,
    log_cholesky_jacobian,
    pseudo_inertia,
    upper_cholesky,
)
from semiparam_dynamics.identification.nearest_body import nearest_bodies

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
