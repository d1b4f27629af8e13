"""Regressor columns beside the inertial ones: friction, offsets, rotor inertia, sensor offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EffectColumns:
    """Columns with one entry each, on the row of their own joint or sensor axis.

    Per joint i: viscous friction dq_i (N m s/rad), Coulomb friction tanh(dq_i / v) (N m), a
    constant offset (N m), rotor inertia ddq_i (kg m^2); newtons for prismatic joints. tanh stands
    for the sign, which would jump with the noise of a joint at rest. Per sensor axis: an offset.
    """

    labels: tuple[str, ...]
    rows: npt.NDArray[np.intp]
    source: npt.NDArray[np.intp]  # index into [dq, tanh(dq / v), ddq, 1]
    coulomb_velocity: float

    def values(self, dq: Array, ddq: Array) -> Array:
        """(n_columns,) the entry of each column; dq, ddq: (n_joints,) rad/s, rad/s^2."""
        sign = np.tanh(dq * (1.0 / self.coulomb_velocity))
        return np.concatenate((dq, sign, ddq, _ONE)).take(self.source)

    def select(self, columns: npt.NDArray[np.intp]) -> EffectColumns:
        """The same with only some of the columns."""
        labels = tuple(self.labels[i] for i in columns)
        return EffectColumns(
            labels, self.rows[columns], self.source[columns], self.coulomb_velocity
        )


_ONE = np.ones(1)


def joint_effects(
    joints: Sequence[str],
    *,
    viscous: bool,
    coulomb: bool,
    offset: bool,
    rotor_inertia: bool,
    coulomb_velocity: float,
) -> EffectColumns:
    """The chosen columns of every joint, kind by kind."""
    n = len(joints)
    own = np.arange(n)
    chosen = (
        (viscous, "viscous", own),
        (coulomb, "coulomb", n + own),
        (offset, "offset", np.full(n, 3 * n)),
        (rotor_inertia, "rotor_inertia", 2 * n + own),
    )
    kinds = [(name, source) for wanted, name, source in chosen if wanted]
    labels = tuple(f"{name} {joint}" for name, _ in kinds for joint in joints)
    empty = np.empty(0, dtype=np.intp)
    rows = np.concatenate([empty, *(own for _ in kinds)])
    source = np.concatenate([empty, *(source for _, source in kinds)])
    return EffectColumns(labels, rows, source, coulomb_velocity)


def sensor_offsets(axes: Sequence[str], n_joints: int, *, wanted: bool) -> EffectColumns:
    """One constant column per sensor axis (N or N m), or none."""
    n = len(axes) if wanted else 0
    labels = tuple(f"offset {axis}" for axis in axes[:n])
    return EffectColumns(labels, np.arange(n), np.full(n, 3 * n_joints), 1.0)
