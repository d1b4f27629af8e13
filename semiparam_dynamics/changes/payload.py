"""Payloads by name, and the body that an estimate of ten inertial parameters means.

The nearest body in the metric of the estimate's information: minimized over positive definite
pseudo-inertias P is (theta - mean)' information (theta - mean) + weight D(P || P0), with D the
entropic divergence of `robot.inertia` from a compact body P0 at the estimate's centre
of mass. The problem is convex; `identification.convex_problem` finds its minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, RobotModelError
from semiparam_dynamics.changes.config import BARE, PayloadStatus
from semiparam_dynamics.changes.load import load_of
from semiparam_dynamics.robot.convex_problem import ConvexProblem
from semiparam_dynamics.robot.inertia import compact_body

# Of payloads' masses, and of their centres' distances from the origin of the payload link,
# standard deviations.
TYPICAL_MASS_KG, TYPICAL_REACH_M = 2.0, 0.3
MAX_NAME_LENGTH = 100
MAX_SNAPSHOTS = 1000
# Standard deviations between one grasp of a thing and the next.
REGRASP_SHARE = 0.02  # of all parameters
REGRASP_SHIFT_M = 0.005
MIN_MASS_KG = 1e-3  # of P0, where the estimate has none
DIVERGENCE_WEIGHT = 0.01  # a hundredth of an observation


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A payload's ten parameters and their covariance, in the frame of the payload link.

    gains: (10, 10) what gain errors of the axes add to the covariance: an error of all that the
    same axes measure, so that a thing that was held before is known again without it.
    """

    mean: Array  # (10,)
    covariance: Array  # (10, 10)
    gains: Array = field(default_factory=lambda: np.zeros((10, 10)))

    def held_again(self) -> Array:
        """(10, 10) the covariance after another grasp, a little different from the first."""
        m, r = abs(self.mean[0]), REGRASP_SHIFT_M
        shift = np.array([0.0, *[m * r] * 3, *[2.0 * r * np.linalg.norm(self.mean[1:4])] * 6])
        covariance: Array = self.covariance + np.diag(shift**2 + (REGRASP_SHARE * self.mean) ** 2)
        return covariance


class Snapshots:
    """Known payloads by name. The bare hand is always among them, under the name `BARE`."""

    def __init__(self) -> None:
        self._known: dict[str, Snapshot] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the bare hand first."""
        return (BARE, *self._known)

    def __getitem__(self, name: str) -> Snapshot:
        """The payload of a name. Raises ConfigurationError where there is none."""
        if name == BARE:
            return Snapshot(np.zeros(10), np.zeros((10, 10)))
        if name not in self._known:
            known = ", ".join(self.names)
            raise ConfigurationError(f"no payload is known as '{name}'; there are: {known}")
        return self._known[name]

    def store(self, name: str, snapshot: Snapshot) -> None:
        """Keep a payload under a name, replacing any other. Raises ConfigurationError."""
        if name == BARE:
            raise ConfigurationError(f"'{BARE}' is the hand without a payload: choose another name")
        if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            raise ConfigurationError(
                f"a payload's name has 1 to {MAX_NAME_LENGTH} printable characters, not "
                f"{name!r:.120}"
            )
        if name not in self._known and len(self._known) >= MAX_SNAPSHOTS:
            raise ConfigurationError(
                f"there are {MAX_SNAPSHOTS} payloads already: remove one first"
            )
        self._known[name] = snapshot

    def remove(self, name: str) -> None:
        """Remove a payload. Raises ConfigurationError for an unknown one and for the bare hand."""
        if name == BARE:
            raise ConfigurationError(f"'{BARE}' is the hand without a payload: it can't be removed")
        self[name]
        del self._known[name]

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        known = list(self._known.values())
        return {
            "names": as_array("\n".join(self._known)),
            "means": np.array([s.mean for s in known]).reshape(-1, 10),
            "covariances": np.array([s.covariance for s in known]).reshape(-1, 10, 10),
            "gains": np.array([s.gains for s in known]).reshape(-1, 10, 10),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where its parts don't match."""
        text = as_text(state["names"])
        names = text.split("\n") if text else []
        rows = zip(names, state["means"], state["covariances"], state["gains"], strict=True)
        self._known = {name: Snapshot(m.copy(), c.copy(), g.copy()) for name, m, c, g in rows}


def payload_status(held: Snapshot, link: str, name: str, settled: bool) -> PayloadStatus:
    """The body that is held, or, with a negative mass, missing, with its standard deviations.

    A body is missing where the hand was learned with a tool in it that it has put down. The other
    arguments are those of the status.
    """
    sign = -1.0 if held.mean[0] < 0.0 else 1.0
    covariance = held.covariance + held.gains
    body = nearest_payload(Snapshot(sign * held.mean, covariance))
    mass, center = body[0], body[1:4] / body[0]
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


def nearest_payload(held: Snapshot) -> Array:
    """(10,) the parameters of the nearest real body; P0's centre is within 3 typical reaches."""
    mean = held.mean
    mass = max(float(mean[0]), MIN_MASS_KG)
    center = np.clip(mean[1:4] / mass, -3.0 * TYPICAL_REACH_M, 3.0 * TYPICAL_REACH_M)
    start = compact_body(mass, center)
    scale = np.sqrt(np.maximum(np.diag(held.covariance), 1e-16))
    correlation = held.covariance / np.outer(scale, scale) + 1e-9 * np.eye(10)
    columns = np.linalg.inv(np.linalg.cholesky(correlation)) / scale
    none = np.zeros(0)
    problem = ConvexProblem(
        columns, columns @ mean, DIVERGENCE_WEIGHT, start[None], none, none, none, none
    )
    try:
        return problem.minimize(start)
    except (LearningError, RobotModelError, np.linalg.LinAlgError):
        return start


def _about_center(body: Array) -> tuple[Array, Array]:
    """(6,) the inertia about the centre of mass, and its derivative (6, 10) by the parameters."""
    h, hm = body[1:4], body[0]
    pairs = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    J = np.zeros((6, 10))
    J[:, 4:] = np.eye(6)
    # I about the origin less m (c'c 1 - c c') = (h'h 1 - h h') / m.
    for k, (i, j) in enumerate(pairs):
        same = float(i == j)
        J[k, 0] = (same * (h @ h) - h[i] * h[j]) / hm**2
        gradient = 2.0 * same * h
        gradient[i] -= h[j]
        gradient[j] -= h[i]
        J[k, 1:4] = -gradient / hm
    return load_of(body).inertia[tuple(np.transpose(pairs))], J


def as_array(text: str) -> Array:
    """A text's bytes as numbers, to be saved among arrays."""
    return np.array(list(text.encode()), dtype=np.float64)


def as_text(array: Array) -> str:
    """The text of :func:`as_array`. Raises ValueError where it isn't one."""
    return bytes(array.astype(np.int64).tolist()).decode()
