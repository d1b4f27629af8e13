"""Sparse inputs: every kernel and estimator does with them what it does with arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, coo_matrix, csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import (
    KRLS,
    NYTRO,
    SGM,
    Falkon,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Linear,
    Matern,
    NystromAggregator,
    NystromKRLS,
    NystromSGM,
    Polynomial,
    RandomFeaturesKRLS,
    RecursiveRLS,
    Rows,
    leverage_scores,
    select,
    uniform,
)
from semiparam_dynamics.learning.sparse import SparseCenters

RNG = np.random.default_rng(0)
D = 40
DENSE = RNG.standard_normal((130, D)) * (RNG.random((130, D)) < 0.15)
DENSE[7] = 0.0  # a row without any number
X, X_NEW = DENSE[:110], DENSE[110:]
S, S_NEW = csr_array(X), csr_array(X_NEW)
Y = np.column_stack((X[:, :5].sum(axis=1), X[:, 0] * X[:, 1])) + 0.1 * RNG.standard_normal((110, 2))
WIDTHS = np.linspace(1.0, 3.0, D)
KERNELS: list[Any] = [
    Linear(),
    Linear(1.0),
    Polynomial(3, 0.5, 0.2),
    Gaussian(2.0),
    Gaussian(WIDTHS),
    cosine_similarity,
    rbf_kernel,
]


def naive(kernel: Any, x: Array, c: Array) -> float:
    """K(x, c) of two rows, number by number."""
    inner = sum(float(a) * float(b) for a, b in zip(x, c, strict=True))
    if isinstance(kernel, Gaussian):
        widths = np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (len(x),))
        squares = [((a - b) / w) ** 2 for a, b, w in zip(x, c, widths, strict=True)]
        return float(np.exp(-0.5 * sum(squares)))
    if isinstance(kernel, Linear):
        return inner + kernel.offset
    return float((kernel.scale * inner + kernel.offset) ** kernel.degree)


def named(kernel: Any) -> str:
    """The kernel's name in a test's; a function's text has an address that differs by process."""
    return getattr(kernel, "__name__", str(kernel))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS[:5], ids=named)
def test_kernels_are_those_of_the_numbers(kernel: Any, dtype: Any) -> None:
    A, C = X[:12].astype(dtype), X[5:14].astype(dtype)
    expected = np.array([[naive(kernel, x, c) for c in C] for x in A])
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for first, second in ((csr_array(A), csr_matrix(C)), (A, csr_array(C)), (csr_matrix(A), C)):
        found = kernel(first, second)
        assert found.dtype == dtype and isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, atol=tolerance, rtol=tolerance)
    diagonal = [naive(kernel, x, x) for x in A]
    np.testing.assert_allclose(kernel.diagonal(csr_array(A)), diagonal, rtol=tolerance)


def test_duplicates_are_summed_and_any_format_is_taken() -> None:
    twice = coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [3, 3, 0])), shape=(2, D))
    rows = csr_array((np.array([1.0, 2.0, 4.0]), [3, 3, 0], [0, 2, 3]), shape=(2, D))
    assert not rows.has_canonical_format
    for given in (twice, rows, twice.tocsc()):
        np.testing.assert_allclose(Gaussian(3.0)(given), Gaussian(3.0)(given.toarray()), atol=1e-14)
    assert rows.nnz == 3  # the caller's is left as it is


def test_columns_of_tens_of_millions_take_no_memory() -> None:
    d, places = 65_000_000, RNG.choice(65_000_000, 30, replace=False)
    wide = csr_array((X[:, :30].ravel(), np.tile(places, 110), np.arange(0, 3301, 30)), (110, d))
    narrow = csr_array(X[:, :30])
    np.testing.assert_allclose(
        SparseCenters(wide[:20])(wide[10:]), SparseCenters(narrow[:20])(narrow[10:]), atol=1e-14
    )
    other = csr_array(([1.0, 1.0], [0, d - 1], [0, 1, 2]), (2, d))  # no centre has these
    assert not SparseCenters(wide[:20])(other).any()
    for model in (
        Falkon(Linear(), 1e-3, 20, max_iter=60),
        NystromKRLS(Gaussian(2.0), n_centers=20),
    ):
        model.set_params(random_state=0, memory_limit=200_000)
        expected = clone(model).fit(narrow, Y).predict(narrow)
        np.testing.assert_allclose(model.fit(wide, Y).predict(wide), expected, atol=1e-9)
        assert issparse(model.centers_) and model.centers_.shape[1] == d
    one_pass = SGM(Linear(), max_iter=1, random_state=0)
    expected = clone(one_pass).fit(narrow, Y).predict(narrow)
    np.testing.assert_allclose(one_pass.fit(wide, Y).predict(wide), expected, atol=1e-12)


MODELS: list[Any] = [
    KRLS(penalty=1e-2),
    KRLS(filter="nu"),
    NystromKRLS(penalty=1e-3, n_centers=30),
    NystromKRLS(penalty=1e-3, n_centers=30, centers="leverage_scores"),
    NystromKRLS(penalty=1e-12, n_centers=20),  # by QR
    NystromAggregator(None, 1e-3, (5, 20)),
    NystromAggregator(None, 1e-3, (5, 20), independent=True),
    Falkon(penalty=1e-2, n_centers=30),
    Falkon(penalty=1e-2, n_centers=30, preconditioner_rows=60),
    NYTRO(n_centers=30, solver="direct", max_iter=20),
    NYTRO(n_centers=30, validation=0.2),
    SGM(max_iter=3),
    SGM(max_iter=3, loss="absolute", validation=0.2),
    NystromSGM(n_centers=30, max_iter=3),
    NystromSGM(n_centers=30, max_iter=1, batch_size=50),
]


@pytest.mark.parametrize("kernel", [KERNELS[1], KERNELS[3], cosine_similarity], ids=named)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_estimators_do_what_they_do_with_arrays(model: Any, kernel: Any) -> None:
    if kernel is cosine_similarity and model is not MODELS[2] and model is not MODELS[8]:
        return
    model = clone(model).set_params(kernel=kernel)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    expected = clone(model).fit(X, Y)
    found = clone(model).fit(S, Y)
    assert issparse(found.centers_) and found.n_features_in_ == D
    np.testing.assert_allclose(found.centers_.toarray(), expected.centers_, atol=0)
    at = expected.predict(X_NEW)
    for same, inputs in ((found, S_NEW), (found, X_NEW), (expected, S_NEW), (found, S_NEW.tocsc())):
        np.testing.assert_allclose(same.predict(inputs), at, atol=1e-7)
    # Chunks, a memory limit and single precision.
    parts = [slice(a, b) for a, b in ((0, 1), (1, 50), (50, 110))]
    rows = Rows([(csr_matrix(X[part]), Y[part]) for part in parts])
    limited = clone(model)
    if not isinstance(model, KRLS):
        limited.set_params(memory_limit=150_000)
    np.testing.assert_allclose(limited.fit(rows).predict(S_NEW), at, atol=1e-7)
    if (getattr(model, "penalty", None) or 1.0) > 1e-6:
        single = clone(model).fit(S.astype(np.float32), Y)
        assert single.predict(S_NEW).dtype == np.float32
        np.testing.assert_allclose(single.predict(S_NEW), at, atol=5e-3)


def test_paths_and_selections_take_sparse_rows() -> None:
    grid: dict[str, Any] = {"n_centers": [5, 20], "penalty": [1e-1, 1e-3]}
    model = NystromKRLS(Linear(1.0), random_state=0)
    for (_, one), (_, other) in zip(
        model.path(X, Y, grid, X_NEW), model.path(S, Y, grid, S_NEW), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)
    chosen = [
        select(model, inputs, Y, grid, validation=validation, random_state=0)
        for inputs in (X, S)
        for validation in (0.2, 5, "leave_one_out")
    ]
    for of_arrays, of_sparse in zip(chosen[:3], chosen[3:], strict=True):
        np.testing.assert_allclose(of_sparse.errors, of_arrays.errors, rtol=1e-7)
    found = select(model, coo_matrix(X), Y, grid, validation=0.2, random_state=0)
    np.testing.assert_allclose(found.errors, chosen[0].errors, rtol=1e-7)
    weights = np.linspace(0.0, 2.0, 110)
    third, fourth = (Falkon(Linear(), random_state=0).fit(inputs, Y, weights) for inputs in (X, S))
    np.testing.assert_allclose(fourth.predict(X_NEW), third.predict(X_NEW), atol=1e-8)


def test_all_rows_as_centres_are_kernel_ridge_regression() -> None:
    expected = KernelRidge(kernel="linear", alpha=1e-2 * 110).fit(S, Y).predict(S_NEW)
    model = Falkon(Linear(), 1e-2, 110, max_iter=100, tolerance=1e-14, random_state=0)
    np.testing.assert_allclose(model.fit(S, Y).predict(S_NEW), expected, atol=1e-9)


def test_centres_are_chosen_and_given_in_either_format() -> None:
    for choose in (uniform, leverage_scores):
        points: list[Any] = [choose(inputs, 20, random_state=0).points for inputs in (X, S)]
        np.testing.assert_array_equal(points[1].toarray(), points[0])
    expected = NystromKRLS(Linear(1.0), centers=X[:15]).fit(X, Y).predict(X_NEW)
    for inputs, centers in ((X, S[:15]), (S, X[:15]), (S, S[:15])):
        found = NystromKRLS(Linear(1.0), centers=centers).fit(inputs, Y)
        np.testing.assert_allclose(found.predict(X_NEW), expected, atol=1e-9)


def test_a_classifier_passes_them_on() -> None:
    inputs, labels = make_classification(200, 20, random_state=0)
    inputs[np.abs(inputs) < 0.7] = 0.0
    for estimator in (None, Falkon(Linear(1.0), 1e-3, 50, loss="logistic", random_state=0)):
        one, other = (
            KernelClassifier(estimator).fit(given, labels) for given in (inputs, csr_array(inputs))
        )
        np.testing.assert_allclose(
            one.decision_function(inputs), other.decision_function(csr_array(inputs)), atol=1e-6
        )


def test_scikit_learns_conventions_hold_without_a_sparse_form() -> None:
    """With one they are those of the contract's estimators, whose kernel takes sparse rows."""
    check_estimator(Falkon(Matern(), 1e-6))  # the penalty that is found here leaves seven digits


@pytest.mark.parametrize("kernel", [Laplacian(), Matern(), Matern(nu=0.5)], ids=str)
@pytest.mark.parametrize("model", [KRLS(), NystromKRLS(), Falkon(), SGM(), NYTRO()], ids=str)
def test_a_kernel_without_a_sparse_form_changes_nothing(model: Any, kernel: Any) -> None:
    model = clone(model).set_params(kernel=kernel).fit(X, Y)
    before = dict(vars(model))
    for given in ((S, Y), (Rows([(S[:, :9], Y)]),)):
        with pytest.raises(ConfigurationError, match="has no form for sparse inputs: take Linear"):
            model.fit(*given)
        assert vars(model) == before
    with pytest.raises(ConfigurationError, match="has no form for sparse inputs"):
        model.predict(S_NEW)
    with pytest.raises(ConfigurationError, match="has no form for sparse inputs"):
        KernelClassifier(model).fit(S, Y[:, 0] > 0.0)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ConfigurationError, match="can't take scipy.sparse's compressed rows"):
        Falkon(lambda A, B: np.exp(A @ B.T)).fit(S, Y)
    with pytest.raises(LearningError, match="takes no sparse inputs"):
        RandomFeaturesKRLS().fit(Rows([(S, Y)]))
    with pytest.raises(LearningError, match="Either all chunks"):
        Rows([(S[:50], Y[:50]), (X[50:], Y[50:])])
    with pytest.raises(LearningError, match="NaN"):
        Rows([(csr_array(np.where(X > 2.0, np.nan, X)), Y)])
    with pytest.raises(LearningError, match="fitted to sparse inputs"):
        RecursiveRLS.from_batch(Falkon(n_centers=9).fit(S, Y), X, Y)
    with pytest.raises(LearningError, match="squares overflow"):
        Falkon(Gaussian(1e-200)).fit(S, Y)
    with pytest.raises(LearningError, match="X has 110 rows and y has 3"):
        Rows.from_arrays(S, Y[:3])
    assert Rows.from_arrays(S.tocsc(), Y).n_features == D
