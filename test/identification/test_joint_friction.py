"""Friction and rotor inertias: their bounds, and what a URDF says of them."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.identification.joint_friction import (
    effect_bounds,
    effect_labels,
    effect_prior,
    joint_dynamics,
)
from semiparam_dynamics.identification.urdf_export import export_urdf
from semiparam_dynamics.robot.model import RobotModel

from ..dynamics.arms import URDF, small_arm


def test_bounds_of_coupled_joints() -> None:
    model = RobotModel(str(URDF), coupled_joints=("slew-lift", "lift+grip"))
    bounds = dict(zip(effect_labels(model), zip(*effect_bounds(model), strict=True), strict=True))
    assert bounds["viscous slew"] == (0.0, np.inf)
    assert bounds["offset slew"] == (-np.inf, np.inf)
    assert bounds["coulomb slew-lift on slew"] == (0.0, np.inf)
    assert bounds["coulomb slew-lift on lift"] == (-np.inf, 0.0)
    assert bounds["rotor_inertia lift+grip on grip"] == (0.0, np.inf)


def test_the_urdf_s_friction_is_where_identification_starts() -> None:
    text = export_urdf(URDF.read_text(), {}, {"lift": {"damping": 0.7, "friction": 2.0}})
    model = RobotModel(text)
    prior = dict(zip(effect_labels(model), effect_prior(model), strict=True))
    assert prior["viscous lift"] == 0.7 and prior["coulomb lift"] == 2.0
    assert sum(prior.values()) == 2.7


def test_only_columns_that_are_there_are_written() -> None:
    model = small_arm(coulomb=False)
    values = np.arange(len(model.full_labels), dtype=float)
    found = joint_dynamics(model, values)
    place = model.full_labels.index("viscous reach")
    assert found["reach"] == {"damping": float(place)}
