"""Effects of joints and sensors beyond rigid-body dynamics, one class each.

All are smooth functions of the joints' positions, velocities and loads, or of their past; the
constants are those of :class:`~semiparam_dynamics.simulation.config.EffectsConfig`.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.simulation.config import EffectsConfig

_TYPICAL = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0])  # N and N m: a wrench's usual size


class Friction:
    """Coulomb, Stribeck and viscous friction (Armstrong-Helouvry et al. 1994):

    tau = (F_c + F_s exp(-(dq/v_s)^2)) tanh(dq/w) + F_v dq, opposing the motion.

    w = 0.3 v_s, or as much more as keeps the sign's change resolved by steps of `timestep` on the
    inertia (n,) of each joint (kg m^2): an explicit step would otherwise overshoot zero velocity.
    """

    def __init__(self, config: EffectsConfig, inertia: np.ndarray, timestep: float) -> None:
        self._coulomb = config.friction_coulomb
        self._stribeck = config.friction_stribeck
        self._viscous = config.friction_viscous
        self._velocity = config.stribeck_velocity
        steepest = self._coulomb + self._stribeck
        self.width = np.maximum(0.3 * self._velocity, 2.0 * steepest * timestep / inertia)
        self.active = steepest > 0.0 or self._viscous > 0.0

    def __call__(self, dq: np.ndarray) -> np.ndarray:
        """Friction torques (n,) in N m at the velocities dq (n,) in rad/s."""
        dry = self._coulomb + self._stribeck * np.exp(-((dq / self._velocity) ** 2))
        torque: np.ndarray = dry * np.tanh(dq / self.width) + self._viscous * dq
        return torque


class Transmission:
    """The twist between motor and link of an elastic, damped transmission that hardens.

    The twist's rest value under a torque tau is C T asinh(tau/T) (linear, C tau, for T = 0): with
    T = hardening_torque/sqrt(3) its slope has fallen to C/2 at the hardening torque. The damping
    lets the twist follow with a first-order lag. The rotor's own swinging on the spring isn't
    simulated. Attributes: `twist` (n,) in rad, motor minus link, and its `rate` (n,) in rad/s.
    """

    def __init__(self, config: EffectsConfig, count: int, timestep: float) -> None:
        self._compliance = config.compliance
        self._hardening = config.hardening_torque / np.sqrt(3.0)
        self._gain = 1.0 - np.exp(-timestep / config.compliance_time)
        self._timestep = timestep
        self.active = config.compliance > 0.0
        self.twist = np.zeros(count)
        self.rate = np.zeros(count)

    def rest(self, torque: np.ndarray) -> np.ndarray:
        """The twist (n,) under a constant torque (n,) in N m."""
        if self._hardening == 0.0:
            return self._compliance * torque
        scale = self._hardening
        twist: np.ndarray = (self._compliance * scale) * np.arcsinh(torque / scale)
        return twist

    def step(self, torque: np.ndarray) -> None:
        """Advance by one time step under the transmitted torque (n,)."""
        change = self._gain * (self.rest(torque) - self.twist)
        self.twist = self.twist + change
        self.rate = change / self._timestep


class Hysteresis:
    """A smooth backlash between motor and position sensor (Dahl's model, for a play).

    The sensor reads x - z with dz/dx = (1 - sgn(dx) z/b)/2: after a change of direction it stands
    still at first, and z goes to b or -b over a way of some 2b.
    Attribute: `lost` (n,), z in rad.
    """

    def __init__(self, config: EffectsConfig, count: int) -> None:
        self._width = config.hysteresis
        self._last: np.ndarray | None = None
        self.active = config.hysteresis > 0.0
        self.lost = np.zeros(count)
        self._direction = np.zeros(count)

    def step(self, position: np.ndarray) -> None:
        """Advance to the position x (n,); exact for a monotonic way between two calls."""
        way = position - (position if self._last is None else self._last)
        self._last = position
        self._direction = np.sign(way)
        end = self._direction * self._width
        self.lost = end + (self.lost - end) * np.exp(-np.abs(way) / (2.0 * self._width))

    def passed(self) -> np.ndarray:
        """d(x - z)/dx (n,): the part of x's velocity that the sensor reports, from 0 to 1."""
        part: np.ndarray = 0.5 + 0.5 * self._direction * self.lost / self._width
        return part


class WrenchSensor:
    """The six-axis sensor's errors: w -> G(w) (I + C) w + offset + drift + noise.

    C (6, 6) is cross-talk, the same for every seed (it belongs to the sensor): `crosstalk` times a
    standard normal number, in units of 10 N and 1 N m. G is a gain that grows with the load,
    1 + g x^2/(1 + x^2) with x the axis' load in those units. The offsets are drawn with the seed,
    and so is their thermal drift, D (1 - exp(-t/T)).
    """

    def __init__(self, config: EffectsConfig, rng: np.random.Generator) -> None:
        pattern = np.random.default_rng(2016).standard_normal((6, 6))
        relative = np.eye(6) + config.crosstalk * pattern
        self._matrix = _TYPICAL[:, None] * relative / _TYPICAL
        self._nonlinearity = config.nonlinearity
        self._offset = _per_axis(config.bias_force, config.bias_torque) * rng.standard_normal(6)
        self._drift = _per_axis(config.drift_force, config.drift_torque) * rng.standard_normal(6)
        self._time = config.drift_time
        self._noise = _per_axis(config.noise_force, config.noise_torque)
        self._rng = rng

    def __call__(self, wrench: np.ndarray, time: float) -> np.ndarray:
        """The reading (6,) of the wrench (6,), N and N m, at a time (s) since the start."""
        seen = self._matrix @ wrench
        load = (seen / _TYPICAL) ** 2
        seen = seen * (1.0 + self._nonlinearity * load / (1.0 + load))
        drift = self._drift * -np.expm1(-time / self._time)
        reading: np.ndarray = seen + self._offset + drift
        return reading + self._noise * self._rng.standard_normal(6)


def _per_axis(force: float, torque: float) -> np.ndarray:
    return np.repeat([force, torque], 3)


class Bypass:
    """Cable and sleeve between the fixed part and the sensor's link.

    Both are relaxed with every joint mid-range (the cable up to its slack), where the sensor is at
    `position` (3,), turned by `reference` (3, 3) to base axes; `anchor` (3,) is the cable's end on
    the fixed part, base axes, m. Attribute: `active`, false where both are turned off.
    """

    def __init__(
        self, config: EffectsConfig, anchor: np.ndarray, position: np.ndarray, reference: np.ndarray
    ) -> None:
        self._reference = np.array(reference)
        attachment = np.array(config.cable_attachment)
        self._points = np.array([anchor, attachment])
        length = float(np.linalg.norm(anchor - position - reference @ attachment))
        self._constants = (
            config.cable_stiffness,
            config.cable_slack * length,
            config.cable_softness,
            config.sleeve_stiffness,
            config.sleeve_hardening,
            config.sleeve_friction,
            config.sleeve_velocity,
        )
        stiffness = (config.cable_stiffness, config.sleeve_stiffness, config.sleeve_friction)
        self.active = any(value > 0.0 for value in stiffness)

    def wrench(
        self, rotation: np.ndarray, position: np.ndarray, velocity: np.ndarray
    ) -> np.ndarray:
        """The wrench (6,) on the sensor's link, in the sensor's frame, N and N m.

        The sensor's rotation (3, 3) to base axes, position (3,) in m, and angular velocity (3,) in
        rad/s in base axes.
        """
        return _wrench(rotation, position, velocity, self._reference, self._points, self._constants)


# Compiled: in plain Python, cable and sleeve would cost most of a simulation step.
@compiled_as_written
def _wrench(
    rotation: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    reference: np.ndarray,
    points: np.ndarray,
    constants: tuple[float, float, float, float, float, float, float],
) -> np.ndarray:
    """Of cable and sleeve together, in the sensor's frame (6,).

    The cable is a linear spring that starts softly: T = k s log(1 + exp((l - l0)/s)), l its length.
    The sleeve's elastic part, turned by an angle theta about an axis u, e = 1 - cos(theta), is that
    of the potential k (e + h e^2/2), M = -k (1 + h e) sin(theta) u, smooth and without winding up;
    its dry friction opposes the angular velocity w: M = -c w / sqrt(|w|^2 + w0^2).
    """
    stiffness, slack, softness, bending, hardening, friction, onset = constants
    # Written out, as matrix products of this size are slower than the calls around them.
    way = np.zeros(3)  # m, from the cable's end on the link to the other
    spin = np.zeros(3)
    turned = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            way[i] += rotation[j, i] * (points[0, j] - position[j])
            spin[i] += rotation[j, i] * velocity[j]
            for k in range(3):
                turned[i, j] += reference[k, i] * rotation[k, j]
        way[i] -= points[1, i]
    length = np.sqrt(way[0] ** 2 + way[1] ** 2 + way[2] ** 2)
    stretch = (length - slack) / softness
    tension = stiffness * softness * (max(stretch, 0.0) + np.log1p(np.exp(-abs(stretch))))
    force = way * (tension / max(length, 1e-9))
    e = 0.5 * (3.0 - turned[0, 0] - turned[1, 1] - turned[2, 2])
    elastic = -0.5 * bending * (1.0 + hardening * e)
    speed = np.sqrt(spin[0] ** 2 + spin[1] ** 2 + spin[2] ** 2 + onset**2)
    moment = spin * (-friction / speed)
    wrench = np.empty(6)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        wrench[i] = force[i]
        moment[i] += elastic * (turned[k, j] - turned[j, k])
        wrench[3 + i] = moment[i] + (points[1, j] * force[k] - points[1, k] * force[j])
    return wrench
