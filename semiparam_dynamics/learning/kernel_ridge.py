"""Kernel ridge regression on all rows: by one factor of the matrix, or without storing it.

The matrix that is too large is solved by randomised block Gauss-Seidel: a random part of the rows
after the other, exactly, with the other rows' coefficients as they are (Tu, Roelofs, Venkataraman,
Recht 2016, "Large scale kernel learning using block coordinate descent"). Each step lowers the
objective. To predictions within a hundredth of the exact ones, on two tables of 6000 and 8000 rows
with rough and smooth kernels, it took a half to two thirds of the kernel values that conjugate
gradient with a Nystrom preconditioner took, and less than half of those of ASkotch (Rathore,
Frangella, Yang, Derezinski, Udell 2024), which solves blocks approximately, and of EigenPro 2.
Conjugate gradient is ahead where many more digits of a smooth kernel's are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.kernels import FAR_ROWS, NOT_FINITE, Kernel
from semiparam_dynamics.learning.products import KernelRows, evaluate_into, upper_factor
from semiparam_dynamics.learning.rows import ArrayRows, Rows, memory_budget, require

# A block's factor takes about half as long as its products with all rows: b^3 / 3 and 200 n b.
BLOCK_ROWS = 18.0  # times the root of the number of rows
AT_ONCE = 6000  # rows up to which one factor takes no longer than the sweeps that it saves
PROBE_ROWS = 1500
MOST_TRIALS = 20  # of a larger ridge
DIVERGED = 1e3  # of a residual, which positive definite systems keep near 1 from the first sweep on


@dataclass(frozen=True)
class Problem:
    """Kernel least squares on the rows whose weight isn't zero.

    Weights w turn K into W^(1/2) K W^(1/2), and Y into W^(1/2) Y: the same problem as if each row
    were there w times.
    """

    X: Array  # (n, d), in the rows' precision
    targets: Array  # W^(1/2) Y, (n, T), in float64
    roots: Array  # W^(1/2), (n,); ones where there are no weights
    total: float  # the sum of the weights, which multiplies the penalty

    @classmethod
    def of(cls, rows: Rows) -> Problem:
        """All of the rows, in memory."""
        block = rows.whole()
        X, Y, weights = block.X, block.Y.astype(float), block.weights
        if weights is None:
            return cls(X.copy(), Y, np.ones(len(block)), float(len(block)))
        some = weights > 0.0
        roots = np.sqrt(weights[some].astype(float))
        return cls(X[some], Y[some] * roots[:, None], roots, float(roots @ roots))

    def gram(self, kernel: Kernel, n_matrices: int, memory_limit: int | None) -> Array:
        """W^(1/2) K W^(1/2), (n, n) in float64.

        Raises LearningError where `n_matrices` of that size don't fit into the limit, and for
        values that are not finite.
        """
        n = len(self.roots)
        needed = 8 * n_matrices * n * n
        require(memory_budget(memory_limit), needed, f"The kernel matrix of {n} rows")
        K = np.empty((n, n))
        evaluate_into(kernel.bind(self.X), self.X, K)
        K *= self.roots
        K *= self.roots[:, None]
        if not (np.isfinite(K.min()) and np.isfinite(K.max())):
            raise LearningError(NOT_FINITE)
        return K

    def rounding(self, K: Array) -> float:
        """Eigenvalues of K up to this one are noise: of its entries, and of the algebra on it."""
        n = len(K)
        entries = 10.0 * np.sqrt(n) * np.finfo(self.X.dtype).eps * np.diag(K).max()
        return float(entries + n * np.finfo(float).eps * np.trace(K))

    def taken(self, rows: Indices) -> Problem:
        """The problem of some rows alone, (k,)."""
        return Problem(self.X[rows], self.targets[rows], self.roots[rows], self.total)


def fits(problem: Problem, memory_limit: int | None) -> bool:
    """True where the kernel matrix fits into the limit."""
    return 8 * len(problem.roots) ** 2 <= memory_budget(memory_limit)


def solve(problem: Problem, kernel: Kernel, penalty: float, limit: int | None) -> Array | None:
    """(K + penalty n I)^-1 Y by Cholesky; None where it would drown in rounding, or fails."""
    K = problem.gram(kernel, 1, limit)
    ridge = penalty * problem.total
    if ridge < problem.rounding(K):
        return None
    K[np.diag_indices_from(K)] += ridge
    # K is symmetric, and its transpose lies in memory as LAPACK wants it.
    if not upper_factor(K.T):
        return None
    alpha: Array = cho_solve((K.T, False), problem.targets, check_finite=False)
    return alpha * problem.roots[:, None]


@dataclass(frozen=True)
class Sweep:
    """The coefficients after each row's block was solved once."""

    alpha: Array  # (n, T), of the kernels at the problem's rows
    # Of Y - (K + penalty n I) alpha, relative to Y's norm, the outputs' largest: the predictions at
    # the training rows are no further from those of the exact solution.
    residual: float


def by_blocks(
    problem: Problem,
    kernel: Kernel,
    penalty: float,
    memory_limit: int | None = None,
    end: float = np.inf,
) -> Iterator[Sweep]:
    """Approach (K + penalty n I)^-1 Y, without end, by blocks of rows drawn anew for each sweep.

    A sweep computes K once and stores none of it but a block's own, a quarter of the limit. It
    breaks off at the time `end`, of ``time.perf_counter``. Raises LearningError for values that are
    not finite.
    """
    n, budget, draw = len(problem.roots), memory_budget(memory_limit), np.random.RandomState(0)
    largest = np.abs(problem.targets).max(axis=0, initial=0.0)
    unit = np.where(largest > 0.0, largest, 1.0)
    ridge, rest = penalty * problem.total, problem.targets / unit
    size = np.maximum(np.linalg.norm(rest, axis=0), 1.0)
    rows, alpha = min(BLOCK_ROWS * np.sqrt(n), np.sqrt(budget / 32)), np.zeros_like(rest)
    while True:
        for block in np.array_split(draw.permutation(n), int(np.ceil(n / rows))):
            step = _solved(problem.taken(block), kernel, ridge, rest[block], memory_limit)
            alpha[block] += step
            some = ArrayRows(problem.X[block])
            data = KernelRows(some, kernel, problem.X, memory_limit, keep=False)
            rest -= data.transposed(step * problem.roots[block, None]) * problem.roots[:, None]
            rest[block] -= ridge * step
            if time.perf_counter() > end:
                break
        residual = float(np.max(np.linalg.norm(rest, axis=0) / size))
        if not residual < DIVERGED:
            raise LearningError(
                f"The kernel is not positive semidefinite on these rows. {FAR_ROWS}"
            )
        yield Sweep(unit * alpha * problem.roots[:, None], residual)


def seconds_a_sweep(rows: Rows, kernel: Kernel) -> float:
    """About how long a sweep over all rows takes here and now; the time goes by their square."""
    k = min(rows.n_samples, PROBE_ROWS)
    block = rows.pick(np.arange(k))
    problem, start = Problem.of(ArrayRows(block.X, block.Y)), 0.0
    for _ in range(2):  # what the first one takes is also compilation
        start = time.perf_counter()
        next(by_blocks(problem, kernel, 1.0))
    return (time.perf_counter() - start) * (rows.n_samples / k) ** 2


def _solved(
    problem: Problem, kernel: Kernel, ridge: float, targets: Array, memory_limit: int | None
) -> Array:
    """(K + ridge I)^-1 targets of a block; with more on the diagonal where rounding asks for it:
    that costs sweeps, no accuracy.
    """
    for _ in range(MOST_TRIALS):
        K = problem.gram(kernel, 1, memory_limit)
        ridge = max(ridge, problem.rounding(K))
        K[np.diag_indices_from(K)] += ridge
        if upper_factor(K.T):
            found: Array = cho_solve((K.T, False), targets, check_finite=False)
            return found
        ridge *= 10.0
    raise LearningError(f"A block's matrix has no Cholesky factor. {FAR_ROWS}")
