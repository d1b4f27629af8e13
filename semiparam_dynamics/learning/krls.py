"""Kernel regularised least squares with any spectral filter (thesis chapters 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from sklearn.utils.metaestimators import available_if

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.base import KernelRegressor, kernel_sum
from semiparam_dynamics.learning.checks import positive_penalty
from semiparam_dynamics.learning.filters import filter_values, iterations, parameter_of
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.leave_one_out import leave_one_out_predictions
from semiparam_dynamics.learning.paths import Path, RegularisationPath
from semiparam_dynamics.learning.rows import Rows, training_rows
from semiparam_dynamics.learning.spectrum import Problem, Spectrum

COLUMNS = 256  # of coefficients, whose predictions share an evaluation of the kernel


class KRLS(RegularisationPath, KernelRegressor):
    """Kernel least squares on all n rows: O(n^2) memory and O(n^3) time.

    With the filter "tikhonov" it minimises sum_i (f(x_i) - y_i)^2 + penalty n |f|^2, that is
    alpha = (K + penalty n I)^-1 Y. Every filter is alpha = (1/n) Q g(Sigma) Q' Y through
    K/n = Q Sigma Q' (see :mod:`~semiparam_dynamics.learning.filters`).

    Parameters
    ----------
    kernel : a kernel or a function; None: Gaussian(1.0).
    penalty : lambda, of "tikhonov"; the smallest eigenvalue of K/n that "cutoff" keeps.
    filter : "tikhonov"; "cutoff" (principal components); "landweber" (gradient descent stopped
        early) and "nu" (the same, accelerated), regularised by `max_iter`; "ols" (none).
    max_iter : iterations of "landweber" and "nu".
    nu : the nu-method's order: with 1, it is optimal up to a source condition of that order.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free.

    Attributes
    ----------
    centers_ : (n, d), the training rows whose weight isn't zero.
    coef_ : (n,) or (n, T), alpha.
    n_iter_ : iterations; 1 for the filters that don't iterate.
    """

    def __init__(
        self,
        kernel: Any = None,
        penalty: float = 1e-3,
        filter: str = "tikhonov",
        max_iter: int = 100,
        nu: float = 1.0,
        memory_limit: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.filter = filter
        self.max_iter = max_iter
        self.nu = nu
        self.memory_limit = memory_limit

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The parameter that `path` computes many values of at once: it depends on the filter."""
        parameter = parameter_of(self.filter)
        return () if parameter is None else (parameter,)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KRLS:
        """Learn from inputs X (n, d), outputs y (n,) or (n, T), and weights (n,).

        X may be :class:`Rows`, without y. Penalties multiply the sum of the weights. Raises
        LearningError where K doesn't fit into the memory limit.
        """
        parameter = parameter_of(self.filter)
        rows = training_rows(self, X, y, sample_weight)
        problem, kernel = Problem.of(rows), as_kernel(self.kernel)
        alpha = None
        if self.filter == "tikhonov":
            alpha = _solve(problem, kernel, positive_penalty(self.penalty), self.memory_limit)
        if alpha is None:
            spectrum = Spectrum(problem, kernel, self.memory_limit)
            values = [None if parameter is None else getattr(self, parameter)]
            (g,) = filter_values(self.filter, spectrum.eigenvalues, values, self.nu)
            alpha = spectrum.coefficients(g)
        self.n_iter_ = iterations(self.max_iter) if parameter == "max_iter" else 1
        self._keep(rows, problem.X, alpha)
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """One eigendecomposition serves all values of the filter's parameter; each is O(n^2 T)."""
        settings, values = _settings(chosen)
        problem, kernel = Problem.of(rows), as_kernel(self.kernel)
        spectrum = Spectrum(problem, kernel, self.memory_limit)
        filters = filter_values(self.filter, spectrum.eigenvalues, values, self.nu)
        T = problem.targets.shape[1]
        together = max(COLUMNS // T, 1)
        for start in range(0, len(filters), together):
            part = slice(start, start + together)
            alpha = np.hstack([spectrum.coefficients(g) for g in filters[part]])
            predicted = kernel_sum(X_validation, kernel, problem.X, alpha, self.memory_limit)
            for i, setting in enumerate(settings[part]):
                yield setting, predicted[:, i * T : (i + 1) * T]

    @available_if(lambda self: self.filter == "tikhonov")  # type: ignore[untyped-decorator]
    def leave_one_out(
        self, X: Any, y: Any, grid: Mapping[str, Sequence[Any]], *, sample_weight: Any = None
    ) -> Iterator[tuple[dict[str, Any], Array]]:
        """(setting, predictions (n, T)) for every penalty in the grid: of row i, by the others.

        Exactly what n fits to n - 1 rows each would predict, for one eigendecomposition and
        O(n^2 T) a penalty. Only of the filter "tikhonov"; other filters don't have the method.
        """
        settings, values = _settings(self._chosen(grid))
        rows = training_rows(self, X, y, sample_weight)
        kernel, penalties = as_kernel(self.kernel), [positive_penalty(value) for value in values]
        yield from zip(
            settings,
            leave_one_out_predictions(rows, kernel, penalties, self.memory_limit),
            strict=True,
        )


def _settings(chosen: dict[str, list[Any]]) -> tuple[list[dict[str, Any]], list[Any]]:
    """The settings of the filter's one parameter, and its values; of "ols", which has none."""
    for name, values in chosen.items():
        return [{name: value} for value in values], values
    return [{}], [None]


def _solve(problem: Problem, kernel: Kernel, penalty: float, limit: int | None) -> Array | None:
    """(K + penalty n I)^-1 Y by Cholesky; None where it would drown in rounding, or fails."""
    K = problem.gram(kernel, 1, limit)
    ridge = penalty * problem.total
    if ridge < problem.rounding(K):
        return None
    K[np.diag_indices_from(K)] += ridge
    try:
        # K is symmetric, and its transpose lies in memory as LAPACK wants it.
        R = cholesky(K.T, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    alpha: Array = cho_solve((R, False), problem.targets, check_finite=False)
    return alpha * problem.roots[:, None]
