"""One instant of a robot arm, as it was measured."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.arrays import Array


@dataclass(frozen=True, slots=True)
class Measurement:
    """One instant, as measured.

    Attributes
    ----------
    stamp: the message's time, in nanoseconds.
    q: (n_joints,) joint positions, rad (m for prismatic joints).
    dq: (n_joints,) joint velocities, rad/s (m/s), or None where the driver gives none.
    y: (n_axes,) measured joint efforts (N m, N for prismatic joints) or the wrench
        (fx, fy, fz in N, tx, ty, tz in N m), or None where it wasn't measured at this instant.
    """

    stamp: int
    q: Array
    dq: Array | None
    y: Array | None
