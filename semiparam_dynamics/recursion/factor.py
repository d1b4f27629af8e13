"""The inputs' second moments as a Cholesky factor that each row is rotated into (thesis 7.4.2)."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dtrtrs

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.recursion.loops import rotate_row, solve_back, solve_transposed

# From this share of D rows on, a QR decomposition of the whole block is faster than rotations.
BLOCK_SHARE = 0.1


class CholeskyFactor:
    """Upper-triangular R (D, D) with R'R = A = penalty I + sum z'z over the rows z learned.

    What several outputs, or many classes, have in common: it costs O(D^2) a row however many
    there are. `penalty` is the plain ridge, added once (thesis 7.18 prints it at each step).
    """

    def __init__(self, n_features: int, penalty: float) -> None:
        self.penalty = penalty
        self.R: Array = math.sqrt(penalty) * np.eye(n_features)
        self._row = np.zeros(n_features)
        # A rotation's right-hand side, empty here: see RecursiveLeastSquares for one that isn't.
        self._U = np.zeros((n_features, 0))
        self._y = np.zeros(0)

    def update(self, rows: Array) -> None:
        """Learn rows (k, D): rotations for a few, O(D^2) each, a QR decomposition for many."""
        D = len(self.R)
        if len(rows) <= max(1.0, BLOCK_SHARE * D):
            for row in rows:
                self._row[:] = row
                rotate_row(self.R, self._U, self._row, self._y, D)
            return
        for start in range(0, len(rows), 4 * D):
            stacked = np.concatenate((self.R, rows[start : start + 4 * D]))
            R = np.asarray(np.linalg.qr(stacked, mode="r"))
            self.R = np.ascontiguousarray(R * np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None])

    def solve(self, rows: Array) -> Array:
        """A^-1 z for each row z of (k, D), as rows."""
        solved: Array
        if len(rows) == 1:
            solved = np.empty_like(rows)
            solve_transposed(self.R, rows[0], solved[0], len(self.R))
            solve_back(self.R, solved[0], len(self.R))
            return solved
        # R by rows is R' by columns, as LAPACK has it: nothing is copied but the result.
        half, _ = dtrtrs(self.R.T, rows.T, lower=1)
        whole, _ = dtrtrs(self.R.T, half, lower=1, trans=1, overwrite_b=1)
        solved = whole.T
        return solved

    def state(self) -> Array:
        """R's upper triangle, row after row: what :meth:`restore` needs."""
        return np.concatenate([row[i:] for i, row in enumerate(self.R)])

    def restore(self, packed: Array) -> None:
        """Go on from a :meth:`state`."""
        D, start = len(self.R), 0
        for i in range(D):
            self.R[i, i:] = packed[start : start + D - i]
            start += D - i
