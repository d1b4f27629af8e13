"""Regression targets of which the residual for any parameters of the rigid body follows.

Targets y - Phi pi_t would go stale as the parameters pi move; so y and the columns of Phi are
regressed, and y - Phi pi for today's pi is a difference of what was learned of them.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.jit import compiled


class ExactTargets:
    """y and the columns of Phi that act on each axis, in one vector (T,).

    active : (n_axes, n_parameters) marks the columns; None: none, so that y is all.

    Attributes
    ----------
    axis : (T,) of each target.
    """

    def __init__(self, n_axes: int, active: Array | None) -> None:
        self.n_axes = n_axes
        entries = np.nonzero(np.zeros((1, 1)) if active is None else active)
        self._row, self._column = (np.ascontiguousarray(each) for each in entries)
        self._starts = np.searchsorted(self._row, np.arange(n_axes + 1))
        self.axis: Indices = np.append(np.arange(n_axes), self._row)

    def __len__(self) -> int:
        return len(self.axis)

    def of(self, y: Array, regressor: Array) -> Array:
        """The targets (T,) of a sample, or (k, T) of k; 0 where an axis was not measured (NaN).

        So its residual is 0, whatever the parameters.
        """
        targets = np.concatenate((y, regressor[..., self._row, self._column]), axis=-1)
        unknown = np.isnan(y)
        if unknown.any():
            targets[unknown[..., self.axis]] = 0.0
        return targets

    def residuals(self, outputs: Array, parameters: Array) -> Array:
        """y - Phi pi (n_axes,) of outputs (T,) or more; or (k, n_axes) of k, of one pi or k."""
        rows = np.ascontiguousarray(outputs.reshape(-1, outputs.shape[-1]))
        found = np.empty((len(rows), self.n_axes))
        subtract_columns(rows, rows_of(parameters), *self.arrays(), found)
        return found.reshape((*outputs.shape[:-1], self.n_axes))

    def arrays(self) -> tuple[Indices, Indices]:
        """For compiled functions: where each axis' columns begin, and the columns' parameters."""
        return self._starts, self._column


def rows_of(parameters: Array) -> Array:
    """Parameters (n,), or (k, n) of k samples, as (1 or k, n): one row where they are all alike."""
    if parameters.ndim == 1:
        return parameters[None]
    one = parameters.strides[0] == 0  # broadcast
    return parameters[:1].copy() if one else np.ascontiguousarray(parameters)


@compiled
def subtract_columns(
    outputs: Array, parameters: Array, starts: Indices, column: Indices, found: Array
) -> None:
    """Fill `found` (k, n_axes) with y - Phi pi of outputs (k, T); parameters (1 or k, n)."""
    n, pi = found.shape[1], np.empty(column.size)
    for s in range(len(outputs)):
        if s < len(parameters):
            for t in range(column.size):
                pi[t] = parameters[s, column[t]]
        columns = outputs[s, n:]
        for j in range(n):
            # In a view, whose indices begin with 0, the loop takes several at a time.
            own, on = columns[starts[j] : starts[j + 1]], pi[starts[j] : starts[j + 1]]
            moved = 0.0
            for t in range(own.size):
                moved += own[t] * on[t]
            found[s, j] = outputs[s, j] - moved
