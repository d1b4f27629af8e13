"""Kernel regularised least squares with any spectral filter (thesis chapters 1 to 3)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive,
    positive_count,
    positive_penalty,
)
from semiparam_dynamics.learning.base import (
    Grid,
    KernelRegressor,
    Path,
    RegularisationPath,
    fitted_rows,
    kernel_sum,
)
from semiparam_dynamics.learning.centers import chosen_by_leave_one_out
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernel_ridge import (
    AT_ONCE,
    Problem,
    by_blocks,
    chosen_within,
    fits,
    seconds_a_sweep,
    solve,
)
from semiparam_dynamics.learning.kernels import FAR_ROWS, NO_VALUE, Kernel, Matern
from semiparam_dynamics.learning.products import largest_diagonal
from semiparam_dynamics.learning.rows import Rows

# -------------------------------------------------------------------------------------------------
# Spectral filters: functions g of the eigenvalues of K/n that stand for their inverse.
#
# With K/n = Q Sigma Q', every filter gives the coefficients alpha = (1/n) Q g(Sigma) Q' Y (thesis
# chapter 3). What a filter leaves out, or stops short of, is its regularisation.

# The parameter that each filter's path runs over; ordinary least squares has none.
PARAMETERS: dict[str, str | None] = {
    "tikhonov": "penalty",
    "cutoff": "penalty",
    "landweber": "max_iter",
    "nu": "max_iter",
    "ols": None,
}


def parameter_of(name: str) -> str | None:
    """The parameter that regularises the filter `name`; ConfigurationError for no such filter."""
    if not isinstance(name, str) or name not in PARAMETERS:
        raise ConfigurationError(f"filter must be one of {', '.join(PARAMETERS)}, not {name!r}.")
    return PARAMETERS[name]


def filter_values(
    name: str,
    eigenvalues: Array,
    values: Sequence[Any],
    nu: float = 1.0,
    step: float | None = None,
) -> list[Array]:
    """g(sigma), (n,), of the eigenvalues (n,) of K/n, for each value of the filter's parameter.

    `nu` is the order of the nu-method, `step` Landweber's gamma; None: 1 / max sigma. Raises
    ConfigurationError for a value out of range, LearningError for a step that diverges.
    """
    if name in ("landweber", "nu"):
        counts = [positive_count(value, "max_iter") for value in values]
        if name == "nu":
            return nu_method(eigenvalues, counts, nu)
        return landweber(eigenvalues, counts, step)
    if name == "tikhonov":
        return [1.0 / (eigenvalues + positive_penalty(value)) for value in values]
    if name == "cutoff":
        return [_inverse(eigenvalues, eigenvalues >= positive_penalty(v)) for v in values]
    return [_inverse(eigenvalues, eigenvalues > 0.0) for _ in values]


def gradient_step(
    step: Any, largest_eigenvalue: Callable[[], float], largest_diagonal: Callable[[], float]
) -> float:
    """gamma of gradient descent on the mean of the squared errors over two, for the rule `step`.

    "spectral": the inverse of the largest eigenvalue of the second moments (of K/n, or of
    S'K_nm'K_nm S / n); "kernel": 1 / max K(x, x), which is never larger; or a positive number.
    Raises ConfigurationError for anything else.
    """
    if isinstance(step, str):
        if step not in ("spectral", "kernel"):
            raise ConfigurationError(
                f'step must be "spectral", "kernel" or a number, not {step!r}.'
            )
        largest = largest_eigenvalue() if step == "spectral" else largest_diagonal()
        return 1.0 / largest if largest > NO_VALUE else 1.0
    return positive(step, "step")


def landweber(eigenvalues: Array, counts: Sequence[int], step: float | None = None) -> list[Array]:
    """g_t = sum_{i<t} gamma (1 - gamma sigma)^i for each t of `counts`, with gamma = `step`.

    That is gradient descent from zero, stopped after t steps, in its closed form
    (1 - (1 - gamma sigma)^t) / sigma. A step of None is 1 / max sigma. Raises LearningError for
    one of 2 / max sigma or more, with which it diverges.
    """
    if step is None:
        step, scaled = _scaled(eigenvalues)
    else:
        scaled = eigenvalues * step
    if scaled.max() >= 2.0:
        raise LearningError(
            f'The iteration diverges with step={step:.3g}: take "spectral", or a step below '
            f"{2.0 / eigenvalues.max():.3g}."
        )
    small = (scaled > 0.0) & (scaled <= 1.0)
    large = scaled > 1.0
    with np.errstate(divide="ignore"):  # log 0 = -inf: the first step removes that error
        logarithm = np.log1p(-scaled[small])
    result = []
    for t in counts:
        g = np.full(len(eigenvalues), step * t)
        g[small] = -np.expm1(t * logarithm) * step / scaled[small]
        g[large] = (1.0 - (1.0 - scaled[large]) ** t) * step / scaled[large]
        result.append(g)
    return result


def nu_method(eigenvalues: Array, counts: Sequence[int], nu: float = 1.0) -> list[Array]:
    """The nu-method's g_t for each t of `counts`: about the square root of Landweber's iterations.

    Brakhage's three-term recursion (Engl, Hanke, Neubauer 1996, section 6.3), on scalars.
    """
    nu = positive(nu, "nu")
    step, scaled = _scaled(eigenvalues)
    g = before = np.zeros(len(eigenvalues))  # in units of the step
    found: dict[int, Array] = dict.fromkeys(counts, g)
    for k in range(1, max(counts, default=0) + 1):
        momentum, relaxation = 0.0, (4.0 * nu + 2.0) / (4.0 * nu + 1.0)
        if k > 1:
            momentum = (k - 1.0) * (2 * k - 3) * (2 * k + 2 * nu - 1)
            momentum /= (k + 2 * nu - 1) * (2 * k + 4 * nu - 1) * (2 * k + 2 * nu - 3)
            relaxation = 4.0 * (2 * k + 2 * nu - 1) * (k + nu - 1)
            relaxation /= (k + 2 * nu - 1) * (2 * k + 4 * nu - 1)
        g, before = g + momentum * (g - before) + relaxation * (1.0 - scaled * g), g
        if k in found:
            found[k] = g * step
    return [found[t] for t in counts]


def _scaled(eigenvalues: Array) -> tuple[float, Array]:
    """gamma = 1 / max sigma, and gamma sigma; with no eigenvalue above zero any step will do."""
    largest = float(eigenvalues.max())
    step = 1.0 / largest if largest > NO_VALUE else 1.0
    return step, np.minimum(eigenvalues * step, 1.0)


def _inverse(eigenvalues: Array, where: Any) -> Array:
    """1 / sigma where asked, zero elsewhere."""
    result = np.zeros(len(eigenvalues))
    np.divide(1.0, eigenvalues, out=result, where=where)
    return result


# -------------------------------------------------------------------------------------------------
# The eigendecomposition of a kernel matrix.


class Spectrum:
    """W^(1/2) K W^(1/2) / n = Q Sigma Q', with n the total weight.

    Time O(n^3), and memory for three matrices (n, n). Raises LearningError where that is too much,
    and for a kernel that isn't positive semidefinite on these rows.
    """

    def __init__(self, problem: Problem, kernel: Kernel, memory_limit: int | None = None) -> None:
        self.problem = problem
        K = problem.gram(kernel, 3, memory_limit)
        noise = problem.rounding(K)
        values, self.vectors = eigh(K.T, driver="evd", overwrite_a=True, check_finite=False)
        if values[0] < -max(100.0 * noise, 1e-6 * values[-1]):
            raise LearningError(
                f"The kernel is not positive semidefinite: on these rows its eigenvalues lie "
                f"between {values[0]:.3g} and {values[-1]:.3g}. {FAR_ROWS}"
            )
        self.rounding = noise / problem.total  # eigenvalues up to this one are noise
        self.eigenvalues = np.maximum(values, 0.0) / problem.total  # (n,), ascending
        self.projected: Array = self.vectors.T @ problem.targets  # (n, T)

    def coefficients(self, g: Array) -> Array:
        """(n, T), of the kernels at the problem's rows, for filter values g (n,).

        A value above 1 / rounding belongs to an eigenvalue of which no digit is known. It is
        put at zero, as a pseudo-inverse does: such directions are not in the kernel's range.
        """
        kept = np.where(g * self.rounding > 1.0, 0.0, g) / self.problem.total
        alpha: Array = self.vectors @ (kept[:, None] * self.projected)
        alpha *= self.problem.roots[:, None]
        return alpha


# -------------------------------------------------------------------------------------------------
# Leave-one-out predictions of kernel ridge regression, without n fits.

FILTER_BLOCK_VALUES = 2**20  # of the matrix of filter values, of which a block of rows is in memory


def leave_one_out_predictions(
    rows: Rows, kernel: Kernel, penalties: Sequence[float], memory_limit: int | None = None
) -> Iterator[Array]:
    """For each penalty, (n, T): what a fit to the other rows predicts for each row.

    With G = (K + r I)^-1, row i's error is (G Y)_i / G_ii, the same as (y_i - f_i) / (1 - H_ii)
    for the smoother H = K G, without its cancellation (Rifkin, Lippert 2007, section 3). The
    fit without row i has the ridge r = penalty (n - w_i), and so has row i's G here.

    Raises LearningError if fewer than two rows have a weight above zero.
    """
    problem = Problem.of(rows)
    if len(problem.roots) < 2:
        raise LearningError("Leave-one-out needs two rows whose weight is above zero.")
    spectrum = Spectrum(problem, kernel, memory_limit)
    weights = rows.weights()
    some = np.ones(rows.n_samples, dtype=bool) if weights is None else weights > 0.0
    unused = rows.take(np.flatnonzero(~some))
    for penalty in penalties:
        result = np.empty((rows.n_samples, rows.n_outputs))
        result[some] = (problem.targets - _errors(spectrum, penalty)) / problem.roots[:, None]
        if not some.all():  # every row of weight zero is left out of the fit to all
            alpha = spectrum.coefficients(1.0 / (spectrum.eigenvalues + penalty))
            result[~some] = kernel_sum(unused, kernel, problem.X, alpha, memory_limit)
        yield result


def _errors(spectrum: Spectrum, penalty: float) -> Array:
    """(G Y)_i / G_ii of the problem's rows, times the roots of their weights, (n, T)."""
    Q, problem = spectrum.vectors, spectrum.problem
    ridges = penalty * (problem.total - problem.roots**2)
    values = spectrum.eigenvalues * problem.total
    if ridges.max() < spectrum.rounding * problem.total:
        values = np.where(spectrum.eigenvalues > spectrum.rounding, values, 0.0)
    errors = np.empty_like(problem.targets)
    size = max(FILTER_BLOCK_VALUES // len(Q), 1)
    for start in range(0, len(Q), size):
        part = slice(start, start + size)
        # Relative to the ridge, so that a tiny one doesn't overflow; the quotient is the same.
        ridge = ridges[part, None]
        filtered = Q[part] * (ridge / (values + ridge))
        errors[part] = (filtered @ spectrum.projected) / np.sum(
            filtered * Q[part], axis=1, keepdims=True
        )
    return errors


SEARCH_SHARE = 1.0 / 3.0  # of the seconds at least, for kernel and penalty
FEWEST_SWEEPS, USUAL_SWEEPS = 1.5, 9  # that there must be time for; that a search leaves time for
PASSES = 20  # of Falkon over the rows, its preconditioner's among them
FEWEST_CENTERS = 300
PREDICTED_COLUMNS = 256  # of coefficients, whose predictions share an evaluation of the kernel


@dataclass(eq=False, repr=False)
class KRLS(RegularisationPath, KernelRegressor):
    """Kernel least squares on all n rows: O(n^2) memory and O(n^3) time.

    With "tikhonov", where K doesn't fit, in the memory that there is: blocks of rows one after the
    other (:mod:`~semiparam_dynamics.learning.kernel_ridge`), O(n^2) time a sweep over all.

    With the filter "tikhonov" it minimises sum_i (f(x_i) - y_i)^2 + penalty n |f|^2, that is
    alpha = (K + penalty n I)^-1 Y. Every filter is alpha = (1/n) Q g(Sigma) Q' Y through
    K/n = Q Sigma Q' (see :mod:`~semiparam_dynamics.learning.krls`).

    Parameters
    ----------
    kernel : as that of :class:`Falkon`.
    penalty : lambda, of "tikhonov"; the smallest eigenvalue of K/n that "cutoff" keeps; None: as
        in :class:`Falkon`.
    filter : "tikhonov"; "cutoff" (principal components); "landweber" (gradient descent stopped
        early) and "nu" (the same, accelerated), regularised by `max_iter`; "ols" (none).
    max_iter : iterations of "landweber" and "nu"; sweeps at most of "tikhonov" by blocks.
    step : gamma of "landweber": "spectral", the inverse of the largest eigenvalue of K/n; "kernel",
        1 / max K(x, x), which is never larger; or a number. :class:`NYTRO` has the same rule.
    nu : the nu-method's order: with 1, it is optimal up to a source condition of that order.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free.
    tolerance : of "tikhonov" by blocks: sweeps end when the predictions at the training rows are,
        in norm, at most this part of the outputs from the exact ones.
    seconds : for `fit`: without a kernel, :func:`~.kernel_ridge.chosen_within` finds one, with a
        width for each input, and the penalty in what the fit leaves, a third at least; sweeps
        end with the time. Where a few of them take longer, f is :class:`Falkon`'s, on as many
        centres as there is time for. None: see `kernel` and `penalty`, and no limit.

    Attributes
    ----------
    centers_ : (n, d), the training rows whose weight isn't zero, or centres.
    coef_ : (n,) or (n, T), alpha.
    n_iter_ : iterations, or sweeps; 1 for what doesn't iterate.
    """

    kernel: Any = None
    penalty: float | None = None
    filter: str = "tikhonov"
    max_iter: int = 100
    step: Any = "spectral"
    nu: float = 1.0
    memory_limit: int | None = None
    tolerance: float = 1e-3
    seconds: float | None = None

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The parameter that `path` computes many values of at once: it depends on the filter."""
        parameter = parameter_of(self.filter)
        return () if parameter is None else (parameter,)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KRLS:
        """Learn from inputs X (n, d), outputs y (n,) or (n, T), and weights (n,).

        X may be :class:`Rows`, without y. Penalties multiply the sum of the weights. Raises
        LearningError where K doesn't fit into the memory limit and the filter needs all of it.
        """
        parameter = parameter_of(self.filter)
        start = time.perf_counter()
        seconds = np.inf if self.seconds is None else positive(self.seconds, "seconds")
        rows = fitted_rows(self, X, y, sample_weight)
        if self.seconds is not None and self.filter == "tikhonov":
            sweep, left = seconds_a_sweep(rows, self.kernel_), start + seconds - time.perf_counter()
            if FEWEST_SWEEPS * sweep > left:
                return self._fit_centers(rows, 2.0 * left / (PASSES * sweep), start + seconds)
        problem, kernel = Problem.of(rows), self.kernel_
        self.n_iter_ = int(self.max_iter) if parameter == "max_iter" else 1
        alpha = None
        if self.filter == "tikhonov":
            alpha = self._ridge_regression(problem, start + seconds)
        if alpha is None:
            spectrum = Spectrum(problem, kernel, self.memory_limit)
            values = [{"penalty": self.penalty_, "max_iter": self.max_iter}.get(parameter or "")]
            (g,) = self._filter_values(spectrum, rows, kernel, values)
            alpha = spectrum.coefficients(g)
        self._keep(rows, problem.X, alpha)
        return self

    def _fit_centers(self, rows: Rows, share: float, end: float) -> KRLS:
        """Fit to all rows on a share of them as centres."""
        model = Falkon(
            self.kernel_,
            self.penalty_,
            max(int(share * rows.n_samples), FEWEST_CENTERS),
            max_iter=PASSES,
            random_state=0,
            memory_limit=self.memory_limit,
            callback=lambda _: time.perf_counter() > end,
        ).fit(rows)
        self.n_iter_ = model.n_iter_
        self._keep(rows, model.centers_, model.coef_.reshape(len(model.coef_), -1))
        return self

    def _ridge_regression(self, problem: Problem, end: float) -> Array | None:
        """alpha of "tikhonov", (n, T), at the time `end` at last; None: by the spectrum."""
        kernel, penalty, limit = self.kernel_, self.penalty_, self.memory_limit
        if fits(problem, limit) and (end == np.inf or len(problem.roots) <= AT_ONCE):
            return solve(problem, kernel, penalty, limit)
        most = positive_count(self.max_iter, "max_iter")
        tolerance = not_negative(self.tolerance, "tolerance")
        for number, sweep in enumerate(by_blocks(problem, kernel, penalty, limit, end), 1):
            self.n_iter_, near = number, sweep.residual <= tolerance
            if near or number == most or time.perf_counter() > end:
                break
        if not near and number == most:
            warnings.warn(
                f"After {most} sweeps the residual is still {sweep.residual:.2g} of the outputs: "
                f"raise max_iter, memory_limit or the penalty.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return sweep.alpha

    def _choose(self, rows: Rows, kernel: Kernel, limit: int | None) -> tuple[Kernel, float]:
        """Kernel and penalty, see :func:`fitted_rows`."""
        if self.seconds is not None and self.kernel is None and not rows.sparse:
            start = time.perf_counter()
            with suppress(LearningError):  # rows that no widths can be learned from
                sweeps = USUAL_SWEEPS * seconds_a_sweep(rows, Matern(1.0, 0.5))
                share = max(SEARCH_SHARE * self.seconds, self.seconds - sweeps)
                return chosen_within(rows, start + share)
        return chosen_by_leave_one_out(rows, kernel, limit)

    def _filter_values(
        self, spectrum: Spectrum, rows: Rows, kernel: Kernel, values: Sequence[Any]
    ) -> list[Array]:
        """g(sigma) of the spectrum, for each value of the filter's parameter."""
        sigma, step = spectrum.eigenvalues, None
        if self.filter == "landweber":
            step = gradient_step(
                self.step, lambda: float(sigma.max()), lambda: largest_diagonal(rows, kernel)
            )
        return filter_values(self.filter, sigma, values, self.nu, step)

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One eigendecomposition serves all values of the filter's parameter; each is O(n^2 T)."""
        settings = [{name: value} for name, values in chosen.items() for value in values] or [{}]
        values = [next(iter(setting.values()), None) for setting in settings]
        problem, kernel = Problem.of(rows), self.kernel_
        spectrum = Spectrum(problem, kernel, self.memory_limit)
        filters = self._filter_values(spectrum, rows, kernel, values)
        T = problem.targets.shape[1]
        together = max(PREDICTED_COLUMNS // T, 1)
        for start in range(0, len(filters), together):
            part = slice(start, start + together)
            alpha = np.hstack([spectrum.coefficients(g) for g in filters[part]])
            predicted = kernel_sum(X_validation, kernel, problem.X, alpha, self.memory_limit)
            for i, setting in enumerate(settings[part]):
                yield setting, predicted[:, i * T : (i + 1) * T]

    @available_if(lambda self: self.filter == "tikhonov")  # type: ignore[untyped-decorator]
    def leave_one_out(self, X: Any, y: Any, grid: Grid, *, sample_weight: Any = None) -> Path:
        """(setting, predictions (n, T)) for every penalty in the grid: of row i, by the others.

        Exactly what n fits to n - 1 rows each would predict, for one eigendecomposition and
        O(n^2 T) a penalty. Only of the filter "tikhonov"; other filters don't have the method.
        """
        other, rows, chosen = self._begun(X, y, grid, sample_weight)
        penalties = chosen["penalty"]
        found = leave_one_out_predictions(rows, other.kernel_, penalties, self.memory_limit)
        yield from zip([{"penalty": penalty} for penalty in penalties], found, strict=True)
