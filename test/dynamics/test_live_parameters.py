"""Parameters that change while the estimator learns: no output jumps that learning hasn't moved."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, StorageError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample

from .arms import FEW_CENTERS, samples, small_arm

KINDS = ("nystrom", "random_fourier")
STREAM = samples(small_arm(), 6.0, extra=1.0)
PENALTIES = {"nystrom.penalty": 0.03, "random_fourier.penalty": 2.0}
MEMORIES = {"rigid_body.memory": 4.0, "nystrom.memory": 3.0}
BACK = {"nystrom.penalty": 8.0, "random_fourier.penalty": 0.05}


@cache
def trained(kind: str, *values: tuple[str, object]) -> SemiparametricEstimator:
    settings = {"residual": kind, "nystrom.window": 1.0, "random_fourier.window": 1.0}
    settings |= {"random_fourier.n_features": 60, **FEW_CENTERS, **dict(values)}
    estimator = SemiparametricEstimator(small_arm(), **settings)
    for sample in STREAM[:498]:
        estimator.update(sample)
    return estimator


def learned(kind: str, **values: object) -> tuple[SemiparametricEstimator, list[Sample]]:
    """An estimator that has learned 5 s of motion, and the samples of 1 s more."""
    return trained(kind, *values.items()).copy(), STREAM[498:]


def learn_much(estimator: SemiparametricEstimator) -> None:
    """As if a sample at one place had been learned for a day."""
    core = estimator.residual.model.core
    core.update(np.eye(core.n_features)[0], np.zeros(core.n_outputs), 1e8)


def outputs(estimator: SemiparametricEstimator, stream: list[Sample]) -> np.ndarray:
    told = [estimator.predict(sample) for sample in stream]
    return np.array([[p.rigid_body, p.semiparametric] for p in told])


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_changes_by_a_penalty_alone(kind: str) -> None:
    estimator, stream = learned(kind)
    before = outputs(estimator, stream)
    centers = estimator.residual.n_features
    for values in (PENALTIES, BACK):
        estimator.configure(replace(estimator.config, **values))
        after = outputs(estimator, stream)
        np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6 * np.abs(before).max())
    assert estimator.residual.n_features == centers
    assert estimator.residual.model.core.penalty == estimator.config.kernel.penalty


@pytest.mark.parametrize("kind", KINDS)
def test_learning_goes_on_with_the_new_penalty(kind: str) -> None:
    """A ridge large enough holds what the residual knows: the same samples move it less."""
    moved = []
    for penalty in (0.1, 1e6):
        estimator, stream = learned(
            kind, **{"nystrom.wide_max_centers": 0, "nystrom.max_centers": 500}
        )
        sample, pi = stream[0], estimator.rigid_body.parameters
        x = estimator._inputs(sample, sample.regressor @ pi)
        before = estimator.residual.predict(x, pi).value
        values = dict.fromkeys(PENALTIES, penalty)
        estimator.configure(replace(estimator.config, **values))
        for sample in stream[1:]:
            shifted = Sample(
                sample.stamp, sample.q, sample.dq, sample.ddq, sample.regressor, sample.y + 3.0
            )
            estimator.update(shifted)
        moved.append(np.abs(estimator.residual.predict(x, pi).value - before).max())
    assert moved[0] > 0.1 and moved[1] < 0.1 * moved[0]


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_changes_by_a_memory_alone_and_learning_goes_on_with_it(kind: str) -> None:
    errors = []
    for memories in ({}, MEMORIES):
        estimator, stream = learned(kind)
        before = outputs(estimator, stream)
        estimator.configure(replace(estimator.config, **memories))
        np.testing.assert_array_equal(outputs(estimator, stream), before)
        for k in range(8):  # 8 s with another load
            for s in stream:
                stamp = s.stamp + k * 1_000_000_000
                estimator.rigid_body.update(s.regressor, s.y + 3.0, stamp)
        rigid = outputs(estimator, stream)[:, 0]
        errors.append(np.abs(rigid - np.array([sample.y + 3.0 for sample in stream])).mean())
    assert errors[1] < 0.8 * errors[0]
    estimator.configure(replace(estimator.config, **dict.fromkeys(PENALTIES, 2.0)))
    after = outputs(estimator, stream)
    estimator.configure(replace(estimator.config, **dict.fromkeys(MEMORIES, 0.0)))
    np.testing.assert_array_equal(outputs(estimator, stream), after)


def test_a_saved_model_is_loaded_whatever_the_live_parameters_were(tmp_path: Path) -> None:
    estimator, stream = learned("nystrom")
    estimator.configure(replace(estimator.config, **PENALTIES))
    learn_much(estimator)
    estimator.save(tmp_path / "model.npz")
    own = {"nystrom.penalty": 9.0}
    other = SemiparametricEstimator(small_arm(), replace(estimator.config, **own))
    other.load(tmp_path / "model.npz")
    np.testing.assert_allclose(*(outputs(e, stream)[:, 1] for e in (other, estimator)), rtol=1e-5)
    assert other.residual.model.core.penalty == 9.0

    strict = replace(estimator.config, nystrom__penalty=1e-9)
    third = SemiparametricEstimator(small_arm(), strict)
    before = {name: value.copy() for name, value in third.state().items()}
    with pytest.raises(StorageError, match=r"can't be lowered from 0.03 to 1e-09"):
        third.load(tmp_path / "model.npz")
    for name, value in third.state().items():
        assert np.array_equal(value, before[name])


def test_a_refused_change_leaves_all_as_it_was() -> None:
    estimator, stream = learned("nystrom")
    learn_much(estimator)
    before, config = outputs(estimator, stream), estimator.config
    for values, said in (
        ({"nystrom.penalty": 1e-9, "nystrom.memory": 1.0}, "can't be lowered from 0.5 to"),
        ({"nystrom.novelty": 0.9}, "nystrom.novelty can't be changed while learning"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            estimator.configure(replace(config, **values))
        assert estimator.config == config
        np.testing.assert_array_equal(outputs(estimator, stream), before)
        assert estimator.residual.model.core.penalty == 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_the_baseline_takes_live_parameters_as_well(kind: str) -> None:
    estimator, stream = learned(kind)
    baseline = NonparametricBaseline(estimator.model, estimator.config)
    for sample in stream:
        baseline.update(sample)
    before = baseline.predict(stream[0]).nonparametric
    baseline.configure(replace(estimator.config, **PENALTIES, **MEMORIES))
    assert baseline.kernel_model.model.core.penalty == PENALTIES[f"{kind}.penalty"]
    after = baseline.predict(stream[0]).nonparametric
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6 * np.abs(before).max())
