"""Learned widths: the gradient, the error by refits, and inputs that do not matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import cho_factor
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import (
    KRLS,
    Gaussian,
    Laplacian,
    Matern,
    NystromKRLS,
    Rows,
    learn_widths,
)
from semiparam_dynamics.learning.kernel_ridge import Problem
from semiparam_dynamics.learning.rows import ArrayRows
from semiparam_dynamics.learning.widths import JITTER, LeaveOneOut, _solved_rows, leave_one_out

RNG = np.random.default_rng(0)


def few_matter(n: int, noise: float = 0.05) -> tuple[Array, Array]:
    """Twenty inputs of which the first three matter, (n, 20) and (n,)."""
    X = RNG.standard_normal((n, 20))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, y + noise * RNG.standard_normal(n)


X, y = few_matter(3000)
NEW, TRUTH = few_matter(1000)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("penalty", [1e-1, 1e-4])
def test_the_gradient_is_the_differences(outputs: int, penalty: float) -> None:
    inputs = X[:70, :4]
    Y = np.column_stack([y[:70], inputs[:, 1], inputs[:, 2] ** 2])[:, :outputs]
    theta = np.append(np.log([1.0, 2.0, 3.0, 1.5]), np.log(penalty))

    def value(t: Array) -> float:
        return leave_one_out(t[:-1], t[-1], inputs, Y, inputs[:20])[0]

    found = leave_one_out(theta[:-1], theta[-1], inputs, Y, inputs[:20])[1]
    steps = np.full(5, 1e-5)
    numeric = 0.5 * (approx_fprime(theta, value, steps) - approx_fprime(theta, value, -steps)) + (
        approx_fprime(theta, value, -steps)
    )
    np.testing.assert_allclose(found, numeric, rtol=2e-5, atol=1e-8)


def test_long_widths_keep_the_digits_of_triangular_solutions() -> None:
    inputs, C = X[:400, :8], X[:60, :8]
    K, own = (Gaussian(20.0)(A, C) for A in (inputs, C))
    own.flat[:: len(own) + 1] += JITTER
    H = K.T @ K + 1e-6 * len(K) * own
    assert np.linalg.cond(H) > 1e13
    rows = _solved_rows(cho_factor(H, lower=True)[0], K)
    assert np.abs(rows @ H - K).max() < 1e-7  # with H^-1 it is 1e-2
    assert np.abs(K @ np.linalg.inv(H) @ H - K).max() > 1e-4


def test_the_error_is_that_of_leaving_each_row_out() -> None:
    inputs, Y, widths = X[:60, :4], y[:60, None], np.array([1.0, 2.0, 3.0, 1.5])
    error, _ = leave_one_out(np.log(widths), np.log(1e-3), inputs, Y, inputs[:20])
    model = NystromKRLS(Gaussian(widths), 1e-3, centers=inputs[:20])
    # A fit to 59 rows has the penalty times 59.
    model.set_params(penalty=1e-3 * 60 / 59)
    left = []
    for i in range(60):
        others = np.arange(60) != i
        predicted = clone(model).fit(inputs[others], Y[others]).predict(inputs[[i]])
        left.append(float((predicted - Y[i]).item()) ** 2)
    np.testing.assert_allclose(error, np.mean(left), rtol=1e-6)


def test_inputs_that_do_not_matter_get_long_widths() -> None:
    model = NystromKRLS(n_centers=400, random_state=0)
    before = clone(model).get_params()
    found = learn_widths(model, X, y, n_rows=1500, n_centers=200, random_state=0)
    assert model.get_params() == before and not hasattr(model, "coef_")
    assert found.length_scale[3:].min() > 5.0 * found.length_scale[:3].max()
    assert found.estimator.kernel.length_scale is found.length_scale
    error = np.mean((found.estimator.fit(X, y).predict(NEW) - TRUTH) ** 2)
    alone = learn_widths(model, X[:, :3], y, n_rows=1500, n_centers=200, random_state=0)
    alone = np.mean((alone.estimator.fit(X[:, :3], y).predict(NEW[:, :3]) - TRUTH) ** 2)
    one = clone(model).set_params(kernel=Gaussian(np.sqrt(20)), penalty=1e-4).fit(X, y)
    assert error < 1.5 * alone < 0.1 * np.mean((one.predict(NEW) - TRUTH) ** 2)


def test_scaled_inputs_scale_the_widths() -> None:
    units = 10.0 ** np.arange(-2, 3)
    inputs = X[:300, :5]
    theta = np.zeros(5) + 0.5
    Y, C = y[:300, None], inputs[:50]
    once = leave_one_out(theta, np.log(1e-3), inputs, Y, C)
    scaled = leave_one_out(theta + np.log(units), np.log(1e-3), inputs * units, Y, C * units)
    np.testing.assert_allclose(scaled[0], once[0], rtol=1e-9)
    np.testing.assert_allclose(scaled[1], once[1], rtol=1e-6, atol=1e-9)
    steps = [
        learn_widths(NystromKRLS(), Z, Y, n_centers=50, max_iter=1, random_state=0).length_scale
        for Z in (inputs, inputs * units)
    ]
    np.testing.assert_allclose(steps[1], steps[0] * units, rtol=1e-2)


def test_rows_are_arrays() -> None:
    settings: Any = {"n_rows": 200, "n_centers": 30, "max_iter": 5, "random_state": 0}
    chunks = Rows([(X[:50], y[:50]), (X[50:400], y[50:400])])
    found = learn_widths(NystromKRLS(), chunks, None, **settings)
    expected = learn_widths(NystromKRLS(), X[:400], y[:400], **settings)
    np.testing.assert_array_equal(found.length_scale, expected.length_scale)


def test_a_width_that_falls_to_its_bound_is_told() -> None:
    inputs = np.repeat(np.arange(200.0), 2)[:, None]
    targets = np.repeat(RNG.standard_normal(200), 2)  # neighbours know nothing of each other
    with pytest.warns(ConvergenceWarning, match="inputs 0 fell to their bound"):
        found = learn_widths(NystromKRLS(), inputs, targets, n_centers=400, random_state=0)
    assert np.isfinite(found.length_scale).all()


def test_what_cannot_be_learned_is_said() -> None:
    with pytest.raises(ConfigurationError, match="Gaussian kernel, or None"):
        learn_widths(NystromKRLS(Laplacian()), X, y)
    with pytest.raises(ConfigurationError, match="Pass its last step alone"):
        learn_widths(make_pipeline(StandardScaler(), NystromKRLS()), X, y)
    with pytest.raises(ConfigurationError, match="n_rows must be"):
        learn_widths(NystromKRLS(), X, y, n_rows=0)
    with pytest.raises(LearningError, match="at least three rows"):
        learn_widths(NystromKRLS(), X[:2], y[:2])
    with pytest.raises(LearningError, match="finite leave-one-out error"):
        learn_widths(NystromKRLS(), X[:50], np.zeros(50))


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
