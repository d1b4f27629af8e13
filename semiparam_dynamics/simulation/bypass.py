"""What pulls on the arm past its sensor: a cable, and the skin and covers that clothe the arm.

Compiled, because it is the costliest part of a simulation step in plain Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from semiparam_dynamics.simulation.config import EffectsConfig

F = TypeVar("F")

if TYPE_CHECKING:

    def _compiled(function: F) -> F: ...

else:
    import numba

    _compiled = numba.njit(cache=True)


@_compiled
def cable_force(way: np.ndarray, stiffness: float, slack: float, softness: float) -> np.ndarray:
    """The force (3,) in N of a cable on the end from which `way` (3,) in m leads to the other.

    A linear spring that starts softly: T = k s log(1 + exp((l - l0)/s)), l the cable's length.
    """
    length = np.sqrt(way[0] ** 2 + way[1] ** 2 + way[2] ** 2)
    stretch = (length - slack) / softness
    tension = stiffness * softness * (max(stretch, 0.0) + np.log1p(np.exp(-abs(stretch))))
    force: np.ndarray = way * (tension / max(length, 1e-9))
    return force


@_compiled
def sleeve_moment(
    turned: np.ndarray,
    velocity: np.ndarray,
    stiffness: float,
    hardening: float,
    friction: float,
    onset: float,
) -> np.ndarray:
    """The moment (3,) in N m on a link that is turned (3, 3) and turns with `velocity` (3,), rad/s.

    Turned by an angle theta about an axis u, e = 1 - cos(theta): the elastic part is that of the
    potential k (e + h e^2/2), M = -k (1 + h e) sin(theta) u, smooth and without winding up. Dry
    friction opposes the angular velocity w: M = -c w / sqrt(|w|^2 + w0^2). In the link's axes.
    """
    e = 0.5 * (3.0 - turned[0, 0] - turned[1, 1] - turned[2, 2])
    elastic = -0.5 * stiffness * (1.0 + hardening * e)
    speed = np.sqrt(velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2 + onset**2)
    moment: np.ndarray = velocity * (-friction / speed)
    moment[0] += elastic * (turned[2, 1] - turned[1, 2])
    moment[1] += elastic * (turned[0, 2] - turned[2, 0])
    moment[2] += elastic * (turned[1, 0] - turned[0, 1])
    return moment


@_compiled
def _wrench(
    rotation: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    reference: np.ndarray,
    points: np.ndarray,
    constants: np.ndarray,
) -> np.ndarray:
    """Of cable and sleeve together, in the sensor's frame (6,)."""
    # Written out, as matrix products of this size are slower than the calls around them.
    way = np.zeros(3)
    spin = np.zeros(3)
    turned = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            way[i] += rotation[j, i] * (points[0, j] - position[j])
            spin[i] += rotation[j, i] * velocity[j]
            for k in range(3):
                turned[i, j] += reference[k, i] * rotation[k, j]
        way[i] -= points[1, i]
    force = cable_force(way, constants[0], constants[1], constants[2])
    moment = sleeve_moment(turned, spin, constants[3], constants[4], constants[5], constants[6])
    wrench = np.empty(6)
    wrench[:3] = force
    wrench[3:] = moment
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        wrench[3 + i] += points[1, j] * force[k] - points[1, k] * force[j]
    return wrench


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
        self._constants = np.array(
            [
                config.cable_stiffness,
                config.cable_slack * length,
                config.cable_softness,
                config.sleeve_stiffness,
                config.sleeve_hardening,
                config.sleeve_friction,
                config.sleeve_velocity,
            ]
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
