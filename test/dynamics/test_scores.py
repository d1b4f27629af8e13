"""Running scores against the formulas on the whole history."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.scores import RunningScores, variances


def test_scores_equal_those_of_the_whole_history() -> None:
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((300, 2)) * [1.0, 20.0] + [5.0, -3.0]
    P = Y + rng.standard_normal((300, 2))
    S = rng.uniform(0.2, 1.0, (300, 2))
    scores = RunningScores(["a", "b"], 2)
    for y, p, s in zip(Y, P, S, strict=True):
        scores.add(y, {"a": p, "b": 0 * p}, {"a": s})
    np.testing.assert_allclose(scores.rmse("a"), np.sqrt(np.mean((Y - P) ** 2, axis=0)))
    np.testing.assert_allclose(scores.nmse("a"), np.mean((Y - P) ** 2, axis=0) / Y.var(axis=0))
    np.testing.assert_allclose(scores.nmse("b"), np.mean(Y**2, axis=0) / Y.var(axis=0))
    np.testing.assert_allclose(scores.coverage("a"), np.mean(np.abs(Y - P) <= 2 * S, axis=0))
    assert np.all(np.isnan(scores.coverage("b")))
    assert scores.samples == 300


def test_recent_scores_follow_the_last_samples() -> None:
    scores = RunningScores(["a"], 1, keep=0.99)
    rng = np.random.default_rng(1)
    for k in range(3000):
        error = 10.0 if k < 1500 else 0.1
        y = rng.standard_normal(1)
        scores.add(y, {"a": y + error}, {})
    assert scores.rmse("a")[0] < 0.12
    assert 0.005 < scores.nmse("a")[0] < 0.02


def test_before_the_first_sample_and_on_a_constant_axis_there_is_no_score() -> None:
    scores = RunningScores(["a"], 1)
    assert np.isnan(scores.rmse("a")).all()
    for _ in range(5):
        scores.add(np.array([2.0]), {"a": np.array([2.5])}, {})
    assert scores.rmse("a")[0] == 0.5
    assert np.isnan(scores.nmse("a")).all()


@pytest.mark.parametrize("value", [0.0, 0.37, -1e4])
def test_a_constant_axis_has_no_nmse_however_its_mean_is_rounded(value: float) -> None:
    """A joint that stands, with its brake on."""
    scores, rng = RunningScores(["a"], 2), np.random.default_rng(3)
    for k in (7, 50, 51, 130):
        y = np.column_stack((np.full(k, value), value + 1e-3 * abs(value) * rng.random(k)))
        y[:, 1] += value == 0.0
        y[0, 1] += 1e-3
        scores.add(y, {"a": y + 0.1}, {})
    assert np.isnan(scores.nmse("a")).tolist() == [True, False]
    np.testing.assert_allclose(scores.rmse("a"), 0.1)
    assert np.isinf(variances(y)).tolist() == [True, False]


def test_what_was_not_measured_is_no_part_of_an_axis_scores() -> None:
    rng = np.random.default_rng(2)
    y = 5.0 + rng.standard_normal((60, 3))
    y[10:30, 1], y[:, 2] = np.nan, np.nan
    predictions, stds = y + rng.standard_normal(y.shape), np.ones(y.shape)
    predictions[:, 2] = 0.0
    scores = RunningScores(["a"], 3)
    scores.add_arrays(y, predictions[:, None], stds[:, None])
    for j in range(2):
        known = ~np.isnan(y[:, j])
        own, error = y[known, j], (y - predictions)[known, j]
        np.testing.assert_allclose(scores.nmse("a")[j], np.mean(error**2) / own.var())
    for figure in (scores.rmse("a"), scores.nmse("a")):
        assert np.isnan(figure).tolist() == [False, False, True]
