"""KRLS and its spectral filters against definitions, naive formulas and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import eval_jacobi
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.kernels import Gaussian, Linear
from semiparam_dynamics.learning.krls import KRLS, nu_method

from .oracles import waves

FILTERS = ("tikhonov", "cutoff", "landweber", "nu", "ols")


@pytest.mark.parametrize("penalty", [1.0, 1e-3, 1e-6])
def test_tikhonov_is_kernel_ridge_with_n_times_the_penalty(penalty: float) -> None:
    X, Y, X_new = waves()
    model = KRLS(Gaussian(1.3), penalty).fit(X, Y)
    expected = KernelRidge(alpha=penalty * len(X), kernel="rbf", gamma=0.5 / 1.3**2).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_new), expected.predict(X_new), atol=1e-8)
    process = GaussianProcessRegressor(RBF(1.3), alpha=penalty * len(X), optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_new), process.predict(X_new), atol=1e-8)


@pytest.mark.parametrize("penalty", [0.3, 1e-2, 1e-5])
def test_cutoff_keeps_the_eigenvectors_from_the_penalty_up(penalty: float) -> None:
    X, Y, X_new = waves()
    K = rbf_kernel(X, gamma=0.5) / len(X)
    inverse = np.linalg.pinv(K, rcond=penalty / np.linalg.norm(K, 2), hermitian=True)
    alpha = inverse @ Y / len(X)
    predicted = KRLS(Gaussian(1.0), penalty, "cutoff").fit(X, Y).predict(X_new)
    np.testing.assert_allclose(predicted, rbf_kernel(X_new, X, gamma=0.5) @ alpha, atol=1e-8)


@pytest.mark.parametrize("step", ["spectral", "kernel", 0.3, 6.0])
def test_landweber_is_gradient_descent_on_the_coefficients(step: Any) -> None:
    X, Y, X_new = waves()
    K = rbf_kernel(X, gamma=0.5)
    n, largest = len(K), np.linalg.norm(K, 2)
    gamma = {"spectral": n / largest, "kernel": 1.0}.get(step, step)
    assert 6.0 * largest > n > 0.3 * largest  # with the last step the first errors change sign
    alpha = np.zeros_like(Y)
    for _ in range(30):
        alpha += gamma / n * (Y - K @ alpha)
    model = KRLS(Gaussian(1.0), filter="landweber", max_iter=30, step=step).fit(X, Y)
    assert model.n_iter_ == 30
    np.testing.assert_allclose(model.coef_, alpha, rtol=1e-9, atol=1e-12)


def test_ols_with_a_linear_kernel_is_least_squares() -> None:
    X, Y, X_new = waves(n=50, d=4)  # K has rank 4 of 50
    expected = X_new @ np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(
        KRLS(Linear(), filter="ols").fit(X, Y).predict(X_new), expected, rtol=1e-9, atol=1e-10
    )


def test_a_path_over_many_iterations_comes_in_groups() -> None:
    X, Y, X_new = waves(n=20)
    model = KRLS(filter="nu")
    grid = {"max_iter": range(1, 301)}
    found = list(model.path(X, Y, grid, X_new))
    assert [setting["max_iter"] for setting, _ in found] == list(grid["max_iter"])
    last = KRLS(filter="nu", max_iter=300).fit(X, Y).predict(X_new)
    np.testing.assert_allclose(found[-1][1], last, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_n_refits(weighted: bool) -> None:
    X, Y, _ = waves(n=40)
    weights = np.random.default_rng(2).integers(0, 3, len(X)) if weighted else None
    model = KRLS(Gaussian(1.5))
    grid = {"penalty": [1.0, 1e-3, 1e-6]}
    for setting, predicted in model.leave_one_out(X, Y, grid, sample_weight=weights):
        refit = clone(model).set_params(**setting)
        for i in range(len(X)):
            rest = np.arange(len(X)) != i
            refit.fit(X[rest], Y[rest], None if weights is None else weights[rest])
            np.testing.assert_allclose(predicted[i], refit.predict(X[[i]])[0], atol=1e-8)


def test_leave_one_out_is_of_tikhonov_and_two_rows() -> None:
    assert not hasattr(KRLS(filter="nu"), "leave_one_out")
    with pytest.raises(LearningError, match="two rows"):
        list(KRLS().leave_one_out(np.ones((1, 2)), np.ones(1), {"penalty": [1.0]}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("filter", FILTERS)
def test_ill_posed_data_have_sane_answers(filter: str, dtype: Any) -> None:
    """Duplicates with other outputs, a constant column, no regularisation to speak of."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.uniform(-1.0, 1.0, (40, 2)), 3, axis=0)
    X = np.column_stack((X, np.full(len(X), 7.0))).astype(dtype)
    y = np.cos(X[:, 0]) + 0.01 * rng.standard_normal(len(X))
    X_new = np.column_stack((rng.uniform(-0.9, 0.9, (50, 2)), np.full(50, 7.0))).astype(dtype)
    model = KRLS(penalty=1e-12, filter=filter, max_iter=10**6 if filter == "landweber" else 500)
    predicted = model.fit(X, y).predict(X_new)
    # Nothing is smoothed, so noise is amplified; but not out of proportion, as rounding would be.
    assert np.abs(predicted - np.cos(X_new[:, 0])).max() < 1.0
    for _, left_out in KRLS().leave_one_out(X, y, {"penalty": [1e-12, 1e-300]}):
        assert np.isfinite(left_out).all()


@pytest.mark.parametrize("filter", FILTERS)
def test_one_row_and_rows_on_which_the_kernel_is_zero(filter: str) -> None:
    one = KRLS(filter=filter, penalty=1e-6).fit([[2.0]], [3.0])
    np.testing.assert_allclose(one.predict([[2.0]]), 3.0, rtol=1e-4)
    zero = KRLS(Linear(), filter=filter).fit(np.zeros((4, 1)), np.arange(4.0))
    np.testing.assert_array_equal(zero.predict([[5.0]]), 0.0)


def test_blocks_come_as_near_to_the_exact_predictions_as_asked_for() -> None:
    X, Y, _ = waves(n=300)
    exact = KRLS(Gaussian(1.0), 1e-5, memory_limit=10**6).fit(X, Y)
    for tolerance in (1e-2, 1e-5):
        model = KRLS(Gaussian(1.0), 1e-5, memory_limit=300_000, tolerance=tolerance).fit(X, Y)
        off = np.linalg.norm(model.predict(X) - exact.predict(X), axis=0)
        assert 1e-9 < np.max(off / np.linalg.norm(Y, axis=0)) <= tolerance
        assert model.n_iter_ > 1
    with pytest.warns(ConvergenceWarning, match="After 2 sweeps"):
        KRLS(Gaussian(1.0), 1e-5, max_iter=2, memory_limit=300_000).fit(X, Y)


def test_seconds_find_widths_and_what_all_rows_are_too_many_for() -> None:
    rng = np.random.default_rng(0)
    scales = np.array([1.0, 100.0, 1.0, 1.0, 1.0])
    X = rng.standard_normal((400, 5)) * scales
    y = np.sin(2.0 * X[:, 0]) + 0.01 * X[:, 1] + 0.05 * rng.standard_normal(400)
    model = KRLS(seconds=600.0).fit(X[:240], y[:240])  # the search ends much earlier
    assert len(model.centers_) == 240
    widths = model.kernel_.length_scale / scales
    assert widths[2:].min() > 2.0 * widths[0]
    plain = KRLS(seconds=600.0, kernel="gaussian").fit(X[:240] / scales, y[:240])
    error, other = (
        np.std(one.predict(new) - y[240:])
        for one, new in ((model, X[240:]), (plain, X[240:] / scales))
    )
    assert error < 0.7 * other
    many = np.repeat(X, 10, axis=0)
    short = KRLS(Gaussian(3.0), 1e-4, seconds=1e-3).fit(many, np.repeat(y, 10))
    assert len(short.centers_) <= 300 and short.n_iter_ == 1


SIGMA = np.concatenate(([0.0, 1e-18, 1e-9, 1e-3], np.linspace(0.05, 0.7, 8)))


@pytest.mark.parametrize("nu", [0.5, 1.0, 2.0])
def test_the_nu_methods_residuals_are_jacobi_polynomials(nu: float) -> None:
    # 1 - sigma g_k(sigma) = P_k(1 - 2 sigma) / P_k(1), P the Jacobi polynomials of
    # (2 nu - 1/2, -1/2): Engl, Hanke, Neubauer 1996, section 6.3.
    scaled = SIGMA / SIGMA.max()
    counts = [9, 1, 2, 40]
    for k, g in zip(counts, nu_method(SIGMA, counts, nu), strict=True):
        expected = eval_jacobi(k, 2 * nu - 0.5, -0.5, 1 - 2 * scaled)
        expected /= eval_jacobi(k, 2 * nu - 0.5, -0.5, 1.0)
        np.testing.assert_allclose(1.0 - SIGMA * g, expected, atol=1e-12)
