"""Which columns of the bodies' and effects' regressor are computed, and where they go."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.compiled_regressor import MOTION, fill
from semiparam_dynamics.dynamics.joint_effects import EffectColumns
from semiparam_dynamics.dynamics.multibody import Multibody


class Regressor:
    """The regressor of some inertial columns of a `Multibody`, then some effects' columns.

    kept: indices of the inertial columns, ten per body, in their order.

    Its entries are computed one by one, without those that are always zero (a joint doesn't feel
    the bodies before it) and without the columns left out. One compiled function does one state
    and a million, so that both give the same numbers to the last bit.

    Not thread-safe: the working memory is shared between calls.
    """

    def __init__(self, multibody: Multibody, kept: Indices, effects: EffectColumns) -> None:
        self.n_axes = len(multibody.units)
        self.n_joints = multibody.n_joints
        self.n_columns = len(kept) + len(effects.labels)
        self.size = self.n_axes * self.n_columns  # of one regressor
        bodies, which = np.divmod(kept, 10)
        columns = np.column_stack((multibody.body_joints[bodies], which))
        felt = multibody.feels[:, bodies]
        row, column = np.nonzero(felt)
        entries = np.column_stack((row, column, row * self.n_columns + column))
        places = effects.rows * self.n_columns + len(kept) + np.arange(len(effects.labels))
        self._tree = multibody.geometry, multibody.joints, multibody.units
        self._columns = _indices(columns), _indices(entries)
        self._mixing: Array = np.ascontiguousarray(effects.mixing)
        self._effects = _indices(np.column_stack((places, effects.source)))
        self._per_velocity = 1.0 / effects.coulomb_velocity
        rows = len(multibody.joints) + 1 + self.n_axes + len(kept)
        self._work: Array = np.zeros((rows, MOTION))

    def fill(self, q: Array, dq: Array, ddq: Array, out: Array, offset: int = 0) -> None:
        """The flat regressors at q, dq, ddq (n, n_joints) into out[:, offset:], (n, size).

        All are C-ordered float64 that may be written to: for any others the function would be
        compiled again.
        """
        effects = self._mixing, self._effects
        per_velocity, work = self._per_velocity, self._work
        fill(q, dq, ddq, *self._tree, *self._columns, *effects, per_velocity, work, out, offset)


def _indices(values: Indices) -> Indices:
    return np.ascontiguousarray(values, dtype=np.intp)
