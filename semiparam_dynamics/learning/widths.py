"""One Gaussian width for each input, learned from rows by gradient descent."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotri, dtrtri
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    listing,
    positive_count,
)
from semiparam_dynamics.learning.base import ErrorSlope
from semiparam_dynamics.learning.centers import distinct_rows
from semiparam_dynamics.learning.kernel_ridge import Problem
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Matern, as_kernel
from semiparam_dynamics.learning.products import upper_factor
from semiparam_dynamics.learning.rows import ArrayRows, Rows, training_rows

JITTER = 1e-9  # added to K(c, c) = 1
MIN_WIDTH, MAX_WIDTH = 0.02, 1e4  # bounds of the widths, in the inputs' standard deviations
PENALTIES = (1e-9, 1e1)  # bounds of lambda
FIRST_FACTORS = (0.25, 0.5, 1.0, 2.0)  # of the first widths, of which the best begins
COMPARED_SHARE = 3  # a third of the rows and centres suffices to compare starting points
# Half of the rows and centres lead near the minimum, in an eighth of the time; then all.
SEARCH_SHARES = (2, 1)
FIRST_PENALTIES = (1e-2, 1e-4, 1e-6)
# The search ends where ten steps bring less than this part of the error: the steps after it take
# most of the time, in line searches among rounding, and no error on other rows falls by them.
# Not on a plateau at the beginning: an error that has not fallen by MIN_FALL says nothing.
STOPPING = ErrorSlope(window=10, threshold=0.01, relative=True)
MIN_FALL = 0.05


@dataclass(frozen=True)
class LearnedWidths:
    """The result of `learn_widths`.

    Attributes
    ----------
    estimator : a clone, not fitted, with the kernel and the penalty that were found.
    length_scale : the widths, (d,), in the inputs' units.
    penalty : lambda, for as many rows as the search had.
    error : the mean squared leave-one-out error of the search's rows.
    n_iter : steps of L-BFGS-B, of both searches.
    unbounded : (d,), the inputs whose width grew to its bound: the error does not need them.
    """

    estimator: Any
    length_scale: Array
    penalty: float
    error: float
    n_iter: int
    unbounded: Mask


def learn_widths(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_rows: int = 4000,
    n_centers: int = 300,
    max_iter: int = 50,
    random_state: Any = None,
) -> LearnedWidths:
    """Learn the widths of a Gaussian kernel, one for each input, and the penalty.

    Minimises the leave-one-out error of Nyström kernel ridge regression on `n_rows` rows and
    `n_centers` of them as centres, drawn uniformly, over the widths' logarithms and the penalty's
    by L-BFGS-B with the analytic gradient (:func:`leave_one_out`), until ten steps bring less than
    one percent: with half of the rows and centres first, from there with all. Time
    O(n_rows n_centers^2 + n_rows n_centers d) a step. The search begins at the estimator's
    Gaussian kernel, or, for the width "scale", at sqrt(d) standard deviations, with the best of
    four common factors.

    Parameters
    ----------
    estimator : :class:`NystromKRLS`, :class:`Falkon` or another with `kernel` and `penalty`; it is
        left as it is.
    X, y : inputs (n, d), and outputs (n,) or (n, T), or :class:`Rows` and None.
    n_rows : rows of the search.
    n_centers : its centres.
    max_iter : steps of L-BFGS-B at most, with half of the rows and then with all.
    random_state : seed of rows and centres.

    Raises ConfigurationError for a kernel that is not Gaussian, LearningError for less than three
    rows and where no starting point has a finite error. Warns (ConvergenceWarning) where a width
    falls to its bound: then its input is noise to the others, or has few values.
    """
    kernel = _gaussian_or_none(estimator)
    some, Y = _drawn(estimator, X, y, positive_count(n_rows, "n_rows"), random_state)
    d = some.shape[1]
    deviations = some.std(axis=0)
    constant = deviations <= 1e-9 * np.abs(some).max(axis=0, initial=0.0)
    deviations[constant] = 1.0  # in these rows; others may differ
    given = np.sqrt(d) * deviations if kernel is None else kernel.length_scale
    first = np.log(np.broadcast_to(np.asarray(given, dtype=float), (d,)))
    centers = some[: positive_count(n_centers, "n_centers")]
    lowest = np.log(MIN_WIDTH * deviations)
    highest = np.log(MAX_WIDTH * deviations)

    def objective(theta: Array, share: int = 1) -> tuple[float, Array]:
        rows, m = -(-len(some) // share), -(-len(centers) // share)
        error, slope = leave_one_out(theta[:-1], theta[-1], some[:rows], Y[:rows], centers[:m])
        if not error > 0.0:  # outputs that are all zero, or values that are not finite
            return np.inf, np.zeros_like(slope)
        return np.log(error), slope / error

    steps, at = positive_count(max_iter, "max_iter"), _best_start(objective, first, lowest, highest)
    n_iter = 0
    for share in SEARCH_SHARES:
        found = minimize(
            objective,
            at,
            args=(share,),
            jac=True,
            method="L-BFGS-B",
            bounds=[*zip(lowest, highest, strict=True), tuple(np.log(PENALTIES))],
            callback=_SmallGain(MIN_FALL if share == SEARCH_SHARES[0] else 0.0),
            options={"maxiter": steps},
        )
        at, n_iter = found.x, n_iter + int(found.nit)
    widths, penalty = np.exp(found.x[:-1]), float(np.exp(found.x[-1]))
    _warn_of_short(np.flatnonzero(found.x[:-1] <= lowest + 1e-9))
    return LearnedWidths(
        clone(estimator).set_params(kernel=Gaussian(widths), penalty=penalty),
        widths,
        penalty,
        float(np.exp(found.fun)),
        n_iter,
        found.x[:-1] >= highest - 1e-9,
    )


def _gaussian_or_none(estimator: Any) -> Gaussian | None:
    """The estimator's kernel. Raises ConfigurationError for another kind, or without a penalty."""
    given = estimator.get_params().get("kernel")
    kernel = as_kernel(given) if hasattr(estimator, "penalty") else None
    if not isinstance(kernel, Gaussian):
        alone = " Pass its last step alone, with X scaled." if hasattr(estimator, "steps") else ""
        raise ConfigurationError(
            f"Widths are learned for an estimator with a penalty and a Gaussian kernel, or None, "
            f"not for {estimator!r}.{alone}"
        )
    return None if kernel.needs_scale else kernel


def _best_start(
    objective: Callable[..., tuple[float, Array]], first: Array, lowest: Array, highest: Array
) -> Array:
    """The logarithms of widths and penalty with the least error, of a few about `first` (d,).

    Raises LearningError where no error is finite.
    """
    starts = [
        np.append(np.clip(first + np.log(factor), lowest, highest), np.log(penalty))
        for factor in FIRST_FACTORS
        for penalty in FIRST_PENALTIES
    ]
    values = [objective(start, COMPARED_SHARE)[0] for start in starts]
    if not np.isfinite(values).any():
        raise LearningError(
            "No width has a finite leave-one-out error: are all outputs equal, or the inputs too "
            "large for their squares?"
        )
    return starts[int(np.nanargmin(values))]


def _warn_of_short(inputs: Indices) -> None:
    """Warn of inputs whose width fell to its bound."""
    if len(inputs):
        warnings.warn(
            f"The widths of inputs {listing([str(k) for k in inputs])} fell to their bound, "
            f"{MIN_WIDTH} standard deviations: leave these inputs out, or raise n_rows.",
            ConvergenceWarning,
            stacklevel=3,
        )


class _SmallGain:
    """The rule after each step: it ends where the error has fallen by `gain`, and falls no more."""

    def __init__(self, gain: float) -> None:
        self._gain, self._errors = gain, list[float]()

    def __call__(self, intermediate_result: OptimizeResult) -> None:
        errors = self._errors
        errors.append(float(np.exp(intermediate_result.fun)))
        if errors[-1] <= (1.0 - self._gain) * errors[0] and STOPPING(errors):
            raise StopIteration


def leave_one_out(
    log_widths: Array, log_penalty: float, X: Array, Y: Array, centers: Array
) -> tuple[float, Array]:
    """The mean squared leave-one-out error of rows X (n, d), Y (n, T), and its gradient (d + 1,).

    With k_i the kernel of row i and the centres (m, d), H = K'K + penalty n K_mm and the leverage
    h_i = k_i' H^-1 k_i, the error of row i by the fit to the others on the same centres is
    (y_i - k_i' alpha) / (1 - h_i) (thesis 4.3.1). The gradient is the error's, propagated back
    through these equations to K and K_mm, and by dK / dlog sigma_k = K (x_k - c_k)^2 / sigma_k^2.
    """
    n, widths = len(X), np.exp(log_widths)
    A, C = X / widths, centers / widths
    K, own = _gaussian(A, C), _gaussian(C, C)
    own.flat[:: len(own) + 1] += JITTER
    ridge = float(np.exp(log_penalty)) * n
    H = K.T @ K + ridge * own
    factor = _factor(H)
    B = _solved_rows(factor[0], K)
    alpha = cho_solve(factor, K.T @ Y)
    leverage = np.minimum(np.einsum("ij,ij->i", B, K), 1.0 - 1e-10)
    rest = 1.0 - leverage[:, None]
    errors = (Y - K @ alpha) / rest
    value = float(np.mean(errors**2))
    by_residual = 2.0 * errors / (errors.size * rest)
    by_leverage = np.sum(by_residual * errors, axis=1)
    v = cho_solve(factor, -(K.T @ by_residual))
    crossed = v @ alpha.T
    B *= np.sqrt(by_leverage)[:, None]
    by_H = -(B.T @ B) - 0.5 * (crossed + crossed.T)  # B'B takes half the time of another product
    B *= np.sqrt(by_leverage)[:, None]
    by_K = K @ by_H
    by_K += B
    by_K *= 2.0
    by_K += np.hstack((Y, -by_residual)) @ np.hstack((v, alpha)).T
    by_K *= K
    by_own = ridge * by_H
    slopes = _by_widths(by_K, A, C) + _by_widths(by_own * own, C, C)
    return value, np.append(slopes, np.sum(by_own * own))


def _factor(H: Array) -> tuple[Array, bool]:
    """H's Cholesky factor, with as much on its diagonal as rounding asks for."""
    scale = float(np.trace(H)) / len(H)
    for extra in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
        try:
            factor: tuple[Array, bool] = cho_factor(
                H + extra * scale * len(H) * np.eye(len(H)), lower=True
            )
        except np.linalg.LinAlgError:
            continue
        return factor
    raise LearningError("The kernel's values are not finite: scale the inputs.")


def _solved_rows(lower: Array, K: Array) -> Array:
    """H^-1 k of each row k of K (n, m), of H's lower factor.

    Products with the factor's inverse take half the time of triangular solutions, and are as
    accurate; one product with H^-1 is not.
    """
    inverse, _ = dtrtri(lower, lower=1)
    once = dtrmm(1.0, inverse, K.T, lower=1)
    rows: Array = dtrmm(1.0, inverse, once, lower=1, trans_a=1, overwrite_b=1).T
    return rows


def _gaussian(A: Array, C: Array) -> Array:
    return Gaussian(1.0)(np.ascontiguousarray(A), np.ascontiguousarray(C))


def _by_widths(M: Array, A: Array, C: Array) -> Array:
    """sum_ij M_ij (a_ik - c_jk)^2 of each input k, (d,)."""
    squares = M.sum(axis=1) @ (A * A) + M.sum(axis=0) @ (C * C)
    slopes: Array = squares - 2.0 * np.einsum("ik,ik->k", A, M @ C)
    return slopes


def _drawn(estimator: Any, X: Any, y: Any, n_rows: int, random_state: Any) -> tuple[Array, Array]:
    """Inputs (k, d) and outputs (k, T) of so many rows, in random order and in float64."""
    rows = training_rows(clone(estimator), X, y)
    if rows.sparse:
        raise LearningError("Widths are learned from arrays, not from sparse inputs.")
    if rows.n_samples < 3:
        raise LearningError("Widths are learned from at least three rows.")
    chosen = check_random_state(random_state).permutation(rows.n_samples)[:n_rows]
    some = rows.pick(chosen)
    return some.X.astype(float), some.Y.astype(float)


# -------------------------------------------------------------------------------------------------
# Kernel, widths and penalty within a time.

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
