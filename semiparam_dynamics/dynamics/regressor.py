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

    `arguments` is what `compiled_regressor.fill` takes between the states and the output.

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
        rows = len(multibody.joints) + 1 + self.n_axes + len(kept)
        self.arguments = (
            *(multibody.geometry, multibody.joints, multibody.units),
            *(_indices(columns), _indices(entries)),
            np.ascontiguousarray(effects.mixing),
            _indices(np.column_stack((places, effects.source))),
            1.0 / effects.coulomb_velocity,
            np.zeros((rows, MOTION)),  # the working memory
        )

    def fill(self, q: Array, dq: Array, ddq: Array, out: Array, offset: int = 0) -> None:
        """The flat regressors at q, dq, ddq (n, n_joints) into out[:, offset:], (n, size).

        All are C-ordered float64 that may be written to: for any others the function would be
        compiled again.
        """
        fill(q, dq, ddq, *self.arguments, out, offset)


def _indices(values: Indices) -> Indices:
    return np.ascontiguousarray(values, dtype=np.intp)
