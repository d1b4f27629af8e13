"""Bodies that can exist in place of a URDF's that can't: mere masses, thin plates, left-out links.

Only where a body starts from: what the data say of it comes later.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.identification.log_cholesky import inertial_parameters, pseudo_inertia

THINNEST = 1e-3  # m, radius of gyration along an axis: what is thinner counts as no body
MADE_UP = 1e-2  # m, the radius of gyration that it is given
LIGHTEST = 1e-4  # of the robot's mass


def is_body(parameters: Array) -> bool:
    """Whether a body of some mass and at least `THINNEST` has the ten parameters (10,)."""
    mass = parameters[0]
    if not mass > 0.0:
        return False
    spread = np.linalg.eigvalsh(_central(pseudo_inertia(parameters)))
    return bool(spread[0] > mass * THINNEST**2)


def nearest_bodies(bodies: Array) -> Array:
    """(n, 10) bodies as they are, but for those that are none.

    One of too little mass has `LIGHTEST` of the robot's at its frame's origin. The others keep
    their mass and centre of mass, and where they are too thin they are made thicker. Raises
    RobotModelError where no body has mass.
    """
    total = float(np.sum(np.maximum(bodies[:, 0], 0.0)))
    if not total > 0.0:
        raise RobotModelError(
            "the URDF gives no moving link a mass: there is nothing to start from"
        )
    return np.array([body if is_body(body) else _mended(body, LIGHTEST * total) for body in bodies])


def _mended(body: Array, least: float) -> Array:
    P = pseudo_inertia(body)
    if body[0] < least:
        P[3, :] = P[:, 3] = 0.0
        P[3, 3] = least
    mass, center = P[3, 3], P[:3, 3] / P[3, 3]
    spread, axes = np.linalg.eigh(_central(P))
    spread = np.where(spread > mass * THINNEST**2, spread, mass * MADE_UP**2)
    P[:3, :3] = (axes * spread) @ axes.T + mass * np.outer(center, center)
    return inertial_parameters(P)


def _central(P: Array) -> Array:
    """(3, 3) the second moments about the centre of mass."""
    central: Array = P[:3, :3] - np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
    return central
