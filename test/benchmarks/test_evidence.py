"""The evidence against scikit-learn's, and its errors beside the learner's on a simulated arm."""

from __future__ import annotations

from pathlib import Path

import evidence
import numpy as np
import pytest
from arms import splits
from evidence import Evidence, Moments, Steps
from sklearn.linear_model import BayesianRidge

from semiparam_dynamics.robot.model import expected_scales

from ..dynamics.arms import small_arm


def test_one_axis_and_one_group_are_bayesian_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MAX_CHANGE", 1e-12)
    monkeypatch.setattr(evidence, "MAX_ITERATIONS", 1000)
    rng = np.random.default_rng(0)
    Phi, pi = rng.normal(size=(80, 1, 6)), rng.normal(size=6)
    y = Phi @ pi + 0.5 * rng.normal(size=(80, 1))
    steps, zero = Steps(np.eye(6), np.zeros(6, dtype=np.intp)), np.zeros(6)
    moments, output = Moments.of(Phi, y, np.ones(80)), np.array([4.0])
    found = Evidence.of(moments, steps, zero, output, share=1.0)
    step, noise = evidence.STEP_COUNT / 2.0, evidence.NOISE_COUNT / 2.0
    oracle = BayesianRidge(
        max_iter=1000,
        tol=1e-12,
        alpha_1=noise,
        alpha_2=noise * evidence.NOISE_SHARE * output[0],
        lambda_1=step,
        lambda_2=step / evidence.STEP_PRECISION,
        fit_intercept=False,
    ).fit(Phi[:, 0], y[:, 0])
    assert found.precisions[0] == pytest.approx(oracle.lambda_, rel=1e-5)
    assert found.noises[0] == pytest.approx(1.0 / oracle.alpha_, rel=1e-5)
    covariance = found.covariance(moments, steps, share=1.0)
    np.testing.assert_allclose(covariance, oracle.sigma_, rtol=1e-4, atol=1e-9)
    free = np.zeros(6, dtype=bool)
    best = found.parameters(moments, covariance, zero, free, share=1.0)
    np.testing.assert_allclose(best, oracle.coef_, rtol=1e-5)
    held = found.parameters(moments, covariance, zero, ~free, share=1.0)
    assert np.all(held >= 0.0) and np.any(oracle.coef_ < 0.0)


def test_a_group_that_does_nothing_is_pressed_to_nothing_and_noises_are_found() -> None:
    rng = np.random.default_rng(1)
    noise = np.array([0.1, 1.0])
    Phi, pi = rng.normal(size=(2000, 2, 8)), np.r_[rng.normal(size=4), np.zeros(4)]
    y = Phi @ pi + noise * rng.normal(size=(2000, 2))
    steps = Steps(np.eye(8), np.repeat([0, 1], 4).astype(np.intp))
    moments = Moments.of(Phi, y, np.ones(len(y)))
    np.testing.assert_allclose(moments.squared_errors(pi), ((y - Phi @ pi) ** 2).sum(axis=0))
    found = Evidence.of(moments, steps, np.zeros(8), y.var(axis=0), share=0.1)
    np.testing.assert_allclose(np.sqrt(found.noises), noise, rtol=0.2)
    assert found.precisions[1] > 50.0 * found.precisions[0]


def test_the_steps_make_the_learner_s_ridge() -> None:
    model = small_arm()
    scales = expected_scales(model)
    D, groups = evidence.steps_of(model, scales)
    np.testing.assert_allclose(np.linalg.inv(D.T @ D), scales.root.T @ scales.root, rtol=1e-5)
    kinds = 4  # basic friction with offset and rotor, stops, Stribeck's column, asymmetry
    assert len(np.unique(groups)) == len(model.bodies) + kinds * model.n_joints


def test_a_simulated_arm_s_motion_never_seen() -> None:
    split = next(splits(Path("none"), "sim_small", 20.0))
    found, rules = evidence.by_evidence(split), evidence.by_rules(split)
    assert found.nmse.mean() < 1.5 * rules.mean() < 0.1
    assert found.covered.min() > 0.85
