"""Stochastic gradient descents in an RKHS, for several columns of coefficients at once.

On single rows, with a coefficient for each of them, and on mini-batches within the span of
Nyström centres (thesis chapter 6; Lin, Rosasco 2017).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import not_negative, positive
from semiparam_dynamics.learning.centers import NystromBasis
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.losses import Loss, descend, scatter
from semiparam_dynamics.learning.products import (
    MATRIX_SPEEDUP,
    evaluate_into,
    map_in_order,
    n_threads,
)
from semiparam_dynamics.learning.rows import Rows, rows_within

KEPT_KERNEL_SHARE = 0.75  # of the memory limit, at most, for a kernel matrix that is kept
BLOCKS_SHARE = 0.125  # for blocks of it that are in work; as much at least is for validation
BLOCK_DRAWS = 256  # draws whose kernel rows are evaluated together
SMALL_BATCH_ROWS = 32  # batches below this size are gone through in blocks, by their inner products


@dataclass(frozen=True)
class Steps:
    """Step sizes step * t^-decay for t = 1, 2, ..., of S settings (thesis 6.3)."""

    step: Array  # (S,)
    decay: Array  # (S,)

    @classmethod
    def of(cls, settings: list[tuple[Any, Any]], default: float) -> Steps:
        """From (step, decay) of each setting, where the step None is `default`.

        Raises ConfigurationError for a step that isn't positive, or a negative decay.
        """
        for step, decay in settings:
            if step is not None:
                positive(step, "step")
            not_negative(decay, "decay")
        return cls(
            np.array([default if step is None else step for step, _ in settings], dtype=float),
            np.array([decay for _, decay in settings], dtype=float),
        )

    def after(self, done: int, count: int) -> Array:
        """The sizes (count, S) of the `count` steps that follow the first `done`."""
        t = np.arange(done + 1.0, done + count + 1.0)[:, None]
        sizes: Array = self.step * t**-self.decay
        return sizes


@dataclass(frozen=True)
class Task:
    """Problem of a descent: the loss of these rows, with these steps, within `budget` bytes.

    There will be so many `passes`; from two on, the kernel matrix is kept if it fits. Rows are
    drawn with `replacement` (True), without it in an order of each pass' own (False), or in one
    order that is drawn once and kept ("fixed").
    """

    rows: Rows
    kernel: Kernel
    loss: Loss
    steps: Steps
    passes: int
    draw: np.random.RandomState
    budget: int
    replacement: bool | str = True


def drawn_rows(task: Task, count: int) -> Iterator[Indices]:
    """The rows of each pass, as `Task.replacement` says: `count` with it, or all n without."""
    n, draw = task.rows.n_samples, task.draw
    kept = draw.permutation(n) if task.replacement == "fixed" else None
    while True:
        if kept is not None:
            yield kept
        else:
            yield draw.randint(n, size=count) if task.replacement else draw.permutation(n)


class Descent(ABC):
    """Gradient descents that advance together, one for each of P = S T columns.

    These are S step settings times T outputs.

    Attributes
    ----------
    centers : (m, d).
    memory : bytes of the kernel matrix that is kept, or zero.
    """

    centers: Array

    def __init__(self, task: Task, n_columns: int, size: int) -> None:
        """`n_columns` of the kernel matrix, and `size` numbers that are learned in each of P."""
        self._rows, self._loss, self._steps = task.rows, task.loss, task.steps
        self._passes, self._budget = task.passes, task.budget
        n, S = task.rows.n_samples, len(task.steps.step)
        row_bytes = n_columns * task.rows.dtype.itemsize
        keep = task.passes > 1 and n * row_bytes <= KEPT_KERNEL_SHARE * task.budget
        self.memory = n * row_bytes if keep else 0
        self._fitting = block_rows(task.budget, row_bytes)
        self._learned = np.zeros((size, S * task.rows.n_outputs))
        self._moved = np.zeros_like(self._learned)
        self._done = 0  # steps
        self._total = np.zeros(S)  # the sum of the step sizes so far

    @property
    def rest(self) -> int:
        """Bytes of the memory limit that are left for validation."""
        return int(self._budget * (1.0 - BLOCKS_SHARE)) - self.memory

    def iterates(self, average: bool) -> Iterator[Array]:
        """Coefficients of the kernels at the centres after each pass, (m, S T), by settings.

        With `average` the mean over t of w_t, before its draw, weighted by its step: the change
        at draw i is in all later iterates, whose weights sum to a_t - a_i.
        """
        for _ in range(self._passes):
            with np.errstate(over="ignore", invalid="ignore"):  # what diverged is found afterwards
                self.run_pass()
            learned = self._learned
            if average:
                learned = learned - self._moved / np.repeat(self._total, self._rows.n_outputs)
            yield self.coefficients(learned)

    @abstractmethod
    def run_pass(self) -> None:
        """One pass: as many draws as there are rows."""

    @abstractmethod
    def coefficients(self, learned: Array) -> Array:
        """Coefficients of the kernels at the centres, (m, S T), a copy, of the learned (., S T)."""

    def used(self) -> Any:
        """Index of the centres that belong to the function."""
        return slice(None)

    def _next_sizes(self, count: int) -> Array:
        sizes = self._steps.after(self._done, count)
        self._done += count
        return sizes


class KernelDescent(Descent):
    """Coefficients of all rows.

    The rows are put into the order of their first draw, so that in the first pass, where most
    coefficients are still zero, only the rows drawn so far need to be evaluated.
    """

    def __init__(self, task: Task) -> None:
        block, n = task.rows.whole(), task.rows.n_samples
        super().__init__(task, n, n)
        self._kernel = task.kernel
        draws = drawn_rows(task, n)
        first = next(draws)
        self._draws = chain((first,), draws)
        drawn, when = np.unique(first, return_index=True)
        order = np.concatenate((drawn[np.argsort(when)], np.setdiff1d(np.arange(n), drawn)))
        self._rank = np.empty(n, dtype=np.intp)
        self._rank[order] = np.arange(n)
        self._seen = np.zeros(n, dtype=bool)
        self._reach = 0  # rows beyond have not been drawn
        self.centers = block.X[order]
        self._targets = np.ascontiguousarray(block.Y[order].T, dtype=float)
        self._kept: Array | None = None
        if self.memory:
            self._kept = np.empty((n, n), block.X.dtype)
            evaluate_into(task.kernel.bind(self.centers), self.centers, self._kept)
        self._block = min(BLOCK_DRAWS, self._fitting, max(32, n // 8))

    def run_pass(self) -> None:
        """See :class:`Descent`."""
        drawn = self._rank[next(self._draws)]
        self._seen[drawn] = True
        for J, K in map_in_order(self._evaluate, self._blocks(drawn)):
            self._step(J, K)

    def coefficients(self, learned: Array) -> Array:
        """See :class:`Descent`."""
        return learned.copy()

    def used(self) -> Any:
        """See :class:`Descent`: the rows that have been drawn."""
        return self._seen.copy()

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
        F = np.ascontiguousarray((K @ self._learned[: K.shape[1]].astype(K.dtype)).T, dtype=float)
        G = np.ascontiguousarray(K[:, J], dtype=float)
        Y = np.ascontiguousarray(self._targets[:, J])
        sizes = self._next_sizes(len(J))
        done = self._total + np.cumsum(sizes, axis=0)
        change = np.empty_like(F)
        descend(F, G, Y, sizes, 1, self._loss.code, self._loss.epsilon, change)
        scatter(change, done, J, len(Y), self._learned, self._moved)
        self._total = done[-1]


class NystromDescent(Descent):
    """Weights of the span's features.

    There are two ways to the same iterates. With the features of every drawn row, at O(q^2) a
    row, a step is a product with them. With the kernels as they are, a step needs K(C, C)^+ of
    the batch's gradient, at O(q^2) a batch. The cheaper one is taken.

    Parameters
    ----------
    task : targets of its rows are kept in memory, inputs are not.
    batch : rows in each step. Without replacement the last one of a pass has those that are left.
    features : which way; None: the cheaper one.
    """

    def __init__(
        self, task: Task, basis: NystromBasis, batch: int, features: bool | None = None
    ) -> None:
        rows, n, q = task.rows, task.rows.n_samples, basis.n_features
        super().__init__(task, q, q)
        self._basis, self._batch = basis, batch
        self._draws = drawn_rows(task, -(-n // batch) * batch)
        self._factor = np.asfortranarray(basis.factor)  # as LAPACK wants it
        self.centers = basis.centers.astype(rows.dtype)
        self._targets = np.concatenate([b.Y.T for b in rows.blocks(n)], axis=1).astype(float)
        self._features = features
        if features is None:
            # Solves for all draws, or once for all rows; or two for every batch and column.
            rows_solved = n if self.memory else task.passes * n
            batches, P = task.passes * -(-n // batch), self._learned.shape[1]
            self._features = (
                rows_solved <= 2 * batches * max(MATRIX_SPEEDUP, P) or batch < SMALL_BATCH_ROWS
            )
        self._bound = basis.kernel.bind(self.centers[basis.kept])
        self._block = min(BLOCK_DRAWS, self._fitting)
        self._gradient = np.zeros_like(self._learned)
        self._kept = self._evaluate_all() if self.memory else None

    def run_pass(self) -> None:
        """See :class:`Descent`."""
        drawn = next(self._draws)
        total = len(drawn)
        if self._features and self._batch < SMALL_BATCH_ROWS:
            size = max(self._block // self._batch, 1) * self._batch
            parts = [slice(i, min(i + size, total)) for i in range(0, total, size)]
            for J, Z in self._evaluate(drawn, parts):
                self._small_batches(J, Z)
            return
        parts = []
        for start in range(0, total, self._batch):
            end = min(start + self._batch, total)
            for i in range(start, end, self._block):
                parts.append(slice(i, min(i + self._block, end)))
        seen = first = 0
        for J, Z in self._evaluate(drawn, parts):
            self._add_gradient(J, Z)
            seen += len(J)
            if seen - first == self._batch or seen == total:
                self._large_step(seen - first)
                first = seen

    def coefficients(self, learned: Array) -> Array:
        """See :class:`Descent`."""
        weights = self._solve(learned, 1) if self._features else learned
        result = np.zeros((self._basis.n_centers, weights.shape[1]))
        result[self._basis.kept] = weights
        return result

    def _small_batches(self, J: Indices, Z: Array) -> None:
        """The steps of the batches that the draws J (k,) are made of, with features Z (k, q)."""
        F = np.ascontiguousarray((Z @ self._learned.astype(Z.dtype)).T, dtype=float)
        G = np.ascontiguousarray(Z @ Z.T, dtype=float)
        sizes = self._next_sizes(-(-len(J) // self._batch))
        change = np.empty_like(F)
        Y = np.ascontiguousarray(self._targets[:, J])
        loss = self._loss
        descend(F, G, Y, sizes, self._batch, loss.code, loss.epsilon, change)
        done = np.repeat(self._total + np.cumsum(sizes, axis=0), self._batch, axis=0)[: len(J)]
        self._total = self._total + sizes.sum(axis=0)
        late = change * np.repeat(done.T, len(Y), axis=0)
        self._learned += Z.T @ change.T.astype(Z.dtype)
        self._moved += Z.T @ late.T.astype(Z.dtype)

    def _add_gradient(self, J: Indices, Z: Array) -> None:
        F = (Z @ self._learned.astype(Z.dtype)).astype(float)
        Y = np.tile(self._targets[:, J].T, len(self._steps.step))
        slopes = self._loss.derivative(Y, F)
        self._gradient += Z.T @ slopes.astype(Z.dtype)

    def _large_step(self, batch: int) -> None:
        """The step of a batch of so many rows, from the sum of their gradients."""
        sizes = self._next_sizes(1)
        gradient = self._gradient / batch
        if not self._features:
            gradient = self._solve(self._solve(gradient, 0), 1)
        T = len(self._targets)
        change = -np.repeat(sizes[0], T) * gradient
        self._total = self._total + sizes[0]
        self._learned += change
        self._moved += change * np.repeat(self._total, T)
        self._gradient[:] = 0.0

    def _solve(self, B: Array, transposed: int) -> Array:
        """L^-1 B, or L'^-1 B; a column that has diverged leaves the others alone."""
        L = self._factor
        X: Array = solve_triangular(L, B, lower=True, trans=transposed, check_finite=False)
        return X

    def _evaluate(self, drawn: Indices, parts: list[slice]) -> Iterator[tuple[Indices, Array]]:
        """Each part of the draws, and its features or kernels (k, q)."""
        if self._kept is not None:
            kept = self._kept
            yield from map_in_order(lambda part: (drawn[part], kept[drawn[part]]), parts)
            return
        yield from map_in_order(
            lambda item: (item[0], self._matrix(item[1])), self._inputs(drawn, parts)
        )

    def _inputs(self, drawn: Indices, parts: list[slice]) -> Iterator[tuple[Indices, Array]]:
        """The inputs of each part, read for as many parts at once as the memory limit allows."""
        row_bytes = self._rows.row_numbers * self._rows.dtype.itemsize
        most = max(block_rows(self._budget, row_bytes), self._block)
        i = 0
        while i < len(parts):
            j = i + 1
            while j < len(parts) and parts[j].stop - parts[i].start <= most:
                j += 1
            start = parts[i].start
            X = self._rows.take(drawn[start : parts[j - 1].stop])
            for part in parts[i:j]:
                yield drawn[part], X[part.start - start : part.stop - start]
            i = j

    def _matrix(self, X: Array) -> Array:
        K = self._bound(X if self._rows.sparse else np.ascontiguousarray(X))
        return self._basis.from_kernel(K) if self._features else K

    def _evaluate_all(self) -> Array:
        result = np.empty((self._rows.n_samples, self._basis.n_features), self._rows.dtype)
        start = 0
        for Z in map_in_order(lambda block: self._matrix(block.X), self._rows.blocks(self._block)):
            result[start : start + len(Z)] = Z
            start += len(Z)
        return result


def block_rows(budget: int, row_bytes: int) -> int:
    """The number of kernel rows of `row_bytes` in a block, for a memory limit of `budget`.

    Two blocks a thread are in flight, and a block takes about twice its size in the making.
    """
    share = int(BLOCKS_SHARE * budget)
    return rows_within(share, 4 * n_threads() * row_bytes, "A block of kernel rows")
