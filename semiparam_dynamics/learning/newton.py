"""Logistic regression on Nyström centres: damped Newton steps by FALKON's conjugate gradient.

Marteau-Ferey, Bach, Rudi 2019, "Globally convergent Newton methods for ill-conditioned generalized
self-concordant losses"; Meanti, Carratino, Rosasco, Rudi 2020, "Kernel methods through the roof".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.learning.falkon_system import (
    MAX_STALLED_STEPS,
    FalkonSystem,
    Follow,
    Preconditioner,
    Solved,
    conjugate_gradient,
)
from semiparam_dynamics.learning.kernels import weight_columns
from semiparam_dynamics.learning.losses import as_loss
from semiparam_dynamics.learning.products import KernelRows

MAX_FORCING = 0.1  # of a step's linear system: its relative residual at most
MAX_PRODUCTS = 200  # with the Hessian at most, of a step
MAX_HALVINGS = 40  # at most, of a step
ARMIJO_SHARE = 1e-4  # of what the gradient promises a step must gain at least (Armijo's rule)
NEAR_RESIDUAL = 1e-6  # a residual from which on a step that does not halve it is rounding's
MAX_DECREMENT = 0.1  # Newton's, with which 0.005 of the logistic loss is still to be gained
# a change of the objective, relative to it, that may be rounding
OBJECTIVE_ROUNDING = 1e-10


@dataclass
class Iterate:
    """Iterate of Newton's method: each of T columns is a problem of its own."""

    weights: Array  # w (q, T), the features' weights
    offsets: Array  # b (T,)
    predictions: Array  # f (n, T), at the rows
    slopes: Array  # K' W times the losses' derivatives, (q, T)
    couplings: Array  # K' W times the losses' second derivatives, (q, T); zeros without offsets


@dataclass(frozen=True)
class Slopes:
    """The gradient of k columns, and the Hessian's row of their offsets."""

    by_weights: Array  # (q, k)
    by_offsets: Array  # (k,)
    coupling: Array  # g (q, k)
    curvature: Array  # h (k,)

    def eliminated(self) -> Array:
        """The gradient by the weights where the offsets are the best for each, (q, k)."""
        result: Array = self.by_weights - self.coupling * (self.by_offsets / self.curvature)
        return result

    def offset_steps(self, d: Array) -> Array:
        """The offsets' steps (k,) that go with those of the weights, d (q, k)."""
        steps: Array = -(self.by_offsets + np.sum(self.coupling * d, axis=0)) / self.curvature
        return steps

    def norms(self, preconditioners: list[Preconditioner]) -> Array:
        """About Newton's decrement of each column, (k,)."""
        squares = np.sum(_each(preconditioners, "from_features", self.eliminated()) ** 2, axis=0)
        return np.asarray(np.sqrt(squares + self.by_offsets**2 / self.curvature))


class LogisticNewton:
    """The minimisers w_t of sum_i v_i log(1 + exp(-y_it f_t(x_i))) / n + penalty |w_t|^2 / 2.

    f_t = phi' w_t + b_t, where b_t is zero, or with `intercept` free and without a penalty, with
    the features of a :class:`FalkonSystem`, v the sample weights and n their sum; y_it is -1 or 1.
    Each step solves (Phi' D Phi / n + penalty I) d = -gradient, with D the
    losses' second derivatives, by conjugate gradient with a preconditioner of the same derivatives
    at the centres (Meanti et al. 2020, section 2 and algorithm 2). It is solved as exactly as the
    step's gain asks for, and the step is halved until the objective falls, for convergence from
    any start (inexact damped Newton: Nocedal, Wright 2006, algorithm 7.1).

    An offset is eliminated: with g = Phi' D 1 / n and h = 1' D 1 / n its step is -(l' + g'd) / h,
    l' the losses' mean derivative, and d's matrix loses g g' / h. The preconditioner lacks that
    term; the one eigenvalue that it leaves costs conjugate gradient an iteration or two.

    A step takes a product with the kernel for each iteration of conjugate gradient, and one more.
    Its T preconditioners are alive at once, and some six arrays (n, T) of float64.

    Attributes
    ----------
    offsets : b (T,), of the last solution.

    Raises LearningError for targets that are neither -1 nor 1.
    """

    def __init__(self, system: FalkonSystem, intercept: bool = False) -> None:
        assert isinstance(system.data, KernelRows)
        self._system, self._data = system, system.data
        rows = system.data.rows
        Y = [block.Y for block in rows.blocks(rows.n_samples)]
        self._Y = np.concatenate(Y).astype(float)
        as_loss("logistic").check(self._Y)
        self._intercept = intercept
        self._share = weight_columns(rows.weights(), rows.n_samples, 1) / rows.total_weight
        zero = np.zeros_like(self._Y)
        q, self.offsets = system.basis.n_features, np.zeros(zero.shape[1])
        weights = np.zeros((q, zero.shape[1]))
        self._at = Iterate(weights, self.offsets, zero, *self._derivatives(zero))

    def solve(self, penalty: float, max_iter: int, tolerance: float, follow: Follow) -> Solved:
        """Newton steps until each column's residual is at most `tolerance`, or rounding.

        They begin where the steps of the penalty before have ended. The residual is the gradient's
        norm by the preconditioner, about Newton's decrement: half of its square is about what the
        objective can still fall by.
        """
        at = self._at
        w, f, offsets = at.weights, at.predictions, at.offsets
        # Below the data's precision a residual says nothing.
        tolerance = max(tolerance, float(np.finfo(self._data.rows.dtype).eps))
        if not w.size:  # a kernel that is zero on all centres
            if self._intercept:
                offsets[:] = self._log_odds(tolerance)
                f[:] = offsets
            return Solved(np.zeros((1, w.shape[1])), np.zeros((0, w.shape[1])), str)
        coefficients = np.zeros_like(w)
        residuals: list[Array] = []
        relative = np.full(w.shape[1], np.inf)
        active = np.arange(w.shape[1])
        while len(active) and len(residuals) < max_iter:
            each = [self._preconditioner(penalty, w[:, t], offsets[t]) for t in active]
            here = self._gradient(each, penalty, at, active)
            before = here.norms(each)
            d = self._direction(each, penalty, f[:, active], here, before, tolerance)
            change = each[0].to_coefficients(d)
            df = np.concatenate(list(self._data.multiply(change))).astype(float)
            db = here.offset_steps(d)
            df += db
            slope = np.sum(here.by_weights * d, axis=0) + here.by_offsets * db
            step = self._step(penalty, w[:, active], f[:, active], d, df, active, slope)
            w[:, active] += step * d
            f[:, active] += step * df
            offsets[active] += step * db
            found = self._derivatives(f[:, active], active)
            at.slopes[:, active], at.couplings[:, active] = found
            after = self._gradient(each, penalty, at, active).norms(each)
            relative[active] = after
            residuals.append(relative.copy())
            coefficients = each[0].to_coefficients(w)
            # Near the solution a step squares the residual, until rounding keeps it.
            stuck = (step == 0.0) | ((after > 0.5 * before) & (before < NEAR_RESIDUAL))
            active = active[(after > tolerance) & ~stuck]
            del each  # before the next are made
            if follow(len(residuals), coefficients.copy):
                break
        return Solved(coefficients, np.array(residuals), partial(_far, relative))

    def _log_odds(self, tolerance: float) -> Array:
        """The minimisers among constant functions, (T,).

        A class that no row has would have them infinite: it counts with the share at which the
        residual, the share's root then, is the tolerance.
        """
        least = max(tolerance**2, float(np.finfo(float).tiny))
        positive, negative = (
            np.maximum(np.sum(self._share * (self._Y == sign), axis=0), least)
            for sign in (1.0, -1.0)
        )
        return np.asarray(np.log(positive / negative))

    def _gradient(
        self, each: list[Preconditioner], penalty: float, at: Iterate, columns: Indices
    ) -> Slopes:
        """The objective's at the columns' functions, with what eliminates the offsets."""
        by_weights = each[0].from_coefficients(at.slopes[:, columns])
        by_weights += penalty * at.weights[:, columns]
        if not self._intercept:
            none = np.zeros(len(columns))
            return Slopes(by_weights, none, np.zeros_like(by_weights), none + 1.0)
        f = at.predictions[:, columns]
        return Slopes(
            by_weights,
            np.sum(self._losses_slopes(f, columns), axis=0),
            each[0].from_coefficients(at.couplings[:, columns]),
            np.sum(_curvature(f) * self._share, axis=0),
        )

    def _preconditioner(self, penalty: float, w: Array, offset: float) -> Preconditioner:
        return self._system.preconditioner(penalty, lambda phi: _curvature(phi @ w + offset))

    def _direction(
        self,
        each: list[Preconditioner],
        penalty: float,
        f: Array,
        at: Slopes,
        residuals: Array,
        tolerance: float,
    ) -> Array:
        """Newton's direction d (q, k), to a residual that leaves convergence quadratic."""
        weights = _curvature(f) * self._share

        def product(beta: Array, numbers: Indices) -> Array:
            some = [each[t] for t in numbers]
            v = _each(some, "to_features", beta)
            here = weights if len(some) == len(each) else weights[:, numbers]
            result = self._data.weighted_normal(each[0].to_coefficients(v), here)
            curved = each[0].from_coefficients(result) + penalty * v
            g = at.coupling[:, numbers]
            curved -= g * (np.sum(g * v, axis=0) / at.curvature[numbers])
            return _each(some, "from_features", curved)

        b = -_each(each, "from_features", at.eliminated())
        enough = np.clip(residuals, 0.3 * tolerance / np.maximum(residuals, tolerance), MAX_FORCING)
        found = conjugate_gradient(
            product, b, max_iter=MAX_PRODUCTS, tolerance=enough, patience=MAX_STALLED_STEPS
        )
        return _each(each, "to_features", found.x)

    def _step(
        self,
        penalty: float,
        w: Array,
        f: Array,
        d: Array,
        df: Array,
        columns: Indices,
        slope: Array,
    ) -> Array:
        """The part (k,) of each direction that is gone: 1, halved until the objective falls."""
        Y = self._Y[:, columns]

        def objective(part: Array) -> Array:
            losses = np.logaddexp(0.0, -Y * (f + part * df))
            penalties = 0.5 * penalty * np.sum((w + part * d) ** 2, axis=0)
            return np.asarray(np.sum(self._share * losses, axis=0) + penalties)

        step = np.ones(len(columns))
        now = objective(0.0 * step)
        allowed = OBJECTIVE_ROUNDING * np.abs(now)
        for _ in range(MAX_HALVINGS):
            too_far = objective(step) > now + ARMIJO_SHARE * step * slope + allowed
            if not too_far.any():
                return step
            step[too_far] *= 0.5
        return np.where(too_far, 0.0, step)

    def _losses_slopes(self, f: Array, columns: Indices | slice) -> Array:
        """The losses' derivatives at predictions f, by the rows' shares, (n, k)."""
        Y = self._Y[:, columns]
        return np.asarray(-self._share * Y * expit(-Y * f))

    def _derivatives(self, f: Array, columns: Indices | slice = slice(None)) -> tuple[Array, Array]:
        """K' W times the losses' first and second derivatives at predictions f (n, k), (q, k)."""
        q, k = self._system.basis.n_features, f.shape[1]
        first = self._losses_slopes(f, columns)
        if not self._intercept:
            return self._data.transposed(first)[:q], np.zeros((q, k))
        both = self._data.transposed(np.hstack((first, _curvature(f) * self._share)))[:q]
        return both[:, :k], both[:, k:]


def _curvature(f: Array) -> Array:
    """The logistic loss' second derivative at predictions f, whatever the label."""
    p = expit(f)
    return np.asarray(p * (1.0 - p))


def _far(residuals: Array) -> str:
    """Sentence on the outputs' largest residual, if it is large."""
    left = float(np.max(residuals))
    return f"Newton's decrement is still {left:.2g}" if left > MAX_DECREMENT else ""


def _each(preconditioners: list[Preconditioner], solve: str, B: Array) -> Array:
    """Each column of B (q, k) by its own preconditioner's method `solve`."""
    columns = [getattr(one, solve)(B[:, [t]]) for t, one in enumerate(preconditioners)]
    return np.hstack(columns)
