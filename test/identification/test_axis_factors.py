"""The factors against all the rows that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.identification.consistent import AxisFactors

from ..dynamics.arms import small_arm
from .arm_samples import factors, samples


def test_errors_are_those_of_the_rows() -> None:
    model = small_arm()
    measured = samples(model, model.prior, n=1300, noise=0.3)  # more than two chunks
    data = factors(model, measured)
    Phi, y = np.array([s.regressor for s in measured]), np.array([s.y for s in measured])
    pi = model.prior + np.random.default_rng(1).standard_normal(model.n_parameters)
    squares = np.mean((y - Phi @ pi) ** 2, axis=0)
    assert data.n_samples == 1300
    assert np.allclose(data.squared_error(pi), squares, rtol=1e-9)
    assert np.allclose(data.nmse(pi), squares / y.var(axis=0), rtol=1e-7)
    weights = np.array([1.0, 0.5, 2.0, 3.0])
    R, U, rest = data.weighted(weights)
    expected = 1300 * np.sum(weights**2 * squares)
    assert np.sum((R @ pi - U) ** 2) + rest == pytest.approx(expected, rel=1e-9)


def test_an_axis_that_stands_still_has_no_nmse() -> None:
    data = AxisFactors(2, 1)
    for k in range(5):
        data.add(Sample(k, *[np.zeros(1)] * 3, np.ones((2, 1)), np.array([3.0, float(k)])))
    data.add(Sample(9, *[np.zeros(1)] * 3, np.ones((2, 1))))  # nothing was measured
    assert data.n_samples == 5
    assert np.isnan(data.nmse(np.zeros(1))[0])
    assert data.nmse(np.array([2.0]))[1] == pytest.approx(1.0)


def test_without_samples_there_is_no_error() -> None:
    with pytest.raises(LearningError, match="no measured sample"):
        AxisFactors(2, 3).nmse(np.zeros(3))
