"""Nyström centres, and the basis of their span, against naive formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.centers import (
    NystromBasis,
    approximate_leverage_scores,
    by_weight,
    choose_centers,
    leverage_scores,
    subsampling_size,
    uniform,
)
from semiparam_dynamics.learning.kernels import Gaussian, Kernel, Linear, Polynomial
from semiparam_dynamics.learning.rows import Rows

from .oracles import peak_memory


def points(n: int = 120) -> np.ndarray:
    """A crowd, and one row in twelve far from it and from each other."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((n, 2))
    X[::12] += 8.0 * rng.standard_normal((len(X[::12]), 2))
    return X


def exact_scores(X: np.ndarray, penalty: float) -> np.ndarray:
    K = Gaussian()(X)
    return np.diag(np.linalg.solve(K + penalty * len(X) * np.eye(len(X)), K))


@pytest.mark.parametrize("penalty", [1e-1, 1e-4, 1e-8])
def test_with_all_rows_as_the_sketch_the_scores_are_exact(penalty: float) -> None:
    X = points()
    scores = approximate_leverage_scores(X, X, Gaussian(), penalty)
    np.testing.assert_allclose(scores, exact_scores(X, penalty), rtol=1e-6, atol=1e-9)
    X_rows = Rows([(X[:50], X[:50]), (X[50:], X[50:])])
    limited = approximate_leverage_scores(X_rows, X, Gaussian(), penalty, memory_limit=2**17)
    np.testing.assert_allclose(limited, scores, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("penalty", [1e-1, 1e-3])
def test_from_a_sketch_they_are_the_naive_formula(penalty: float) -> None:
    """Row by row: the score within the sketch's span, and what is outside over penalty n."""
    X, kernel = points(), Gaussian()
    sketch = X[::12]  # far from each other: their matrix has an accurate inverse
    K, own = kernel(X, sketch), np.linalg.inv(kernel(sketch))
    inverse = np.linalg.inv(K.T @ K + penalty * len(X) * kernel(sketch))
    expected = []
    for k in K:
        inside = k @ inverse @ k  # a (A'A + penalty n I)^-1 a', for any A with A A' = K own K'
        outside = 1.0 - k @ own @ k
        expected.append(min(inside + outside / (penalty * len(X)), 1.0))
    found = approximate_leverage_scores(X, sketch, kernel, penalty)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert np.ptp(found) > 0.01


def test_their_memory_is_the_limit_and_a_few_matrices_of_the_sketch() -> None:
    X, m, limit = np.random.default_rng(0).standard_normal((3000, 3)), 500, 2_000_000
    approximate_leverage_scores(X[:600], X[:50], Gaussian(), 1e-3)  # compiled before it is measured
    peak = peak_memory(
        lambda: approximate_leverage_scores(X, X[:m], Gaussian(), 1e-3, memory_limit=limit)
    )
    assert peak < limit + 6 * 8 * m**2


def test_from_a_sketch_they_are_of_the_right_size_and_get_closer() -> None:
    X = points()
    exact = exact_scores(X, 1e-3)
    errors = []
    for m in (5, 30, 110):
        scores = approximate_leverage_scores(X, uniform(X, m, 0).points, Gaussian(), 1e-3)
        assert (scores <= 1.0).all()
        assert (scores >= 0.4 * exact).all()  # rarely seen is never taken for unimportant
        errors.append(np.abs(scores - exact).max())
    assert errors[2] < 0.5 * errors[1] < 0.5 * errors[0]


def test_uniform_centres_are_different_rows_each_as_likely() -> None:
    X = np.arange(10.0)[:, None]
    counts = np.zeros(10)
    for seed in range(600):
        chosen = uniform(X, 3, seed)
        assert chosen.indices is not None
        assert len(set(chosen.indices)) == 3
        np.testing.assert_array_equal(chosen.points, X[chosen.indices])
        counts[chosen.indices] += 1
    # Binomial(600, 0.3): standard deviation 11.2.
    np.testing.assert_allclose(counts, 180.0, atol=4.5 * 11.2)
    assert sorted(uniform(X, 99, 0).points[:, 0]) == list(range(10))


def test_leverage_scores_draw_rows_as_often_as_their_probabilities_say() -> None:
    X = points()
    outliers = np.arange(len(X)) % 12 == 0
    drawn = leverage_scores(X, 5000, Gaussian(), 1e-2, random_state=0)
    assert drawn.indices is not None and drawn.probabilities is not None
    np.testing.assert_array_equal(drawn.points, X[drawn.indices])
    # With 5000 "centres" for the sketch, all rows are in it: probabilities are exact.
    expected = exact_scores(X, 1e-2) / exact_scores(X, 1e-2).sum()
    np.testing.assert_allclose(drawn.probabilities, expected[drawn.indices], rtol=1e-6)
    share = expected[outliers].sum()
    assert share > 0.3  # of 1 / 12 of the rows
    assert np.mean(outliers[drawn.indices]) == pytest.approx(share, abs=4 * 0.5 / np.sqrt(5000))


def choose(centers: Any, **settings: Any) -> Any:
    rows = Rows([(points(), np.zeros(120))])
    return choose_centers(
        centers, rows, **{"n_centers": 9, "kernel": Gaussian(), "penalty": 1e-2, **settings}
    )


@pytest.mark.parametrize("name", ["uniform", "leverage_scores"])
def test_equal_seeds_choose_equal_centres(name: str) -> None:
    first, again, other = (choose(name, random_state=seed).points for seed in (3, 3, 4))
    assert first.shape == (9, 2)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(choose(name, random_state=np.random.RandomState(3)).points, first)


def test_what_cannot_be_chosen_is_said() -> None:
    with pytest.raises(ConfigurationError, match="3 columns and X has 2"):
        choose(np.ones((4, 3)))
    with pytest.raises(ConfigurationError, match="must be a positive"):
        choose("leverage_scores", penalty=0.0)
    with pytest.raises(LearningError, match="zero on every centre"):
        leverage_scores(np.zeros((4, 2)), 3, Linear())


def test_smoother_targets_need_fewer_centres_and_worse_spans_more() -> None:
    # s = 1, beta = 1: n^(-1/4), n^(1/6); s = 1/4, beta = 1/2: n^(-2/5), n^(2/3).
    assert subsampling_size(2**12, 1.0, 1.0) == (pytest.approx(2**-3), 4)
    assert subsampling_size(2**15, 0.25, 0.5) == (pytest.approx(2**-6), 2**10)
    assert subsampling_size(10**4, 0.1, 0.1)[1] == 10**4  # never more than there are rows
    assert subsampling_size(10**4, 50.0, 50.0)[1] == 2  # rounded up


@pytest.mark.parametrize("arguments", [(0,), (10, 0.0), (10, 0.5, -1.0), (10, float("nan"))])
def test_arguments_must_be_positive(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match="positive"):
        subsampling_size(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 7, 25])
def test_rows_are_drawn_in_proportion_to_their_weights(n: int) -> None:
    X = points(40)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    w[:10], w[10:13] = 0.0, (100.0, 90.0, 0.01)
    rows, draw, drawn = Rows.from_arrays(X, X), np.random.RandomState(0), np.zeros(40)
    for _ in range(1000):
        found = by_weight(rows, w, n, draw)
        assert found.indices is not None and found.probabilities is not None
        assert len(found.indices) == len(np.unique(found.indices)) == n
        np.testing.assert_array_equal(found.points, X[found.indices])
        shares = n * found.probabilities
        # What is drawn stands for all, without an error where what is summed is as the weights.
        np.testing.assert_allclose(np.sum(w[found.indices] / shares), w.sum())
        drawn[found.indices] += 1.0
    expected = np.zeros(40)  # in proportion, those that would be drawn twice once and for certain
    certain = np.zeros(40, dtype=bool)
    while True:
        expected = np.where(certain, 1.0, (n - certain.sum()) * w / w[~certain].sum())
        if not (expected > 1.0).any():
            break
        certain |= expected > 1.0
    assert certain.any() == (n > 1)
    np.testing.assert_allclose(drawn / 1000, expected, atol=5.0 * 0.5 / np.sqrt(1000))
    np.testing.assert_allclose(shares, expected[found.indices])


def test_no_more_rows_are_drawn_than_have_a_weight() -> None:
    X, w = points(12), np.zeros(12)
    rows, draw = Rows.from_arrays(X, X), np.random.RandomState(0)
    assert not len(by_weight(rows, w, 5, draw).points)
    w[[2, 7]] = 1.0, 1e-3
    found = by_weight(rows, w, 5, draw)
    assert found.indices is not None and found.probabilities is not None
    assert sorted(found.indices) == [2, 7]
    np.testing.assert_array_equal(found.probabilities, 0.5)


# -------------------------------------------------------------------------------------------------
# The Nyström basis against pseudo-inverses, also of singular kernel matrices.

RNG = np.random.default_rng(0)
DISTINCT = RNG.standard_normal((40, 3))
DUPLICATES = np.concatenate((DISTINCT[:12], DISTINCT[3:7], DISTINCT[12:20], DISTINCT[:2]))
CASES: list[tuple[Kernel, np.ndarray, int]] = [  # kernel, centres, dimension of the span
    (Gaussian(1.0), DISTINCT, 40),
    (Gaussian(1.0), DUPLICATES, 20),
    (Linear(), DISTINCT, 3),
    (Polynomial(2), DISTINCT, 10),
    (Polynomial(2), np.repeat(DISTINCT, 5, axis=0), 10),  # more than one block
]
X = RNG.standard_normal((30, 3))


@pytest.mark.parametrize(("kernel", "centers", "rank"), CASES)
def test_features_have_the_inner_products_of_the_nystrom_kernel(
    kernel: Kernel, centers: np.ndarray, rank: int
) -> None:
    basis = NystromBasis(kernel, centers)
    assert rank <= basis.n_features <= 2 * rank
    phi = basis.transform(X)
    K = kernel(X, centers)
    expected = K @ np.linalg.pinv(kernel(centers), rcond=1e-12, hermitian=True) @ K.T
    scale = np.abs(kernel(X)).max()
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-7 * scale)
    grams = basis.expansion @ basis.expansion.T
    np.testing.assert_allclose(grams, kernel(centers), atol=1e-10 * scale)


def test_single_precision_drops_what_its_rounding_hides() -> None:
    twins = np.concatenate((DISTINCT, DISTINCT + 1e-5))
    assert NystromBasis(Gaussian(), twins).n_features > 40
    single = NystromBasis(Gaussian(), twins.astype(np.float32))
    assert single.n_features <= 40
    phi = single.transform(X.astype(np.float32))
    assert phi.dtype == np.float32
    expected = NystromBasis(Gaussian(), DISTINCT).transform(X)
    np.testing.assert_allclose(phi @ phi.T, expected @ expected.T, atol=5e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_smooth_kernel_on_crowded_centres_keeps_its_precision(d: int, dtype: Any) -> None:
    """Its eigenvalues fall below rounding: most pivots are noise, and must do no harm."""
    crowd = (0.5 * np.random.default_rng(1).standard_normal((300, d))).astype(dtype)
    basis = NystromBasis(Gaussian(), crowd)
    assert basis.n_features < 300
    K = Gaussian()(crowd.astype(float))
    phi = basis.transform(crowd)
    tolerance = 5e-12 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(phi @ phi.T, K, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        basis.expansion @ basis.expansion.T, K, rtol=0, atol=4 * np.sqrt(basis.jitter)
    )
