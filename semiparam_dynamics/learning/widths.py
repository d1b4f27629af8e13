"""A kernel with one width for each input, and its penalty, found within a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotri
from scipy.optimize import OptimizeResult, minimize

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.centers import distinct_rows
from semiparam_dynamics.learning.kernel_ridge import Problem
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Matern
from semiparam_dynamics.learning.products import upper_factor
from semiparam_dynamics.learning.rows import ArrayRows, Rows

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
