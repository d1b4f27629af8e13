"""Predictions of a recursion that wait for no triangular solve."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import compiled, solve_back
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares


class PromptWeights:
    """W = R^-1 U of a recursion, moved with each row that it learns: O(D T) a prediction.

    Learning a row z with the error e moves W by (R'R)^-1 z' e / (1 + s), s being its leverage:
    one solve with R more a row learned, and none a row that is only predicted. The errors are those
    of the recursion itself, so that what it learns is the same, and W stays off by rounding alone:
    the moves' errors add up, and W is solved for anew after `EXACT_EVERY` rows.

    Another thread may predict while a row is learned: with W of before it or after it.

    Only rows learned through :meth:`update` are followed. After anything else that changes the
    recursion make another one; making it is T solves.
    """

    EXACT_EVERY = 20_000

    def __init__(self, core: RecursiveLeastSquares) -> None:
        self._core = core
        self._W = core.weights()
        self._moved = 0

    def predict(self, row: Array) -> Array:
        """Outputs (T,) for a feature row (D,); the recursion isn't asked and stays as it is."""
        outputs: Array = row @ self._W
        return outputs

    def update(self, row: Array, target: Array) -> None:
        """Have the recursion learn that the row (D,) gave the outputs `target` (T,)."""
        core = self._core
        error = target - core.predict(row)
        core.update(row, target)
        self._moved += 1
        if self._moved < self.EXACT_EVERY:
            R, solved = core.just_learned()
            self._W = _moved(R, solved, 1.0 + core.leverage, error, self._W)
        else:
            self._W, self._moved = core.weights(), 0


@compiled
def _moved(R: Array, solved: Array, q: float, error: Array, W: Array) -> Array:
    """W + R^-1 v e / q for v (D,) and e (T,)."""
    n = len(W)
    gain = np.empty(n)
    for i in range(n):
        gain[i] = solved[i] / q
    solve_back(R, gain, n)
    moved = np.empty_like(W)
    for i in range(n):
        for t in range(error.size):
            moved[i, t] = W[i, t] + gain[i] * error[t]
    return moved
