"""The theorems' choices: their special cases, and effective dimensions known by construction."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.learning import Falkon, theory


def spline(exponent: float, terms: int = 1000) -> Any:
    """A kernel on the circle with eigenvalues k^-exponent, k = 1, 2, ..., twice each, and 1."""
    k, grid = np.arange(1, terms + 1), np.linspace(0.0, 1.0, 4097)
    values = 1.0 + 2.0 * np.cos(2.0 * np.pi * np.outer(grid, k)) @ k**-exponent

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.interp(np.abs(A - B.T), grid, values)

    return kernel


def exact_dimension(exponent: float, penalty: float) -> float:
    k = np.arange(1.0, 1e6)
    return float(1.0 / (1.0 + penalty) + 2.0 * np.sum(1.0 / (1.0 + penalty * k**exponent)))


@pytest.mark.parametrize("exponent", [2.0, 4.0])
def test_effective_dimensions_of_a_known_spectrum(exponent: float) -> None:
    X = np.random.default_rng(0).random((600, 1))
    kernel = spline(exponent)
    for penalty in (0.1, 0.03, 0.01):  # N up to 31, far below n
        found = theory.effective_dimensions(X, kernel, penalty, 600)
        expected = exact_dimension(exponent, penalty)
        assert abs(found.effective / expected - 1.0) < 0.08
        # On the circle all leverage scores of the population are alike.
        assert expected * 0.9 < found.maximal < 2.0 * expected
    few = theory.effective_dimensions(X, kernel, 0.01, 200, random_state=0)
    assert 0.95 < few.effective / theory.effective_dimensions(X, kernel, 0.01, 600).effective < 1.1
    # N(lambda) grows as lambda^(-1 / exponent): the capacity of this kernel.
    ratio = exact_dimension(exponent, 1e-5) / exact_dimension(exponent, 1e-3)
    assert abs(math.log(ratio) / math.log(100.0) - 1.0 / exponent) < 0.03


def test_the_worst_cases_are_those_of_the_basic_theorems() -> None:
    n = 10_000
    basic = theory.random_features(n)  # theorem 9
    assert (basic.penalty, basic.n_features, basic.rate) == (pytest.approx(0.01), 100, 0.5)
    assert theory.nystrom(n).penalty == pytest.approx(0.01)
    assert theory.nystrom(n).rate == 0.5
    assert theory.falkon(n).penalty == theory.falkon(n, 0.5).penalty == pytest.approx(0.01)
    assert theory.falkon(n).rate == theory.falkon(n, 0.5).rate == 0.5


def test_random_features_of_the_thesis_examples() -> None:
    n = 10**8
    third = theory.random_features(n, 0.5, 1.0 / 3.0, 1.0 / 3.0)
    assert third.rate == pytest.approx(0.75) and third.n_features == 100  # n^(1/4)
    for r, gamma in ((0.6875, 0.125), (0.875, 0.25)):  # figure 5.2
        rate, exponent = theory.feature_exponents(r, gamma, gamma)
        one, other = (theory.random_features(k, r, gamma, gamma) for k in (10**6, 10**12))
        assert one.penalty is not None and other.penalty is not None
        slope = math.log(other.penalty / one.penalty) / math.log(10**6)
        assert slope == pytest.approx({0.6875: -0.667, 0.875: -0.5}[r], abs=1e-3)
        assert rate == pytest.approx({0.6875: 0.917, 0.875: 0.875}[r], abs=1e-3)
        assert exponent == pytest.approx({0.6875: 1 / 3, 0.875: 0.5}[r])
        # Beyond alpha = gamma more features are needed, for the same rate.
        assert theory.feature_exponents(r, gamma, 1.0) > (rate, exponent)
    assert theory.random_features(n, 3.0) == theory.random_features(n, 1.0)  # saturates


@pytest.mark.parametrize("source", [0.5, 0.75, 1.0, 4.0])
@pytest.mark.parametrize("capacity", [0.25, 1.0])
def test_center_exponents_are_those_of_a_known_spectrum(source: float, capacity: float) -> None:
    # Eigenvalues k^(-1 / capacity): with the penalty that is best for this source, centres drawn by
    # leverage scores are as many as N(penalty) grows, uniform ones on the circle too, and where
    # nothing is known of the largest score 1 / penalty of them.
    sizes = (10.0**8, 10.0**12)
    penalties = [n ** (-1.0 / (2.0 * min(source, 1.0) + capacity)) for n in sizes]
    k = np.arange(1.0, 3e5)
    for compatibility in (capacity, 1.0):
        rate, exponent = theory.center_exponents(source, capacity, compatibility)
        assert rate == theory.feature_exponents(source, capacity, compatibility)[0]
        numbers = [
            np.sum(1.0 / (1.0 + p * k ** (1.0 / capacity))) if compatibility < 1.0 else 1.0 / p
            for p in penalties
        ]
        slope = math.log(numbers[1] / numbers[0]) / math.log(sizes[1] / sizes[0])
        assert exponent == pytest.approx(slope, abs=0.01)


def test_centers_follow_theorem_1_and_its_dimension() -> None:
    n, delta = 10**9, 0.1
    choice = theory.nystrom(n, 0.75, 0.5, dimension=lambda p: 2.0 / p, confidence=delta)
    penalty = n ** (-1.0 / (0.5 + 0.5 + 1.0))
    assert choice.penalty == pytest.approx(penalty) and choice.rate == pytest.approx(0.75)
    assert choice.n_centers == math.ceil(10.0 / penalty * math.log(12.0 / (penalty * delta)))
    drawn = theory.nystrom(n, 0.75, 0.5, leverage_scores=2.0, confidence=delta)
    size = 78.0 * 4.0 * penalty**-0.5
    assert drawn.n_centers == math.ceil(size * math.log(48.0 * n / delta))
    assert theory.nystrom(50).n_centers == 50  # never more than there are rows
    alone = theory.computational_regularisation(10**6)
    m = math.ceil(3.0 * 10**3 * math.log(10**6))
    assert (alone.n_centers, alone.penalty) == (m, pytest.approx(math.log(m) / m))


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("beta", [0.25, 0.5, 1.0])
def test_stochastic_gradient_balances_the_terms_of_its_bounds(smooth: bool, beta: float) -> None:
    n = 10**6
    for decaying in (False, True):
        passes = theory.sgm(n, beta, decaying=decaying, smooth=smooth)
        assert passes.step is not None and passes.iterations is not None
        t = float(passes.iterations)
        # The sums of the steps over n, and one over them to the beta: theorem 2 (theorem 3 has the
        # root of the first), which the choice of t makes equal, and equal to n^-rate.
        total = 2.0 * math.sqrt(t) if decaying else t * passes.step
        sample = total / n if smooth else math.sqrt(total / n)
        for term in (sample, total**-beta):
            assert 0.3 < term / n**-passes.rate < 3.0
        once = theory.sgm(n, beta, tuned="step", decaying=decaying, smooth=smooth)
        assert once.iterations == n and once.rate == passes.rate
        assert once.step is not None and once.decay is not None
        theta = once.decay
        total = n ** (1.0 - theta) / (1.0 - theta) if decaying else n * once.step
        sample = total / n if smooth else math.sqrt(total / n)
        for term in (sample, total**-beta):
            assert 0.3 < term / n**-once.rate < 3.0
    if smooth:
        assert theory.sgm(n, 1.0).iterations == n  # where one pass of a fixed step suffices


def test_nytro_and_falkon_iterate_as_their_theorems_say() -> None:
    found = theory.nytro(10**7, 400.0, step=0.5, dimension=lambda p: 1.0, norm=10.0, factor=0.5)
    assert found.iterations == 800
    assert found.n_centers == math.ceil(66.0 * math.log(10**7 * 10.0 * 400.0 / 0.5))
    three = theory.falkon(10**10, output_range=2.0, confidence=0.1)
    assert three.n_centers == math.ceil(75.0 * 10**5 * math.log(48 * 10**11))
    assert three.iterations == math.ceil(5.0 * math.log(10.0) + 5.0 + 2.0 * math.log(5.0))
    five = theory.falkon(10**10, 1.0, 0.5, dimension=lambda p: 3.0, confidence=0.1)
    assert five.penalty == pytest.approx(1e-4)
    logarithm = math.log(8.0 / 1e-5)
    assert five.n_centers == math.ceil(70.0 * 4.0 * logarithm)
    drawn = theory.falkon(10**10, 1.0, 0.5, leverage_scores=1.5, confidence=0.1)
    assert drawn.n_centers == math.ceil(220.0 * (2.0 + 2.25 * 100.0) * logarithm)
    assert five.iterations == math.ceil(math.log(10**10) + 5.0 + 2.0 * math.log(4.0))


def test_bachs_number_of_centers() -> None:
    size = (32.0 * 7.0 / 0.5 + 2.0) * math.log(20.0 * 10**6 / (0.5 * 1e-3))
    found = theory.centers_for_penalty(10**6, 1e-3, 7.0, norm=20.0, factor=0.5)
    assert found == math.ceil(size)
    # Without the largest eigenvalue its bound n, and never more than there are rows.
    assert theory.centers_for_penalty(10**6, 1e-3, 7.0) == math.ceil(226.0 * math.log(10**15))
    assert theory.centers_for_penalty(100, 1e-3, 7.0) == 100


def test_falkon_converges_as_theorem_4_says() -> None:
    logarithm = math.log(8.0 * 4.0 / (0.01 * 0.1))
    options: Any = {"confidence": 0.1, "kappa2": 4.0}
    assert theory.falkon_centers(10**6, 0.01, 3.0, **options) == math.ceil(280.0 * logarithm)
    drawn = theory.falkon_centers(10**6, 0.01, 3.0, leverage_scores=2.0, **options)
    assert drawn == math.ceil(215.0 * 14.0 * logarithm)
    # On the circle, with the dimension that its spectrum has.
    penalty, kernel = 1.0, spline(2.0)
    kappa2 = float(kernel(np.zeros((1, 1)), np.zeros((1, 1))).item())
    dimension = exact_dimension(2.0, penalty)
    m = theory.falkon_centers(2000, penalty, dimension, confidence=0.5, kappa2=kappa2)
    assert 500 < m < 1500
    rng = np.random.default_rng(0)
    X = rng.random((2000, 1))
    y = np.sign(np.sin(9.0 * X[:, 0])) + rng.standard_normal(2000)

    def predicted(iterations: int, centers: int) -> np.ndarray:
        model = Falkon(kernel, penalty, centers, max_iter=iterations, tolerance=0.0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.asarray(model.fit(X, y).predict(X))

    exact = predicted(25, m)
    first = np.linalg.norm(exact)
    for t in (1, 4, 8):
        assert np.linalg.norm(predicted(t, m) - exact) < math.exp(-t / 2.0) * first


@pytest.mark.parametrize(
    ("exponent", "source"), [(2.0, 0.5), (2.0, 0.75), (2.0, 1.0), (4.0, 0.75), (4.0, 1.0)]
)
def test_the_chosen_penalty_has_the_rate_of_known_exponents(exponent: float, source: float) -> None:
    # Eigenvalues k^-exponent, which is the capacity 1 / exponent, and the coefficients of L^r g,
    # for a g whose squares just converge: bias and variance of ridge regression are sums.
    k = np.arange(1.0, 2e5)
    values, squares = k**-exponent, k ** (-2.0 * exponent * source - 1.05)

    def risk(n: float, penalty: float) -> float:
        bias = np.sum((penalty / (penalty + values)) ** 2 * squares)
        return float(bias + np.sum((values / (values + penalty)) ** 2) / n)

    sizes, capacity = (10**6, 10**7, 10**8, 10**9), 1.0 / exponent
    choices = [theory.nystrom(n, source, capacity) for n in sizes]
    for n, choice in zip(sizes, choices, strict=True):
        penalty = choice.penalty
        assert penalty is not None
        assert penalty == pytest.approx(theory.falkon(n, source, capacity).penalty)
        assert penalty == pytest.approx(theory.random_features(n, source, capacity).penalty)
        # No other penalty does much better.
        others = [risk(n, p) for p in np.logspace(-12, 0, 40)]
        assert risk(n, penalty) < 4.0 * min(others)
    risks = [risk(n, choice.penalty or 0.0) for n, choice in zip(sizes, choices, strict=True)]
    slope = -np.polyfit(np.log(sizes), np.log(risks), 1)[0]
    assert slope == pytest.approx(choices[0].rate, abs=0.06)  # a logarithm where r = 1


WRONG: list[tuple[Any, str]] = [
    (lambda: theory.nystrom(0), "n must be"),
    (lambda: theory.nystrom(10, 0.3), "source must be 1/2 or more"),
    (lambda: theory.random_features(10, 0.5, 1.5), r"capacity must lie in \(0, 1\]"),
    (lambda: theory.random_features(10, 0.5, 1.0, 0.0), "compatibility must lie"),
    (lambda: theory.falkon(10, confidence=2.0), "confidence must lie"),
    (lambda: theory.sgm(10, tuned="width"), 'tuned must be "passes" or "step"'),
    (lambda: theory.nytro(10, -1.0), "signal_to_noise must be"),
    (lambda: theory.centers_for_penalty(10, 0.0, 1.0), "penalty must be"),
    (lambda: theory.falkon_centers(10, 0.0, 1.0), "penalty must be"),
    (lambda: theory.falkon_centers(10, 0.1, -1.0), "dimension must be"),
    (lambda: theory.falkon_centers(10, 0.1, 1.0, leverage_scores=0.0), "leverage_scores must be"),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG)
def test_what_makes_no_sense_is_said(call: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        call()
