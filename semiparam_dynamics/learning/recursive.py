"""Recursive regularised least squares with a Cholesky factor (thesis 7.4.2 and 8.2.4)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.checks import positive_penalty
from semiparam_dynamics.learning.compiled import solve_back, solve_upper
from semiparam_dynamics.learning.deferred_rotation import DeferredRotation
from semiparam_dynamics.learning.directional import DirectionalForgetting

LEAST_WEIGHT = 1e-4  # rows that would add less information add none


class RecursiveLeastSquares:
    """Ridge regression, one row at a time, at a cost that does not depend on the rows seen.

    The state after k rows (z, y) is the upper-triangular R (D, D) with R'R = penalty I + sum z'z
    and U = R^-T B (D, T) with B = sum z'y. A row is rotated into [R U] by D Givens rotations;
    a prediction is one triangular solve, and its leverage comes with it. The rotation waits for
    the next prediction and is done in the same pass over R; see :class:`DeferredRotation`, also
    for `dtype`, in which R is stored. `penalty` is the plain ridge: it is added once, at the
    start, and is not multiplied by the number of rows.
    Features may be added while learning goes on, up to `capacity`, and the ridge may be changed.

    What was learned can fade, in three ways: all of it at one rate (:meth:`forget`), what newer
    rows show again (:meth:`forget_shown`, now and then), or what a row replaces
    (:meth:`update_replacing`). With `forgetting` below 1 every update begins with `forget` of it.
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        penalty: float = 1.0,
        *,
        capacity: int | None = None,
        forgetting: float = 1.0,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        capacity = max(n_features, capacity or 0, 1)
        self.penalty = penalty
        self.forgetting = forgetting
        self.n_features = n_features
        self.n_outputs = n_outputs
        self._factor = DeferredRotation(capacity, n_outputs, dtype)
        np.fill_diagonal(self.R, math.sqrt(penalty))
        self._scale: Array = np.ones(capacity)
        self._prior: Array = np.zeros((capacity, n_outputs))
        self._ridge: Array = np.full(capacity, penalty)  # in R'R now, in units of scale_j^2
        self.leverage = 0.0
        self._refreshed = 0

    @property
    def R(self) -> Array:
        """The factor of the information, (capacity, capacity); the first D features are in use."""
        R: Array = self._factor.R
        return R

    @property
    def U(self) -> Array:
        """R^-T B, (capacity, T)."""
        return self._factor.U

    def set_prior(self, weights: Array, scale: Array) -> None:
        """Start from `weights` (D, T), held by the ridge penalty * scale_j^2 on feature j."""
        self._scale[:] = scale
        self._prior[:] = weights
        np.fill_diagonal(self.R, math.sqrt(self.penalty) * scale)
        self.U[:] = np.diagonal(self.R)[:, None] * weights

    def set_penalty(self, penalty: float) -> None:
        """Hold the weights by another ridge from now on; no prediction changes by that alone.

        The difference is put in, or taken out, as rows that agree with the present weights W:
        R'R becomes R'R + (new - old) diag(scale)^2, and U = R W keeps W. So what is learned later
        gives the ridge solution with the new penalty, its difference to the old one pulling to W
        instead of to where learning started. O(D^3), once. With `forgetting` the old ridge fades
        by itself and is put back as the new one: nothing else need be done.

        Raises what :meth:`check_penalty` does; the state is then what it was.
        """
        self.check_penalty(penalty)
        n, before = self.n_features, self.penalty
        if self.forgetting == 1.0 and penalty != before and n:
            change = (penalty - self._ridge[:n]) * self._scale[:n] ** 2
            W, R = self.weights(), self.R[:n, :n]
            if np.min(change) >= 0.0:
                added = np.diag(np.sqrt(change))
                new = np.asarray(np.linalg.qr(np.concatenate((R, added)), mode="r"))
            else:
                new = np.asarray(np.linalg.cholesky(R.T @ R + np.diag(change))).T
            R[:] = np.triu(new * np.where(np.diag(new) < 0.0, -1.0, 1.0)[:, None])
            self.U[:n] = R @ W
            self._ridge[:n] = penalty
        self.penalty = penalty
        self._ridge[n:] = penalty
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
        least = 100.0 * n * float(np.finfo(self.R.dtype).eps) * largest
        if penalty < least:
            raise LearningError(
                f"the penalty can't be lowered from {self.penalty:g} to {penalty:g} any more: "
                f"it would be lost in rounding beside what was learned; {least:.2g} is the least"
            )

    def predict(self, row: Array) -> Array:
        """Outputs (T,) for a feature row (D,); `leverage` is then z (R'R)^-1 z'."""
        output, self.leverage = self._factor.ask(row, self.n_features)
        return output

    def leverages(self, rows: Array) -> Array:
        """z (R'R)^-1 z' of each feature row, (k,) for (k, D)."""
        return self._factor.leverages(rows, self.n_features)

    def update_rows(self, rows: Array, targets: Array) -> Array:
        """Learn that the feature rows (k, D) gave the outputs `targets` (k, T).

        Returns what the rotations leave of the targets, (k, T): e / sqrt(1 + s), with e the error
        and s the leverage of each row before it was learned.
        """
        left = targets.copy()
        if self.forgetting < 1.0:
            for k in range(len(rows)):
                self.forget(self.forgetting)
                self._factor.learn_rows(rows[k : k + 1], left[k : k + 1], self.n_features)
        else:
            self._factor.learn_rows(rows, left, self.n_features)
        return left

    def learn_in_turn(
        self, rows: Array, targets: Array, group: int = 1, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Ask and then learn rows (k, D) with targets (k, T), `group` of them at a time.

        weights : (k / group, D), where T is 1, to be filled with the weights after each group.
        Returns errors (k, T) and leverages (k,) of when they were asked. Not with `forgetting`.
        """
        rows, targets = (np.ascontiguousarray(a, dtype=np.float64) for a in (rows, targets))
        known = np.empty((0, self.n_features)) if weights is None else weights
        return self._factor.learn_groups(rows, targets, self.n_features, group, known)

    def update(self, row: Array, target: Array) -> None:
        """Learn that the feature row (D,) gave the outputs `target` (T,)."""
        if self.forgetting < 1.0:
            self.forget(self.forgetting)
        self._factor.learn(row, target, self.n_features)

    def just_learned(self) -> tuple[Array, Array]:
        """What the row z learned last was learned with: R (>=D, >=D) of before it, R^-T z (D,).

        Until the next call of anything, and only after :meth:`predict` and :meth:`update` of it.
        """
        return self._factor.before_last_row(self.n_features)

    def settle(self) -> None:
        """Rotate in now the row learned last, so that the next prediction needn't; same numbers."""
        self._factor.settle()

    def add_feature(self) -> None:
        """Make room for one more feature, whose weights start at zero."""
        if self.n_features == self._factor.capacity:
            raise IndexError("the capacity for features is used up")
        self.n_features += 1

    def weights(self) -> Array:
        """W = R^-1 U, (D, T): only to look at; no prediction needs it."""
        n = self.n_features
        W = np.array(self.U[:n])
        R, _ = self._factor.storage
        if self.n_outputs == 1:
            solve_back(R, W.reshape(n), n)
        else:
            solve_upper(R, W, n)
        return W

    def covariance_diagonal(self) -> Array:
        """The diagonal of (R'R)^-1, (D,): parameter variances in units of the noise's."""
        n = self.n_features
        inverse = np.eye(n)
        solve_upper(self._factor.storage[0], inverse, n)
        variances: Array = np.sum(inverse**2, axis=1)
        return variances

    def forget(self, factor: float) -> None:
        """Let everything learned count `factor` in (0, 1] of what it did (exponential forgetting).

        The ridge towards the prior fades with it and is put back a feature at a time, each at
        least once while the rest fades to 1/e, so that on average it is the penalty. So where
        nothing is learned any more, the weights go back to the prior.
        """
        n = self.n_features
        if factor >= 1.0 or not n:
            return
        self._factor.fade(math.sqrt(factor), n)
        self._ridge[:n] *= factor
        at_a_time = max(1, math.ceil(-n * math.log(factor)))
        decay = -math.log(factor) * n / at_a_time  # of a feature's ridge until its next turn
        level = self.penalty * decay / -math.expm1(-decay)
        for _ in range(at_a_time):
            self._restore_ridge(self._refreshed % n, level, n)
            self._refreshed += 1

    def _restore_ridge(self, j: int, level: float, n: int) -> None:
        missing = level - self._ridge[j]
        if missing <= 0.0:
            return
        self._ridge[j] = level
        row = np.zeros(n)
        row[j] = math.sqrt(missing) * self._scale[j]
        self._factor.learn(row, row[j] * self._prior[j], n)

    def forget_shown(self, directions: DirectionalForgetting, share: float) -> None:
        """Forget only what the rows of late show again; their `directions` go on from here.

        share : what exponential forgetting would take away, 1 - exp(-time / memory), at most 1/4.
        No weight changes, and the ridge stays as it is. Where rounding leaves no answer nothing is
        forgotten. O(D^3), so not for each row.
        """
        n = self.n_features
        R, ridge = self.R[:n, :n], self._ridge[:n] * self._scale[:n] ** 2
        try:
            C = directions.retained(R, ridge, share)
        except np.linalg.LinAlgError:
            return
        R[:] = C @ R
        self.U[:n] = C @ self.U[:n]

    def update_replacing(self, row: Array, target: Array, share: float) -> None:
        """:meth:`update`, but what is known gives way to a row that tells little new.

        share : in [0, 1), time between rows / memory. Information z'z is added c times,
            c = (s - share) / (s + share) or 0, with s the leverage of z; the weights learn the row
            in full. That is restricted exponential forgetting (Kulhavy 1987; see `directional`)
            that takes away at most what comes in: where s > share more is learned than forgotten,
            and from there on the weights follow at this rate. R'R never shrinks, so that nothing
            is lost that is not overwritten; and no row's leverage is pressed below share.
        """
        n = self.n_features
        error = target - self.predict(row)
        weight = (self.leverage - share) / max(self.leverage + share, np.finfo(float).tiny)
        if weight < LEAST_WEIGHT:
            self.U[:n] += np.outer(self._factor.solved(n), error)  # c = 0: R stays, W moves
            return
        root = math.sqrt(weight)
        self._factor.learn(row, root * (target - error) + error / root, n, root)

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        n = self.n_features
        state = {
            "R": self.R[:n, :n].copy(),
            "U": self.U[:n].copy(),
            "refreshed": np.array(self._refreshed),
            "penalty": np.array(self.penalty),
            "ridge": self._ridge[:n].copy(),
        }
        if self.R.dtype != np.float64:
            state["rows"] = np.array(self._factor.n_rows)
        return state

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`, with its penalty if it names one."""
        n = len(state["R"])
        self.penalty = float(state.get("penalty", self.penalty))
        self.R[:] = 0.0
        self.U[:] = 0.0
        self._factor.reset()
        self._factor.n_rows = float(state.get("rows", 0.0))
        np.fill_diagonal(self.R, math.sqrt(self.penalty) * self._scale)
        self.R[:n, :n] = state["R"]
        self.U[:n] = state["U"]
        self._ridge[:] = self.penalty
        self._ridge[:n] = state.get("ridge", self.penalty)
        self.n_features = n
        self._refreshed = int(state["refreshed"])
