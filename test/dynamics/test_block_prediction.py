"""A block's predictions against the same samples predicted one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.dynamics.block_prediction import (
    RigidBodyGuess,
    predict_block,
    rigid_body_guesses,
)
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.dynamics.recording_filter import RecordingFilter
from semiparam_dynamics.dynamics.sample import Guess, Prediction, Sample

from .arms import measurements, small_arm

NUMBERS = [f.name for f in dataclasses.fields(Prediction) if f.name not in ("residual", "alone")]


def learned(target: str, **options: object) -> tuple[SemiparametricEstimator, list[Sample]]:
    """An estimator after four seconds, and the samples of two more."""
    model = small_arm(target=target, sensor_frame="boom_sensor" if target == "wrench" else "")
    stream = list(measurements(model, 6.0, extra=1.0))
    samples = list(RecordingFilter(model, FilterConfig()).filter_recording(stream))
    windows = {"nystrom.window": 1.0, "random_fourier.window": 1.0}
    estimator = SemiparametricEstimator(model, **(windows | options))
    for sample in samples[:400]:
        estimator.update(sample)
    return estimator, samples[400:]


def same_guess(got: Guess | None, wanted: Guess | None) -> None:
    assert (got is None) == (wanted is None)
    if got is None or wanted is None:
        return
    np.testing.assert_allclose(got.value, wanted.value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.confidence, wanted.confidence, rtol=1e-9, atol=1e-12)
    assert got.version == wanted.version and len(got.features) == len(wanted.features)
    for a, b in zip(got.features, wanted.features, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    assert (got.outputs is None) == (wanted.outputs is None)


def same(got: list[Prediction], wanted: list[Prediction]) -> None:
    for a, b in zip(got, wanted, strict=True):
        for name in NUMBERS:
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-9, atol=1e-10)
        same_guess(a.residual, b.residual)
        same_guess(a.alone, b.alone)


@pytest.mark.parametrize("target", ["effort", "wrench"])
@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
@pytest.mark.parametrize("comparison", [True, False])
def test_equals_one_by_one(target: str, residual: str, comparison: bool) -> None:
    estimator, samples = learned(target, residual=residual, comparison=comparison)
    got = predict_block(estimator, samples, rigid_body_guesses(estimator, samples))
    same(got, [estimator.predict(sample) for sample in samples])
    assert np.abs(got[0].residual.value).max() > 0.0


def test_bounds_hold_and_are_counted_alike() -> None:
    estimator, samples = learned("effort", **{"output.bound": (3.0,)})
    counts = estimator.bound.counts
    counts.clear()
    wanted = [estimator.predict(sample) for sample in samples]
    one_by_one = dict(counts)
    counts.clear()
    same(predict_block(estimator, samples, rigid_body_guesses(estimator, samples)), wanted)
    assert dict(counts) == one_by_one and sum(one_by_one.values()) > 0
    assert max(np.abs(p.semiparametric).max() for p in wanted) == 3.0


def test_before_anything_was_learned() -> None:
    estimator, samples = learned("effort", **{"nystrom.window": 100.0})
    got = predict_block(estimator, samples, rigid_body_guesses(estimator, samples))
    same(got, [estimator.predict(sample) for sample in samples])
    assert got[0].residual.inputs is None
    ready = SemiparametricEstimator(estimator.model, **{"nystrom.window": 0.0})
    for sample in samples[:2]:
        ready.update(sample)  # scales, but no centre yet
    got = predict_block(ready, samples, rigid_body_guesses(ready, samples))
    same(got, [ready.predict(sample) for sample in samples])


def test_the_rigid_body_may_go_on_learning_within_a_block() -> None:
    estimator, samples = learned("effort")
    rigid, wanted = [], []
    body = estimator.rigid_body
    for sample in samples:
        wanted.append(estimator.predict(sample))
        value, leverage = body.predict(sample.regressor), body.leverage(sample.regressor)
        rigid.append(RigidBodyGuess(value, leverage, body.parameters))
        body.update(sample.regressor, sample.y, sample.stamp)
    same(predict_block(estimator, samples, rigid), wanted)
