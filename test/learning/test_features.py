"""Features: random ones of any sampler, their ridge regression, and the transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import (
    Gaussian,
    IncrementalRLSC,
    RandomFeatures,
    RandomFeaturesKRLS,
    RecursiveRLS,
    SpectralSampler,
)
from semiparam_dynamics.learning.feature_sampling import leverage_importance
from semiparam_dynamics.learning.features import (
    NystromFeatures,
    RandomFourierFeatures,
    RandomReLUFeatures,
    feature_option,
)
from semiparam_dynamics.learning.kernels import Laplacian, Linear, Matern
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.rows import Rows

from .oracles import cube, peak_memory

X, Y, X_NEW = cube(T=2)


@dataclass(frozen=True)
class Steps:
    """1 where a coordinate is above a threshold, both drawn uniformly: K counts shared ones."""

    def sample(self, n: int, n_inputs: int, random: np.random.RandomState) -> Array:
        drawn: Array = random.random_sample((n, 2))
        return drawn * [n_inputs, 2.0] - [0.0, 1.0]

    def psi(self, X: Array, omega: Array) -> Array:
        return (X[:, omega[:, 0].astype(int)] > omega[:, 1]).astype(X.dtype)


def kernel_of_steps(A: Array, C: Array) -> Array:
    """The mean over coordinates of P(threshold < min(a, c)), threshold uniform on [-1, 1]."""
    result: Array = np.mean((np.minimum(A[:, None], C[None]) + 1.0) / 2.0, axis=2)
    return result


def test_inner_products_approximate_the_kernel_of_the_sampler() -> None:
    for importance in (None, "leverage", lambda omega, X: 0.1 + (omega[:, 1] + 1.0) ** 2):
        model = RandomFeatures(Steps(), 20_000, importance, 20_000, random_state=0).fit(X[:50])
        Z = model.transform(X[:50])
        assert Z.shape == (50, 20_000) and (model.weights_ is None) == (importance is None)
        assert np.abs(Z @ Z.T - kernel_of_steps(X[:50], X[:50])).max() < 0.06
    spectral = RandomFeatures(SpectralSampler(Gaussian(0.7)), 20_000, random_state=0).fit(X)
    Z = spectral.transform(X[:50])
    assert np.abs(Z @ Z.T - Gaussian(0.7)(X[:50])).max() < 0.05


@pytest.mark.parametrize("importance", [None, "leverage", lambda omega, X: 1.0 + omega[:, 1] ** 2])
def test_ridge_regression_on_them_is_scikit_learns(importance: Any) -> None:
    settings: Any = {"features": Steps(), "importance": importance, "n_candidates": 300}
    model = RandomFeaturesKRLS(penalty=1e-3, n_features=60, random_state=0, **settings).fit(X, Y)
    A = Steps().psi(X, model.omega_)
    if model.weights_ is not None:
        A = A * model.weights_
    expected = Ridge(1e-3 * len(X), fit_intercept=False).fit(A / np.sqrt(60.0), Y)
    np.testing.assert_allclose(model.coef_, expected.coef_.T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), expected.predict(A / np.sqrt(60.0)), atol=1e-9)
    transformer = RandomFeatures(Steps(), 60, importance, 300, 1e-3, 0).fit(X)
    np.testing.assert_array_equal(transformer.omega_, model.omega_)
    np.testing.assert_allclose(transformer.transform(X), A / np.sqrt(60.0), atol=1e-14)
    # The path has the draws of a fit for each number of features.
    for setting, found in model.path(X, Y, {"n_features": [7, 60], "penalty": [1e-1, 1e-12]}, X):
        refitted = RandomFeaturesKRLS(random_state=0, **settings).set_params(**setting).fit(X, Y)
        if importance != "leverage":  # whose draws depend on the penalty
            np.testing.assert_array_equal(refitted.omega_, model.omega_[: setting["n_features"]])
        B = Steps().psi(X, refitted.omega_) / np.sqrt(setting["n_features"])
        if refitted.weights_ is not None:
            B = B * refitted.weights_
        ridge = Ridge(setting["penalty"] * len(X), fit_intercept=False, solver="svd").fit(B, Y)
        if setting["penalty"] > 1e-6:
            np.testing.assert_allclose(found, ridge.predict(B), atol=1e-8)
        else:
            assert np.abs(found - ridge.predict(B)).max() < 1e-3


def test_importance_of_a_kernels_features_leaves_the_fit_what_it_is_but_for_the_draws() -> None:
    uniform = RandomFeaturesKRLS(Gaussian(0.7), 1e-3, 2000, random_state=0).fit(X, Y)
    drawn = RandomFeaturesKRLS(
        Gaussian(0.7), 1e-3, 2000, random_state=0, importance="leverage", n_candidates=4000
    ).fit(X, Y)
    assert not hasattr(drawn, "frequencies_") and drawn.omega_.shape == (2000, 4)
    assert np.abs(drawn.predict(X_NEW) - uniform.predict(X_NEW)).max() < 0.25
    again = drawn.set_params(importance=None).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X_NEW), uniform.predict(X_NEW))
    assert not hasattr(again, "omega_")


def test_a_path_over_penalties_draws_by_leverage_as_fits_do() -> None:
    X, y, X_new = cube()
    model = RandomFeaturesKRLS(
        Gaussian(0.7), 1.0, random_state=0, importance="leverage", n_candidates=300
    )
    grid = {"penalty": [1e-1, 1e-6], "n_features": [10, 25]}
    for setting, predicted in model.path(X, y, grid, X_new):
        expected = clone(model).set_params(**setting).fit(X, y).predict(X_new)
        np.testing.assert_allclose(predicted[:, 0], expected, rtol=1e-6, atol=1e-8)


def test_leverage_is_the_naive_formula() -> None:
    values = np.random.default_rng(0).standard_normal((30, 50))
    k, N, penalty = 30, 50, 1e-2
    K = sum(np.outer(values[:, j], values[:, j]) for j in range(N)) / N
    inverse = np.linalg.inv(K / k + penalty * np.eye(k))
    expected = [values[:, i] @ inverse @ values[:, i] / k for i in range(N)]
    found = leverage_importance(values, penalty)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    # Their mean is the effective dimension tr K (K + penalty k I)^-1.
    np.testing.assert_allclose(found.mean(), np.trace(K / k @ inverse), rtol=1e-10)


def test_leverage_of_features_that_depend_on_each_other_needs_hardly_any_penalty() -> None:
    values = np.outer(np.arange(1.0, 31.0), np.ones(50))  # rank 1
    np.testing.assert_allclose(leverage_importance(values, 1e-300), 1.0, rtol=1e-9)
    model = RandomFeaturesKRLS(Gaussian(5.0), 1e-18, importance="leverage", random_state=0)
    assert np.isfinite(model.fit(X, Y).predict(X_NEW)).all()


def test_fewer_features_do_where_most_of_them_are_of_no_use() -> None:
    """Thresholds drawn over a range of which the data fill a twentieth."""
    narrow, other = 0.05 * X + 0.4, 0.05 * X_NEW + 0.4
    target = np.sin(60.0 * narrow[:, :1].sum(axis=1))
    wanted = np.sin(60.0 * other[:, :1].sum(axis=1))
    errors = {}
    for importance in (None, "leverage"):
        models = [
            RandomFeaturesKRLS(None, 1e-5, 60, random_state=seed, features=Steps(),
                               importance=importance).fit(narrow, target)
            for seed in range(8)
        ]  # fmt: skip
        errors[importance] = np.mean([(m.predict(other) - wanted) ** 2 for m in models])
    assert errors["leverage"] < 0.5 * errors[None]


def test_recursive_learners_take_them() -> None:
    features = RandomFeatures(Steps(), 40, random_state=0).fit(X)
    batch = RandomFeaturesKRLS(None, 1e-3, 40, random_state=0, features=Steps()).fit(X, Y)
    online = RecursiveRLS(ridge=1e-3 * len(X), features=features).fit(X, Y)
    np.testing.assert_allclose(online.predict(X_NEW), batch.predict(X_NEW), atol=1e-7)
    labels = X[:, 0] + X[:, 1] > 0.0
    classifier = IncrementalRLSC(features=RandomFeatures(Steps(), 300, random_state=0))
    assert classifier.fit(X, labels).score(X, labels) > 0.8


class Wrong(Steps):
    """A sampler whose parts can be exchanged."""

    def __init__(self, sample: Any = None, psi: Any = None) -> None:
        if sample is not None:
            object.__setattr__(self, "sample", sample)
        if psi is not None:
            object.__setattr__(self, "psi", psi)


UNUSABLE: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"features": np.cos}, ConfigurationError, "features must have sample"),
    ({"features": Steps(), "kernel": Gaussian()}, ConfigurationError, "leave out either"),
    ({"features": Steps(), "importance": "scores"}, ConfigurationError, "importance must be None"),
    ({"importance": "leverage", "kind": "pair"}, ConfigurationError, 'needs kind="phase"'),
    ({"importance": "leverage", "n_candidates": 0}, ConfigurationError, "n_candidates must be"),
    ({"features": Wrong(lambda n, d, r: np.ones(3))}, LearningError, "500 draws were asked for"),
    ({"features": Wrong(None, lambda X, o: X)}, LearningError, "a column for each draw"),
    ({"features": Wrong(None, lambda X, o: X[:, :1] @ o[:, 1:].T * np.inf)}, LearningError,
     "not finite"),
    ({"features": Steps(), "importance": lambda o, X: o[:, 1]}, LearningError, "not negative"),
    ({"features": Steps(), "importance": lambda o, X: o}, LearningError, "number for each"),
    ({"features": Steps(), "importance": lambda o, X: np.maximum(o[:, 1], 0.0)}, LearningError,
     "importance is zero for [0-9]+ of 5000 candidates that are not zero on the data"),
    ({"features": Steps(), "importance": lambda o, X: 0.0 * o[:, 1]}, LearningError,
     "raise it above zero"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "error", "sentence"), UNUSABLE, ids=range(len(UNUSABLE)))
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_what_cannot_be_is_said_and_changes_nothing(
    settings: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    model = RandomFeaturesKRLS(random_state=0).fit(X, Y)
    before = model.predict(X_NEW)
    model.set_params(**settings)
    with pytest.raises(error, match=sentence):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X_NEW), before)


def test_an_importance_may_be_zero_where_features_are_zero_on_the_data() -> None:
    high = np.abs(X).max()
    inside = RandomFeaturesKRLS(
        features=Steps(), importance=lambda o, A: (o[:, 1] < high - 1e-12).astype(float),
        random_state=0,
    )  # fmt: skip
    assert np.isfinite(inside.fit(X, Y).predict(X_NEW)).all()


# -------------------------------------------------------------------------------------------------
# Ridge regression on random features, and the features of each kernel.

KERNELS = [
    Gaussian(1.7),
    Gaussian([0.5, 2.0, 1.0]),
    Laplacian(2.0),
    Laplacian([3.0, 1.0, 2.0]),
    Matern(1.5, 0.5),
    Matern([1.0, 2.0, 1.5], 1.5),
    Matern(1.0, 2.5),
]


@pytest.mark.parametrize("kind", ["phase", "pair"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_inner_products_approximate_the_kernel(kernel: Any, kind: str) -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))

    def evaluated(n: int) -> np.ndarray:
        sampler = SpectralSampler(kernel, kind)
        return sampler.psi(X, sampler.sample(n, 3, np.random.RandomState(0)))

    psi = evaluated(40_000)
    assert psi.shape == (30, 40_000)
    # Each entry is a mean of 40000 or 20000 values within [-2, 2], of variance 1 / 2 or so.
    assert np.abs(psi @ psi.T / 40_000 - kernel(X)).max() < 0.04
    np.testing.assert_allclose(evaluated(100), psi[:, :100], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["phase", "pair"])
def test_it_equals_scikit_learns_ridge_on_the_same_features(kind: str) -> None:
    X, Y, X_new = cube(T=2)
    model = RandomFeaturesKRLS(Gaussian(0.7), 1e-3, 60, kind, random_state=0).fit(X, Y)
    angle = X @ model.frequencies_.T
    if kind == "phase":
        A = np.sqrt(2.0 / 60) * np.cos(angle + model.offsets_)
    else:
        A = np.stack((np.cos(angle), np.sin(angle)), axis=2).reshape(len(X), 60) / np.sqrt(30)
    expected = Ridge(1e-3 * len(X), fit_intercept=False).fit(A, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_.T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), A @ model.coef_, rtol=1e-9, atol=1e-10)


def test_without_the_scale_the_penalty_weighs_an_mth() -> None:
    X, Y, X_new = cube(T=2)
    scaled = RandomFeaturesKRLS(Gaussian(0.7), 1e-3, 60, random_state=0).fit(X, Y)
    unscaled = RandomFeaturesKRLS(Gaussian(0.7), 0.06, 60, random_state=0, scaled=False).fit(X, Y)
    np.testing.assert_allclose(unscaled.predict(X_new), scaled.predict(X_new), atol=1e-9)
    A = np.sqrt(2.0) * np.cos(X @ unscaled.frequencies_.T + unscaled.offsets_)
    expected = Ridge(0.06 * len(X), fit_intercept=False).fit(A, Y)
    np.testing.assert_allclose(unscaled.coef_, expected.coef_.T, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("importance", [None, "leverage", lambda omega, X: np.ones(len(omega))])
def test_memory_stays_within_the_limit(importance: Any) -> None:
    n, m, limit = 3000, 50, 10_000_000
    if importance is None:  # the whole features would take six times as much
        n, m, limit = 20_000, 150, 4_000_000
    X = np.random.default_rng(0).standard_normal((n, 2))
    rows = Rows.from_arrays(X, X[:, 0])
    settings: Any = {"importance": importance, "random_state": 0, "memory_limit": limit}
    model = RandomFeaturesKRLS(n_features=m, **settings)
    assert peak_memory(lambda: model.fit(rows)) < limit + 8 * 8 * m * m + n * 48
    assert np.mean((model.predict(X) - X[:, 0]) ** 2) < 0.1


# -------------------------------------------------------------------------------------------------
# Nyström and random Fourier features as transformers, and the feature options of estimators.


def test_inner_products_are_those_of_scikit_learn_at_the_same_centres() -> None:
    X, *_ = cube(150)
    theirs = Nystroem(gamma=0.5 / 0.7**2, n_components=40, random_state=0).fit(X)
    expected = theirs.transform(X)
    centers = X[theirs.component_indices_]
    phi = NystromFeatures(Gaussian(0.7), centers=centers).fit_transform(X)
    assert phi.shape == (150, 40)
    np.testing.assert_allclose(phi @ phi.T, expected @ expected.T, atol=1e-8)


@pytest.mark.parametrize("centers", ["uniform", "leverage_scores"])
def test_they_are_exact_at_the_centres_and_nested(centers: str) -> None:
    X, *_ = cube(150)
    features = NystromFeatures(Laplacian(1.3), 30, centers, random_state=1).fit(X)
    C, phi = features.centers_, features.transform(X)
    kernel = Laplacian(1.3)
    np.testing.assert_allclose(features.transform(C) @ phi.T, kernel(C, X), atol=1e-10)
    fewer = NystromFeatures(Laplacian(1.3), centers=C[:12]).fit(X)
    np.testing.assert_allclose(fewer.transform(X), phi[:, : fewer.n_components], atol=1e-12)


def test_dependent_centres_bring_no_feature() -> None:
    X, *_ = cube(150)
    features = NystromFeatures(Linear(), 50, random_state=0).fit(X)
    assert features.n_components == 3
    assert len(features.get_feature_names_out()) == 3
    np.testing.assert_allclose(features.transform(X) @ features.transform(X).T, X @ X.T, atol=1e-10)
    with pytest.raises(LearningError, match="zero"):
        NystromFeatures(Linear()).fit(np.zeros((4, 2)))


def test_ridge_on_them_is_nystrom_krls_and_random_features_take_their_place() -> None:
    X, y, _ = cube(150)
    ridge = Ridge(1e-3 * len(X), fit_intercept=False)
    found = make_pipeline(NystromFeatures(Gaussian(0.7), 40, random_state=2), ridge).fit(X, y)
    expected = NystromKRLS(Gaussian(0.7), 1e-3, 40, random_state=2).fit(X, y)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-7)
    found.set_params(nystromfeatures=RandomFourierFeatures(600, 0.7, 0)).fit(X, y)
    assert np.mean((found.predict(X) - expected.predict(X)) ** 2) < 0.15 * np.var(y)


@pytest.mark.parametrize("n_centers", [1, 20, 2000])
def test_single_precision_in_single_precision_out(n_centers: int) -> None:
    X, *_ = cube(150)
    features = NystromFeatures(Gaussian(0.7), n_centers, random_state=0).fit(X)
    expected: Any = features.transform(X)
    found = features.transform(X.astype(np.float32))
    assert found.dtype == np.float32
    # Not the features themselves: those of nearly dependent centres magnify the inputs' rounding.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    single = NystromFeatures(Gaussian(0.7), n_centers, random_state=0)
    phi = single.fit_transform(X.astype(np.float32))
    assert phi.dtype == np.float32
    np.testing.assert_allclose(phi @ phi.T, expected @ expected.T, atol=1e-3)


def arc_cosine(X: Array) -> Array:
    lengths = np.linalg.norm(X, axis=1)
    angles = np.arccos(np.clip(X @ X.T / np.outer(lengths, lengths), -1.0, 1.0))
    exact = np.sin(angles) + (np.pi - angles) * np.cos(angles)
    return np.outer(lengths, lengths) / np.pi * exact


@pytest.mark.parametrize(
    ("features", "exact", "most"),
    [
        (
            RandomFourierFeatures(length_scale=1.7),
            lambda X: rbf_kernel(X, gamma=0.5 / 1.7**2),
            0.04,
        ),
        (RandomReLUFeatures(), arc_cosine, 0.4),  # of 9, and each entry's deviation is some 0.1
    ],
    ids=["fourier", "relu"],
)
def test_random_features_approximate_their_kernel(features: Any, exact: Any, most: float) -> None:
    X, errors = np.random.default_rng(0).standard_normal((35, 5)), []
    for n in (200, 20_000):
        phi = clone(features).set_params(n_features=n, random_state=0).fit_transform(X)
        assert phi.shape == (35, n)
        errors.append(np.abs(phi @ phi.T - exact(X)).max())
    assert errors[1] < min(most, 0.35 * errors[0])  # falls as 1 / sqrt(n)
    few = clone(features).set_params(n_features=20, random_state=0).fit(X)
    single = few.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, few.transform(X), rtol=1e-4, atol=1e-6)


def test_the_option_of_relu_features_is_the_transformer() -> None:
    found = feature_option("random_relu", None, 20, 0, X).transform(X)
    np.testing.assert_array_equal(found, RandomReLUFeatures(20, random_state=0).fit_transform(X))


def test_random_fourier_features_have_a_width_for_each_input_too() -> None:
    X, y, _ = cube(150)
    widths = np.array([0.5, 2.0, 1.0])
    phi = RandomFourierFeatures(40, widths, 0).fit_transform(X)
    np.testing.assert_allclose(
        phi, RandomFourierFeatures(40, 1.0, 0).fit_transform(X / widths), atol=1e-12
    )
    model = RecursiveRLS(Gaussian(list(widths)), features="random_fourier", n_features=40)
    found = model.set_params(random_state=0).fit(X, y).features_.transform(X)
    np.testing.assert_array_equal(found, phi)


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (RandomFourierFeatures(0), "n_features must be"),
        (RandomReLUFeatures(0), "n_features must be"),
        (RandomFourierFeatures(2.5), "n_features must be"),  # type: ignore[arg-type]
        (RandomFourierFeatures(length_scale=0.0), "length_scale must be positive"),
        (RandomFourierFeatures(length_scale=[1.0, 2.0]), "one for each of the 3 inputs"),
        (IncrementalRLSC(features="nystrom", kernel=Gaussian([1.0, 2.0, 3.0])), "have one width"),
        (IncrementalRLSC(features="nystrom", kernel=Gaussian(0.0)), "length_scale must be"),
        (IncrementalRLSC(features="nystrom", n_features=0), "n_features must be"),
    ],
    ids=str,
)
def test_widths_and_numbers_of_features_that_are_none_are_said(
    features: Any, sentence: str
) -> None:
    X, y, _ = cube(20)
    with pytest.raises(ConfigurationError, match=sentence):
        features.fit(X, y > 0.0)
