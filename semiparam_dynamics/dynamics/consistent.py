"""Parameters that fit the data and belong to bodies that can exist.

For every body a positive mass and a positive definite pseudo-inertia, for every joint friction and
rotor inertia of at least 0. Minimized over these parameters pi is

    |R (B pi - base)|^2 + weight (sum over bodies of D(P || P0) + sum over effects of ridges),

with R the triangular factor of the regressor's base columns, in units in which each axis' output
has a root mean square of 1, B the combination of `BaseParameters`, and D the divergence from the
URDF's bodies: parameters that the motion does not excite stay the URDF's. The problem is convex in
pi; `convex_problem` finds its minimum. Standard deviations follow by the entries of the
bodies' factors relative to the URDF's, in which D is a sum of squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.dynamics.scores import varies
from semiparam_dynamics.robot.convex_problem import ConvexProblem
from semiparam_dynamics.robot.inertia import (
    divergence_jacobian,
    factor_jacobian,
    inertial_parameters,
    nearest_bodies,
    pseudo_inertia,
    upper_cholesky,
)
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.robot.regressor import ASYMMETRY, STRIBECK, WEIGHT
from semiparam_dynamics.robot.urdf import parse_urdf

#: Attributes of a URDF's <dynamics>, and the regressor's columns that they are parameters of.
DYNAMICS_COLUMNS = {"damping": "viscous", "friction": "coulomb"}
_MIN_COLUMN = 1e-3  # of an effect's ridge, where the motion leaves its column at 0
_CHUNK = 512  # samples that are reduced to a factor at once


@dataclass(frozen=True)
class ConsistentParameters:
    """Identified parameters in the order of `model.full_labels`: ten a body, then the effects."""

    values: Array  # (n,) SI units
    prior: Array  # (n,) the URDF's, where it is not consistent the nearest that is
    standard_deviations: Array  # (n,) as if there were no bounds
    excitation: Array  # (n,) 1 - variance / variance by the prior alone: 0 the URDF's, 1 the data's
    transforms: Array  # (bodies, 4, 4) T: each body's pseudo-inertia is T P0 T'
    base: Array  # (k,) the same values as base parameters


def consistent(
    model: RobotModel, data: AxisFactors, weight: float = 1.0, effects: Mask | None = None
) -> ConsistentParameters:
    """Identify consistent parameters.

    weight: of the URDF's parameters; 1 counts as much as one sample whose error is as large as the
    measurements. effects: (n_effects,) which are identified, the others stay the URDF's; None: all.
    Raises ConfigurationError where the weight isn't above 0, RobotModelError where the URDF has no
    mass at all, and LearningError without samples or a solution.
    """
    if not weight > 0.0:
        raise ConfigurationError(f"the weight of the URDF must be above 0, not {weight}")
    prior = _Prior(model)
    R, U, rest = data.weighted(axis_weights(model, data))
    problem = prior.problem(R, U, data.n_samples, weight)
    kept = np.ones(len(prior.values), dtype=bool)
    kept[problem.bodies.size :] = True if effects is None else effects
    problem.columns[:, ~kept] = 0.0  # what no column shows stays the prior's, but for rounding
    values = np.where(kept, problem.minimize(prior.values), prior.values)
    left = problem.columns @ values - U
    noise = (left @ left + rest) / (data.n_samples * model.n_axes)
    variance, by_prior, transforms = _uncertainty(problem, values)
    return ConsistentParameters(
        values=values,
        prior=prior.values,
        standard_deviations=np.sqrt(noise * variance),
        excitation=np.clip(1.0 - variance / by_prior, 0.0, 1.0),
        transforms=transforms,
        base=model.base.project(values),
    )


class RealBodies:
    """Bodies that can exist, nearest to a rigid body that is identified recursively.

    The learner's base parameters are free: where the motion excites little, they belong to no
    bodies that exist, which a simulator or a controller needs. These are the minimum of the
    module's equation with the learner's own triangle R, followed with a few Newton steps from where
    the last call left it, each of bounded cost and ending in consistent parameters.

    The URDF's bodies weigh 1, as by default in :func:`consistent`. Raises RobotModelError where
    the URDF has no mass at all.

    Attributes
    ----------
    values: (10 * bodies + effects,) in the order of `model.full_labels`, SI units; each body has a
        positive mass and a positive definite pseudo-inertia, each joint's friction is 0 or more.
    """

    def __init__(self, model: RobotModel) -> None:
        self._model, self._prior = model, _Prior(model)
        self._squares = expected_scales(model).output ** 2
        self.values: Array = self._prior.values

    @property
    def base(self) -> Array:
        """(n_parameters,) the same as base parameters."""
        return self._model.base.project(self.values)

    def follow(self, rigid_body: RigidBodyIdentifier, steps: int = 3) -> Array:
        """Take at most so many Newton steps towards the current minimum; returns `values`.

        A step costs O(n^3) for n values, some milliseconds with seven joints.
        """
        core, rows = rigid_body.core, max(rigid_body.effective_rows, 1.0)
        core.apply_pending()
        # A sample whose error is as large as what is expected to be measured weighs 1.
        unit = math.sqrt(float(np.mean(rigid_body.evidence.information * self._squares)))
        problem = self._prior.problem(core.R / unit, core.U[:, 0] / unit, rows, 1.0)
        self.values = problem.improve(self.values, steps)
        return self.values


class _Prior:
    """The URDF's consistent parameters, and the problem that they and some data make."""

    def __init__(self, model: RobotModel) -> None:
        self._combination = model.base.combination
        self._bodies = nearest_bodies(model.inertial_prior.reshape(-1, 10))
        self._bounds = effect_bounds(model)
        self._effects = np.clip(effect_prior(model), *self._bounds)
        self.values: Array = np.concatenate((self._bodies.ravel(), self._effects))

    def problem(self, R: Array, target: Array, n_rows: float, weight: float) -> ConvexProblem:
        """|R B pi - target|^2 plus this prior, for R of `n_rows` rows of data."""
        columns = R @ self._combination
        visible = np.linalg.norm(columns[:, self._bodies.size :], axis=0)
        ridge = np.maximum(visible / np.sqrt(n_rows), _MIN_COLUMN)
        return ConvexProblem(
            columns, target, weight, self._bodies, self._effects, ridge, *self._bounds
        )


def _uncertainty(problem: ConvexProblem, values: Array) -> tuple[Array, Array, Array]:
    """Variances of the values at the minimum in units of the noise, and the bodies' T.

    (n,) with data and prior, (n,) by the prior alone, (bodies, 4, 4) the transforms of P0 to P.
    """
    n, inertial = len(values), problem.bodies.size
    derivative, prior = np.eye(n), np.zeros((n, n))
    prior[inertial:, inertial:] = np.diag(problem.ridge)
    transforms = []
    for k, (urdf, body) in enumerate(
        zip(problem.bodies, values[:inertial].reshape(-1, 10), strict=True)
    ):
        own = slice(10 * k, 10 * k + 10)
        U0 = upper_cholesky(pseudo_inertia(urdf))
        M = np.asarray(np.linalg.solve(U0, upper_cholesky(pseudo_inertia(body))), dtype=np.float64)
        derivative[own, own] = _congruence(U0) @ factor_jacobian(M)
        prior[own, own] = divergence_jacobian(M)
        transforms.append(U0 @ M @ np.linalg.inv(U0))
    prior = np.sqrt(problem.weight) * prior
    both = np.vstack((problem.columns @ derivative, prior))
    return _variances(both, derivative), _variances(prior, derivative), np.array(transforms)


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


class AxisFactors:
    """The data's sufficient statistics: a triangular factor for each of `n_axes` axes.

    For an axis with regressor rows Phi and measurements y, the factor F of [Phi y] = Q F gives the
    squared error of any parameters, |Phi pi - y|^2 = |F [pi; -1]|^2: each sample is seen once, and
    all later computations cost the same for a minute as for a day.
    n_samples: how many measured samples were added.
    """

    def __init__(self, n_axes: int, n_parameters: int) -> None:
        self._factors: Array = np.zeros((n_axes, n_parameters + 1, n_parameters + 1))
        self._sum = np.zeros(n_axes)
        self._rows: list[Array] = []
        self.n_samples = 0

    def add(self, sample: Sample) -> bool:
        """Add a sample's regressor and measurement, if it has all of one and is of motion.

        Returns whether it did.
        """
        if sample.y is None or not sample.informative or np.isnan(sample.y).any():
            return False
        self._rows.append(np.column_stack((sample.regressor, sample.y)))
        self._sum += sample.y
        self.n_samples += 1
        if len(self._rows) == _CHUNK:
            self._reduce()
        return True

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
        """(n_axes,) mean of (y - Phi pi)^2 over the samples, for parameters (n_parameters,).

        Raises LearningError without samples.
        """
        if self.n_samples == 0:
            raise LearningError("there is no measured sample")
        left = self.factors @ np.append(parameters, -1.0)
        mean: Array = np.sum(left**2, axis=1) / self.n_samples
        return mean

    def root_mean_square(self) -> Array:
        """(n_axes,) of the measurements. Raises LearningError without samples."""
        return np.sqrt(self.squared_error(np.zeros(self.factors.shape[2] - 1)))

    def nmse(self, parameters: Array) -> Array:
        """(n_axes,) squared error over the measurements' variance; NaN where they are constant.

        Raises LearningError without samples.
        """
        mean_square = self.root_mean_square() ** 2
        variance = mean_square - (self._sum / self.n_samples) ** 2
        varied = varies(variance, mean_square)
        relative = self.squared_error(parameters) / np.where(varied, variance, 1.0)
        return np.where(varied, relative, np.nan)

    def weighted(self, weights: Array) -> tuple[Array, Array, float]:
        """R, U and the unexplained rest: sum of w^2 |Phi pi - y|^2 = |R pi - U|^2 + rest.

        weights: (n_axes,) a factor of each axis' errors. R: (n_parameters, n_parameters) upper
        triangular; U: (n_parameters,).
        """
        stack = (self.factors * weights[:, None, None]).reshape(-1, self.factors.shape[2])
        F: Array = np.asarray(np.linalg.qr(stack, mode="r"))
        return F[:-1, :-1], F[:-1, -1], float(F[-1, -1] ** 2)


def axis_weights(model: RobotModel, data: AxisFactors) -> Array:
    """(n_axes,) one over each axis' root mean square, as `RigidBodyIdentifier` has it at the end.

    It combines the measured scale with the one that the URDF expects.
    """
    n, expected = data.n_samples, RigidBodyIdentifier.SCALE_SAMPLES
    squares = n * data.root_mean_square() ** 2 + expected * expected_scales(model).output ** 2
    weights: Array = np.sqrt((n + expected) / squares)
    return weights


def effect_labels(model: RobotModel) -> tuple[str, ...]:
    """Names of the columns other than the inertial ones, unreduced.

    What a driver does not know of bodies' weights, friction, rotors, offsets.
    """
    return model.full_labels[model.inertial_prior.size :]


def effect_bounds(model: RobotModel) -> tuple[Array, Array]:
    """Lower and upper bounds (n_effects,) of the effects' parameters.

    Friction and rotor inertias generate no energy: their lower bound is 0. An offset has none, nor
    has what dry friction has more or less near standstill or in one of the directions, nor what a
    driver that takes gravity out does not know of a body's weight.
    """
    kinds = [label.partition(" ")[0] for label in effect_labels(model)]
    free = [k in ("offset", STRIBECK, ASYMMETRY) or k.startswith(WEIGHT) for k in kinds]
    return np.where(free, -math.inf, 0.0), np.full(len(kinds), math.inf)


def effect_prior(model: RobotModel) -> Array:
    """(n_effects,) the effects' parameters by the URDF's <dynamics>; 0 where it gives none.

    A URDF's ``<dynamics damping="d" friction="f"/>`` means an effort of d dq + f sign(dq) against
    the motion. Here damping is the viscous column's parameter and friction the Coulomb column's,
    whose sign is smoothed, tanh(dq / coulomb_velocity).
    """
    joints = parse_urdf(model.urdf_text).joints
    prior = np.zeros(len(effect_labels(model)))
    for i, label in enumerate(effect_labels(model)):
        kind, name = label.split(" ", 1)
        dynamics = joints[name].element.find("dynamics") if name in joints else None
        for attribute, column in DYNAMICS_COLUMNS.items():
            if dynamics is not None and kind == column:
                prior[i] = _number(dynamics.get(attribute, "0"))
    return prior


def urdf_parameters(model: RobotModel, other: RobotModel | None = None) -> Array:
    """(n_parameters,) what the model's URDF, or another's, says of inertias and joint friction."""
    said = other or model
    return model.base.project(np.concatenate((said.inertial_prior, effect_prior(said))))


def _number(text: str) -> float:
    """A positive finite coefficient; 0 for anything else."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0.0 else 0.0
