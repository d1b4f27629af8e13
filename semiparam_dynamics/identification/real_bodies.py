"""Inertial parameters of real bodies at every moment, while identification goes on.

The learner's base parameters are free: where the motion shows little, they belong to no bodies that
exist, which harms no prediction. Whoever simulates or controls with them needs bodies. What is
published is therefore the nearest set of real bodies in the metric of what is known, as in
`identification.consistent`,

    |R (B pi - base)|^2 + weight (sum over bodies of D(P || P0) + sum over effects of ridges),

R being the triangle that the learner has anyway. Instead of minimising it anew, a few Newton steps
follow the minimum from where they left it: each of bounded cost, each ending inside.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.identification.consistent import ConvexProblem
from semiparam_dynamics.identification.joint_friction import effect_bounds, effect_prior
from semiparam_dynamics.identification.log_cholesky import nearest_bodies
from semiparam_dynamics.robot.model import RobotModel

LEAST_RIDGE = 1e-3  # of an effect, where the motion leaves its column at 0


class RealBodies:
    """Follows a rigid body's identification with bodies that can exist.

    weight: how much the URDF's bodies count, 1 as much as one sample whose error is as large as
    what is measured. Raises RobotModelError where the URDF has no mass at all.

    Attributes
    ----------
    values: (10 * bodies + effects,) in the order of `model.full_labels`, SI units; each body has a
        positive mass and a positive definite pseudo-inertia, each joint's friction is 0 or more.
    """

    def __init__(self, model: RobotModel, weight: float = 1.0) -> None:
        self._model, self._weight = model, weight
        bodies = nearest_bodies(model.inertial_prior.reshape(-1, 10))
        self._bounds = effect_bounds(model)
        effects = np.clip(effect_prior(model), *self._bounds)
        self._bodies, self._effects = bodies, effects
        self.values: Array = np.concatenate((bodies.ravel(), effects))

    @property
    def base(self) -> Array:
        """(n_parameters,) the same as base parameters."""
        return self._model.base.project(self.values)

    def follow(self, rigid_body: RigidBodyIdentifier, steps: int = 3) -> Array:
        """Go towards what is known now, at most so many Newton steps; returns `values`.

        A step costs O(n^3) for n values, some milliseconds with seven joints.
        """
        core = rigid_body.core
        n = core.n_features
        columns = np.triu(core.R[:n, :n]) @ self._model.base.combination
        effects = columns[:, self._bodies.size :]
        ridge = np.linalg.norm(effects, axis=0) / np.sqrt(max(rigid_body._rows, 1.0))
        problem = ConvexProblem(
            columns,
            core.U[:n, 0].copy(),
            self._weight,
            self._bodies,
            self._effects,
            np.maximum(ridge, LEAST_RIDGE),
            *self._bounds,
        )
        self.values = problem.improve(self.values, steps)
        return self.values
