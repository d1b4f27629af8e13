"""What size to expect of outputs and of columns, before any data has come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.robot import RobotModel


@dataclass(frozen=True)
class ExpectedScales:
    """Root mean squares over random states of moderate speed."""

    output: Array  # (n_axes,) by the URDF's parameters, N m or N
    column: Array  # (n_parameters,) of a regressor whose rows are divided by `output`
    active: Array  # (n_axes, n_parameters) True where a column ever acts on an axis


def expected_scales(model: RobotModel, states: int = 200, seed: int = 0) -> ExpectedScales:
    """The scales of `model`, from `states` seeded random states (1 rad/s, 1 rad/s^2)."""
    rng = np.random.default_rng(seed)
    shape = (states, model.n_joints)
    regressors = model.regressors(
        rng.uniform(-np.pi, np.pi, shape), rng.standard_normal(shape), rng.standard_normal(shape)
    )
    output = np.sqrt(np.mean((regressors @ model.prior) ** 2, axis=0))
    # Forces and torques of a wrench differ in unit; a wrist's torque is small, its friction not.
    # So no axis counts as smaller than a twentieth of the largest of its kind.
    kinds = np.arange(model.n_axes) // 3 if model.config.target == "wrench" else 0 * output
    for kind in np.unique(kinds):
        of_kind = kinds == kind
        largest = output[of_kind].max()
        output[of_kind] = np.maximum(output[of_kind], 0.05 * largest) if largest > 0.0 else 1.0
    scaled = regressors / output[None, :, None]
    column = np.sqrt(np.mean(scaled**2, axis=(0, 1)))
    active = np.abs(regressors).max(axis=0) > 1e-9
    return ExpectedScales(output, np.where(column > 0.0, column, 1.0), active)
