"""Upper-triangular factors R of second moments, R'R = penalty I + sum z'z, that rows z enter."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.recursion.rotation import (
    ANSWER,
    KEEP,
    LEARNED,
    ROWS,
    SOLVED,
    TAKE,
    leverages_of_rows,
    note_row,
    predict_row,
    rotate_pending,
    update_rows,
)

CACHE_LINE = 8  # numbers
PAGE_LINES = 64  # cache lines of a page


class DeferredRotation:
    """An upper-triangular R (n, n) and U (n, T) = R^-T B that rows are rotated into.

    A prediction reads all of R, and learning a row reads and writes all of it: two passes through
    memory. Here :meth:`update` only notes the row, O(n), and the next :meth:`predict` rotates each
    eight rows of R while they are in registers for its own solve: one read and one write a step,
    which is what a large R costs. Until then a rotation is pending; :meth:`apply_pending` does it
    at once. The results are those of rotating at once, to rounding, and bitwise the same whenever
    it is done.

    Parameters
    ----------
    diagonal : (n,), R's to begin with; U begins as zeros.
    n_outputs : T, which may be 0.
    capacity : the n up to which :meth:`grow` has room.
    """

    def __init__(self, diagonal: Array, n_outputs: int, capacity: int | None = None) -> None:
        self.n, self.n_outputs = len(diagonal), n_outputs
        self.capacity = max(self.n, capacity or 0, 1)
        rows, columns = _whole_blocks(self.capacity), _whole_blocks(n_outputs)
        self._arrays = (  # R, U, work and side of the compiled step
            aligned_zeros(rows, row_length(rows)),
            aligned_zeros(rows, columns),
            aligned_zeros(6, rows),
            aligned_zeros(2, columns),
        )
        # Rows not in use are in the last block too; with a one on the diagonal they do nothing.
        on_diagonal = np.ones(rows)
        on_diagonal[: self.n] = diagonal
        np.fill_diagonal(self._arrays[0], on_diagonal)
        self._reset()

    def _reset(self) -> None:
        self._pending = False  # the row learned last is still to be rotated in
        self._solved = False  # v of the row predicted last is that of R as it is
        _, _, work, _ = self._arrays
        work[:] = 0.0
        work[KEEP] = 1.0

    @property
    def R(self) -> Array:
        """R (n, n), to be read only. Raises LearningError while a rotation is pending."""
        return self._readable(self._arrays[0][: self.n, : self.n])

    @property
    def U(self) -> Array:
        """U (n, T), to be read only. Raises LearningError while a rotation is pending."""
        return self._readable(self._arrays[1][: self.n, : self.n_outputs])

    def _readable(self, view: Array) -> Array:
        if self._pending:
            raise LearningError(
                "The row learned last is not in R and U yet: call apply_pending() before you read "
                "them."
            )
        view.flags.writeable = False
        return view

    def replace(self, R: Array, U: Array) -> None:
        """Take R (n, n), zeros below its diagonal, and U (n, T) in place of what there is.

        Raises LearningError for arrays of other shapes, or more than the capacity.
        """
        n, (own_R, own_U, _, _) = len(R), self._arrays
        if R.shape != (n, n) or U.shape != (n, self.n_outputs) or n > self.capacity:
            raise LearningError(
                f"R {R.shape} and U {U.shape} do not belong to a recursion of at most "
                f"{self.capacity} features and {self.n_outputs} outputs."
            )
        if n < self.n:
            unused = slice(n, self.n)
            own_R[: self.n, unused] = 0.0
            own_R[unused, unused] = np.eye(self.n - n)
            own_U[unused] = 0.0
        own_R[:n, :n] = R
        own_U[:n, : self.n_outputs] = U
        self.n = n
        self._reset()

    def grow(self, diagonal: float) -> None:
        """Add a row and column to R, of which only this entry on the diagonal is not zero.

        Raises LearningError where the capacity is used up.
        """
        if self.n == self.capacity:
            raise LearningError(f"The capacity of {self.capacity} features is used up.")
        self._arrays[0][self.n, self.n] = diagonal
        self.n += 1

    def copy_from(self, other: DeferredRotation) -> None:
        """Become a copy of `other`, whose pending rotation is done first, in the memory at hand.

        Raises LearningError where `other` has another capacity or number of outputs.
        """
        if (self.capacity, self.n_outputs) != (other.capacity, other.n_outputs):
            raise LearningError(
                f"A recursion of at most {other.capacity} features and {other.n_outputs} outputs "
                f"does not fit one of {self.capacity} and {self.n_outputs}."
            )
        other.apply_pending()
        end = _whole_blocks(max(self.n, other.n))
        (R, U, _, _), (other_R, other_U, _, _) = self._arrays, other._arrays
        R[:end, :end] = other_R[:end, :end]
        U[:end] = other_U[:end]
        self.n = other.n
        self._reset()

    def predict(self, row: Array) -> tuple[Array, float]:
        """Outputs (T,) at a row z (n,), and z (R'R)^-1 z'."""
        leverage = predict_row(*self._arrays, row, self.n, self._pending, self._solved)
        self._pending, self._solved = False, True
        return -self._arrays[3][ANSWER, : self.n_outputs], leverage

    def leverages(self, rows: Array) -> Array:
        """z (R'R)^-1 z' of each row, (k,) for (k, n)."""
        found = np.empty(len(rows))
        if len(rows):
            leverages_of_rows(*self._arrays, rows, found, self.n, self._pending, self._solved)
            self._pending, self._solved = False, True
        return found

    def update(self, row: Array, target: Array, scale: float = 1.0) -> None:
        """Rotate in scale times a row (n,) with `target` (T,); O(n) if it was just predicted."""
        predict_row(*self._arrays, row, self.n, self._pending, self._solved)
        note_row(*self._arrays[2:], target, self.n, scale)
        self._pending, self._solved = True, False

    def update_rows(self, rows: Array, targets: Array) -> tuple[Array, Array]:
        """Predict and then rotate in rows (k, n), with targets (k, T), one after the other.

        Returns errors (k, T) and leverages (k,) of the predictions.
        """
        errors, leverages = np.empty_like(targets), np.empty(len(rows))
        if len(rows):
            flags, found = (self._pending, self._solved), (errors, leverages)
            update_rows(*self._arrays, rows, targets, self.n, *flags, *found)
            self._pending, self._solved = True, False
        return errors, leverages

    def run(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Call `step` with (R, U, work, side, n), see `recursion.rotation`, and `arguments`.

        It may rotate rows in, and leaves no rotation pending.
        """
        self.apply_pending()
        self._solved = False
        return step(*self._arrays, self.n, *arguments)

    def move(self, error: Array) -> None:
        """Move the weights to where the row predicted last gives `error` (T,) more; R stays."""
        _, U, work, _ = self._arrays
        U[: self.n, : self.n_outputs] += np.outer(work[SOLVED, : self.n], error)
        self._solved = False

    def fade(self, root: float) -> None:
        """Multiply [R U] by `root`, with the next prediction too."""
        _, _, work, side = self._arrays
        used = slice(0, self.n)
        if not self._pending:  # a rotation that changes nothing else
            work[KEEP, used] = 1.0
            work[TAKE, used] = work[SOLVED, used] = 0.0
            side[LEARNED] = 0.0
        work[KEEP, used] *= root
        work[TAKE, used] *= root
        self._pending, self._solved = True, False

    def apply_pending(self) -> None:
        """Rotate in the row learned last, so that the next prediction need not; same numbers."""
        if self._pending:
            rotate_pending(*self._arrays, self.n)
            self._pending = False

    def solve(self, B: Array, *, transposed: bool = False, overwrite: bool = False) -> Array:
        """R^-1 B, or R^-T B, for B (n, k), which is used up with `overwrite`."""
        self.apply_pending()
        if not B.size:
            return B.copy()
        # R by rows is R' by columns, as LAPACK has it: nothing is copied but the result.
        R = self._arrays[0][: self.n].T
        solved: Array = dtrtrs(R, B, lower=1, trans=not transposed, overwrite_b=overwrite)[0]
        return solved

    def __getstate__(self) -> dict[str, Any]:
        # What is loaded as read-only memory can still predict if nothing is left to do.
        self.apply_pending()
        return self.__dict__


def _whole_blocks(n: int) -> int:
    return -(-n // ROWS) * ROWS


def row_length(n: int) -> int:
    """At least n numbers, such that eight consecutive rows don't get into each other's way.

    Rows that begin at nearly the same place of a page (4096 bytes) compete for the same sets of
    the cache, and a load waits for a store that only seems to have its address.
    """
    lines = -(-n // CACHE_LINE)
    while not all(3 <= k * lines % PAGE_LINES <= PAGE_LINES - 3 for k in range(1, ROWS)):
        lines += 1
    return lines * CACHE_LINE


def aligned_zeros(rows: int, columns: int) -> Array:
    """Zeros (rows, columns) that begin with a cache line."""
    memory = np.zeros(rows * columns + CACHE_LINE)
    start = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE
    return memory[start : start + rows * columns].reshape(rows, columns)


QR_ROW_SHARE = 0.1  # of n rows: from there on, QR of the whole block is faster than rotations
QR_BLOCK_ROWS = 2048  # of a QR decomposition, or 4 n


class CholeskyFactor(DeferredRotation):
    """Upper-triangular R (D, D) with R'R = A = penalty I + sum z'z over the rows z learned.

    It is what several outputs, or many classes, have in common: O(D^2) a row however many there
    are. `penalty` is the plain ridge, added once (thesis 7.18 prints it at each step).
    """

    def __init__(self, n_features: int, penalty: float) -> None:
        super().__init__(np.full(n_features, math.sqrt(penalty)), 0)
        self.penalty = penalty

    def learn(self, rows: Array) -> None:
        """Learn rows (k, D): rotations for a few, O(D^2) each, a QR decomposition for many."""
        n = self.n
        if len(rows) <= max(1.0, QR_ROW_SHARE * n):
            rows = np.ascontiguousarray(rows, dtype=np.float64)
            self.update_rows(rows, np.empty((len(rows), 0)))
            self.apply_pending()
            return
        size = max(4 * n, QR_BLOCK_ROWS)
        for start in range(0, len(rows), size):
            stacked = np.concatenate((self.R, rows[start : start + size]))
            R = np.asarray(np.linalg.qr(stacked, mode="r"))
            R *= np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None]
            self.replace(R, np.empty((n, 0)))

    def solve_rows(self, rows: Array) -> Array:
        """A^-1 z for each row z of (k, D), as rows."""
        half = self.solve(rows.T, transposed=True)
        return self.solve(half, overwrite=True).T

    def state(self) -> Array:
        """R's upper triangle, row after row: what :meth:`restore` needs."""
        return self.R[np.triu_indices(self.n)]

    def restore(self, packed: Array) -> None:
        """Continue from a :meth:`state`."""
        n = self.n
        R = np.zeros((n, n))
        R[np.triu_indices(n)] = packed
        self.replace(R, np.empty((n, 0)))
