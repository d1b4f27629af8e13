"""Recursive regularised least squares with a Cholesky factor (thesis 7.4.2 and 8.2.4)."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.checks import positive_penalty
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
    Features may be added while learning goes on, up to `capacity`, and the ridge may be changed.
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
        self._scale: Array = np.ones(capacity)
        self.leverage = 0.0
        self._refreshed = 0
        self._row = np.zeros(capacity)
        self._solved = np.zeros(capacity)
        self._target = np.zeros(n_outputs)
        self._output = np.zeros(n_outputs)

    def set_prior(self, weights: Array, scale: Array) -> None:
        """Start from `weights` (D, T), held by the ridge penalty * scale_j^2 on feature j."""
        self._scale[:] = scale
        np.fill_diagonal(self.R, math.sqrt(self.penalty) * scale)
        self.U[:] = np.diagonal(self.R)[:, None] * weights

    def set_penalty(self, penalty: float) -> None:
        """Hold the weights by another ridge from now on; no prediction changes by that alone.

        The difference is put in, or taken out, as rows that agree with the present weights W:
        R'R becomes R'R + (new - old) diag(scale)^2, and U = R W keeps W. So what is learned later
        gives the ridge solution with the new penalty, its difference to the old one pulling to W
        instead of to where learning started. O(D^3), once. With forgetting the old ridge fades by
        itself and is put back as the new one: nothing else need be done.

        Raises what :meth:`check_penalty` does; the state is then what it was.
        """
        self.check_penalty(penalty)
        n, before = self.n_features, self.penalty
        if self.forgetting == 1.0 and penalty != before and n:
            change = (penalty - before) * self._scale[:n] ** 2
            W, R = self.weights(), self.R[:n, :n]
            if penalty > before:
                added = np.diag(np.sqrt(change))
                new = np.asarray(np.linalg.qr(np.concatenate((R, added)), mode="r"))
            else:
                new = np.asarray(np.linalg.cholesky(R.T @ R + np.diag(change))).T
            R[:] = np.triu(new * np.where(np.diag(new) < 0.0, -1.0, 1.0)[:, None])
            self.U[:n] = R @ W
        self.penalty = penalty
        unused = np.arange(n, len(self.R))
        self.R[unused, unused] = math.sqrt(penalty) * self._scale[unused]

    def check_penalty(self, penalty: float) -> None:
        """Raise where :meth:`set_penalty` would refuse.

        ConfigurationError for what is no positive number; LearningError for a lower ridge that
        rounding would not leave two digits of beside what was learned.
        """
        positive_penalty(penalty)
        if penalty >= self.penalty or self.forgetting < 1.0:
            return
        n = self.n_features
        rows = self.R[:n, :n] / self._scale[:n]
        largest = float(np.max(np.sum(rows**2, axis=0), initial=0.0))
        least = 100.0 * n * float(np.finfo(float).eps) * largest
        if penalty < least:
            raise LearningError(
                f"the penalty can't be lowered from {self.penalty:g} to {penalty:g} any more: "
                f"it would be lost in rounding beside what was learned; {least:.2g} is the least"
            )

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
            "penalty": np.array(self.penalty),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`, with its penalty if it names one."""
        n = len(state["R"])
        self.penalty = float(state.get("penalty", self.penalty))
        self.R[:] = 0.0
        self.U[:] = 0.0
        np.fill_diagonal(self.R, math.sqrt(self.penalty) * self._scale)
        self.R[:n, :n] = state["R"]
        self.U[:n] = state["U"]
        self.n_features = n
        self._refreshed = int(state["refreshed"])
