"""Limits of each joint's motion: from the URDF, and the part of them that may be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.robot.model import MAX_SLIDE, RobotModel
from semiparam_dynamics.robot.urdf import UrdfJoint, parse_urdf

FARTHEST_PARKED = 100.0  # rad or m: of wider limits, such as exporters' 1e9, no way is computed


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
    URDF lacks. parked: lower and upper ends of where a joint may stand before the motion, which may
    be outside the motion's own range; None: within lower and upper.
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    warnings: tuple[str, ...] = ()
    parked: tuple[Array, Array] | None = None

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
        shares of those limits that may be used. Where joints may be parked remains.
        """
        free = margin * (self.upper - self.lower)
        return MotionLimits(
            self.lower + free,
            self.upper - free,
            velocity * self.velocity,
            effort * self.effort,
            self.warnings,
            self.parked or (self.lower, self.upper),
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

    A rotary joint whose limits are wider than two turns gets that part of them which `free` leaves.

    Raises RobotModelError for a limit that is no number and for a prismatic joint without position
    limits; ConfigurationError for a range of an unknown joint, without extent or beyond the URDF's.
    """
    free = free or FreeJointsConfig()
    joints = [parse_urdf(urdf).joints[name] for name in model.joint_names]
    lower, upper = (limits.copy() for limits in model.position_limits)
    stops = np.array([_stops(joint) for joint in joints]).T
    given = _given(model.joint_names, ranges or {}, stops)
    asked, endless = np.isfinite(given[0]), ~np.isfinite(upper - lower)
    _check_slides(joints, endless & ~asked, stops)
    reach = free.free_range
    for index in np.flatnonzero(endless):
        slide = joints[index].type == "prismatic"
        ends = given[:, index] if slide else _free_part(reach, *stops[:, index])
        lower[index], upper[index] = ends
    known = stops[1] - stops[0] <= FARTHEST_PARKED
    low, high = np.where(known, stops[0], lower), np.where(known, stops[1], upper)
    parked = np.fmin(low, given[0]), np.fmax(high, given[1])  # NaN: none is given
    lower, upper = np.where(asked, given[0], lower), np.where(asked, given[1], upper)
    endless &= ~asked
    wide = endless & np.isfinite(stops[1] - stops[0])
    velocity = np.array([_limit(joint, "velocity") for joint in joints])
    effort = np.array([_limit(joint, "effort") for joint in joints])
    warnings = (
        _warning(
            joints, endless & ~wide, "position", f"{reach:g} rad to either side of 0 are used"
        ),
        *(
            f"the URDF's position limits of {joints[i].name}, {stops[0, i]:g} to {stops[1, i]:g},"
            f" are wider than two turns: of them {lower[i]:g} to {upper[i]:g} rad are used"
            for i in np.flatnonzero(wide)
        ),
        _warning(joints, np.isinf(velocity), "velocity", f"{free.free_velocity:g} is used"),
        _warning(joints, np.isinf(effort), "effort", "effort is not limited there"),
    )
    velocity[np.isinf(velocity)] = free.free_velocity
    return MotionLimits(lower, upper, velocity, effort, tuple(filter(None, warnings)), parked)


def _given(
    names: tuple[str, ...], ranges: Mapping[str, tuple[float, float]], stops: Array
) -> Array:
    """(2, n_joints) lower and upper ends of the ranges asked for, NaN where none is."""
    given = np.full(stops.shape, np.nan)
    for name, (low, high) in ranges.items():
        if name not in names:
            known = ", ".join(names)
            raise ConfigurationError(f"a range is given for '{name}', but the joints are {known}")
        if not (np.isfinite([low, high]).all() and low < high):
            raise ConfigurationError(f"the range {low:g} to {high:g} of '{name}' has no extent")
        index = names.index(name)
        if low < stops[0, index] or high > stops[1, index]:
            raise ConfigurationError(
                f"the range {low:g} to {high:g} of '{name}' goes beyond the URDF's limits,"
                f" {stops[0, index]:g} to {stops[1, index]:g}"
            )
        given[:, index] = low, high
    return given


def _check_slides(joints: list[UrdfJoint], endless: Mask, stops: Array) -> None:
    """Raise RobotModelError for a prismatic joint whose way nothing tells."""
    for index in np.flatnonzero(endless):
        joint = joints[index]
        if joint.type == "prismatic":
            lacks = "no position limits"
            if np.isfinite(stops[:, index]).all():
                lacks = f"position limits more than {MAX_SLIDE:g} m apart"
            raise RobotModelError(
                f"the prismatic joint '{joint.name}' has {lacks} in the URDF: give its range, as "
                f"in {joint.name}=0:0.5"
            )


def _stops(joint: UrdfJoint) -> tuple[float, float]:
    """The ends of a joint's range in the URDF, however wide; infinite where it has none."""
    low, high = joint.lower, joint.upper
    ends = joint.type != "continuous" and low < high
    return (low, high) if ends and np.isfinite(high - low) else (-np.inf, np.inf)


def _free_part(reach: float, low: float, high: float) -> tuple[float, float]:
    """The part within `reach` of 0 of a range; or as much beside its end that is next to 0."""
    lower, upper = np.clip((-reach, reach), low, high)
    # Where that end is beyond the reach, or nearly, hardly any part would be left.
    wider = float(max(upper, min(high, lower + reach)))
    return float(min(lower, max(low, upper - reach))), wider


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
