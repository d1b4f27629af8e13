"""Nyström kernel ridge regression, its path and leave-one-out, against plain formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.rows import Rows

from .oracles import cube, peak_memory


@pytest.mark.parametrize("penalty", [1e-1, 1e-5])
def test_all_rows_as_centres_are_exact_kernel_ridge_regression(penalty: float) -> None:
    X, y, X_new = cube(T=2)
    K = rbf_kernel(X, gamma=0.5 / 0.7**2)
    alpha = np.linalg.solve(K + penalty * len(X) * np.eye(len(X)), y)
    model = NystromKRLS(Gaussian(0.7), penalty, random_state=0).fit(X, y)
    expected = rbf_kernel(X_new, X, gamma=0.5 / 0.7**2) @ alpha
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [1e-3, 1e-10])
def test_leave_one_out_equals_n_fits(weighted: bool, penalty: float) -> None:
    X, y, _ = cube(n=25, T=2)
    w = np.random.default_rng(1).integers(0, 3, 25).astype(float) if weighted else np.ones(25)
    model = NystromKRLS(Gaussian(0.8), random_state=2)
    grid = {"n_centers": [5, 12], "penalty": [penalty, 1.0]}
    results = list(model.leave_one_out(X, y, grid, sample_weight=w if weighted else None))
    assert len(results) == 4
    all_centers = clone(model).set_params(n_centers=12).fit(X, y).centers_
    for setting, found in results:
        fixed = clone(model).set_params(
            penalty=setting["penalty"], centers=all_centers[: setting["n_centers"]]
        )
        for i in range(len(X)):
            others = np.arange(len(X)) != i
            expected = fixed.fit(X[others], y[others], sample_weight=w[others]).predict(X[[i]])
            np.testing.assert_allclose(found[[i]], expected, rtol=1e-6, atol=1e-6)


def test_leaving_the_only_weight_out_leaves_a_fit_to_nothing() -> None:
    X, y, _ = cube(n=10)
    w = np.zeros(10)
    w[3] = 2.0
    model = NystromKRLS(penalty=1e-3, random_state=0)
    [(_, found)] = model.leave_one_out(X, y, {"penalty": [1e-3]}, sample_weight=w)
    expected = model.fit(X, y, sample_weight=w).predict(X)
    expected[3] = 0.0
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-10)
    with pytest.raises(LearningError, match="two rows"):
        list(model.leave_one_out(X[:1], y[:1], {}))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (50, 1), (50, 4)])
def test_small_and_degenerate_data(dtype: Any, shape: tuple[int, int]) -> None:
    draw = np.random.default_rng(0)
    X = draw.standard_normal(shape).astype(dtype)
    X[:, -1] = 1.0  # a constant column, or nothing but that
    y = (X[:, 0] * 2).astype(dtype)
    for centers in ("uniform", "leverage_scores"):
        for penalty in (1e-3, 1e-12):
            model = NystromKRLS(None, penalty, 30, centers, random_state=0).fit(X, y)
            predicted = model.predict(X)
            assert predicted.dtype == dtype and np.isfinite(predicted).all()
            if shape[1] == 4 and penalty == 1e-3:
                assert np.mean((predicted - y) ** 2) < 0.2 * np.var(y)


@pytest.mark.parametrize("penalty", [1e-4, 1e-12])
def test_memory_stays_within_the_limit_and_a_few_small_matrices(penalty: float) -> None:
    n, m, limit = 30_000, 150, 4_000_000
    draw = np.random.default_rng(0)
    X, y = draw.standard_normal((n, 2)), draw.standard_normal(n)
    rows = Rows.from_arrays(X, y)
    model = NystromKRLS(Gaussian(0.5), penalty, m, random_state=0, memory_limit=limit)
    model.fit(Rows.from_arrays(X[:500], y[:500]))
    peak = peak_memory(lambda: model.fit(rows))
    assert peak < limit + 12 * 8 * m * m + 3 * 8 * n  # a third of it: n row numbers, to draw from
    assert peak < 0.3 * 8 * n * m
    with pytest.raises(LearningError, match="memory_limit"):
        model.set_params(memory_limit=1000).fit(rows)


def test_pumadyn_needs_few_centres(data_file: Callable[[str], Path]) -> None:
    with np.load(data_file("tables/pumadyn32nh.npz")) as table:
        X, y = table["X"], table["y"]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = NystromKRLS(Gaussian(2.66), random_state=0)
    grid = {"n_centers": [20, 62, 200], "penalty": [1e-7]}
    for setting, found in model.path(X[:4096], y[:4096], grid, X[4096:]):
        rmse = np.sqrt(np.mean((found[:, 0] - y[4096:]) ** 2))
        # Kriukova, Pereverzyev, Tkachenko 2017, table 1: 0.0344, 0.0333, 0.0338
        assert 0.030 < rmse < 0.037, setting
