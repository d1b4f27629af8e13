"""[R U] of a recursion, with the last row's rotation done on the way to the next prediction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.compiled_step import (
    ask,
    fade,
    learn_groups,
    learn_row,
    learn_rows,
    leverage_rows,
    settle,
)
from semiparam_dynamics.learning.vector_block import ANSWER, KEEP, ROWS, SOLVED

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

    def before_last_row(self, n: int) -> tuple[Any, Array]:
        """R as it was when the row that is still to enter was asked, and v (n,) of that row."""
        assert self._pending == n, "nothing is to enter"
        return self._R, self.solved(n)

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
