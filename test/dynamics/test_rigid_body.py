"""Identification against batch weighted ridge regression, and recovery of known parameters."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.robot.model import expected_scales

from .arms import motion, small_arm


def identified(prior: str = "zero", penalty: float = 1.0, noise: float = 0.0):
    model = small_arm()
    scales = expected_scales(model)
    start = model.prior if prior == "urdf" else np.zeros(model.n_parameters)
    identifier = RigidBodyIdentifier(
        scales.output, scales.column, start, RigidBodyConfig(penalty=penalty)
    )
    q, dq, ddq = motion(model, np.arange(600) / 50.0)
    regressors = model.regressors(q, dq, ddq)
    truth = model.prior + 0.1 * np.random.default_rng(3).standard_normal(model.n_parameters)
    y = regressors @ truth
    y += noise * np.random.default_rng(4).standard_normal(y.shape)
    return identifier, scales, regressors, y, truth, start


def test_equals_batch_weighted_ridge_towards_the_prior() -> None:
    identifier, scales, regressors, y, _, start = identified("urdf", penalty=3.0, noise=0.2)
    A, b = np.diag(3.0 * scales.column**2), np.zeros(len(start))
    square, count = 100.0 * scales.output**2, 100.0
    for Phi, target in zip(regressors, y, strict=True):
        identifier.update(Phi, target)
        square, count = square + target**2, count + 1.0
        weight = np.diag(count / square)
        A += Phi.T @ weight @ Phi
        b += Phi.T @ weight @ (target - Phi @ start)
    np.testing.assert_allclose(
        identifier.parameters, start + np.linalg.solve(A, b), rtol=1e-8, atol=1e-9
    )


def test_recovers_the_parameters_that_made_the_data() -> None:
    identifier, _, regressors, y, truth, _ = identified(penalty=1e-9)
    for Phi, target in zip(regressors, y, strict=True):
        identifier.update(Phi, target)
    np.testing.assert_allclose(identifier.parameters, truth, atol=1e-5)
    assert identifier.excitation_rank() == len(truth)


def test_standard_deviations_cover_the_truth() -> None:
    identifier, _, regressors, y, truth, _ = identified(penalty=1e-6, noise=0.3)
    for Phi, target in zip(regressors, y, strict=True):
        identifier.update(Phi, target)
    z = (identifier.parameters - truth) / identifier.standard_deviations()
    assert 0.4 < np.sqrt(np.mean(z**2)) < 2.0


def test_nothing_is_excited_before_the_first_sample() -> None:
    identifier, _, regressors, y, _, _ = identified()
    assert identifier.excitation_rank() == 0
    for _ in range(5):
        identifier.update(regressors[0], y[0])
    assert 0 < identifier.excitation_rank() <= regressors.shape[1]


def test_state_round_trip_goes_on_alike() -> None:
    identifier, scales, regressors, y, _, start = identified(noise=0.1)
    for Phi, target in zip(regressors[:200], y, strict=False):
        identifier.update(Phi, target)
    other = RigidBodyIdentifier(scales.output, scales.column, start, RigidBodyConfig())
    other.restore(identifier.state())
    for Phi, target in zip(regressors[200:], y[200:], strict=True):
        identifier.update(Phi, target)
        other.update(Phi, target)
    assert np.array_equal(identifier.parameters, other.parameters)
    assert np.array_equal(identifier.standard_deviations(), other.standard_deviations())
