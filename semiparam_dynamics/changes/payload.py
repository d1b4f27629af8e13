"""From an estimate of ten inertial parameters to a body that can exist, with standard deviations.

The nearest body in the metric of the estimate's information: what is minimised over positive
definite pseudo-inertias P is (theta - mean)' information (theta - mean) + weight D(P || P0), with D
the entropic divergence of `identification.divergence` from a compact body P0 at the estimate's
centre of mass. Convex; `identification.convex_newton` finds the minimum.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.snapshots import Snapshot
from semiparam_dynamics.changes.status import PayloadStatus
from semiparam_dynamics.errors import LearningError, RobotModelError
from semiparam_dynamics.identification.convex_newton import ConvexProblem
from semiparam_dynamics.identification.log_cholesky import inertial_parameters, pseudo_inertia

LEAST_MASS = 1e-3  # kg, of the body that an estimate without mass is compared with
COMPACT = 0.05  # m, radius of gyration of P0 about each axis
WEIGHT = 0.01  # of the divergence: a hundredth of an observation


def compact_body(mass: float, center: Array) -> Array:
    """(10,) the parameters of a round body of `COMPACT` size."""
    P = np.diag([mass * COMPACT**2] * 3 + [mass])
    P[:3, :3] += mass * np.outer(center, center)
    P[:3, 3] = P[3, :3] = mass * center
    return inertial_parameters(P)


def nearest_payload(held: Snapshot, reach: float) -> Array:
    """(10,) the parameters of the real body that is meant; its centre within 3 `reach` (m)."""
    mean = held.mean
    mass = max(float(mean[0]), LEAST_MASS)
    center = np.clip(mean[1:4] / mass, -3.0 * reach, 3.0 * reach)
    start = compact_body(mass, center)
    scale = np.sqrt(np.maximum(np.diag(held.covariance), 1e-16))
    correlation = held.covariance / np.outer(scale, scale) + 1e-9 * np.eye(10)
    columns = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
    none = np.zeros(0)
    problem = ConvexProblem(columns, columns @ mean, WEIGHT, start[None], none, none, none, none)
    try:
        return problem.minimise(start)
    except (LearningError, RobotModelError, np.linalg.LinAlgError):
        return start


def payload_status(
    held: Snapshot, reach: float, link: str, name: str, settled: bool
) -> PayloadStatus:
    """What the estimate says of the body that is held, or, with a negative mass, that is missing.

    A hand that was learned with a tool in it misses one when it has put it down.
    """
    sign = -1.0 if held.mean[0] < 0.0 else 1.0
    body = nearest_payload(Snapshot(sign * held.mean, held.covariance), reach)
    mass, center = body[0], body[1:4] / body[0]
    covariance = held.covariance
    # d(mc / m) = (d mc - c dm) / m
    J = np.column_stack((-center, np.eye(3))) / mass
    centers = J @ covariance[:4, :4] @ J.T
    about_center, to_center = _about_center(body)
    inertias = to_center @ covariance @ to_center.T
    return PayloadStatus(
        link=link,
        name=name,
        mass=sign * float(mass),
        center=center,
        inertia=sign * about_center,
        mass_std=float(np.sqrt(covariance[0, 0])),
        center_std=np.sqrt(np.diag(centers)),
        inertia_std=np.sqrt(np.maximum(np.diag(inertias), 0.0)),
        parameters=sign * body,
        settled=settled,
    )


def _about_center(body: Array) -> tuple[Array, Array]:
    """(6,) the inertia about the centre of mass, and its derivative (6, 10) by the parameters."""

    def inertia(parameters: Array) -> Array:
        P = pseudo_inertia(parameters)
        P[:3, :3] -= np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
        P[:3, 3] = P[3, :3] = 0.0
        return inertial_parameters(P)[4:]

    h, hm = body[1:4], body[0]
    J = np.zeros((6, 10))
    J[:, 4:] = np.eye(6)
    # I about the origin less m (c'c 1 - c c') = (h'h 1 - h h') / m.
    for k, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))):
        same = float(i == j)
        J[k, 0] = (same * (h @ h) - h[i] * h[j]) / hm**2
        gradient = 2.0 * same * h
        gradient[i] -= h[j]
        gradient[j] -= h[i]
        J[k, 1:4] = -gradient / hm
    return inertia(body), J
