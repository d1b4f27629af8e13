"""Limits of each joint's motion: from the URDF, and the part of them that may be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import UrdfJoint, parse_urdf


@dataclass(frozen=True)
class FreeJointsConfig:
    """Limits of joints for which the URDF has none."""

    free_range: float = parameter(
        3.141592653589793,
        "reach to either side of 0 of rotary joints without position limits",
        unit="rad",
        low=0.01,
        high=100.0,
    )
    free_velocity: float = parameter(
        1.0,
        "velocity limit of joints without one",
        unit="rad/s or m/s",
        low=0.001,
        high=100.0,
    )


@dataclass(frozen=True)
class MotionLimits:
    """Bounds of each joint, each (n_joints,).

    lower, upper: position, rad or m. velocity: of |dq|, rad/s or m/s. effort: of the rigid body's
    |torque|, N m or N; infinite where it is not limited. warnings: sentences on limits that the
    URDF lacks.
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    warnings: tuple[str, ...] = ()

    @property
    def middle(self) -> Array:
        """(n_joints,) between lower and upper."""
        return 0.5 * (self.lower + self.upper)

    @property
    def half(self) -> Array:
        """(n_joints,) the reach to either side of the middle."""
        return 0.5 * (self.upper - self.lower)

    def scaled(self, margin: float, velocity: float, effort: float) -> MotionLimits:
        """The part of these limits that a motion may use.

        margin: share of each joint's range that is kept free at either end; velocity, effort:
        shares of those limits that may be used.
        """
        free = margin * (self.upper - self.lower)
        return MotionLimits(
            self.lower + free,
            self.upper - free,
            velocity * self.velocity,
            effort * self.effort,
            self.warnings,
        )


def motion_limits(
    urdf: str,
    model: RobotModel,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    free: FreeJointsConfig | None = None,
) -> MotionLimits:
    """The limits of the joints of `model`, of which `urdf` is the text.

    ranges: narrower position limits by joint name, as a table or a cable may ask for.
    free: limits where the URDF has none. A joint without an effort limit is not limited in effort.
        The result's warnings name the joints.

    Raises RobotModelError for a limit that is no number and for a prismatic joint without position
    limits; ConfigurationError for a range of an unknown joint, without extent or beyond the URDF's.
    """
    free = free or FreeJointsConfig()
    joints = [parse_urdf(urdf).joints[name] for name in model.joint_names]
    lower, upper = (limits.copy() for limits in model.position_limits)
    for name, (low, high) in (ranges or {}).items():
        if name not in model.joint_names:
            known = ", ".join(model.joint_names)
            raise ConfigurationError(f"a range is given for '{name}', but the joints are {known}")
        if not (np.isfinite([low, high]).all() and low < high):
            raise ConfigurationError(f"the range {low:g} to {high:g} of '{name}' has no extent")
        index = model.joint_names.index(name)
        if low < lower[index] or high > upper[index]:
            raise ConfigurationError(
                f"the range {low:g} to {high:g} of '{name}' goes beyond the URDF's limits,"
                f" {lower[index]:g} to {upper[index]:g}"
            )
        lower[index], upper[index] = low, high
    endless = ~np.isfinite(upper - lower)
    for joint in (joints[i] for i in np.flatnonzero(endless)):
        if joint.type == "prismatic":
            raise RobotModelError(
                f"the prismatic joint '{joint.name}' has no position limits in the URDF: give its"
                f" range, as in {joint.name}=0:0.5"
            )
    lower[endless], upper[endless] = -free.free_range, free.free_range
    velocity = np.array([_limit(joint, "velocity") for joint in joints])
    effort = np.array([_limit(joint, "effort") for joint in joints])
    warnings = (
        _warning(
            joints, endless, "position", f"{free.free_range:g} rad to either side of 0 are used"
        ),
        _warning(joints, np.isinf(velocity), "velocity", f"{free.free_velocity:g} is used"),
        _warning(joints, np.isinf(effort), "effort", "effort is not limited there"),
    )
    velocity[np.isinf(velocity)] = free.free_velocity
    return MotionLimits(lower, upper, velocity, effort, tuple(filter(None, warnings)))


def _limit(joint: UrdfJoint, attribute: str) -> float:
    """A limit of the URDF; infinite where there is none, or 0 as exporters write for none."""
    element = joint.element.find("limit")
    try:
        value = float("0" if element is None else element.get(attribute, "0"))
    except ValueError:
        raise RobotModelError(
            f"the {attribute} limit of joint '{joint.name}' is no number"
        ) from None
    return value if 0.0 < value < np.inf else np.inf


def _warning(joints: list[UrdfJoint], missing: np.ndarray, kind: str, instead: str) -> str:
    names = ", ".join(joints[i].name for i in np.flatnonzero(missing))
    return f"the URDF has no {kind} limit of {names}: {instead}" if names else ""
