"""Leave-one-out predictions of kernel ridge regression, without n fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.base import kernel_sum
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.rows import Rows
from semiparam_dynamics.learning.spectrum import Problem, Spectrum

BLOCK_VALUES = 2**20  # of the matrix of filter values, of which a block of rows is in memory


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
    if len(problem.X) < 2:
        raise LearningError("Leave-one-out needs two rows whose weight is above zero.")
    spectrum = Spectrum(problem, kernel, memory_limit)
    weights = rows.weights()
    some = np.ones(rows.n_samples, dtype=bool) if weights is None else weights > 0.0
    unused = rows.take(np.flatnonzero(~some))
    for penalty in penalties:
        result = np.empty((rows.n_samples, rows.n_outputs))
        result[some] = (problem.targets - _errors(spectrum, penalty)) / problem.roots[:, None]
        if len(unused):  # every row of weight zero is left out of the fit to all
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
    size = max(BLOCK_VALUES // len(Q), 1)
    for start in range(0, len(Q), size):
        part = slice(start, start + size)
        # Relative to the ridge, so that a tiny one doesn't overflow; the quotient is the same.
        ridge = ridges[part, None]
        filtered = Q[part] * (ridge / (values + ridge))
        errors[part] = (filtered @ spectrum.projected) / np.sum(
            filtered * Q[part], axis=1, keepdims=True
        )
    return errors
