"""Periodic joint motions, and the limits of each joint's motion.

Motions are finite Fourier series, with analytic derivatives: J. Swevers, C. Ganseman, D. Tukel, J.
De Schutter, H. Van Brussel, "Optimal robot excitation and identification", IEEE Transactions on
Robotics and Automation 13(5), 1997, section III: one base frequency for all joints, so that a
period can be repeated and averaged, and no content above the highest harmonic, so that filters
leave the motion whole. The limits are the URDF's, and the part of them that may be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag, null_space

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.robot.model import MAX_SLIDE, RobotModel
from semiparam_dynamics.robot.urdf import UrdfJoint, joint_limits, parse_urdf

Motion = tuple[Array, Array, Array]


@dataclass(frozen=True)
class FourierTrajectory:
    """q_i(t) = offset_i + sum_k sine_ki sin(k w t) + cosine_ki cos(k w t), w = 2 pi / period.

    coefficients: (2 N + 1, n_joints) offset, sines of k = 1 .. N, cosines of k = 1 .. N; rad or m.
    period: s.
    """

    coefficients: Array
    period: float

    @property
    def harmonics(self) -> int:
        """N, the number of multiples of the base frequency."""
        return int(self.coefficients.shape[0] // 2)

    def __call__(self, t: npt.ArrayLike) -> Motion:
        """q, dq, ddq at times t (s), each (len(t), n_joints) in rad, rad/s, rad/s^2."""
        bases = series_basis(t, self.harmonics, self.period)
        q, dq, ddq = (basis @ self.coefficients for basis in bases[:3])
        return q, dq, ddq

    def instants(self, per_cycle: int) -> Array:
        """Times (s) of a period, evenly, so many in a cycle of the highest harmonic."""
        n = per_cycle * self.harmonics
        return np.asarray(self.period / n * np.arange(n), dtype=np.float64)

    def jerk(self, t: npt.ArrayLike) -> Array:
        """The third derivative at times t (s), (len(t), n_joints) in rad/s^3."""
        return np.asarray(series_basis(t, self.harmonics, self.period)[3] @ self.coefficients)


def series_basis(
    t: npt.ArrayLike, harmonics: int, period: float
) -> tuple[Array, Array, Array, Array]:
    """The series' terms and their first three derivatives by time, each (len(t), 2 N + 1)."""
    t = np.asarray(t, dtype=np.float64)
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    # Reduced to one period first: after hours of repeats the angle would lose digits.
    angle = np.remainder(t, period)[:, None] * w
    sine, cosine = np.sin(angle), np.cos(angle)
    one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
    return (
        np.hstack([one, sine, cosine]),
        np.hstack([zero, w * cosine, -w * sine]),
        np.hstack([zero, -(w**2) * sine, -(w**2) * cosine]),
        np.hstack([zero, -(w**3) * cosine, w**3 * sine]),
    )


def resting_directions(harmonics: int) -> Array:
    """(2 N + 1, 2 N - 1) a basis of the coefficients with which a period starts and ends at rest.

    dq(0) = w sum_k k sine_k = 0 and ddq(0) = -w^2 sum_k k^2 cosine_k = 0. The first column is the
    offset; all columns are orthonormal. With one harmonic alone no motion starts at rest.
    """
    k = np.arange(1.0, harmonics + 1.0)
    return np.asarray(block_diag([[1.0]], null_space(k[None]), null_space((k**2)[None])))


# -------------------------------------------------------------------------------------------------
# Limits.

MAX_PARKED_RANGE = 100.0  # rad or m: of wider limits, such as exporters' 1e9, no way is computed


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
        1.0, "velocity limit of joints without one", unit="rad/s or m/s", low=0.001, high=100.0
    )


@dataclass(frozen=True)
class MotionLimits:
    """Bounds of each joint, each (n_joints,); the last three are infinite where there are none."""

    lower: Array  # rad or m
    upper: Array
    velocity: Array  # of |dq|, rad/s or m/s
    acceleration: Array
    jerk: Array
    effort: Array  # of the rigid body's |torque|, N m or N
    warnings: tuple[str, ...] = ()  # sentences on limits that the URDF lacks
    # Ends of where a joint may stand before the motion, perhaps outside of its range; None: within.
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
        """The part of these limits that a motion may use, see `ExcitationConfig`.

        Accelerations and jerks may be as high as their limits. Where joints may be parked remains.
        """
        free = margin * (self.upper - self.lower)
        return replace(
            self,
            lower=self.lower + free,
            upper=self.upper - free,
            velocity=velocity * self.velocity,
            effort=effort * self.effort,
            parked=self.parked or (self.lower, self.upper),
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
    free: limits where the URDF has none, and the part of those wider than two turns that is used. A
        joint without limits of effort, or of acceleration, deceleration and jerk (URDF 1.2), is not
        limited in these. Of acceleration and deceleration the lower is kept.

    Raises RobotModelError for a limit that is no number and for a prismatic joint without position
    limits; ConfigurationError for a range of an unknown joint, without extent or beyond the URDF's.
    """
    free = free or FreeJointsConfig()
    tree = parse_urdf(urdf)
    joints = [tree.joints[name] for name in model.joint_names]
    lower, upper = (limits.copy() for limits in model.position_limits)
    stops = np.array([_stops(joint) for joint in joints]).T
    given = _given(model.joint_names, ranges or {}, stops)
    asked, endless = np.isfinite(given[0]), ~np.isfinite(upper - lower)
    _check_slides(joints, endless & ~asked, stops)
    reach = free.free_range
    for i in np.flatnonzero(endless):
        slide = joints[i].type == "prismatic"
        lower[i], upper[i] = given[:, i] if slide else _free_part(reach, *stops[:, i])
    known = stops[1] - stops[0] <= MAX_PARKED_RANGE
    low, high = np.where(known, stops[0], lower), np.where(known, stops[1], upper)
    parked = np.fmin(low, given[0]), np.fmax(high, given[1])  # NaN: none is given
    lower, upper = np.where(asked, given[0], lower), np.where(asked, given[1], upper)
    endless &= ~asked
    wide = endless & np.isfinite(stops[1] - stops[0])
    velocity, acceleration, deceleration, jerk, effort = (
        joint_limits(tree, model.joint_names, attribute)
        for attribute in ("velocity", "acceleration", "deceleration", "jerk", "effort")
    )
    acceleration = np.minimum(acceleration, deceleration)
    instead = f"{reach:g} rad to either side of 0 are used"
    warnings = (
        _warning(joints, endless & ~wide, "position", instead),
        *(
            f"the URDF's position limits of {joints[i].name}, {stops[0, i]:g} to {stops[1, i]:g},"
            f" are wider than two turns: of them {lower[i]:g} to {upper[i]:g} rad are used"
            for i in np.flatnonzero(wide)
        ),
        _warning(joints, np.isinf(velocity), "velocity", f"{free.free_velocity:g} is used"),
        _warning(joints, np.isinf(effort), "effort", "effort is not limited there"),
    )
    velocity[np.isinf(velocity)] = free.free_velocity
    told = tuple(filter(None, warnings))
    return MotionLimits(lower, upper, velocity, acceleration, jerk, effort, told, parked)


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
    """Raise RobotModelError for a prismatic joint of unknown range."""
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
    """The part within `reach` of 0 of a range; or as much next to its end nearest to 0."""
    lower, upper = np.clip((-reach, reach), low, high)
    # Where that end is beyond the reach, or nearly, hardly any part would be left.
    wider = float(max(upper, min(high, lower + reach)))
    return float(min(lower, max(low, upper - reach))), wider


def _warning(joints: list[UrdfJoint], missing: np.ndarray, kind: str, instead: str) -> str:
    names = ", ".join(joints[i].name for i in np.flatnonzero(missing))
    return f"the URDF has no {kind} limit of {names}: {instead}" if names else ""
