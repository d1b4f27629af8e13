"""FALKON against direct solutions of the Nyström problem and of kernel ridge regression."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.base import Iteration
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian, Linear, Matern
from semiparam_dynamics.learning.rows import Rows

from .nystrom_oracle import direct, in_long_double, relative

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 4))
NOISE = RNG.standard_normal((2, len(X)))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * NOISE[0]
Y = np.column_stack((y, np.cos(X[:, 3]) + 0.1 * NOISE[1]))
NEW = RNG.standard_normal((200, 4))
WIDE = Gaussian(3.0)


def test_estimator_checks() -> None:
    check_estimator(Falkon())


@pytest.mark.parametrize("centers", ["uniform", "leverage_scores", "given"])
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern(4.0, nu=2.5)], ids=["gaussian", "matern"])
def test_it_equals_the_direct_solution_in_twenty_iterations(centers: str, kernel: Any) -> None:
    the_centers = X[:600] if centers == "given" else centers
    model = Falkon(kernel, 1e-3, 600, the_centers, random_state=0).fit(X, Y)
    expected = direct(kernel, model.centers_, 1e-3, X, Y, NEW)
    assert model.n_iter_ <= 20
    assert relative(model.predict(NEW), expected) < 1e-6


def test_the_residual_falls_by_a_factor_an_iteration() -> None:
    model = Falkon(WIDE, 1e-3, 600, random_state=0).fit(X, y)
    t = np.arange(1, model.n_iter_ + 1)
    assert model.residuals_.shape == t.shape
    assert (model.residuals_ < np.exp(-t / 2)).all()  # theorem 2 of the paper
    assert model.residuals_[-1] < 1e-10


@pytest.mark.parametrize("penalty", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_as_centres_are_kernel_ridge_regression_at_once(
    penalty: float, weighted: bool
) -> None:
    n = 300
    w = RNG.uniform(0.1, 3.0, n) if weighted else np.ones(n)
    model = Falkon(WIDE, penalty, random_state=0).fit(X[:n], y[:n], w if weighted else None)
    exact = KernelRidge(alpha=penalty * w.sum(), kernel="rbf", gamma=1 / 18)
    exact.fit(X[:n], y[:n], sample_weight=w)
    assert model.n_iter_ <= 3
    assert relative(model.predict(NEW), exact.predict(NEW)) < 1e-6


@pytest.mark.parametrize(
    ("table", "width", "penalty"),
    [("pumadyn32nh", 15.0, 1e-5), ("cpuact", 3.0, 1e-3), ("adult", 20.0, 1e-4)],
)
def test_public_tables(
    table: str, width: float, penalty: float, data_file: Callable[[str], Path]
) -> None:
    with np.load(data_file(f"tables/{table}.npz")) as arrays:
        suffix = "" if "X" in arrays.files else "_train"
        inputs, targets = arrays["X" + suffix], arrays["y" + suffix]
    some = np.random.default_rng(0).permutation(len(inputs))[:3000]
    inputs = StandardScaler().fit_transform(inputs[some].astype(float))
    targets = (targets[some] - targets[some].mean()) / targets[some].std()
    kernel = Gaussian(width)
    model = Falkon(kernel, penalty, 800, random_state=0).fit(inputs[500:], targets[500:])
    expected = direct(kernel, model.centers_, penalty, inputs[500:], targets[500:], inputs[:500])
    assert model.n_iter_ <= 20
    assert relative(model.predict(inputs[:500]), expected) < 1e-6


def test_a_small_penalty_takes_more_iterations_and_gets_there() -> None:
    inputs, targets = X[:600], y[:600]
    model = Falkon(Gaussian(1.5), 1e-6, 80, max_iter=1000, random_state=0).fit(inputs, targets)
    expected = in_long_double(1.5, model.centers_, 1e-6, inputs, targets, NEW)
    assert 20 < model.n_iter_ < 1000
    assert relative(model.predict(NEW), expected) < 1e-6


def test_a_nearly_singular_kernel_matrix() -> None:
    inputs, targets = X[:600], y[:600]
    model = Falkon(WIDE, 1e-3, 150, random_state=0).fit(inputs, targets)
    expected = in_long_double(3.0, model.centers_, 1e-3, inputs, targets, NEW)
    assert relative(model.predict(NEW), expected) < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_in_the_preconditioner_save_iterations(weighted: bool) -> None:
    weights = RNG.uniform(0.1, 3.0, len(X)) if weighted else None
    model = Falkon(Gaussian(1.5), 1e-6, 150, max_iter=1000, random_state=0)
    few = clone(model).fit(X, y, weights)
    many = clone(model).set_params(preconditioner_rows=900).fit(X, y, weights)
    all_of_them = clone(model).set_params(preconditioner_rows=10**6).fit(X, y, weights)
    expected = direct(Gaussian(1.5), few.centers_, 1e-6, X, y, NEW, weights)
    for fitted in (few, many, all_of_them):
        assert relative(fitted.predict(NEW), expected) < 1e-6
    assert 3 * many.n_iter_ < few.n_iter_
    assert all_of_them.n_iter_ <= 3


def test_centres_count_once_among_the_preconditioners_rows() -> None:
    # On a narrow kernel a centre's features are unlike any other row's: counted as a sample of
    # them, centres would make the preconditioner worse than without more rows.
    model = Falkon(Gaussian(0.4), 1e-5, 400, max_iter=200, random_state=0)
    few = clone(model).fit(X, y)
    many = clone(model).set_params(preconditioner_rows=800).fit(X, y)
    assert many.n_iter_ < few.n_iter_
    assert relative(many.predict(NEW), few.predict(NEW)) < 1e-6


@pytest.mark.parametrize("penalty", [1e-12, 1e-300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hardly_any_penalty(penalty: float, dtype: Any) -> None:
    for iterations in (1, 20, 400):
        model = Falkon(WIDE, penalty, 200, max_iter=iterations, random_state=0)
        model.fit(X.astype(dtype), y.astype(dtype))
        assert np.isfinite(model.coef_).all()
        error = np.mean((model.predict(X) - y) ** 2)
        assert error < np.mean(y**2)  # the objective falls from zero's


def test_far_from_the_solution_it_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        Falkon(WIDE, 1e-9, 100, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Falkon(WIDE, 1e-2, 300, max_iter=5, random_state=0).fit(X, y)


@pytest.mark.parametrize("penalty", [1e-3, 1e-5])
def test_single_precision(penalty: float) -> None:
    model = Falkon(Gaussian(4.0), penalty, 400, max_iter=60, random_state=0)
    model.fit(X.astype(np.float32), y.astype(np.float32))
    assert model.centers_.dtype == np.float32
    assert model.predict(NEW.astype(np.float32)).dtype == np.float32
    expected = direct(Gaussian(4.0), model.centers_, penalty, X, y, NEW)
    assert relative(model.predict(NEW), expected) < 2e-3


def test_duplicated_centres_change_nothing() -> None:
    once = Falkon(WIDE, 1e-3, centers=X[:100], tolerance=1e-12).fit(X, y)
    twice = Falkon(WIDE, 1e-3, centers=np.vstack((X[:100], X[:60])), tolerance=1e-12).fit(X, y)
    assert len(twice.centers_) == 100
    assert relative(twice.predict(NEW), once.predict(NEW)) < 1e-8


def test_all_outputs_at_once_are_separate_fits() -> None:
    model = Falkon(WIDE, 1e-4, 200, max_iter=7, random_state=0)
    together = model.fit(X, Y).predict(NEW)
    assert model.coef_.shape == (200, 2)
    for i in range(2):
        alone = clone(model).fit(X, Y[:, i])
        assert alone.coef_.shape == (200,)
        assert relative(together[:, i], alone.predict(NEW)) < 1e-8


def test_weights_are_repetitions() -> None:
    times = RNG.integers(0, 4, len(X))
    model = Falkon(WIDE, 1e-3, centers=X[:150])
    weighted = model.fit(X, Y, sample_weight=times).predict(NEW)
    repeated = clone(model).fit(X.repeat(times, axis=0), Y.repeat(times, axis=0)).predict(NEW)
    assert relative(weighted, repeated) < 1e-8
    expected = direct(WIDE, X[:150], 1e-3, X, Y, NEW, times)
    assert relative(weighted, expected) < 1e-7


def test_weighted_leverage_scores_converge() -> None:
    w = RNG.uniform(0.0, 2.0, len(X))
    model = Falkon(WIDE, 1e-3, 400, "leverage_scores", random_state=0).fit(X, y, w)
    expected = direct(WIDE, model.centers_, 1e-3, X, y, NEW, w)
    assert relative(model.predict(NEW), expected) < 1e-7


def test_chunks_memory_maps_and_a_tiny_limit_are_the_same(tmp_path: Path) -> None:
    model = Falkon(WIDE, 1e-2, 100, random_state=0)
    expected = model.fit(X, y).predict(NEW)
    tiny = clone(model).set_params(memory_limit=2_000_000)  # K takes 1.2 MB and some
    assert relative(tiny.fit(X, y).predict(NEW), expected) < 1e-8
    tiny.set_params(memory_limit=300_000)
    assert relative(tiny.fit(X, y).predict(NEW), expected) < 1e-8
    chunks = Rows([(X[i : i + 333], y[i : i + 333]) for i in range(0, len(X), 333)])
    assert relative(clone(model).fit(chunks).predict(NEW), expected) < 1e-8
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert relative(clone(model).fit(mapped, y).predict(NEW), expected) < 1e-8
    folder = Rows.from_folder(tmp_path)
    assert relative(clone(model).fit(folder).predict(NEW), expected) < 1e-8
    with pytest.raises(LearningError, match="raise the limit"):
        tiny.set_params(memory_limit=100).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("limit", [2**20, 2**23])
def test_memory_is_the_limit_and_three_square_matrices(limit: int) -> None:
    m, inputs = 500, RNG.standard_normal((20_000, 4))
    targets = np.sin(inputs[:, 0])
    model = Falkon(Gaussian(1.0), 1e-3, m, max_iter=2, random_state=0, memory_limit=limit)
    tracemalloc.start()
    try:
        model.fit(inputs, targets)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    copies = 8 * inputs.size + 6 * 8 * len(inputs)  # scikit-learn's checks, the permutation
    assert peak < limit + 4 * 8 * m**2 + copies
    assert peak < 8 * len(inputs) * m / 3  # K would take three times as much


def test_validation_errors_and_the_callback() -> None:
    seen: list[Iteration] = []

    def stop_at_five(iteration: Iteration) -> bool:
        seen.append(iteration)
        return iteration.number == 5

    validation = (NEW, np.sin(NEW[:, 0]) + NEW[:, 1] * NEW[:, 2])
    model = Falkon(WIDE, 1e-4, 300, random_state=0, callback=stop_at_five)
    model.fit(X, y, validation_data=validation)
    assert model.n_iter_ == 5 and len(model.residuals_) == 5
    assert [i.validation_error for i in seen] == list(model.validation_errors_)
    last = np.mean((model.predict(NEW) - validation[1]) ** 2)
    np.testing.assert_allclose(model.validation_errors_[-1], last, rtol=1e-9)
    assert model.validation_errors_[-1] < model.validation_errors_[0] / 2
    assert len(clone(model).fit(X, y).validation_errors_) == 0
    with pytest.raises(LearningError, match="outputs"):
        model.fit(X, Y, validation_data=validation)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("outputs", [y, Y], ids=["one", "two"])
def test_the_path_is_what_separate_fits_give(outputs: Array) -> None:
    model = Falkon(WIDE, 1e-4, 100, random_state=0)
    grid = {"penalty": [1e-2, 1e-5], "max_iter": [3, 1, 60]}
    steps = list(model.path(X, outputs, grid, NEW))
    assert [s for s, _ in steps] == [
        {"penalty": p, "max_iter": t} for p in grid["penalty"] for t in grid["max_iter"]
    ]
    for setting, predictions in steps:
        expected = clone(model).set_params(**setting).fit(X, outputs).predict(NEW)
        assert predictions.shape == (200, 1 if outputs.ndim == 1 else 2)
        assert relative(predictions, expected.reshape(200, -1)) < 1e-7
    (setting, only), *others = model.path(X, outputs, {"max_iter": [3]}, NEW)
    assert setting == {"max_iter": 3} and not others
    expected = clone(model).set_params(max_iter=3).fit(X, outputs).predict(NEW)
    assert relative(only, expected.reshape(200, -1)) < 1e-7
    with pytest.raises(ConfigurationError, match="path"):
        next(model.path(X, outputs, {"n_centers": [3]}, NEW))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_very_few_rows(n: int) -> None:
    model = Falkon(penalty=0.5).fit(X[:n], y[:n])
    exact = KernelRidge(alpha=0.5 * n, kernel="rbf", gamma=0.5).fit(X[:n], y[:n])
    np.testing.assert_allclose(model.predict(NEW), exact.predict(NEW), atol=1e-10)


def test_constant_columns_and_targets() -> None:
    model = Falkon(WIDE, 1e-3, 200, random_state=0)
    constant = np.column_stack((X, np.full(len(X), 7.0)))
    shifted = np.column_stack((NEW, np.full(len(NEW), 7.0)))
    expected = model.fit(X, y).predict(NEW)
    assert relative(clone(model).fit(constant, y).predict(shifted), expected) < 1e-7
    only = clone(model).fit(np.ones((50, 1)), np.full(50, 3.0))
    assert only.centers_.shape == (1, 1)
    np.testing.assert_allclose(only.predict(np.ones((1, 1))), 3.0 / 1.001)
    zero = clone(model).fit(X, np.zeros(len(X)))
    assert not zero.predict(NEW).any() and zero.n_iter_ == 0


def test_one_input() -> None:
    x = np.linspace(0.0, 6.0, 400)[:, None]
    model = Falkon(Gaussian(0.5), 1e-5, 50, random_state=0).fit(x, np.sin(x[:, 0]))
    expected = direct(Gaussian(0.5), model.centers_, 1e-5, x, np.sin(x[:, 0]), x)
    assert relative(model.predict(x), expected) < 1e-6


def test_a_kernel_that_is_zero_everywhere_gives_zero() -> None:
    model = Falkon(Linear()).fit(np.zeros((10, 2)), np.ones(10))
    np.testing.assert_array_equal(model.predict(np.ones((3, 2))), 0.0)


def test_a_linear_kernel_is_ridge_regression() -> None:
    model = Falkon(Linear(1.0), 1e-2, 200, random_state=0).fit(X, Y)
    assert len(model.centers_) < 8  # the rank is 5
    Z = np.column_stack((X, np.ones(len(X))))
    w = np.linalg.solve(Z.T @ Z + 1e-2 * len(X) * np.eye(5), Z.T @ Y)
    np.testing.assert_allclose(
        model.predict(NEW), np.column_stack((NEW, np.ones(200))) @ w, rtol=1e-6
    )


def test_equal_seeds_are_equal_and_others_differ() -> None:
    fits = [Falkon(WIDE, n_centers=50, random_state=s).fit(X, y).predict(NEW) for s in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert (fits[0] != fits[2]).any()


def test_in_a_search_over_a_pipeline() -> None:
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Falkon(Gaussian(), n_centers=100, random_state=0)),
        {"falkon__kernel__length_scale": [0.01, 2.0], "falkon__penalty": [1e-4, 10.0]},
        cv=3,
    ).fit(X[:600], y[:600])
    assert search.best_params_ == {"falkon__kernel__length_scale": 2.0, "falkon__penalty": 1e-4}


@pytest.mark.parametrize(
    "wrong", [{"penalty": 0.0}, {"penalty": np.nan}, {"max_iter": 0}, {"max_iter": 2.5},
              {"tolerance": -1.0}, {"tolerance": np.nan}, {"n_centers": 0}, {"centers": "some"},
              {"kernel": 3}, {"memory_limit": 0}]
)  # fmt: skip
def test_wrong_parameters_are_said(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Falkon(**wrong).fit(X[:20], y[:20])
