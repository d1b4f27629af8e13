"""Recursive regularised least squares with a Cholesky factor (thesis 7.4.2 and 8.2.4)."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import (
    leverage_rows,
    project,
    rotate_row,
    rotate_rows,
    solve_transposed,
    solve_upper,
)


class RecursiveLeastSquares:
    """Ridge regression, one row at a time, at a cost that does not depend on the rows seen.

    The state after k rows (z, y) is the upper-triangular R (D, D) with R'R = penalty I + sum z'z
    and U = R^-T B (D, T) with B = sum z'y. A row is rotated into [R U] by D Givens rotations;
    a prediction is one triangular solve, and its leverage comes with it. `penalty` is the plain
    ridge: it is added once, at the start, and is not multiplied by the number of rows.
    Features may be added while learning goes on, up to `capacity`.
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        penalty: float = 1.0,
        *,
        capacity: int | None = None,
        forgetting: float = 1.0,
    ) -> None:
        capacity = max(n_features, capacity or 0, 1)
        self.penalty = penalty
        self.forgetting = forgetting
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.R: Array = np.zeros((capacity, capacity))
        self.U: Array = np.zeros((capacity, n_outputs))
        np.fill_diagonal(self.R, math.sqrt(penalty))
        self.leverage = 0.0
        self._refreshed = 0
        self._row = np.zeros(capacity)
        self._solved = np.zeros(capacity)
        self._target = np.zeros(n_outputs)
        self._output = np.zeros(n_outputs)

    def set_prior(self, weights: Array, scale: Array) -> None:
        """Start from `weights` (D, T), held by the ridge penalty * scale_j^2 on feature j."""
        np.fill_diagonal(self.R, math.sqrt(self.penalty) * scale)
        self.U[:] = np.diagonal(self.R)[:, None] * weights

    def predict(self, row: Array) -> Array:
        """Outputs (T,) for a feature row (D,); `leverage` is then z (R'R)^-1 z'."""
        n = self.n_features
        solve_transposed(self.R, row, self._solved, n)
        project(self.U, self._solved, self._output, n)
        self.leverage = float(self._solved[:n] @ self._solved[:n])
        return self._output.copy()

    def leverages(self, rows: Array) -> Array:
        """z (R'R)^-1 z' of each feature row, (k,) for (k, D)."""
        result = np.empty(len(rows))
        leverage_rows(self.R, rows, self._solved, result, self.n_features)
        return result

    def update_rows(self, rows: Array, targets: Array) -> Array:
        """Learn that the feature rows (k, D) gave the outputs `targets` (k, T).

        Returns what the rotations leave of the targets, (k, T): e / sqrt(1 + s), with e the error
        and s the leverage of each row before it was learned.
        """
        left = targets.copy()
        if self.forgetting < 1.0:
            for k, (row, target) in enumerate(zip(rows, targets, strict=True)):
                self.update(row, target)
                left[k] = self._target
        else:
            rotate_rows(self.R, self.U, rows.copy(), left, self.n_features)
        return left

    def update(self, row: Array, target: Array) -> None:
        """Learn that the feature row (D,) gave the outputs `target` (T,)."""
        n = self.n_features
        if self.forgetting < 1.0:
            self._forget(n)
        self._row[:n] = row[:n]
        self._target[:] = target
        rotate_row(self.R, self.U, self._row, self._target, n)

    def add_feature(self) -> None:
        """Make room for one more feature, whose weights start at zero."""
        if self.n_features == len(self.R):
            raise IndexError("the capacity for features is used up")
        self.n_features += 1

    def weights(self) -> Array:
        """W = R^-1 U, (D, T): only to look at; no prediction needs it."""
        n = self.n_features
        W = self.U[:n].copy()
        solve_upper(self.R, W, n)
        return W

    def covariance_diagonal(self) -> Array:
        """The diagonal of (R'R)^-1, (D,): parameter variances in units of the noise's."""
        n = self.n_features
        inverse = np.eye(n)
        solve_upper(self.R, inverse, n)
        variances: Array = np.sum(inverse**2, axis=1)
        return variances

    def _forget(self, n: int) -> None:
        root = math.sqrt(self.forgetting)
        self.R[:n, :n] *= root
        self.U[:n] *= root
        # The ridge fades with the data; one row e_j a step, j cycling, puts it back.
        self._row[:n] = 0.0
        j = self._refreshed % n
        self._row[j] = math.sqrt((1.0 - self.forgetting) * self.penalty * n)
        self._target[:] = 0.0
        rotate_row(self.R, self.U, self._row, self._target, n)
        self._refreshed += 1

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        n = self.n_features
        return {
            "R": self.R[:n, :n].copy(),
            "U": self.U[:n].copy(),
            "refreshed": np.array(self._refreshed),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        n = len(state["R"])
        self.R[:] = 0.0
        self.U[:] = 0.0
        np.fill_diagonal(self.R, math.sqrt(self.penalty))
        self.R[:n, :n] = state["R"]
        self.U[:n] = state["U"]
        self.n_features = n
        self._refreshed = int(state["refreshed"])
