"""The search of widths: its error is that of leaving rows out, its gradient their differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from semiparam_dynamics.learning import KRLS, Gaussian, Matern
from semiparam_dynamics.learning.kernel_ridge import LeaveOneOut, Problem
from semiparam_dynamics.learning.rows import ArrayRows

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_the_exact_leave_one_out_error_and_its_gradient(order: int) -> None:
    weights = RNG.integers(0, 3, 60).astype(float)
    X, Y = RNG.standard_normal((60, 3)), RNG.standard_normal((60, 2))
    rows, at = ArrayRows(X, Y, weights), np.log([1.0, 2.0, 0.7, 0.3])
    search = LeaveOneOut(Problem.of(rows), order)
    kernel = Matern(np.exp(at[:3]), order / 2) if order else Gaussian(np.exp(at[:3]))
    penalty = 0.3 / weights.sum()
    grid = {"penalty": [penalty]}
    ((_, left_out),) = KRLS(kernel).leave_one_out(X, Y, grid, sample_weight=weights)
    expected = np.mean((weights[:, None] * (left_out - Y) ** 2)[weights > 0.0])
    # Left out, a row takes its share of the ridge along there.
    assert search.error(at) == pytest.approx(expected, rel=0.02)
    value, slope = search(at)
    assert value == pytest.approx(np.log(search.error(at)))
    np.testing.assert_allclose(slope, approx_fprime(at, lambda a: search(a)[0], 1e-6), atol=1e-5)
