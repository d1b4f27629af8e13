"""Recursive regularised least squares with a Cholesky factor (thesis 7.4.2 and 8.2.4)."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError, positive
from semiparam_dynamics.learning.recursion.factor import DeferredRotation
from semiparam_dynamics.learning.recursion.triangular import solve_right

MIN_KEPT_SHARE = 1e-4  # rows that would add less information add none
TINY = float(np.finfo(float).tiny)


class RecursiveLeastSquares(DeferredRotation):
    """Ridge regression, one row at a time, at a cost that does not depend on the rows seen.

    After k rows z_i (D,) with targets y_i (T,) the weights are

        W = A^-1 B,  A = penalty I + sum z_i'z_i,  B = sum z_i'y_i.

    Kept are the upper-triangular R (D, D) with R'R = A and U = R^-T B (D, T). A row is rotated into
    [R U] by D Givens rotations (thesis 8.2.4). A prediction z W = v'U and its leverage
    z A^-1 z' = |v|^2 come from one triangular solve, v = R^-T z'. The rotation waits for the next
    prediction and is done in the same pass over R: see :class:`DeferredRotation`.

    Features may be added while learning continues, and the penalty may be changed. What was
    learned can fade, in two ways: all of it at one rate (:meth:`forget`), or what a row replaces
    (:meth:`update_replacing`).

    Parameters
    ----------
    penalty : the plain ridge: added once, at the start, and not multiplied by the number of rows.
    capacity : features up to which :meth:`add_feature` has room.
    forgetting : below 1, every row learned begins with :meth:`forget` of it.
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
        super().__init__(np.full(n_features, math.sqrt(penalty)), n_outputs, capacity)
        self.penalty = penalty
        self.forgetting = forgetting
        # What of R'R's diagonal is the ridge: with forgetting it fades too.
        self._ridge: Array = np.full(self.capacity, penalty)
        self._refreshed = 0  # features whose ridge was put back

    @property
    def n_features(self) -> int:
        """D, the features in use."""
        return self.n

    def update(self, row: Array, target: Array, weight: float = 1.0) -> None:
        """Learn that the feature row (D,) gave outputs `target` (T,), counted `weight` times."""
        if self.forgetting < 1.0:
            self.forget(self.forgetting)
        root = math.sqrt(weight)
        super().update(row, root * target, root)

    def update_rows(self, rows: Array, targets: Array) -> tuple[Array, Array]:
        """Predict and then learn rows (k, D) with targets (k, T), one after the other.

        Returns errors (k, T) and leverages (k,) of the predictions.
        """
        rows, targets = (np.ascontiguousarray(a, dtype=np.float64) for a in (rows, targets))
        if self.forgetting == 1.0 or not len(rows):
            return super().update_rows(rows, targets)
        errors, leverages = np.empty_like(targets), np.empty(len(rows))
        for i in range(len(rows)):
            self.forget(self.forgetting)
            part = slice(i, i + 1)
            errors[part], leverages[part] = super().update_rows(rows[part], targets[part])
        return errors, leverages

    def predict_rows(self, rows: Array) -> tuple[Array, Array]:
        """Outputs (k, T) and leverages (k,) at rows (k, D), of which nothing is learned."""
        self.apply_pending()
        W = solve_right(rows, self.R)
        return W @ self.U, np.einsum("ij,ij->i", W, W)

    def weights(self) -> Array:
        """W = R^-1 U, (D, T); no prediction needs it."""
        self.apply_pending()
        return self.solve(self.U)

    def covariance_diagonal(self) -> Array:
        """The diagonal of (R'R)^-1, (D,): the weights' variances in units of the noise's."""
        inverse = self.solve(np.eye(self.n_features))
        variances: Array = np.sum(inverse**2, axis=1)
        return variances

    def add_feature(self) -> None:
        """Add a feature, whose weights start at zero.

        Raises LearningError where the capacity is used up.
        """
        self.grow(math.sqrt(self.penalty))
        self._ridge[self.n - 1] = self.penalty

    def set_penalty(self, penalty: float) -> None:
        """Hold the weights by another ridge from now on; no prediction changes by that alone.

        The difference is added, or taken out, as rows that agree with the present weights W: R'R
        becomes R'R + (new - old) I, and U = R W keeps W. So what is learned later gives the ridge
        solution with the new penalty, its difference to the old one pulling to W instead of to
        zero. O(D^3), once.
        With `forgetting` the old ridge fades by itself and is put back as the new one: nothing else
        need be done.

        Raises what :meth:`check_penalty` does; the state is then what it was.
        """
        self.check_penalty(penalty)
        n = self.n_features
        if self.forgetting == 1.0 and penalty != self.penalty and n:
            change = penalty - self._ridge[:n]
            W, rows = self.weights(), np.diag(np.sqrt(np.abs(change)))
            if np.min(change) >= 0.0:
                R = np.asarray(np.linalg.qr(np.concatenate((self.R, rows)), mode="r"))
            else:
                signed = np.sign(change)[:, None] * rows
                R = np.asarray(np.linalg.cholesky(self.R.T @ self.R + rows.T @ signed)).T
            R = np.triu(R * np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None])
            self.replace(R, R @ W)
            self._ridge[:n] = penalty
        self.penalty = penalty

    def check_penalty(self, penalty: float) -> None:
        """Raise where :meth:`set_penalty` would refuse.

        ConfigurationError for what is no positive number; LearningError for a lower ridge that
        rounding would leave less than two digits of, relative to what was learned.
        """
        positive(penalty, "penalty")
        if penalty >= self.penalty or self.forgetting < 1.0:
            return
        self.apply_pending()
        largest = float(np.max(np.sum(self.R**2, axis=0), initial=0.0))
        least = 100.0 * self.n_features * float(np.finfo(float).eps) * largest
        if penalty < least:
            raise LearningError(
                f"The penalty can't be lowered from {self.penalty:g} to {penalty:g} any more: "
                f"rounding would lose it relative to what was learned; {least:.2g} is the least."
            )

    def forget(self, factor: float) -> None:
        """Let everything learned count `factor` in (0, 1] of what it did (exponential forgetting).

        The ridge fades with it and is put back a feature at a time, each at least once while the
        rest fades to 1/e, so that on average it is the penalty. So where nothing is learned any
        more, the weights return to zero.
        """
        n = self.n_features
        if factor >= 1.0 or not n:
            return
        self.fade(math.sqrt(factor))
        self._ridge[:n] *= factor
        at_a_time = max(1, math.ceil(-n * math.log(factor)))
        decay = -math.log(factor) * n / at_a_time  # of a feature's ridge until its next turn
        level = self.penalty * decay / -math.expm1(-decay)
        for _ in range(at_a_time):
            self._restore_ridge(self._refreshed % n, level)
            self._refreshed += 1

    def _restore_ridge(self, j: int, level: float) -> None:
        missing = level - self._ridge[j]
        if missing <= 0.0:
            return
        self._ridge[j] = level
        row = np.zeros(self.n_features)
        row[j] = math.sqrt(missing)
        super().update(row, np.zeros(self.n_outputs))

    def update_replacing(
        self, row: Array, target: Array, forgetting_fraction: float, weight: float = 1.0
    ) -> None:
        """:meth:`update`, but what is known gives way to a row that brings little new.

        forgetting_fraction : f in [0, 1), time between rows / memory. Information z'z is added c
            times, c = (s - f) / (s + f) or 0, with s the leverage of z; the weights learn the row
            in full. That is restricted exponential forgetting (Kulhavy 1987) that takes away at
            most what comes in: where s > f more is learned than forgotten, and from there on the
            weights follow at this rate. R'R never shrinks, so that nothing is lost that is not
            overwritten; and no row's leverage is pressed below f.
        weight : how often the row counts: its information, s and what the weights learn.
        """
        outputs, leverage = self.predict(row)
        error, known = weight * (target - outputs), weight * leverage
        kept = (known - forgetting_fraction) / max(known + forgetting_fraction, TINY)
        if kept < MIN_KEPT_SHARE:
            self.move(error)  # c = 0: R stays, W moves
            return
        root = math.sqrt(kept * weight)
        super().update(row, root * outputs + error / root, root)

    def copy_from(self, other: RecursiveLeastSquares) -> None:  # type: ignore[override]
        """Become a copy of `other`, in the memory at hand: no array is made.

        A pending rotation of `other` is done first, so that neither of them has to. Raises
        LearningError where `other` has another capacity or number of outputs.
        """
        super().copy_from(other)
        self.penalty, self.forgetting = other.penalty, other.forgetting
        self._ridge[:] = other._ridge
        self._refreshed = other._refreshed

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        self.apply_pending()
        return {
            "R": self.R.copy(),
            "U": self.U.copy(),
            "refreshed": np.array(self._refreshed),
            "penalty": np.array(self.penalty),
            "ridge": self._ridge[: self.n_features].copy(),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`; without "penalty" and "ridge", these are the penalty here.

        Raises LearningError for arrays of other shapes.
        """
        self.replace(state["R"], state["U"])
        n = self.n_features
        self.penalty = float(state.get("penalty", self.penalty))
        self._ridge[:] = self.penalty
        self._ridge[:n] = state.get("ridge", self.penalty)
        self._refreshed = int(state["refreshed"])
