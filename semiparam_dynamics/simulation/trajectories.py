"""The desired motion: circles of the hand, or an exciting motion of the joints.

A path gives the joint positions and their first two derivatives as functions of a time s (s);
:class:`Trajectory` starts it from rest. All is computed for many times at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.simulation.config import MotionConfig

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]
_REACHED_M = 1e-6
_PLANES = {"circle_xy": (0, 1), "circle_xz": (0, 2)}


def make_trajectory(
    config: MotionConfig,
    hand: HandKinematics,
    seed: int,
    center: tuple[float, ...] = (),
    rest: tuple[float, ...] = (),
) -> Trajectory:
    """The configured motion; on circles the arm stays near the posture `rest` (n,).

    Without a `center` one within reach is searched for, around random postures. Raises
    ConfigurationError where the hand can't draw the circles within the joints' limits.
    """
    rng = np.random.default_rng([seed, 1])
    if config.motion not in _PLANES:
        return Trajectory(ExcitingPath(config, hand, rng), config.ramp_time)
    if center:
        if len(center) != 3:
            raise ConfigurationError(f"parameter 'center' must have 3 numbers, not {len(center)}")
        posture = np.array(rest) if rest else hand.middle
        circle = CirclePath(config, hand, np.array(center), posture, rng)
        return Trajectory(circle, config.ramp_time)
    candidates = np.random.default_rng(0).uniform(-0.35, 0.35, (60, len(hand.middle)))
    candidates[0] = 0.0
    for candidate in candidates:
        posture = hand.middle + candidate * (hand.upper - hand.lower)
        place = hand.position(posture)
        try:
            CirclePath(config, hand, place, posture, rng, knots=16)  # coarse, to fail fast
            circle = CirclePath(config, hand, place, posture, np.random.default_rng([seed, 1]))
        except ConfigurationError:
            continue
        return Trajectory(circle, config.ramp_time)
    raise ConfigurationError(
        f"the hand can't draw a circle with a radius of {config.radius:g} m within the joints' "
        "limits: give 'center', a smaller 'radius', or motion 'exciting'"
    )


class Trajectory:
    """A path that starts from rest: its own time runs slower during the first `ramp_time` s."""

    def __init__(self, path: Path, ramp_time: float) -> None:
        self._path = path
        self._ramp = ramp_time

    def __call__(self, t: np.ndarray) -> Motion:
        """Desired positions, velocities and accelerations (len(t), n) at times t (s), t >= 0."""
        if self._ramp == 0.0:
            return self._path(t)
        x = np.minimum(t / self._ramp, 1.0)
        after_ramp = t - self._ramp * x
        s = self._ramp * (x**3 - 0.5 * x**4) + after_ramp  # speed 3x^2 - 2x^3 reaches 1 smoothly
        speed = 3.0 * x**2 - 2.0 * x**3
        change = 6.0 * (x - x**2) / self._ramp
        q, q1, q2 = self._path(s)
        v, a = speed[:, None], change[:, None]
        return q, q1 * v, q2 * v**2 + q1 * a


class HandKinematics:
    """Position of the hand as a function of the moving joints (all others in position zero).

    The hand is the point `offset` (m) of the frame `hand_frame`.
    Attributes: `lower`, `upper` (n,) position limits in rad or m, `middle` (n,) between them.
    Raises RobotModelError where pinocchio can't read the URDF.
    """

    def __init__(
        self,
        urdf: str,
        joints: tuple[str, ...],
        hand_frame: str,
        offset: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        try:
            self._model = pin.buildModelFromXML(urdf)
        except (ValueError, RuntimeError) as error:
            raise RobotModelError(f"the URDF can't be read: {error}") from None
        self._data = self._model.createData()
        index = [self._model.joints[self._model.getJointId(name)].idx_q for name in joints]
        self._order = np.array(index)
        self._frame = self._model.getFrameId(hand_frame)
        self._offset = np.array(offset, dtype=float)
        self.lower = self._model.lowerPositionLimit[self._order].copy()
        self.upper = self._model.upperPositionLimit[self._order].copy()
        if not np.all(self.lower < self.upper):
            raise RobotModelError("every moving joint needs a lower limit below its upper limit")
        self.middle = 0.5 * (self.lower + self.upper)

    def position(self, q: np.ndarray) -> np.ndarray:
        """The hand's position (3,) in the base frame, m, at joint positions q (n,)."""
        pin.framesForwardKinematics(self._model, self._data, self._full(q))
        return np.array(self._data.oMf[self._frame].act(self._offset))

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """The derivative (3, n) of :meth:`position`; also updates the position."""
        full = pin.computeFrameJacobian(
            self._model, self._data, self._full(q), self._frame, pin.LOCAL_WORLD_ALIGNED
        ).reshape(6, -1)  # of one joint it comes as (6,)
        lever = self._data.oMf[self._frame].rotation @ self._offset
        return np.array((full[:3] - pin.skew(lever) @ full[3:])[:, self._order])

    def solve(self, target: np.ndarray, rest: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Joint positions (n,) that bring the hand to `target` (3,), nearest to the posture `rest`.

        Of all solutions it is (locally) the one with least ||q - rest||, each joint measured by its
        range, so that a closed path of the hand closes in the joints too: Gauss-Newton steps,
        damped while the hand is far off, and the null space's pull to `rest`. Raises
        ConfigurationError out of reach.
        """
        q = np.array(start, dtype=float)
        eye, span = np.eye(len(q)), self.upper - self.lower
        for _ in range(200):
            jacobian = self.jacobian(q) * span
            error = target - self._data.oMf[self._frame].act(self._offset)
            damping = 1e-12 + 1e-2 * min(error @ error, 0.01)
            gram = jacobian @ jacobian.T + damping * np.eye(3)
            inverse = np.linalg.solve(gram, jacobian).T
            step = inverse @ error + (eye - inverse @ jacobian) @ ((rest - q) / span)
            size = float(np.abs(step).max())
            q += span * step * min(1.0, 0.15 / max(size, 1e-12))
            if size < 1e-9:
                if error @ error < _REACHED_M**2:
                    return q
                break  # as near as it comes
        raise ConfigurationError(
            f"the hand can't reach ({', '.join(f'{x:.3f}' for x in target)}) m: "
            "move 'center' or choose a smaller 'radius'"
        )

    def check_limits(self, q: np.ndarray) -> None:
        """Raise ConfigurationError where one of the positions q (..., n) is outside the limits."""
        if np.any(q < self.lower) or np.any(q > self.upper):
            raise ConfigurationError(
                "the motion would leave the joints' limits: move 'center', or choose a smaller "
                "'radius' or 'variation'"
            )

    def _full(self, q: np.ndarray) -> np.ndarray:
        full = np.zeros(self._model.nq)
        full[self._order] = q
        return full


class Path(Protocol):
    """A motion of n joints."""

    def __call__(self, s: np.ndarray) -> Motion:
        """q, dq/ds, d2q/ds2, each (len(s), n), in rad and s."""


class SlowChanges:
    """Smooth random functions that change within 10 to 100 s and don't repeat.

    Each is the mean of four sines of random frequency and phase. The values of the first
    function's derivative, and those of the others themselves, lie between -1 and 1.
    """

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self._omega = 2.0 * np.pi / rng.uniform(10.0, 100.0, (count, 4))
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (count, 4))
        self._amplitude = np.full((count, 4), 0.25)
        self._amplitude[0] /= self._omega[0]

    def __call__(self, s: np.ndarray) -> Motion:
        """Values and first two derivatives, each (len(s), count)."""
        return _sines(self._amplitude, self._omega, self._phase, s)


def _sines(amplitude: np.ndarray, omega: np.ndarray, phase: np.ndarray, s: np.ndarray) -> Motion:
    """Sums of sines along the last axis of amplitude, omega and phase; two derivatives."""
    angle = omega * s[:, None, None] + phase
    sine, cosine = amplitude * np.sin(angle), amplitude * np.cos(angle)
    return sine.sum(axis=2), (omega * cosine).sum(axis=2), (-(omega**2) * sine).sum(axis=2)


class CirclePath:
    """The hand on a circle in the base frame's XY or XZ plane (thesis, section 8.4.3).

    The joint positions of the exact circle are solved on a grid of its angle and interpolated by a
    periodic spline. With `variation` v, slow changes multiply speed and radius by 1 ± v at most,
    and move the centre by at most v times the radius along each axis; radius and centre act through
    the inverse kinematics' first derivative, on the same grid. `knots` of 256 give 1e-7 rad.
    """

    def __init__(
        self,
        config: MotionConfig,
        hand: HandKinematics,
        center: np.ndarray,
        rest: np.ndarray,
        rng: np.random.Generator,
        knots: int = 256,
    ) -> None:
        self._variation = config.variation
        self._radius = config.radius
        self._rate = config.speed / config.radius
        self._axes = _PLANES[config.motion]
        self._changes = SlowChanges(5, rng)
        angles = np.linspace(0.0, 2.0 * np.pi, knots + 1)
        points = center + self._radius * self._directions(angles)
        q, sensitivity = self._solve(hand, points, rest)
        gain = np.abs(sensitivity).sum(axis=2) + np.linalg.norm(sensitivity, axis=2)
        margin = self._variation * self._radius * gain
        hand.check_limits(q - margin)
        hand.check_limits(q + margin)
        self._q = CubicSpline(angles, q, bc_type="periodic")
        self._sensitivity = CubicSpline(angles, sensitivity, bc_type="periodic")

    def _directions(self, angle: np.ndarray, derivative: int = 0) -> np.ndarray:
        directions = np.zeros((len(angle), 3))
        directions[:, self._axes[0]] = np.cos(angle + 0.5 * np.pi * derivative)
        directions[:, self._axes[1]] = np.sin(angle + 0.5 * np.pi * derivative)
        return directions

    def _solve(
        self, hand: HandKinematics, points: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        q = np.empty((len(points), len(hand.middle)))
        sensitivity = np.zeros((len(points), len(hand.middle), 3))
        start = rest
        for i, point in enumerate(points):
            q[i] = start = hand.solve(point, rest, start)
            if self._variation > 0.0:
                for axis in range(3):
                    shift = 1e-4 * np.eye(3)[axis]
                    ahead = hand.solve(point + shift, rest, start)
                    behind = hand.solve(point - shift, rest, start)
                    sensitivity[i, :, axis] = (ahead - behind) / 2e-4
        if np.abs(q[-1] - q[0]).max() > 1e-6:
            raise ConfigurationError(
                "the arm ends a circle in another posture: move 'center' or choose a smaller "
                "'radius'"
            )
        q[-1], sensitivity[-1] = q[0], sensitivity[0]
        return q, sensitivity

    def __call__(self, s: np.ndarray) -> Motion:
        """See :class:`Path`."""
        slow, slow1, slow2 = (self._variation * change for change in self._changes(s))
        angle = self._rate * (s + slow[:, 0])
        angle1 = self._rate * (1.0 + slow1[:, 0])
        angle2 = self._rate * slow2[:, 0]
        q, q1, q2 = _compose(self._q, angle, angle1, angle2)
        if self._variation == 0.0:
            return q, q1, q2
        direction, tangent = self._directions(angle), self._directions(angle, 1)
        p, p1, p2 = (self._radius * change[:, 1:4] for change in (slow, slow1, slow2))
        r, r1, r2 = (self._radius * change[:, 4:5] for change in (slow, slow1, slow2))
        a1, a2 = angle1[:, None], angle2[:, None]
        shift = p + r * direction
        shift1 = p1 + r1 * direction + r * a1 * tangent
        shift2 = p2 + (r2 - r * a1**2) * direction + (2.0 * r1 * a1 + r * a2) * tangent
        g, g1, g2 = _compose(self._sensitivity, angle, angle1, angle2)
        return (
            q + _product(g, shift),
            q1 + _product(g1, shift) + _product(g, shift1),
            q2 + _product(g2, shift) + 2.0 * _product(g1, shift1) + _product(g, shift2),
        )


def _compose(
    spline: CubicSpline, angle: np.ndarray, angle1: np.ndarray, angle2: np.ndarray
) -> Motion:
    """A spline of the angle, and its first two derivatives by time (chain rule)."""
    value, d1, d2 = spline(angle), spline(angle, 1), spline(angle, 2)
    shape = (-1,) + (1,) * (value.ndim - 1)
    a1, a2 = angle1.reshape(shape), angle2.reshape(shape)
    return value, d1 * a1, d2 * a1**2 + d1 * a2


def _product(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    product: np.ndarray = np.einsum("sij,sj->si", matrices, vectors)
    return product


class ExcitingPath:
    """A Fourier series of five harmonics in each joint (Swevers et al. 1997), for identification.

    Random coefficients are scaled so that each joint's range is the part `excitation` of the range
    between its limits, or less where a joint would be faster than `max_velocity`. One period lasts
    `period` seconds.
    """

    _HARMONICS = np.arange(1, 6)

    def __init__(
        self, config: MotionConfig, hand: HandKinematics, rng: np.random.Generator
    ) -> None:
        self._omega = 2.0 * np.pi / config.period * self._HARMONICS
        self._middle = hand.middle
        count = len(hand.middle)
        amplitude = rng.standard_normal((count, 5))
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (count, 5))
        self._amplitude = amplitude
        s = np.linspace(0.0, config.period, 2000)
        q, dq, _ = self(s)
        reach = np.abs(q - self._middle).max(axis=0)
        half = 0.5 * config.excitation * (hand.upper - hand.lower)
        scale = np.minimum(half / reach, config.max_velocity / np.abs(dq).max(axis=0))
        self._amplitude = amplitude * scale[:, None]

    def __call__(self, s: np.ndarray) -> Motion:
        """See :class:`Path`."""
        q, q1, q2 = _sines(self._amplitude, self._omega, self._phase, s)
        return self._middle + q, q1, q2
