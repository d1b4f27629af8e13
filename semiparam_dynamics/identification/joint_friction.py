"""Friction and rotor inertias among the parameters: their bounds, and their place in a URDF.

A URDF's ``<dynamics damping="d" friction="f"/>`` means an effort of d dq + f sign(dq) against the
motion. Here damping is the viscous column's parameter and friction the Coulomb column's, whose sign
is smoothed, tanh(dq / coulomb_velocity). Offsets, rotor inertias and the columns of coupled joints
have no place in a URDF.
"""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf

ATTRIBUTES = {"damping": "viscous", "friction": "coulomb"}  # of <dynamics>, and their columns


def effect_labels(model: RobotModel) -> tuple[str, ...]:
    """Names of the columns beside the inertial ones, before reduction."""
    return model.full_labels[model.inertial_prior.size :]


def effect_bounds(model: RobotModel) -> tuple[Array, Array]:
    """Lower and upper bounds (n_effects,) of those columns' parameters.

    Friction and rotor inertias take no energy from nowhere: 0 is the lower bound. An offset has
    none. A coupling of joints at the difference of their velocities, a-b, acts on b the other way
    round, so that its parameter on b is at most 0.
    """
    turned = {
        f"{a}-{b} on {b}" for a in model.joint_names for b in model.joint_names if a != b
    } - set(model.joint_names)
    lower, upper = [], []
    for label in effect_labels(model):
        kind, name = label.split(" ", 1)
        lower.append(-math.inf if kind == "offset" or name in turned else 0.0)
        upper.append(0.0 if name in turned else math.inf)
    return np.array(lower), np.array(upper)


def effect_prior(model: RobotModel) -> Array:
    """(n_effects,) what the URDF says of them: its <dynamics>, and 0 where it says nothing."""
    joints = parse_urdf(model.urdf_text).joints
    prior = np.zeros(len(effect_labels(model)))
    for i, label in enumerate(effect_labels(model)):
        kind, name = label.split(" ", 1)
        dynamics = joints[name].element.find("dynamics") if name in joints else None
        for attribute, column in ATTRIBUTES.items():
            if dynamics is not None and kind == column:
                prior[i] = _number(dynamics.get(attribute, "0"))
    return prior


def joint_dynamics(model: RobotModel, parameters: Array) -> dict[str, dict[str, float]]:
    """By joint, the attributes of its <dynamics> that were identified.

    parameters: (10 * bodies + n_effects,) in the order of `model.full_labels`. Units: N m s/rad
    and N m, of prismatic joints N s/m and N.
    """
    values = dict(zip(model.full_labels, parameters, strict=True))
    return {
        joint: {
            attribute: float(values[f"{column} {joint}"])
            for attribute, column in ATTRIBUTES.items()
            if f"{column} {joint}" in values
        }
        for joint in model.joint_names
    }


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0.0 else 0.0
