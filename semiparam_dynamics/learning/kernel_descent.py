"""Gradient steps on single rows in an RKHS, for several columns of coefficients at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.learning.compiled_sgm import descend, scatter
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.losses import Loss
from semiparam_dynamics.learning.parallel import map_in_order
from semiparam_dynamics.learning.products import evaluate_into
from semiparam_dynamics.learning.steps import Steps
from semiparam_dynamics.learning.stochastic import KEPT_SHARE, block_rows

BLOCK = 256  # draws whose kernel rows are evaluated together


class KernelDescent:
    """Coefficients of all rows, for each of P = S T columns (S step settings, T outputs).

    The rows are put into the order of their first draw, so that in the first pass, where most
    coefficients are still zero, only the rows drawn so far need to be evaluated.

    Parameters
    ----------
    X, Y : (n, d), (n, T).
    passes : how many there will be; from two on, the kernel matrix is kept if it fits.
    budget : bytes for kernel matrices; `memory` of them are then in use for good.
    """

    def __init__(
        self,
        X: Array,
        Y: Array,
        kernel: Kernel,
        loss: Loss,
        steps: Steps,
        passes: int,
        draw: np.random.RandomState,
        budget: int,
    ) -> None:
        n, T = Y.shape
        self._kernel, self._loss, self._steps, self._draw = kernel, loss, steps, draw
        first = draw.randint(n, size=n)
        drawn, when = np.unique(first, return_index=True)
        order = np.concatenate((drawn[np.argsort(when)], np.setdiff1d(np.arange(n), drawn)))
        self._rank = np.empty(n, dtype=np.intp)
        self._rank[order] = np.arange(n)
        self._pass: Indices | None = self._rank[first]
        self._seen = np.zeros(n, dtype=bool)
        self.centers = X[order]
        self._targets = np.ascontiguousarray(Y[order].T, dtype=float)
        self._coef = np.zeros((n, len(steps.step) * T))
        self._moved = np.zeros_like(self._coef)
        self._reach = 0  # rows beyond have not been drawn
        self._done = 0  # draws
        self._total = np.zeros(len(steps.step))  # the sum of the step sizes so far
        row_bytes = n * X.dtype.itemsize
        self._kept: Array | None = None
        self.memory = 0
        if passes > 1 and n * row_bytes <= KEPT_SHARE * budget:
            self.memory = n * row_bytes
            self._kept = np.empty((n, n), X.dtype)
            evaluate_into(kernel.bind(self.centers), self.centers, self._kept)
        fitting = block_rows(budget, row_bytes)
        self._block = min(BLOCK, fitting, max(32, n // 8))

    def run_pass(self) -> None:
        """See :class:`Descent`."""
        n = len(self.centers)
        drawn = self._rank[self._draw.randint(n, size=n)] if self._pass is None else self._pass
        self._pass = None
        self._seen[drawn] = True
        for J, K in map_in_order(self._evaluate, self._blocks(drawn)):
            self._step(J, K)

    def coefficients(self, average: bool) -> Array:
        """See :class:`Descent`; the mean over t of w_t, before its draw, weighted by its step.

        The change at draw i is in all later iterates, whose weights sum to a_t - a_i.
        """
        if not average:
            return self._coef.copy()
        T = len(self._targets)
        return self._coef - self._moved / np.repeat(self._total, T)

    def used(self) -> Any:
        """See :class:`Descent`: the rows that have been drawn."""
        return self._seen

    def _blocks(self, drawn: Indices) -> Iterator[tuple[Indices, int]]:
        """Draws (k,), and how many leading rows have been drawn by their end."""
        for i in range(0, len(drawn), self._block):
            J = drawn[i : i + self._block]
            self._reach = max(self._reach, int(J.max()) + 1)
            yield J, self._reach

    def _evaluate(self, item: tuple[Indices, int]) -> tuple[Indices, Array]:
        J, reach = item
        if self._kept is not None:
            return J, self._kept.take(J, axis=0)[:, :reach]
        return J, self._kernel(self.centers[J], self.centers[:reach])

    def _step(self, J: Indices, K: Array) -> None:
        """Go through the draws J (k,), with K (k, r) of them and the first r rows.

        K coef is what was predicted before the first of them; each step then changes the later
        predictions by its own row's kernel, so that the long products are done for all at once.
        """
        F = np.ascontiguousarray((K @ self._coef[: K.shape[1]].astype(K.dtype)).T, dtype=float)
        G = np.ascontiguousarray(K[:, J], dtype=float)
        Y = np.ascontiguousarray(self._targets[:, J])
        sizes = self._steps.after(self._done, len(J))
        done = self._total + np.cumsum(sizes, axis=0)
        change = np.empty_like(F)
        descend(F, G, Y, sizes, 1, self._loss.code, self._loss.epsilon, change)
        scatter(change, done, J, len(Y), self._coef, self._moved)
        self._done += len(J)
        self._total = done[-1]
