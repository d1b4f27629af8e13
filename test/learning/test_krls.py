"""KRLS against naive formulas, scikit-learn, refits and repeated rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.kernels import Gaussian, Linear, Polynomial
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.rows import Rows

FILTERS = ("tikhonov", "cutoff", "landweber", "nu", "ols")


def data(n: int = 60, d: int = 3, outputs: int = 2, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, X_new = rng.standard_normal((n, d)), rng.standard_normal((20, d))
    Y = np.column_stack([np.sin((t + 1) * X[:, 0]) + 0.1 * X[:, -1] for t in range(outputs)])
    return X, Y + 0.1 * rng.standard_normal(Y.shape), X_new


@pytest.mark.parametrize("filter", FILTERS)
def test_it_is_a_scikit_learn_estimator(filter: str) -> None:
    check_estimator(KRLS(filter=filter))


@pytest.mark.parametrize("penalty", [1.0, 1e-3, 1e-6])
def test_tikhonov_is_kernel_ridge_with_n_times_the_penalty(penalty: float) -> None:
    X, Y, X_new = data()
    model = KRLS(Gaussian(1.3), penalty).fit(X, Y)
    expected = KernelRidge(alpha=penalty * len(X), kernel="rbf", gamma=0.5 / 1.3**2).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_new), expected.predict(X_new), atol=1e-8)
    process = GaussianProcessRegressor(RBF(1.3), alpha=penalty * len(X), optimizer=None).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_new), process.predict(X_new), atol=1e-8)


@pytest.mark.parametrize("penalty", [0.3, 1e-2, 1e-5])
def test_cutoff_keeps_the_eigenvectors_from_the_penalty_up(penalty: float) -> None:
    X, Y, X_new = data()
    K = rbf_kernel(X, gamma=0.5) / len(X)
    inverse = np.linalg.pinv(K, rcond=penalty / np.linalg.norm(K, 2), hermitian=True)
    alpha = inverse @ Y / len(X)
    predicted = KRLS(penalty=penalty, filter="cutoff").fit(X, Y).predict(X_new)
    np.testing.assert_allclose(predicted, rbf_kernel(X_new, X, gamma=0.5) @ alpha, atol=1e-8)


def test_landweber_is_gradient_descent_on_the_coefficients() -> None:
    X, Y, X_new = data()
    K = rbf_kernel(X, gamma=0.5)
    step = 1.0 / np.linalg.norm(K, 2)
    alpha = np.zeros_like(Y)
    for _ in range(30):
        alpha += step * (Y - K @ alpha)
    model = KRLS(filter="landweber", max_iter=30).fit(X, Y)
    assert model.n_iter_ == 30
    np.testing.assert_allclose(model.coef_, alpha, rtol=1e-9, atol=1e-12)


def test_ols_with_a_linear_kernel_is_least_squares() -> None:
    X, Y, X_new = data(n=50, d=4)  # K has rank 4 of 50
    expected = X_new @ np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(
        KRLS(Linear(), filter="ols").fit(X, Y).predict(X_new), expected, rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize("filter", FILTERS)
def test_integer_weights_are_repeated_rows(filter: str) -> None:
    X, Y, X_new = data()
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    assert (weights == 0).any()
    model = KRLS(Gaussian(), 1e-2, filter, max_iter=20)
    if filter == "ols":  # well-posed only with few features
        model.set_params(kernel=Polynomial(1))
    weighted = clone(model).fit(X, Y, weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted.predict(X_new), repeated.predict(X_new), atol=1e-9)


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_path_equals_refits(filter: str, weighted: bool) -> None:
    X, Y, X_new = data()
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(X)) if weighted else None
    model = KRLS(Gaussian(1.5), filter=filter)
    grid: dict[str, Any] = {name: [3, 1, 50, 3] for name in model.path_parameters}
    if "penalty" in grid:
        grid["penalty"] = [10.0, 1e-1, 1e-4, 1e-1]
    seen = []
    for setting, predicted in model.path(X, Y, grid, X_new, sample_weight=weights):
        seen.append(setting)
        refit = clone(model).set_params(**setting).fit(X, Y, weights)
        np.testing.assert_allclose(predicted, refit.predict(X_new), rtol=1e-9, atol=1e-10)
    (name,) = grid or (None,)
    assert seen == ([{}] if name is None else [{name: value} for value in grid[name]])


def test_a_path_over_many_iterations_comes_in_groups() -> None:
    X, Y, X_new = data(n=20)
    model = KRLS(filter="nu")
    grid = {"max_iter": range(1, 301)}
    found = list(model.path(X, Y, grid, X_new))
    assert [setting["max_iter"] for setting, _ in found] == list(grid["max_iter"])
    last = KRLS(filter="nu", max_iter=300).fit(X, Y).predict(X_new)
    np.testing.assert_allclose(found[-1][1], last, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_n_refits(weighted: bool) -> None:
    X, Y, _ = data(n=40)
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


def test_outputs_keep_their_shape_and_precision_follows_the_inputs() -> None:
    X, Y, X_new = data()
    assert KRLS().fit(X, Y[:, 0]).predict(X_new).shape == (20,)
    assert KRLS().fit(X, Y[:, :1]).predict(X_new).shape == (20, 1)
    single = KRLS().fit(X.astype(np.float32), Y)
    assert single.centers_.dtype == np.float32
    assert single.coef_.dtype == np.float64
    np.testing.assert_allclose(
        single.predict(X_new), KRLS().fit(X, Y).predict(X_new), rtol=0, atol=1e-3
    )


def test_rows_in_chunks_are_the_same_data() -> None:
    X, Y, X_new = data()
    weights = np.linspace(0.0, 1.0, len(X))
    chunks = [(X[i : i + 7], Y[i : i + 7], weights[i : i + 7]) for i in range(0, len(X), 7)]
    expected = KRLS().fit(X, Y, weights).predict(X_new)
    np.testing.assert_array_equal(KRLS().fit(Rows(chunks)).predict(X_new), expected)


def test_the_training_rows_are_kept_as_they_were() -> None:
    X, Y, X_new = data()
    model = KRLS().fit(X, Y)
    expected = model.predict(X_new)
    X[:] = 0.0
    np.testing.assert_array_equal(model.predict(X_new), expected)


def test_it_works_in_a_pipeline_and_a_grid_search() -> None:
    X, Y, _ = data()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KRLS(Gaussian())),
        {"krls__kernel__length_scale": [0.01, 1.0], "krls__penalty": [1e-3, 1e3]},
        cv=3,
    )
    assert search.fit(X, Y).best_params_ == {
        "krls__kernel__length_scale": 1.0,
        "krls__penalty": 1e-3,
    }


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_what_cannot_be_computed_is_said() -> None:
    X, Y, _ = data()
    with pytest.raises(LearningError, match="60 rows needs .* NystromKRLS or Falkon"):
        KRLS(memory_limit=60 * 60 * 8 - 1).fit(X, Y)
    KRLS(memory_limit=60 * 60 * 8).fit(X, Y)
    with pytest.raises(LearningError, match="needs"):
        KRLS(memory_limit=60 * 60 * 24 - 1, filter="nu").fit(X, Y)
    with pytest.raises(LearningError, match="not finite: scale"):
        KRLS(Polynomial(100)).fit(1e6 * X, Y)
    with pytest.raises(LearningError, match="not positive semidefinite"):
        KRLS(lambda X, C: -rbf_kernel(X, C)).fit(X, Y)
    with pytest.raises(ConfigurationError, match="filter must be one of"):
        KRLS(filter="lasso").fit(X, Y)
    with pytest.raises(ConfigurationError, match="penalty must be a positive number"):
        KRLS(penalty=0.0).fit(X, Y)
    with pytest.raises(ConfigurationError, match="only go over"):
        list(KRLS(filter="nu").path(X, Y, {"penalty": [1.0]}, X))
