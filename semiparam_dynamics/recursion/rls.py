"""Recursive regularised least squares with a Cholesky factor (thesis 7.4.2 and 8.2.4)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError, positive_penalty
from semiparam_dynamics.recursion.forgetting import DirectionalForgetting
from semiparam_dynamics.recursion.loops import solve_back, solve_upper
from semiparam_dynamics.recursion.rotation import (
    ANSWER,
    KEEP,
    ROWS,
    SOLVED,
    ask,
    fade,
    learn_groups,
    learn_row,
    learn_rows,
    leverage_rows,
    settle,
)

# -------------------------------------------------------------------------------------------------
# [R U] of a recursion, with the last row's rotation done on the way to the next prediction.

# One more row changes R by 1/(2 rows), relatively; here that is eight times float32's precision.
# From ten times as many on its growth would be rounded away, but not that of U, kept in float64.
MOST_FLOAT32_ROWS = 1e6
CACHE_LINE = 64  # bytes
PAGE_LINES = 64  # cache lines of a page


class DeferredRotation:
    """An upper-triangular R (capacity, capacity) and U (capacity, T) = R^-T B that rows enter.

    A prediction reads all of R, and learning a row reads and writes all of it: two passes through
    memory. Here :meth:`learn` only notes the row, O(D), and the next :meth:`ask` rotates each
    eight rows of R while they are in registers for its own solve: one read and one write a step,
    which is what a large R costs. Anything else that looks at R or U has the rotation done first.
    The results are those of rotating at once, to rounding, and bitwise the same whenever it is
    done. Arithmetic is in float64; `dtype` float32 only stores R so, at half the traffic: the
    error grows as 6e-8 sqrt(rows), relative to R, and it is only for a million rows, or any
    number if what is older fades.
    """

    def __init__(self, capacity: int, n_outputs: int, dtype: npt.DTypeLike = np.float64) -> None:
        self.capacity = capacity
        self.n_outputs = n_outputs
        self.n_rows = 0.0  # that R holds, those that fade counted as what is left of them
        self.most_rows = math.inf if np.dtype(dtype) == np.float64 else MOST_FLOAT32_ROWS
        rows, columns = (-(-n // ROWS) * ROWS for n in (capacity, n_outputs))
        self._R = aligned_zeros(rows, row_length(rows, np.dtype(dtype).itemsize), dtype)
        self._U = aligned_zeros(rows, columns)
        self._work = aligned_zeros(6, rows)
        self._side = aligned_zeros(2, columns)
        # Rows beyond the capacity fill the last block; with a one on the diagonal they do nothing.
        np.fill_diagonal(self._R, 1.0)
        self.reset()

    def reset(self) -> None:
        """Forget what was asked and what is still to do, for an R and U from elsewhere."""
        self._pending, self._asked = 0, False  # pending: the features of the row still to enter
        self._work[:] = 0.0
        self._work[KEEP] = 1.0

    @property
    def R(self) -> Any:
        """R (capacity, capacity), everything learned in it; it may be written to."""
        self.settle()
        return self._R[: self.capacity, : self.capacity]

    @property
    def U(self) -> Array:
        """U (capacity, T), everything learned in it; it may be written to."""
        self.settle()
        U: Array = self._U[: self.capacity, : self.n_outputs]
        return U

    @property
    def storage(self) -> tuple[Any, Array]:
        """R and U with the rows and columns that fill them up, C-ordered, for compiled loops."""
        self.settle()
        return self._R, self._U

    def solved(self, n: int) -> Array:
        """v = R^-T z, (n,), of the row asked last; until the next call of anything."""
        solved: Array = self._work[SOLVED, :n]
        return solved

    def ask(self, row: Array, n: int) -> tuple[Array, float]:
        """Outputs (T,) at a row z of the n features in use, and z (R'R)^-1 z'."""
        pending, asked = self._pending > 0, self._asked
        leverage = ask(self._R, self._U, self._work, self._side, row, n, pending, asked)
        self._pending, self._asked = 0, True
        return -self._side[ANSWER, : self.n_outputs], leverage

    def learn(self, row: Array, target: Array, n: int, scale: float = 1.0) -> None:
        """Let scale times a row (n,) enter with `target` (T,); O(n) if the row was just asked.

        Raises LearningError where float32 could not take up the row.
        """
        self._count(1)
        pending, asked = self._pending > 0, self._asked
        learn_row(self._R, self._U, self._work, self._side, row, target, n, pending, asked, scale)
        self._pending, self._asked = n, False

    def learn_rows(self, rows: Array, targets: Array, n: int) -> None:
        """:meth:`learn` rows (k, n) in turn; `targets` (k, T) become e / sqrt(1 + s)."""
        self._count(len(rows))
        if len(rows):
            arrays, asked = (self._R, self._U, self._work, self._side), self._asked
            learn_rows(*arrays, rows, targets, n, self._pending > 0, asked)
            self._pending, self._asked = n, False

    def learn_groups(
        self, rows: Array, targets: Array, n: int, group: int, weights: Array
    ) -> tuple[Array, Array]:
        """:meth:`ask` `group` rows before they are learned, and so on: errors (k, T), leverages.

        rows : (k, n). targets : (k, T). weights : (0, n), or with one output (k / group, n), to be
        filled with R^-1 U after each group.
        """
        self._count(len(rows))
        errors, leverages = np.empty_like(targets), np.empty(len(rows))
        if len(rows):
            learn_groups(
                self._R,
                self._U,
                self._work,
                self._side,
                rows,
                targets,
                n,
                group,
                self._pending > 0,
                self._asked,
                errors,
                leverages,
                weights,
            )
            self._pending, self._asked = 0 if len(weights) else n, False
        return errors, leverages

    def leverages(self, rows: Array, n: int) -> Array:
        """z (R'R)^-1 z' of each row, (k,) for (k, n)."""
        result = np.empty(len(rows))
        if len(rows):
            arrays, asked = (self._R, self._U, self._work, self._side), self._asked
            leverage_rows(*arrays, rows, result, n, self._pending > 0, asked)
            self._pending, self._asked = 0, True
        return result

    def fade(self, root: float, n: int) -> None:
        """Multiply the first n rows of [R U] by `root`, on the way to the next prediction too."""
        fade(self._work, self._side, root, n, self._pending > 0)
        self.n_rows *= root**2
        self._pending, self._asked = n, False

    def settle(self) -> None:
        """Do the rotation that learning left to do."""
        # Whoever asks for R may write to it: what was solved with it may not hold any longer.
        self._asked = False
        if self._pending:
            settle(self._R, self._U, self._work, self._side, self._pending)
            self._pending = 0

    def copy_from(self, other: DeferredRotation) -> None:
        """Become a copy of `other`, of the same size, in the memory at hand."""
        for name in ("_R", "_U", "_work", "_side"):
            np.copyto(getattr(self, name), getattr(other, name))
        self._pending, self._asked, self.n_rows = other._pending, other._asked, other.n_rows

    def __getstate__(self) -> dict[str, Any]:
        # What is loaded as read-only memory can still be asked if nothing is left to do.
        self.settle()
        return self.__dict__

    def _count(self, n_rows: int) -> None:
        self.n_rows += n_rows
        if self.n_rows > self.most_rows:
            self.n_rows -= n_rows
            raise LearningError(
                f"float32 can't hold more than {self.most_rows:g} rows: each of them would change "
                "R by less than its rounding. Use float64, or forget."
            )


def row_length(n: int, itemsize: int) -> int:
    """At least n numbers, such that eight consecutive rows don't get into each other's way.

    Rows that begin at nearly the same place of a page (4096 bytes) compete for the same sets of
    the cache, and a load waits for a store that only seems to have its address.
    """
    lines = -(-n * itemsize // CACHE_LINE)
    while not all(3 <= k * lines % PAGE_LINES <= PAGE_LINES - 3 for k in range(1, ROWS)):
        lines += 1
    return lines * CACHE_LINE // itemsize


def aligned_zeros(rows: int, columns: int, dtype: npt.DTypeLike = np.float64) -> Any:
    """Zeros (rows, columns) that begin with a cache line."""
    size = rows * columns * np.dtype(dtype).itemsize
    memory = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(rows, columns)


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
    rows show again (:meth:`forget_excited`, now and then), or what a row replaces
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

    def predict(self, row: Array) -> tuple[Array, float]:
        """Outputs (T,) for a feature row z (D,), and its leverage z (R'R)^-1 z'."""
        return self._factor.ask(row, self.n_features)

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

    def update_in_groups(
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

    def apply_pending(self) -> None:
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

    def forget_excited(self, directions: DirectionalForgetting, share: float) -> None:
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
        outputs, leverage = self.predict(row)
        error = target - outputs
        weight = (leverage - share) / max(leverage + share, np.finfo(float).tiny)
        if weight < LEAST_WEIGHT:
            self.U[:n] += np.outer(self._factor.solved(n), error)  # c = 0: R stays, W moves
            return
        root = math.sqrt(weight)
        self._factor.learn(row, root * (target - error) + error / root, n, root)

    def copy_from(self, other: RecursiveLeastSquares) -> None:
        """Become a copy of `other`, of the same capacity and outputs, in the memory at hand."""
        self._factor.copy_from(other._factor)
        self.penalty, self.forgetting = other.penalty, other.forgetting
        self.n_features, self._refreshed = other.n_features, other._refreshed
        self._scale[:], self._prior[:], self._ridge[:] = other._scale, other._prior, other._ridge

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
