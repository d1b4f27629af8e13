"""Predictions by weights beside the estimator's own, which solve triangles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.limits import CLIPPED, OutputBound
from semiparam_dynamics.dynamics.predictor import Predictor
from semiparam_dynamics.dynamics.sample import Sample

from .arms import run, samples, small_arm

KINDS = ("nystrom", "random_fourier")
MODEL = small_arm()
AT_ONCE = {"residual": "nystrom", "nystrom.window": 2.0, "random_fourier.window": 2.0}


def estimator(**values: object) -> SemiparametricEstimator:
    settings = AT_ONCE | {"random_fourier.n_features": 100, **values}
    return SemiparametricEstimator(MODEL, **settings)


def predictor(target: SemiparametricEstimator) -> Predictor:
    return Predictor(target, OutputBound(target.model, target.config.output))


@pytest.fixture(scope="module")
def stream() -> list[Sample]:
    return samples(MODEL, 6.0, extra=2.0)


def assert_same(target: SemiparametricEstimator, stream: list[Sample]) -> None:
    """Values to rounding, while `target` learns what it predicts; the rest is the last one's."""
    by_weights, last = predictor(target), target.predict(stream[0])
    kept = [by_weights.predict(sample, last) for sample in stream[:3]]
    for sample in stream[1:]:
        said = predictor(target).predict(sample, last)
        assert said.residual.confidence == last.residual.confidence
        assert np.array_equal(said.spread, last.spread)
        assert np.array_equal(said.std, last.std)
        assert np.array_equal(said.rigid_body_std, last.rigid_body_std)
        last = target.predict(sample)
        for one, other in (
            (said.rigid_body, last.rigid_body),
            (said.residual.value, last.residual.value),
            (said.semiparametric, said.rigid_body + last.residual.value),
        ):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
        assert said.residual.ready == last.residual.ready
        target.update(sample, last)
    again = [by_weights.predict(sample, kept[0]) for sample in stream[:3]]
    for one, other in zip(kept, again, strict=True):  # it is as it was
        assert np.array_equal(one.semiparametric, other.semiparametric)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"nystrom.wide_max_centers": 0},
        {"residual": "random_fourier"},
        {"nystrom.window": 1000.0},
    ],
)
def test_it_predicts_what_the_estimator_does(
    values: dict[str, object], stream: list[Sample]
) -> None:
    target = estimator(**values)
    run(target, stream[:400])
    assert target.residual.turning.size  # the first joint turns without end
    assert_same(target, stream[400:450])
    assert (target.residual.n_features > 20) == ("nystrom.window" not in values)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_beyond_the_bound_is_clipped_and_counted(kind: str, stream: list[Sample]) -> None:
    target = estimator(residual=kind, **{"output.bound": [0.5]})
    run(target, stream[:300])
    by_weights = predictor(target)
    said = [by_weights.predict(sample, target.predict(sample)) for sample in stream[300:320]]
    assert max(np.abs(p.semiparametric).max() for p in said) == 0.5
    assert by_weights._bound.counts[CLIPPED] > 0
    damaged = dataclasses.replace(stream[300], q=np.full(MODEL.n_joints, np.nan))
    answer = by_weights.predict(damaged, target.predict(stream[300]))
    assert np.isfinite(answer.semiparametric).all()
