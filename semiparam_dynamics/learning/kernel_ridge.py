"""Kernel ridge regression on all rows: by one factor of the matrix, or without storing it.

The matrix that is too large is solved by randomised block Gauss-Seidel: a random part of the rows
after the other, exactly, with the other rows' coefficients as they are (Tu, Roelofs, Venkataraman,
Recht 2016, "Large scale kernel learning using block coordinate descent"). To predictions within a
hundredth of the exact ones it took at most two thirds of the kernel values that conjugate gradient
with a Nystrom preconditioner took, and less than half of those of ASkotch and EigenPro 2.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import OptimizeResult, minimize

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.centers import distinct_rows
from semiparam_dynamics.learning.kernels import FAR_ROWS, NOT_FINITE, Gaussian, Kernel, Matern
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
    alpha = _by_factor(K, ridge, problem.targets)
    return None if alpha is None else alpha * problem.roots[:, None]


def _by_factor(K: Array, ridge: float, targets: Array) -> Array | None:
    """(K + ridge I)^-1 targets, which uses K up; None where it has no Cholesky factor."""
    K[np.diag_indices_from(K)] += ridge
    # K is symmetric, and its transpose lies in memory as LAPACK wants it.
    return cho_solve((K.T, False), targets, check_finite=False) if upper_factor(K.T) else None


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
        if (found := _by_factor(K, ridge, targets)) is not None:
            return found
        ridge *= 10.0
    raise LearningError(f"A block's matrix has no Cholesky factor. {FAR_ROWS}")


# -------------------------------------------------------------------------------------------------
# Kernel, widths and penalty within a time.

MIN_WIDTH, MAX_WIDTH = 0.02, 1e4  # bounds of the widths, in the inputs' standard deviations
# 2 nu of Matern's kernels, and 0 for the Gaussian one; their first widths over the Gaussian's.
FAMILIES = {1: 4.0, 3: 2.0, 0: 1.0}
FIRST_ROWS, LAST_ROWS = 500, 8000  # of the search, and with those that compare what it found
SEARCH_STEPS = 25
SHARES = (1.0, 0.5)  # of the differences between the learned widths' logarithms, that are compared
RIDGES = (0.25, 1.0, 4.0)  # over the learned one
LONGEST = 20.0  # width, over the median: beyond, an input has no part in the kernel
FIRST_RIDGE, RIDGE_BOUNDS = 0.1, (1e-6, 1e2)  # penalty n, in units of K(x, x)


def chosen_within(rows: Rows, end: float) -> tuple[Kernel, float]:
    """A kernel for all rows, and the penalty, found until the time `end` of ``perf_counter``.

    Gaussian and Matern kernels have the widths, one for each input, and the ridge that minimise the
    exact leave-one-out error of some rows (:class:`LeaveOneOut`), by L-BFGS-B. These, and such with
    other ridges and widths half-way to their mean, are compared by that error on as many others.
    The search continues from the best, with twice as many rows, as long as time is left. All rows
    have the same ridge: see :func:`~.centers.chosen_by_leave_one_out`.

    Raises LearningError for less than ten rows, and where no error is finite.
    """
    some = distinct_rows(rows, LAST_ROWS)
    if len(some) < 10:
        raise LearningError("Widths are learned from at least ten rows.")
    size = np.abs(some.Y).max(axis=0, initial=0.0).astype(float)
    X, Y = some.X.astype(float), some.Y / np.where(size > 0.0, size, 1.0)
    unit = X.std(axis=0)
    unit[unit <= 1e-9 * np.abs(X).max(axis=0)] = 1.0  # in these rows; others may differ
    problem = Problem.of(ArrayRows(X / unit, Y, some.weights))
    d = X.shape[1]
    starts = {
        order: np.log(np.append(np.full(d, factor * np.sqrt(d)), FIRST_RIDGE))
        for order, factor in FAMILIES.items()
    }
    bounds = [np.log([MIN_WIDTH, MAX_WIDTH])] * d + [np.log(RIDGE_BOUNDS)]
    n, best = FIRST_ROWS, (0, starts[0])
    while True:
        begin, n = time.perf_counter(), min(n, 2 * len(some) // 3)
        few, more = (problem.taken(np.arange(min(k, len(some)))) for k in (n, 2 * n))
        searched = {
            order: minimize(
                LeaveOneOut(few, order),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": SEARCH_STEPS},
                callback=partial(_stop_at, end),
            ).x
            for order, start in starts.items()
        }
        found = [best, *((order, near) for order, at in searched.items() for near in _near(at))]
        errors = [LeaveOneOut(more, order).error(at, n) for order, at in found]
        best = found[int(np.argmin(errors))]
        spent, n = time.perf_counter() - begin, 2 * n
        if n >= len(some) or time.perf_counter() + 8.0 * spent / len(starts) > end:
            break
        starts = {best[0]: searched[best[0]]}
    if not np.isfinite(min(errors)):
        raise LearningError("No width has a finite leave-one-out error.")
    order, at = best
    ridge = float(np.exp(at[-1])) * problem.total / len(X)
    return _of_order(order, unit * np.exp(at[:-1])), ridge / rows.total_weight


def _stop_at(end: float, intermediate_result: OptimizeResult) -> None:
    if time.perf_counter() > end:
        raise StopIteration


def _near(at: Array) -> Iterator[Array]:
    """Logarithms of widths and ridge, as `at`, that are compared with those."""
    logs = np.minimum(at[:-1], np.median(at[:-1]) + np.log(LONGEST))
    for share in SHARES:
        for ridge in RIDGES:
            yield np.append(logs.mean() + share * (logs - logs.mean()), at[-1] + np.log(ridge))


def _of_order(order: int, widths: Array) -> Kernel:
    return Matern(widths, order / 2) if order else Gaussian(widths)


class LeaveOneOut:
    """The exact leave-one-out error of kernel ridge regression on a problem's n rows.

    With G = (K + ridge I)^-1 row i's error is e_i = (G Y)_i / G_ii (Rifkin, Lippert 2007, section
    3). `order` is 2 nu of Matern's kernel, 1 or 3, or 0 for the Gaussian one.
    """

    def __init__(self, problem: Problem, order: int) -> None:
        self._problem, self._order = problem, order

    def error(self, at: Array, first: int = 0) -> float:
        """The mean square of the errors from row `first` on; infinite where there is none."""
        solved = self._solved(at)
        return np.inf if solved is None else float(np.mean(solved[-1][first:] ** 2))

    def __call__(self, at: Array) -> tuple[float, Array]:
        """The mean square's logarithm, and its gradient by the logarithms of widths and ridge.

        G's derivative is -G (dA) G, and K's by log sigma_k is S (x_k - x'_k)^2 / sigma_k^2, where S
        is K, K / r or 3 exp(-3^(1/2) r) for the orders 0, 1 and 3.
        """
        solved, roots = self._solved(at), self._problem.roots
        if solved is None:
            return np.inf, np.zeros_like(at)
        K, G, a, e = solved
        value = float(np.mean(e**2))
        if not value > 0.0:
            return np.inf, np.zeros_like(at)
        p = 2.0 * e / (np.diag(G)[:, None] * e.size)
        v = G @ p
        by_A = (G * np.sum(p * e, axis=1)) @ G - 0.5 * (v @ a.T + a @ v.T)
        X = self._problem.X / np.exp(at[:-1])
        if self._order == 1:
            with np.errstate(divide="ignore"):
                r = -np.log(K / np.outer(roots, roots))
            K = np.divide(K, r, out=np.zeros_like(K), where=(r > 0.0) & np.isfinite(r))
        elif self._order == 3:
            K = 3.0 * Matern(1.0 / np.sqrt(3.0), 0.5)(X) * np.outer(roots, roots)
        slopes = np.append(_by_widths(by_A * K, X, X), np.exp(at[-1]) * np.trace(by_A))
        return np.log(value), slopes / value

    def _solved(self, at: Array) -> tuple[Array, Array, Array, Array] | None:
        """K, G, G Y and the errors; None without finite ones."""
        K = self._problem.gram(_of_order(self._order, np.exp(at[:-1])), 1, None)
        A = K.copy()
        A[np.diag_indices_from(A)] += np.exp(at[-1])
        if not upper_factor(A.T):
            return None
        inverse = dpotri(A.T, lower=0, overwrite_c=1)[0]
        G = np.triu(inverse) + np.triu(inverse, 1).T
        a = G @ self._problem.targets
        with np.errstate(all="ignore"):
            e = a / np.diag(G)[:, None]
        return (K, G, a, e) if np.isfinite(e).all() else None


def _by_widths(M: Array, A: Array, C: Array) -> Array:
    """sum_ij M_ij (a_ik - c_jk)^2 of each input k, (d,)."""
    squares = M.sum(axis=1) @ (A * A) + M.sum(axis=0) @ (C * C)
    slopes: Array = squares - 2.0 * np.einsum("ik,ik->k", A, M @ C)
    return slopes
