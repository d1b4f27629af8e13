"""A body's ten inertial parameters, its pseudo-inertia, and the divergence of one from another.

The pseudo-inertia P is positive definite exactly where a distribution of positive mass exists that
has these parameters (P. Wensing, S. Kim, J.-J. Slotine, "Linear matrix inequalities for physically
consistent inertial parameter identification", IEEE RA-L 3(1), 2018). Then P = U U' with U upper
triangular, of a positive diagonal.

The divergence of P from P0 is the entropic one of T. Lee, P. Wensing, F. C. Park, "Geometric robot
dynamic identification: a convex programming approach", IEEE T-RO 36(2), 2020,

    D = tr(P0^-1 P) - log det(P0^-1 P) - 4.

It does not depend on units or frames, is convex in P, and is infinite on the border of the
consistent parameters. By the entries of the relative factor M = U0^-1 U it is
sum_{i<j} M_ij^2 + sum_i (M_ii^2 - 2 log M_ii - 1), a sum of squares.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError

MIN_GYRATION_RADIUS_M = 1e-3  # along an axis: a body that is thinner counts as none
REPAIRED_GYRATION_RADIUS_M = 1e-2  # that it is given instead
COMPACT_RADIUS_M = 0.05  # radius of gyration of a body of which only mass and centre are known
MIN_BODY_MASS_SHARE = 1e-4  # of the robot's mass
WRITTEN_DIGITS = 1e-2  # of a body's largest second moment: what two digits leave open

_UPPER = np.triu_indices(4)


def pseudo_inertia(parameters: Array) -> Array:
    """(4, 4) [[S, h], [h', m]] of the ten parameters (10,), in the order of `regressor.INERTIAL`.

    S = tr(I) / 2 - I holds the second moments of mass (kg m^2), h the first (kg m), m the mass.
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = parameters
    half = 0.5 * (xx + yy + zz)
    return np.array(
        [
            [half - xx, -xy, -xz, hx],
            [-xy, half - yy, -yz, hy],
            [-xz, -yz, half - zz, hz],
            [hx, hy, hz, m],
        ]
    )


def inertial_parameters(P: Array) -> Array:
    """(..., 10) the parameters of the pseudo-inertias (..., 4, 4): pseudo_inertia's inverse."""
    xx, yy, zz = P[..., 0, 0], P[..., 1, 1], P[..., 2, 2]
    entries = (
        *(P[..., 3, 3], P[..., 0, 3], P[..., 1, 3], P[..., 2, 3]),
        *(yy + zz, -P[..., 0, 1], xx + zz, -P[..., 0, 2], -P[..., 1, 2], xx + yy),
    )
    return np.stack(entries, axis=-1)


def compact_body(mass: float, center: Array) -> Array:
    """(10,) the parameters of a round body of `COMPACT_RADIUS_M`; kg, center (3,) in m."""
    P = np.diag([mass * COMPACT_RADIUS_M**2] * 3 + [mass])
    P[:3, :3] += mass * np.outer(center, center)
    P[:3, 3] = P[3, :3] = mass * center
    return inertial_parameters(P)


def upper_cholesky(P: Array) -> Array:
    """(4, 4) upper-triangular U with P = U U' and a positive diagonal.

    Raises RobotModelError where P is not positive definite: no body has these parameters.
    """
    try:
        lower = np.linalg.cholesky(P[::-1, ::-1])
    except np.linalg.LinAlgError:
        raise RobotModelError(
            "the inertial parameters belong to no body: the pseudo-inertia is not positive definite"
        ) from None
    return np.ascontiguousarray(lower[::-1, ::-1])


def body_spreads(P: Array) -> Array:
    """(10, 10) parameters of U S U' for ten orthonormal symmetric S, where P = U U'.

    Multiples s (10,) of these rows move P by a divergence of |s|^2 / 2, to second order.
    """
    U = upper_cholesky(P)
    return inertial_parameters(U @ SYMMETRIC @ U.T)


def factor_jacobian(U: Array) -> Array:
    """(10, 10) the derivative of the parameters of U U' by the entries of U, row by row."""
    entries, (row, column) = np.zeros((10, 4, 4)), _UPPER
    entries[np.arange(10), row, column] = 1.0
    half = entries @ U.T
    return inertial_parameters(half + half.transpose(0, 2, 1)).T


def divergence_jacobian(M: Array) -> Array:
    """(10, 10) the derivative of ten numbers, whose squares sum to D, by M's entries, row by row.

    Above the diagonal of M they are its entries, on it the signed roots of their terms.
    """
    x = np.log(np.diag(M))
    # The root of M_ii^2 - 2 log M_ii - 1 is smooth, sqrt(2) x near 0, with M_ii = exp(x).
    near = np.abs(x) < 1e-6
    roots = np.sign(x) * np.sqrt(np.maximum(np.expm1(2.0 * x) - 2.0 * x, 0.0))
    slopes = np.ones((4, 4))
    by_log = np.where(near, np.sqrt(2.0), np.expm1(2.0 * x) / np.where(near, 1.0, roots))
    np.fill_diagonal(slopes, by_log / np.diag(M))
    return np.diag(slopes[_UPPER])


def is_body(parameters: Array) -> bool:
    """True if the ten parameters (10,) are those of a body with mass, thin nowhere."""
    mass = parameters[0]
    if not mass > 0.0:
        return False
    spread = np.linalg.eigvalsh(_central(pseudo_inertia(parameters)))
    return bool(spread[0] > mass * MIN_GYRATION_RADIUS_M**2)


def nearest_bodies(bodies: Array) -> Array:
    """(n, 10) bodies, with those that can't exist replaced: point masses, thin plates, omissions.

    A body of too little mass gets `MIN_BODY_MASS_SHARE` of the robot's at its frame's origin. The
    others keep their mass and centre of mass, and where they are too thin they are made thicker.
    Raises RobotModelError where no body has mass.
    """
    total = float(np.sum(np.maximum(bodies[:, 0], 0.0)))
    if not total > 0.0:
        raise RobotModelError(
            "the URDF gives no moving link a mass: there is nothing to start from"
        )
    return np.array(
        [body if is_body(body) else _repaired(body, MIN_BODY_MASS_SHARE * total) for body in bodies]
    )


def nearest_moments(inertia: Array, mass: float) -> Array:
    """(3, 3) the nearest inertia about the centre of mass (kg m^2) that some body can have.

    That is where no second moment of mass is negative: principal moments of inertia are then
    neither negative nor larger than the sum of the other two. The given array itself where they are
    not, or by no more than `WRITTEN_DIGITS`, or than a body of this mass (kg) is thick that counts
    as thin.
    """
    unit = max(float(np.abs(inertia).max()), np.finfo(float).tiny)  # so that nothing overflows
    scaled = inertia / unit
    spread, axes = np.linalg.eigh(0.5 * np.trace(scaled) * np.eye(3) - scaled)
    written = WRITTEN_DIGITS * float(np.abs(spread).max())
    if spread[0] >= -max(written, mass * MIN_GYRATION_RADIUS_M**2 / unit):
        return inertia
    spread = unit * np.maximum(spread, 0.0)
    nearest: Array = np.sum(spread) * np.eye(3) - (axes * spread) @ axes.T
    return nearest


def _repaired(body: Array, min_mass: float) -> Array:
    P = pseudo_inertia(body)
    if body[0] < min_mass:
        P[3, :] = P[:, 3] = 0.0
        P[3, 3] = min_mass
    mass, center = P[3, 3], P[:3, 3] / P[3, 3]
    spread, axes = np.linalg.eigh(_central(P))
    spread = np.where(
        spread > mass * MIN_GYRATION_RADIUS_M**2, spread, mass * REPAIRED_GYRATION_RADIUS_M**2
    )
    P[:3, :3] = (axes * spread) @ axes.T + mass * np.outer(center, center)
    return inertial_parameters(P)


def _central(P: Array) -> Array:
    """(3, 3) the second moments about the centre of mass."""
    central: Array = P[:3, :3] - np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
    return central


def _symmetric_basis() -> Array:
    basis = []
    for i, j in zip(*np.triu_indices(4), strict=True):
        E = np.zeros((4, 4))
        E[i, j] = E[j, i] = 1.0 if i == j else np.sqrt(0.5)
        basis.append(E)
    return np.array(basis)


#: (10, 4, 4) orthonormal symmetric matrices.
SYMMETRIC = _symmetric_basis()
