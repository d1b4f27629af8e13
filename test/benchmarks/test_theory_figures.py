"""The figures that need no data: their regions and boundaries against what defines them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from theory_figures import METHODS, learned, log_ratio, regime


@pytest.mark.parametrize(
    ("snr", "dimension", "method"),
    [
        (0.1, 30.0, "NYTRO"),  # noisy: always, but for the largest dimensions
        (0.1, 900.0, "early stopping"),
        (1.0, 30.0, "NKRLS"),  # the peak at one, where iterations gain nothing
        (1.0, 900.0, "KRLS"),
        (500.0, 5.0, "NKRLS"),
        (20.0, 60.0, "NYTRO"),
    ],
)
def test_each_method_is_fastest_where_the_paper_says(snr, dimension, method) -> None:
    with np.errstate(divide="ignore"):
        assert METHODS[int(regime(1e3, np.float64(snr), np.float64(dimension)))] == method


def test_the_boundary_is_the_ratio_of_the_classes_densities() -> None:
    X = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    one = multivariate_normal([-1, 0], np.eye(2)).logpdf(X)
    other = multivariate_normal([1, 0], 0.09 * np.eye(2)).logpdf(X)
    np.testing.assert_allclose(log_ratio(X), one - other, rtol=1e-9)


def test_least_squares_learns_both_boundaries() -> None:
    X = np.random.default_rng(0).uniform(-2, 2, (2000, 2))
    for balanced, prior in ((False, np.log(9.0)), (True, 0.0)):
        scores = log_ratio(X) + prior
        sure = np.abs(scores) > 0.7
        agreed = learned(0.9, 3000, 0, balanced).predict(X) * scores > 0.0
        assert np.mean(agreed[sure]) > 0.97
    other = log_ratio(X)
    sure = np.abs(other) > 0.7
    assert np.mean((learned(0.9, 3000, 0, False).predict(X) * other > 0.0)[sure]) < 0.97
