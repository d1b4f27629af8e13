"""FALKON: Nyström kernel machines by preconditioned conjugate gradient.

Rudi, Carratino, Rosasco 2017. The logistic loss is minimised by damped Newton steps with the same
conjugate gradient: Marteau-Ferey, Bach, Rudi 2019, "Globally convergent Newton methods for
ill-conditioned generalized self-concordant losses"; Meanti, Carratino, Rosasco, Rudi 2020, "Kernel
methods through the roof".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive_count,
)
from semiparam_dynamics.learning.base import (
    Callback,
    HeldOut,
    IterationLog,
    KernelRegressor,
    Loss,
    Path,
    RegularisationPath,
    as_loss,
    fitted_rows,
    predictor,
    validation_rows,
)
from semiparam_dynamics.learning.centers import (
    Centers,
    NystromBasis,
    Sampled,
    choose_centers,
    least_share,
    sample_by_weight,
    sampled_rows,
    solve_upper,
    uniform,
)
from semiparam_dynamics.learning.kernels import Kernel, weight_columns
from semiparam_dynamics.learning.products import (
    KernelRows,
    add_products,
    kernel_rows,
    triangle_products,
    upper_factor,
)
from semiparam_dynamics.learning.ridge import Solution, conjugate_gradient
from semiparam_dynamics.learning.rows import Rows, backend_of, chunk_by_chunk, memory_budget

# -------------------------------------------------------------------------------------------------
# The linear system and its preconditioner.

MAX_STALLED_STEPS = 50  # iterations without a smaller residual: rounding lets no more be gained
MOMENT_BLOCK_ROWS = 512  # rows of features at a time
MAX_GAIN_LEFT = 0.1  # of the objective, still to be gained: the estimate is not yet the minimiser
# of the outputs' mean square: their predictions' error is below a thousandth then
NEGLIGIBLE_GAIN = 1e-6

Curvature = Callable[[Array], Array]  # features (k, q) -> what each row counts by, (k,)
# Called after each step with its number, from 1, and a function that gives the coefficients (q, T);
# a true answer ends all.
Follow = Callable[[int, Callable[[], Array]], bool]


@dataclass(frozen=True)
class Solved:
    """The solution for one penalty, of FALKON's system or of the logistic loss."""

    coefficients: Array  # (q, T), of the kernels at the system's ``data.centers``
    residuals: Array  # (t, T), after each of t steps
    far: Callable[[], str]  # a sentence on how far it is from the minimiser; empty where it is near


class FalkonSystem:
    """(Phi' W Phi / n + penalty I) w = Phi' W Y / n, for any number of penalties.

    Phi = K_nM L'^-1 are the rows' features (n, q), and the coefficients are L'^-1 w: the Nyström
    problem's H alpha = K_nM' W Y without the directions that rounding leaves undetermined. The
    preconditioner is made from the rows of `sample`, or from the centres where that is None.

    Attributes
    ----------
    offsets : zeros (T,), of the outputs' functions.
    least : the least that an eigenvalue of the preconditioned matrix can be; about that for centres
        that aren't rows. A row counts in the preconditioner for at most 1 / least of its weight.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        centers: Centers,
        memory_limit: int | None = None,
        sample: Centers | None = None,
        products: Callable[..., Any] = kernel_rows,
    ) -> None:
        self.basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
        self.data = products(rows, kernel, self.basis.centers[self.basis.kept], memory_limit)
        self._parts = sampled_rows(rows, centers, sample)
        self.least = least_share(rows, self._parts)
        self._keep = sample is not None
        self._moments: Array | None = None
        self._targets: Array | None = None
        self._n = rows.total_weight
        self.offsets = np.zeros(rows.n_outputs)

    def preconditioner(self, penalty: float, curvature: Curvature | None = None) -> Preconditioner:
        """Preconditioner of one penalty; free the one before, which is as large.

        With the features' `curvature`, the diagonal C, that of Phi' W C Phi / n + penalty I.
        """
        return Preconditioner(self.basis, penalty, partial(self._mean_products, curvature))

    def _mean_products(self, curvature: Curvature | None) -> Array:
        """See :func:`mean_products`; what a sample gives for all penalties is made once."""
        if curvature is not None or not self._keep:
            return mean_products(self.basis, self._parts, curvature)
        if self._moments is None:
            self._moments = mean_products(self.basis, self._parts)
        return self._moments.copy(order="F")

    def solve(self, penalty: float, max_iter: int, tolerance: float, follow: Follow) -> Solved:
        """Conjugate gradient on the unknowns beta = A w of one penalty's preconditioner."""
        B, basis = self.preconditioner(penalty), self.basis

        def coefficients(beta: Array) -> Array:
            return basis.to_coefficients(B.to_features(beta))

        def product(beta: Array, _: Indices) -> Array:
            weights = B.to_features(beta)
            gradient = self.data.normal(basis.to_coefficients(weights))
            gradient = basis.from_coefficients(gradient) / self._n + penalty * weights
            return B.from_features(gradient)

        if self._targets is None:
            self._targets = self.data.targets()
        b = B.from_features(basis.from_coefficients(self._targets) / self._n)
        # A residual below the kernel's rounding is one of the recurrence only.
        enough = max(tolerance, float(np.finfo(self.data.rows.dtype).eps))
        solution = conjugate_gradient(
            product,
            b,
            max_iter=max_iter,
            tolerance=enough,
            patience=MAX_STALLED_STEPS,
            follow=lambda number, beta: follow(number, lambda: coefficients(beta)),
        )
        far = partial(_far, self, solution)
        return Solved(coefficients(solution.x), solution.residuals, far)


def _far(system: FalkonSystem, solution: Solution) -> str:
    """Sentence on the part of the objective still to be gained, if it is large for any output.

    The preconditioned residual doesn't show that: its norm has no scale of predictions' errors.
    """
    if solution.converged.all():
        return ""
    gain = np.where(solution.converged, 0.0, solution.to_gain(system.least))
    if np.all(gain <= NEGLIGIBLE_GAIN * solution.gained):  # no pass over the data for it
        return ""
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = system.data.rows.squared_outputs() / system.data.rows.total_weight
        now = np.maximum(outputs - solution.gained, 0.0)
        far = (gain > MAX_GAIN_LEFT * now) & (gain > NEGLIGIBLE_GAIN * outputs)
    if not far.any():
        return ""
    left = np.max(np.minimum(gain[far] / np.maximum(now[far], gain[far]), 1.0))
    return f"about {left:.0%} of the mean squared error, with the penalty, could still be gained"


def mean_products(
    basis: NystromBasis, parts: list[Sampled], curvature: Curvature | None = None
) -> Array:
    """The estimate of Phi' W Phi / n from some rows, its upper half, (q, q), column-wise.

    With `curvature` a row also counts by that of its features.
    """
    q = basis.n_features
    gram = np.zeros((q, q), order="F")
    evaluate = basis.kernel.bind(basis.centers[basis.kept])
    for part in parts:
        X = part.X
        if X is None and q == len(part.share):
            share = part.share if curvature is None else part.share * curvature(basis.expansion)
            return triangle_products(basis.expansion, share)
        for i in range(0, len(part.share), MOMENT_BLOCK_ROWS):
            here = slice(i, i + MOMENT_BLOCK_ROWS)
            if X is None:
                phi = basis.expansion[here]
            else:
                phi = basis.from_coefficients(evaluate(X[here].astype(float)).T).T
            each = part.share[here] if curvature is None else part.share[here] * curvature(phi)
            gram = add_products(gram, phi * np.sqrt(each)[:, None])
    return gram


class Preconditioner:
    """The triangular map A^-1 of B = L'^-1 A^-1, with L L' = K_MM and
    A'A = Phi' D^2 Phi / M + penalty I (paper, equation (13) and appendix A, with T = L').

    Phi (M, q) holds the centres' features: ``basis.expansion``, L itself where no centre was
    left out. D_jj = (n p_j)^-1/2 for a centre that was drawn with probability p_j, so that A'A
    is in the mean (Phi_n' Phi_n + penalty n I) / n, the system's matrix in those coordinates.

    Two matrices (M, M) are alive while it is in use: the basis' and A. They are computed in
    place, and none is copied in a product. Time M^3 / 3 multiplications for
    A'A and half as many for A; each solve takes M^2 / 2 for a column.

    Parameters
    ----------
    basis : of the centres.
    penalty : lambda, added to the mean of the features' products.
    mean : makes that mean, (q, q), as :func:`mean_products` does; it is used up.
    """

    def __init__(self, basis: NystromBasis, penalty: float, mean: Callable[[], Array]) -> None:
        q, extra = basis.n_features, penalty
        for _ in range(20):
            self._A = mean()
            scale = float(np.trace(self._A))
            self._A[np.diag_indices(q)] += extra
            if upper_factor(self._A) and np.isfinite(np.diagonal(self._A)).all():
                return
            # A penalty below the rounding: a larger one here costs iterations, not accuracy.
            extra = max(10.0 * extra, np.finfo(float).eps * scale)
        raise LearningError(
            "The preconditioner has no Cholesky factor: are the kernel's values finite?"
        )

    def to_features(self, beta: Array) -> Array:
        """A^-1 beta, features' weights, of the preconditioned unknowns (q, T)."""
        return solve_upper(self._A, beta)

    def from_features(self, gradient: Array) -> Array:
        """A'^-1 gradient, with respect to beta, of that with respect to features' weights."""
        return solve_upper(self._A, gradient, transposed=True)


# -------------------------------------------------------------------------------------------------
# The logistic loss.

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
        return self.by_weights - self.coupling * (self.by_offsets / self.curvature)

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
        as_loss("logistic").check(rows)
        self._Y = rows.outputs()
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
        coefficients = np.zeros_like(w)
        residuals: list[Array] = []
        relative = np.full(w.shape[1], np.inf)
        active = np.arange(w.shape[1])
        while len(active) and len(residuals) < max_iter:
            each = [self._preconditioner(penalty, w[:, t], offsets[t]) for t in active]
            here = self._gradient(each, penalty, at, active)
            before = here.norms(each)
            d = self._direction(each, penalty, f[:, active], here, before, tolerance)
            change = self._system.basis.to_coefficients(d)
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
            coefficients = self._system.basis.to_coefficients(w)
            # Near the solution a step squares the residual, until rounding keeps it.
            stuck = (step == 0.0) | ((after > 0.5 * before) & (before < NEAR_RESIDUAL))
            active = active[(after > tolerance) & ~stuck]
            del each  # before the next are made
            if follow(len(residuals), coefficients.copy):
                break
        return Solved(coefficients, np.array(residuals), partial(_newton_left, relative))

    def _gradient(
        self, each: list[Preconditioner], penalty: float, at: Iterate, columns: Indices
    ) -> Slopes:
        """The objective's at the columns' functions, with what eliminates the offsets."""
        by_weights = self._system.basis.from_coefficients(at.slopes[:, columns])
        by_weights += penalty * at.weights[:, columns]
        if not self._intercept:
            none = np.zeros(len(columns))
            return Slopes(by_weights, none, np.zeros_like(by_weights), none + 1.0)
        f = at.predictions[:, columns]
        return Slopes(
            by_weights,
            np.sum(self._losses_slopes(f, columns), axis=0),
            self._system.basis.from_coefficients(at.couplings[:, columns]),
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
            result = self._data.weighted_normal(self._system.basis.to_coefficients(v), here)
            curved = self._system.basis.from_coefficients(result) + penalty * v
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
            return self._data.transposed(first), np.zeros((q, k))
        both = self._data.transposed(np.hstack((first, _curvature(f) * self._share)))
        return both[:, :k], both[:, k:]


def _curvature(f: Array) -> Array:
    """The logistic loss' second derivative at predictions f, whatever the label."""
    p = expit(f)
    return np.asarray(p * (1.0 - p))


def _newton_left(residuals: Array) -> str:
    """Sentence on the outputs' largest residual, if it is large."""
    left = float(np.max(residuals))
    return f"Newton's decrement is still {left:.2g}" if left > MAX_DECREMENT else ""


def _each(preconditioners: list[Preconditioner], solve: str, B: Array) -> Array:
    """Each column of B (q, k) by its own preconditioner's method `solve`."""
    columns = [getattr(one, solve)(B[:, [t]]) for t, one in enumerate(preconditioners)]
    return np.hstack(columns)


# -------------------------------------------------------------------------------------------------
# The estimator.

FALKON_LOSSES = ("square", "logistic")

Predictor = Callable[[Array], Array]
Solver = FalkonSystem | LogisticNewton


@dataclass(eq=False, repr=False)
class Falkon(RegularisationPath, KernelRegressor):
    """Kernel ridge regression on Nyström centres, for many rows (Rudi, Carratino, Rosasco 2017).

    Solves (K_nM' W K_nM + penalty n K_MM) alpha = K_nM' W Y, with W the sample weights and n
    their sum (the number of rows without them), by conjugate gradient on features of the centres,
    preconditioned as in the paper's algorithm 1 and appendix A. With max_iter of the order of
    log n, penalty = 1 / sqrt(n) and n_centers = sqrt(n) log(n) the error is of the order of the
    exact estimator's (theorem 3). Where the penalty is far below 1 / n_centers the centres alone
    say too little about the rows, and many more iterations are needed. A ConvergenceWarning says
    where, by estimate, a tenth of the objective could still be gained after the last.
    `preconditioner_rows` save most of them: an addition to the paper, in which the centres are the
    preconditioner's only sample of the data.

    Time O(n M t + M^3) for M centres and t iterations. Memory: kernel blocks, or all of K_nM if
    it fits, within `memory_limit`; in addition two matrices (M, M) of float64, and a third with
    `preconditioner_rows`, weights that differ, or centres that some were left out of.

    PyTorch's and CuPy's arrays stay where they are, on a GPU for instance, if scikit-learn's
    `array_api_dispatch` is on: K_nM there, within `memory_limit` there (by default 1 GB), the
    (M, M) matrices, ``centers="leverage_scores"`` and what is fitted in NumPy. Dask arrays, or
    :class:`~.backends.dask_arrays.DaskRows`, stay in their chunks on a cluster's workers, which
    compute the products of K_nM; ``centers="leverage_scores"`` reads them through this process.

    With ``loss="logistic"``, for targets -1 and 1, it minimises the mean of log(1 + exp(-y f(x)))
    plus penalty / 2 times the squared norm, by Newton steps (:class:`LogisticNewton`):
    scikit-learn's LogisticRegression on Nyström features with C = 1 / (penalty n), without an
    intercept unless `fit_intercept` is true. Each step solves such a system, with one
    preconditioner for each output. Device arrays are converted to NumPy's then, and Dask's chunks
    read through this process. :class:`KernelClassifier` makes labels and probabilities of it.

    Parameters
    ----------
    kernel : a kernel, a function of two matrices of rows, or "gaussian", "laplacian", "matern",
        "linear" or "polynomial"; None: "gaussian". A name's kernel has the width "scale", which
        is found in the data (:class:`~.kernels.Stationary`).
    penalty : lambda; the objective is the mean squared error plus lambda times the squared norm.
        None: the one of the least leave-one-out error of some rows and centres
        (:func:`~.centers.chosen_by_leave_one_out`).
    n_centers : M; all rows where there are no more.
    centers : "uniform", "leverage_scores" or the centres, (M, d).
    max_iter : iterations at most; with the logistic loss, Newton steps.
    tolerance : end when the preconditioned residual is this small in relation to the first; the
        inputs' precision bounds it. With the logistic loss, when the gradient's norm by the
        preconditioner is: half of its square is about what the objective can still fall by.
    random_state : seed or generator of the centres' choice.
    memory_limit : bytes for kernel matrices; None: a quarter of what is free.
    preconditioner_rows : rows, drawn uniformly or by their weights, that the preconditioner sees
        in addition to the centres, in time O(rows M^2) and with one more matrix (M, M); "auto":
        all, where that takes a second or so and the first iteration is the answer then, or as
        many as do, n_centers at least; None: the centres alone, as in the paper, or n_centers rows
        where weights differ.
    callback : called with an :class:`Iteration` after each; a true answer ends the fit.
    verbose : whether to draw a progress bar.
    loss : "square" or "logistic".
    fit_intercept : of the logistic loss: whether an offset without a penalty is added to f, so that
        far from all data the probability is not 1/2 but about the share of the class.

    Attributes
    ----------
    centers_ : (q, d), without those that the ones before them explain to rounding.
    coef_ : (q,), or (q, T) where y had two dimensions.
    intercept_ : a number, or (T,) where y had two dimensions; zero without `fit_intercept`.
    kernel_, penalty_ : with what `fit` found where it was not given.
    n_iter_ : iterations done, t.
    residuals_ : (t,), what is compared with the tolerance, after each iteration, the outputs'
        largest.
    validation_errors_ : (t,), mean squared errors, or logistic losses, after each, if there were
        validation data.
    n_features_in_ : d.
    """

    kernel: Any = None
    penalty: float | None = None
    n_centers: int = 1000
    centers: Any = "uniform"
    max_iter: int = 20
    tolerance: float = 1e-10
    random_state: Any = None
    memory_limit: int | None = None
    preconditioner_rows: int | str | None = "auto"
    callback: Callback | None = None
    verbose: bool = False
    loss: str = "square"
    fit_intercept: bool = False

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """`penalty` and `max_iter` for the square loss, `penalty` alone for the logistic one."""
        return ("penalty",) if self.loss == "logistic" else ("penalty", "max_iter")

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
    ) -> Falkon:
        """Fit to X (n, d) and y (n,) or (n, T), or to :class:`Rows` that bring y and weights.

        With `validation_data`, (X, y) or Rows, the error there is computed after each iteration.
        Raises ConfigurationError for parameters out of range, LearningError for unusable data.
        """
        max_iter = positive_count(self.max_iter, "max_iter")
        loss = self._loss()
        rows = fitted_rows(self, X, y, sample_weight, on_device=loss.name == "square")
        held_out, check = None, None
        if validation_data is not None:
            held_out = validation_rows(self, validation_data, rows)
            loss.check(held_out)
        system, solver = self._solver(rows, held_out is not None)
        if held_out is not None:
            predict = self._predictor(system, held_out.whole().X)
            check = HeldOut(held_out, predict, loss.error)

        def done(number: int, coefficients: Callable[[], Array]) -> bool:
            error = None if check is None else check.mean_error(coefficients(), solver.offsets)
            return log.done(number, error)

        with IterationLog(max_iter, self.callback, self.verbose, "FALKON") as log:
            found = solver.solve(self.penalty_, max_iter, self.tolerance, done)
        self._keep(rows, system.data.centers, found.coefficients)
        self.intercept_: Any = float(solver.offsets[0]) if rows.one_output else solver.offsets
        self.n_iter_ = len(found.residuals)
        self.residuals_ = np.max(found.residuals, axis=1, initial=0.0)
        self.validation_errors_ = np.array(log.errors)
        if not log.ended:
            self._warn(found.far(), self.n_iter_ == max_iter)
        return self

    def _warn(self, far: str, whole: bool) -> None:
        """Warn of a fit that is far from the minimiser; `whole`: after all its iterations."""
        if not far:
            return
        ended = "" if whole else ", but rounding ended them"
        more, rows_needed = "max_iter, or " if whole else "", 4 * len(self.coef_)
        seen = self._seen_rows
        set_rows = f"set preconditioner_rows to {rows_needed}, or " * (seen < rows_needed)
        warnings.warn(
            f"After {self.n_iter_} iterations {far}{ended}: {set_rows}raise {more}n_centers "
            f"towards 1 / penalty, or the penalty.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """All settings share the centres, their features and, where it fits, K_nM; those of one
        penalty share one run. With the logistic loss they go from the largest penalty down, each
        from the solution before it. Leverage scores are those of the estimator's own penalty.
        """
        counts = chosen.get("max_iter") or [positive_count(self.max_iter, "max_iter")]
        penalties = chosen["penalty"]
        system, solver = self._solver(rows, True)
        predictor = self._predictor(system, X_validation)
        if solver is not system:
            penalties = sorted(penalties, reverse=True)
        for penalty in penalties:
            predictions = self._run(solver, penalty, counts, predictor)
            for count, predicted in zip(counts, predictions, strict=True):
                yield {"penalty": penalty, "max_iter": count}, predicted

    def _run(
        self, solver: Solver, penalty: float, counts: Sequence[int], predictor: Predictor
    ) -> list[Array]:
        """Predictions after each number of iterations that is asked for, of one run."""
        found: dict[int, Array] = {}

        def predict(coefficients: Array) -> Array:
            predicted = predictor(coefficients)
            return predicted + solver.offsets.astype(predicted.dtype)

        def follow(number: int, coefficients: Callable[[], Array]) -> bool:
            if number in counts:
                found[number] = predict(coefficients())
            return False

        solved = solver.solve(penalty, max(counts), self.tolerance, follow)
        last = predict(solved.coefficients)
        return [found.get(number, last) for number in counts]

    def _loss(self) -> Loss:
        if self.loss not in FALKON_LOSSES:
            raise ConfigurationError(
                f"loss must be one of {', '.join(FALKON_LOSSES)}, not {self.loss!r}: SGM and "
                f"NystromSGM have others."
            )
        if self.fit_intercept and self.loss != "logistic":
            raise ConfigurationError(
                "fit_intercept is of the logistic loss: with the square one centre y, or take a "
                "kernel with an offset."
            )
        return as_loss(self.loss)

    @chunk_by_chunk
    def predict(self, X: Any) -> Array:
        """See :class:`~.base.KernelRegressor`; the intercept is added where there is one."""
        predicted: Array = super().predict(X)
        if not np.any(self.intercept_):
            return predicted
        offsets, backend = self.intercept_, backend_of(X)
        if self.coef_.ndim == 2:
            offsets = offsets.astype(self.centers_.dtype)
            offsets = offsets if backend is None else backend.like(X, offsets)
        shifted: Array = predicted + offsets
        return shifted

    def _solver(self, rows: Rows, validated: bool) -> tuple[FalkonSystem, Solver]:
        """The system of the centres, and what solves it for the loss."""
        kernel, limit = self.kernel_, self.memory_limit
        not_negative(self.tolerance, "tolerance")
        if limit is not None and validated:
            limit -= limit // 4  # a quarter is the validation data's
        # One stream of draws: a seed used twice would draw the centres again, and no other rows.
        draw = check_random_state(self.random_state)
        centers = choose_centers(
            self.centers, rows, self.n_centers, kernel, self.penalty_, draw, limit
        )
        n_rows = self.preconditioner_rows
        if isinstance(n_rows, str) and n_rows == "auto":
            n_rows = _cheap_rows(rows, centers.points.shape[0], limit)
        elif n_rows is not None:
            n_rows = positive_count(n_rows, "preconditioner_rows")
        self._seen_rows = n_rows or 0
        # Uniform draws say too little of rows whose weights differ: what a heavy row adds that is
        # not drawn is missing, and so is what the centres of light ones share with other rows.
        sample = sample_by_weight(rows, centers, n_rows, draw)
        if sample is None and n_rows is not None:
            sample = uniform(rows, n_rows, draw)
        if self.loss == "logistic":
            system = FalkonSystem(rows, kernel, centers, limit, sample, KernelRows)
            return system, LogisticNewton(system, self.fit_intercept)
        system = FalkonSystem(rows, kernel, centers, limit, sample)
        return system, system

    def _predictor(self, system: FalkonSystem, X: Array) -> Predictor:
        """Coefficients -> predictions on held-out inputs, whose kernel is kept if it fits."""
        limit = None if self.memory_limit is None else max(self.memory_limit // 4, 1)
        return predictor(system.data.rows.like(X), self.kernel_, system.data.centers, limit)


CHEAP_PRODUCTS = 1.6e10  # multiplications for the preconditioner's rows, about a second's


def _cheap_rows(rows: Rows, n_centers: int, memory_limit: int | None) -> int:
    """The number of rows that a preconditioner with so many centres sees by itself."""
    row_bytes = rows.row_numbers * rows.dtype.itemsize
    room = max(memory_budget(memory_limit) // (4 * row_bytes), 1)
    cheap = max(int(CHEAP_PRODUCTS / n_centers**2), n_centers)
    return int(min(rows.n_samples, cheap, room))
