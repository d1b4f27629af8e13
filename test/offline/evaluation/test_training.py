"""The estimator started from batch training: what it knows, and that it goes on learning."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Motion, Sample
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.offline.evaluation.training import (
    LEARNERS,
    TrainingData,
    batch_learner,
    batch_start,
    start_model,
    training_data,
)
from semiparam_dynamics.robot.model import expected_scales

from ...dynamics import arms

MODEL = arms.small_arm()
Parts = tuple[list[Sample], list[Sample]]


def config(**values: object) -> EstimatorConfig:
    settings = {"nystrom.max_centers": 120, "nystrom.wide_max_centers": 40}
    settings |= {"random_fourier.n_features": 100, **values}
    return from_flat(EstimatorConfig, settings)


@pytest.fixture(scope="module")
def samples() -> Parts:
    kept = arms.samples(MODEL, 12.0, extra=2.0)
    return kept[:600], kept[600:]


def motion(samples: Sequence[Sample]) -> Motion:
    return Motion.of(samples, expected_scales(MODEL).active)


def data(samples: Parts, **values: object) -> TrainingData:
    return training_data(MODEL, config(**values), motion(samples[0]))


def rms(estimator: SemiparametricEstimator, test: list[Sample], name: str) -> float:
    errors = [s.y - getattr(estimator.predict(s), name) for s in test]
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.fixture(scope="module")
def unseen() -> list[Sample]:
    """Another motion."""
    return arms.samples(MODEL, 4.0, extra=2.0, seed=7, start=10**11)


@pytest.mark.parametrize("learner", LEARNERS)
def test_any_learner_starts_an_estimator_that_goes_on(learner, samples, unseen, tmp_path) -> None:
    train, test = samples
    start = batch_start(data(samples), learner)
    estimator = start.estimator
    assert estimator.config.residual == LEARNERS[learner][1]
    assert estimator.n_learned == len(train)
    assert np.mean(start.semiparametric) < 0.5 * np.mean(start.rigid_body)
    assert np.all(start.semiparametric < start.held_out)
    assert rms(estimator, test, "semiparametric") < 0.7 * rms(estimator, test, "rigid_body")
    errors = np.array([s.y - estimator.predict(s).semiparametric for s in train])
    np.testing.assert_allclose(np.sqrt(np.mean(errors**2, axis=0)), start.semiparametric, rtol=1e-6)

    estimator.save(tmp_path / "model.npz")
    other = SemiparametricEstimator(MODEL, estimator.config)
    other.load(tmp_path / "model.npz")
    before = rms(other.copy(), unseen, "semiparametric")
    for sample in unseen:
        expected, found = estimator.predict(sample), other.predict(sample)
        assert np.array_equal(expected.semiparametric, found.semiparametric)
        assert np.array_equal(expected.std, found.std)
        estimator.update(sample, expected)
        other.update(sample, found)
    assert rms(other, unseen, "semiparametric") < 0.8 * before
    assert rms(other, unseen, "semiparametric") < rms(other, unseen, "rigid_body")


def test_the_rigid_body_is_the_one_learned_sample_by_sample(samples: Parts) -> None:
    one_by_one = SemiparametricEstimator(MODEL, config())
    for sample in samples[0]:
        one_by_one.update(sample)
    start = batch_start(data(samples)).estimator
    found, expected = start.rigid_body.parameters, one_by_one.rigid_body.parameters
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    for name in ("rigid_body", "y"):
        np.testing.assert_allclose(
            start.errors[name].value, one_by_one.errors[name].value, rtol=1e-9
        )


def test_batch_and_recursion_agree_on_what_was_learned_after_the_start(samples: Parts) -> None:
    """Half in batch and half by recursion is all in batch: first level, fixed centres."""
    values = {"nystrom.wide_max_centers": 0, "nystrom.novelty": 1.0, "nystrom.penalty": 5.0}
    whole = data(samples, **values)
    residual = SemiparametricEstimator(MODEL, whole.config).residual
    residual.standardizer.fit(whole.motion.stamps, whole.inputs(residual))
    X = residual.standardizer.transform(whole.inputs(residual))
    Z = whole.targets(residual)
    C, half = X[::20], len(X) // 2
    width = 1.0 * np.sqrt(X.shape[1] / 2)
    first = NystromKRLS(Gaussian(width), 5.0 / half, centers=C).fit(X[:half], Z[:half])
    both = NystromKRLS(Gaussian(width), 5.0 / len(X), centers=C).fit(X, Z)
    whole_config = config(**values, **{"nystrom.length_scale": 1.0})
    local = SemiparametricEstimator(MODEL, whole_config).residual.model
    start_model(local, first, X[:half])
    for x, z in zip(X[half:], Z[half:], strict=True):
        local.update(x, z)
    predicted = np.array([local.predict(x)[0] for x in X[::7]])
    scale = np.abs(Z).max(axis=0)
    assert np.abs((predicted - both.predict(X[::7])) / np.where(scale > 0, scale, 1)).max() < 1e-7


def test_what_can_t_be_trained_is_refused(samples: Parts) -> None:
    with pytest.raises(ConfigurationError, match="must be one of"):
        batch_learner("kernel_machine")
    dead = [dataclasses.replace(s, y=np.append(s.y[:3], np.nan)) for s in samples[0][:9]]
    for few in (samples[0][:1], dead):
        with pytest.raises(LearningError, match="no two samples measured on all axes"):
            training_data(MODEL, config(), motion(few))
