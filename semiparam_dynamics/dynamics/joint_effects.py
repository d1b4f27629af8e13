"""Regressor columns beside the inertial ones: friction, offsets, rotor inertia, sensor offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array


@dataclass(frozen=True)
class EffectColumns:
    """Columns with one entry each, on the row of their own joint or sensor axis.

    Per joint i: viscous friction dq_i (N m s/rad), Coulomb friction tanh(dq_i / v) (N m), a
    constant offset (N m), rotor inertia ddq_i (kg m^2); newtons for prismatic joints. tanh stands
    for the sign, which would jump with the noise of a joint at rest. Per sensor axis: an offset.

    A transmission that one motor shares between two joints, as in many wrists, has friction and
    inertia that go with the sum (or difference) of their velocities, and act on both.
    """

    labels: tuple[str, ...]
    rows: npt.NDArray[np.intp]
    source: npt.NDArray[np.intp]  # index into [dq', tanh(dq' / v), ddq', 1]
    coulomb_velocity: float
    mixing: Array  # (n_joints + n_couplings, n_joints): dq' = mixing dq, ddq' = mixing ddq

    def values(self, dq: Array, ddq: Array) -> Array:
        """(n_columns,) the entry of each column; dq, ddq: (n_joints,) rad/s, rad/s^2."""
        mixed = self.mixing @ dq
        sign = np.tanh(mixed * (1.0 / self.coulomb_velocity))
        return np.concatenate((mixed, sign, self.mixing @ ddq, _ONE)).take(self.source)

    def select(self, columns: npt.NDArray[np.intp]) -> EffectColumns:
        """The same with only some of the columns."""
        return replace(
            self,
            labels=tuple(self.labels[i] for i in columns),
            rows=self.rows[columns],
            source=self.source[columns],
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
    couplings: Sequence[tuple[int, int, float]] = (),
) -> EffectColumns:
    """The chosen columns of every joint, kind by kind, then those of the couplings.

    A coupling (i, j, sign) moves at dq_i + sign dq_j, and its columns act on joint i and joint j.
    """
    n = len(joints)
    mixing = np.vstack([np.eye(n), np.zeros((len(couplings), n))])
    # Each mover: its name, its place in the mixed velocities, and the row that it acts on.
    movers = [(joint, i, i) for i, joint in enumerate(joints)]
    for k, (i, j, sign) in enumerate(couplings):
        mixing[n + k, [i, j]] = 1.0, sign
        name = f"{joints[i]}{'+' if sign > 0 else '-'}{joints[j]}"
        movers += [(f"{name} on {joints[row]}", n + k, row) for row in (i, j)]
    size = n + len(couplings)
    kinds = [
        (name, base)
        for wanted, name, base in (
            (viscous, "viscous", 0),
            (coulomb, "coulomb", size),
            (offset, "offset", -1),
            (rotor_inertia, "rotor_inertia", 2 * size),
        )
        if wanted
    ]
    labels, rows, source = [], [], []
    for own in (movers[:n], movers[n:]):
        for kind, base in kinds:
            for name, place, row in own:
                if base < 0 and place >= n:
                    continue  # a coupling has no offset of its own
                labels.append(f"{kind} {name}")
                rows.append(row)
                source.append(3 * size if base < 0 else base + place)
    return EffectColumns(
        tuple(labels),
        np.array(rows, dtype=np.intp),
        np.array(source, dtype=np.intp),
        coulomb_velocity,
        mixing,
    )


def sensor_offsets(axes: Sequence[str], n_joints: int, *, wanted: bool) -> EffectColumns:
    """One constant column per sensor axis (N or N m), or none."""
    n = len(axes) if wanted else 0
    labels = tuple(f"offset {axis}" for axis in axes[:n])
    mixing = np.eye(n_joints)
    return EffectColumns(labels, np.arange(n), np.full(n, 3 * n_joints), 1.0, mixing)
