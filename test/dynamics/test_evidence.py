"""The evidence against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from semiparam_dynamics.dynamics import evidence as source
from semiparam_dynamics.dynamics.evidence import INFORMATION_SHARE, Evidence
from semiparam_dynamics.robot.model import ExpectedScales

from .test_moments import moments_of


def scales(n_axes: int, n: int, groups: list[int], output: float = 1.0) -> ExpectedScales:
    active = np.ones((n_axes, n), dtype=bool)
    return ExpectedScales(
        np.full(n_axes, output), np.ones(n), active, np.eye(n), np.array(groups, dtype=np.intp)
    )


def test_one_axis_and_one_group_are_bayesian_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the information that scikit-learn counts, and its priors."""
    monkeypatch.setattr(source, "MAX_CHANGE", 1e-10)
    monkeypatch.setattr(source, "MAX_ITERATIONS", 1000)
    rng = np.random.default_rng(0)
    Phi, pi = rng.normal(size=(80, 1, 6)), rng.normal(size=6)
    y = Phi @ pi + 0.5 * rng.normal(size=(80, 1))
    model = scales(1, 6, [0] * 6, output=2.0)
    moments = moments_of(Phi, y, 1.0 / INFORMATION_SHARE)
    found = Evidence.before_data(model).improve(moments, model, np.zeros(6), model.output**2)
    step, noise = source.STEP_COUNT / 2.0, source.NOISE_COUNT / 2.0
    oracle = BayesianRidge(
        max_iter=1000,
        tol=1e-12,
        alpha_1=noise,
        alpha_2=noise * source.NOISE_SHARE * 4.0,
        lambda_1=step,
        lambda_2=step / source.STEP_PRECISION,
        fit_intercept=False,
    ).fit(Phi[:, 0], y[:, 0])
    assert found.precisions[0] == pytest.approx(oracle.lambda_, rel=1e-4)
    assert found.noises[0] == pytest.approx(1.0 / oracle.alpha_, rel=1e-4)
    R, U = found.posterior(moments, model, np.zeros(6))
    np.testing.assert_allclose(np.linalg.solve(R, U), oracle.coef_, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.inv(R.T @ R), oracle.sigma_, rtol=1e-3, atol=1e-6)


def test_a_group_that_does_nothing_is_pressed_to_nothing_and_noises_are_found() -> None:
    rng = np.random.default_rng(1)
    noise = np.array([0.1, 1.0])
    Phi, pi = rng.normal(size=(300, 2, 8)), np.r_[rng.normal(size=4), np.zeros(4)]
    y = Phi @ pi + noise * rng.normal(size=(300, 2))
    model = scales(2, 8, [0, 0, 0, 0, 1, 1, 1, 1])
    moments = moments_of(Phi, y, 1.0)
    found = Evidence.before_data(model).improve(moments, model, np.zeros(8), y.var(axis=0))
    np.testing.assert_allclose(np.sqrt(found.noises), noise, rtol=0.3)
    assert found.precisions[1] > 50.0 * found.precisions[0]
    R, U = found.posterior(moments, model, np.zeros(8))
    best = np.linalg.solve(R, U)
    np.testing.assert_allclose(best[:4], pi[:4], atol=0.03)
    deviations = np.sqrt(np.diag(np.linalg.inv(R.T @ R)))
    assert np.all(np.abs(best[4:]) < 2.0 * deviations[4:])
    assert np.all(deviations[4:] < 0.1)


def test_what_the_motion_does_not_show_stays_where_it_was() -> None:
    rng = np.random.default_rng(2)
    Phi = rng.normal(size=(200, 1, 5))
    Phi[:, :, 3:] = 0.0
    mean = np.arange(5.0)
    y = Phi @ (mean + 1.0) + 0.1 * rng.normal(size=(200, 1))
    model = scales(1, 5, [0, 0, 0, 0, 1])
    moments = moments_of(Phi, y, 1.0)
    found = Evidence.before_data(model).improve(moments, model, mean, y.var(axis=0))
    R, U = found.posterior(moments, model, mean)
    best = np.linalg.solve(R, U)
    np.testing.assert_allclose(best[3:], mean[3:], atol=1e-9)
    np.testing.assert_allclose(best[:3], mean[:3] + 1.0, atol=0.1)
    assert found.precisions[1] == pytest.approx(source.STEP_PRECISION)
