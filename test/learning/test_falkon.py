"""FALKON against direct solutions, its preconditioner, and conjugate gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning.centers import Centers, choose_centers, sample_by_weight, uniform
from semiparam_dynamics.learning.falkon import Falkon, FalkonSystem
from semiparam_dynamics.learning.kernels import Gaussian, Linear, Matern
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.rows import Rows

from .oracles import direct, in_long_double, peak_memory, relative

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1500, 4))
NOISE = RNG.standard_normal((2, len(X)))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * NOISE[0]
Y = np.column_stack((y, np.cos(X[:, 3]) + 0.1 * NOISE[1]))
NEW = RNG.standard_normal((200, 4))
WIDE = Gaussian(3.0)


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
    model = Falkon(kernel, penalty, 800, random_state=0, preconditioner_rows=None).fit(
        inputs[500:], targets[500:]
    )
    expected = direct(kernel, model.centers_, penalty, inputs[500:], targets[500:], inputs[:500])
    assert model.n_iter_ <= 20
    assert relative(model.predict(inputs[:500]), expected) < 1e-6


@pytest.mark.parametrize(
    ("width", "penalty", "n_centers", "least", "most"),
    [(1.5, 1e-6, 80, 20, 1000), (3.0, 1e-3, 150, 0, 21)],
    ids=["small penalty", "nearly singular kernel matrix"],
)
def test_hard_problems_are_solved(
    width: float, penalty: float, n_centers: int, least: int, most: int
) -> None:
    inputs, targets = X[:600], y[:600]
    model = Falkon(
        Gaussian(width), penalty, n_centers, max_iter=most, random_state=0, preconditioner_rows=None
    )
    model.fit(inputs, targets)
    expected = in_long_double(width, model.centers_, penalty, inputs, targets, NEW)
    assert least < model.n_iter_ < most
    assert relative(model.predict(NEW), expected) < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_more_rows_in_the_preconditioner_save_iterations(weighted: bool) -> None:
    weights = RNG.uniform(0.1, 3.0, len(X)) if weighted else None
    model = Falkon(Gaussian(1.5), 1e-6, 150, max_iter=1000, random_state=0)
    model.set_params(preconditioner_rows=None)
    few = clone(model).fit(X, y, weights)
    many = clone(model).set_params(preconditioner_rows=900).fit(X, y, weights)
    all_of_them = clone(model).set_params(preconditioner_rows=10**6).fit(X, y, weights)
    expected = direct(Gaussian(1.5), few.centers_, 1e-6, X, y, NEW, weights)
    for fitted in (few, many, all_of_them):
        assert relative(fitted.predict(NEW), expected) < 1e-6
    assert 3 * many.n_iter_ < few.n_iter_
    assert all_of_them.n_iter_ <= 3


@pytest.mark.parametrize("rows", [150, 300])
def test_the_preconditioners_rows_are_others_than_the_centres(rows: int) -> None:
    """As few as there are centres, or twice as many, with one seed for both."""
    model = Falkon(Gaussian(1.5), 1e-3, 150, max_iter=200, random_state=0)
    none, some = (clone(model).set_params(preconditioner_rows=k).fit(X, y) for k in (None, rows))
    np.testing.assert_array_equal(some.centers_, none.centers_)
    assert some.n_iter_ < none.n_iter_


def test_without_other_rows_the_centres_stand_for_all() -> None:
    rows, kernel = Rows.from_arrays(X, y), Gaussian(1.0)
    centers = uniform(rows, 40, 0)
    assert centers.indices is not None
    alone = Centers(centers.points[:5], centers.indices[:5])
    B, C = (
        FalkonSystem(rows, kernel, centers, sample=s).preconditioner(1e-2) for s in (alone, None)
    )
    eye = np.eye(40)
    np.testing.assert_allclose(B.to_features(eye), C.to_features(eye), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("penalty", "dtype"), [(1e-300, np.float32), (1e-12, np.float64)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hardly_any_penalty(penalty: float, dtype: Any) -> None:
    for iterations in (1, 20, 400):
        model = Falkon(
            WIDE, penalty, 200, max_iter=iterations, random_state=0, preconditioner_rows=None
        )
        model.fit(X.astype(dtype), y.astype(dtype))
        assert np.isfinite(model.coef_).all()
        error = np.mean((model.predict(X) - y) ** 2)
        assert error < np.mean(y**2)  # the objective falls from zero's


def objective(model: Any, w: Array) -> float:
    """The weighted mean squared error on X, y and the penalty's term."""
    K = model.kernel(model.centers_)
    error = np.average((model.predict(X) - y) ** 2, weights=w)
    return float(error + model.penalty * model.coef_ @ K @ model.coef_)


@pytest.mark.parametrize(
    ("penalty", "iterations", "warns"),
    [
        (1e-2, 5, False),
        (1e-4, 20, False),
        (1e-6, 20, True),  # with a residual of some hundredths
        (1e-6, 200, False),
        (1e-8, 100, True),
    ],
)
def test_it_warns_where_much_can_still_be_gained(
    penalty: float, iterations: int, warns: bool
) -> None:
    model = Falkon(
        Gaussian(2.0), penalty, 200, max_iter=iterations, random_state=0, preconditioner_rows=None
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    best = NystromKRLS(Gaussian(2.0), penalty, centers=model.centers_).fit(X, y)
    excess = objective(model, np.ones(len(X))) / objective(best, np.ones(len(X))) - 1.0
    assert (excess > 0.1) == warns
    assert [one.category for one in caught] == [ConvergenceWarning] * warns


def test_what_was_done_is_not_advised() -> None:
    model = Falkon(WIDE, 1e-9, 100, max_iter=5, random_state=0, preconditioner_rows=None)
    advice = f"set preconditioner_rows to {4 * 100}, or raise max_iter"
    with pytest.warns(ConvergenceWarning, match=advice):
        model.fit(X, y)
    with pytest.warns(ConvergenceWarning, match="could still be gained: raise max_iter"):
        clone(model).set_params(preconditioner_rows=400, max_iter=1).fit(X, y)


def test_one_output_of_many_warns_and_a_fit_that_was_ended_does_not() -> None:
    model = Falkon(Gaussian(2.0), 1e-6, 200, random_state=0, preconditioner_rows=None)
    easy = np.ones(len(X)) + 1e-3 * y  # hardly more than what the first iterations find
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, np.column_stack((np.zeros(len(X)), 1e-6 * y, easy)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(callback=lambda it: it.number == 5).fit(X, y)
        clone(model).set_params(tolerance=0.5).fit(X, y)


def test_it_warns_where_rounding_ends_the_iterations_far_from_the_minimiser() -> None:
    draw = np.random.default_rng(0)

    def noisy(A: Array, B: Array) -> Array:  # in each product other noise
        noise = 1e-4 * draw.standard_normal((len(A), len(B)))
        return np.asarray(WIDE(A, B) + noise * (len(A) != len(B)))

    model = Falkon(
        noisy, 1e-9, centers=X[:101], max_iter=1000, memory_limit=2**19, preconditioner_rows=None
    )
    with pytest.warns(ConvergenceWarning, match="rounding"):
        model.fit(X, y)
    assert model.n_iter_ < 1000


WEIGHTS = {
    "none of half of the rows": lambda r: (np.arange(len(X)) % 2).astype(float),
    "none, one or two": lambda r: r.choice([0.0, 1.0, 2.0], len(X)),
    "hardly any of half of the rows": lambda r: np.where(np.arange(len(X)) % 2, 1.0, 1e-6),
    "much of a few rows": lambda r: np.where(np.arange(len(X)) % 50, 1.0, 1e6),
    "eight decades": lambda r: 10.0 ** r.uniform(-4, 4, len(X)),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize(("M", "penalty", "most"), [(20, 1e-10, 25), (150, 1e-6, 60)])
@pytest.mark.parametrize("centers", ["uniform", "leverage_scores"])
def test_weights_of_any_kind_take_hardly_more_iterations(
    name: str, M: int, penalty: float, most: int, centers: str
) -> None:
    w = WEIGHTS[name](np.random.default_rng(1))
    model = Falkon(Gaussian(2.0), penalty, M, centers, max_iter=most, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, w)
    best = NystromKRLS(Gaussian(2.0), penalty, centers=model.centers_).fit(X, y, w)
    assert objective(model, w) < 1.01 * objective(best, w)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("limit", [2**20, 2**23])
def test_memory_is_the_limit_and_three_square_matrices(limit: int) -> None:
    m, inputs = 500, RNG.standard_normal((20_000, 4))
    targets = np.sin(inputs[:, 0])
    model = Falkon(Gaussian(1.0), 1e-3, m, max_iter=2, random_state=0, memory_limit=limit)
    model.fit(inputs[:1000], targets[:1000])  # compiled before it is measured
    peak = peak_memory(lambda: model.fit(inputs, targets))
    copies = 8 * inputs.size + 6 * 8 * len(inputs)  # scikit-learn's checks, the permutation
    assert peak < limit + 4 * 8 * m**2 + copies
    assert peak < 8 * len(inputs) * m / 3  # K would take three times as much


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


def test_a_linear_kernel_is_ridge_regression() -> None:
    model = Falkon(Linear(1.0), 1e-2, 200, random_state=0).fit(X, Y)
    assert len(model.centers_) < 8  # the rank is 5
    Z = np.column_stack((X, np.ones(len(X))))
    w = np.linalg.solve(Z.T @ Z + 1e-2 * len(X) * np.eye(5), Z.T @ Y)
    np.testing.assert_allclose(
        model.predict(NEW), np.column_stack((NEW, np.ones(200))) @ w, rtol=1e-6
    )


C = RNG.standard_normal((120, 3))
TWICE = np.vstack((C, C[:40]))


@pytest.mark.parametrize("drawn", ["uniform", "leverage_scores", "given"])
@pytest.mark.parametrize(
    ("sampled", "weighted"),
    [(None, False), (None, True), ("uniformly", False), ("uniformly", True), ("by weight", True)],
)
def test_the_preconditioners_mean_is_the_papers_row_by_row(
    sampled: str | None, weighted: bool, drawn: str
) -> None:
    """A'A - penalty I: a row that was drawn with probability p stands for 1 / (n p) rows.

    Of a sample centres that are rows count once, each, and the others for what is left.
    """
    if drawn == "given" and sampled is None:
        return  # centres that are no rows count one each
    n, kernel, penalty = 90, Gaussian(1.0), 1e-3
    w = 10.0 ** np.random.default_rng(1).uniform(-3, 1, n) if weighted else np.ones(n)
    rows = Rows.from_arrays(X[:n], y[:n], w if weighted else None)
    given = X[:20] + 0.1 if drawn == "given" else drawn
    centers = choose_centers(given, rows, 20, kernel, 1e-2, random_state=0)
    sample = uniform(rows, 40, 1) if sampled else None
    if sampled == "by weight":
        draw = np.random.RandomState(1)
        assert (sample_by_weight(rows, centers, None, draw) is None) == (drawn == "given")
        sample = sample_by_weight(rows, centers, 30, draw)
    system = FalkonSystem(rows, kernel, centers, sample=sample)
    own = [] if centers.indices is None else centers.indices.tolist()
    counts = dict.fromkeys(own, 1.0) if sample is not None else dict.fromkeys(own, 0.0)
    if sample is None:
        for k, index in enumerate(own):
            p = 1.0 / n if centers.probabilities is None else centers.probabilities[k]
            counts[index] += 1.0 / (len(own) * p)
    else:
        assert sample.indices is not None
        others = [k for k, index in enumerate(sample.indices) if index not in own]
        for k in others:
            share = (n - len(set(own))) / len(others)
            if sample.probabilities is not None:
                share = 1.0 / (len(sample.indices) * sample.probabilities[k])
            counts[sample.indices[k]] = share
        assert sampled == "uniformly" or len(others) == len(sample.indices) == 30
    phi = system.basis.transform(X[list(counts)])
    expected = (phi.T * (np.array(list(counts.values())) * w[list(counts)] / w.sum())) @ phi
    A = np.linalg.inv(system.preconditioner(penalty).to_features(np.eye(len(expected))))
    found = A.T @ A - penalty * np.eye(len(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("drawn", ["uniform", "leverage_scores"])
@pytest.mark.parametrize("sampled", [None, "uniformly", "by weight"])
def test_no_eigenvalue_of_the_preconditioned_matrix_is_less_than_told(
    weighted: bool, drawn: str, sampled: str | None
) -> None:
    n, kernel, penalty = 300, Gaussian(1.0), 1e-7
    w = np.random.default_rng(1).uniform(0.1, 3.0, n) if weighted else np.ones(n)
    rows = Rows.from_arrays(X[:n], y[:n], w if weighted else None)
    centers = choose_centers(drawn, rows, 40, kernel, 1e-2, random_state=0)
    sample = None if sampled is None else uniform(rows, 60, 1)
    if sampled == "by weight" and weighted:
        sample = sample_by_weight(rows, centers, None, np.random.RandomState(1))
    system = FalkonSystem(rows, kernel, centers, sample=sample)
    B = system.preconditioner(penalty)
    phi = system.basis.transform(X[:n]) @ B.to_features(np.eye(system.basis.n_features))
    H = (phi.T * (w / w.sum())) @ phi
    H += penalty * B.from_features(B.to_features(np.eye(len(H))))
    least = np.linalg.eigvalsh(H)[0]
    assert 0.0 < system.least <= least * (1.0 + 1e-8)
    if not weighted and drawn == "uniform" and sample is None:
        assert system.least == pytest.approx(40 / n)
