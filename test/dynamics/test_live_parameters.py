"""Parameters that change while the estimator learns: no output jumps that learning hasn't moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.errors import ConfigurationError, StorageError
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.parameters import from_flat, parameters, replace

from .arms import measurements, small_arm

KINDS = ("nystrom", "random_fourier")
PENALTIES = {
    "rigid_body.penalty": 50.0,
    "nystrom.penalty": 0.3,
    "nystrom.joint_penalty": 400.0,
    "random_fourier.penalty": 20.0,
}
MEMORIES = {
    "rigid_body.memory": 4.0,
    "rigid_body.forgetting": "exponential",
    "nystrom.memory": 3.0,
    "random_fourier.memory": 2.0,
}
BACK = {"rigid_body.penalty": 0.01, "nystrom.penalty": 80.0, "random_fourier.penalty": 0.05}


def learned(kind: str, **values: object) -> tuple[InverseDynamicsLearner, list[Sample]]:
    """A learner that has learned 5 s of motion, and the samples of 1 s more."""
    settings = {"residual": kind, "nystrom.window": 1.0, "random_fourier.window": 1.0}
    settings |= {"random_fourier.n_features": 60, **values}
    learner = InverseDynamicsLearner(small_arm(), from_flat(InverseDynamicsConfig, settings))
    steps = []
    for k, m in enumerate(measurements(learner.model, 6.0, extra=1.0)):
        if (step := learner.observe(m)) is not None:
            if k < 500:
                learner.learn(step)
            else:
                steps.append(step.sample)
    return learner, steps


def outputs(learner: InverseDynamicsLearner, samples: list[Sample]) -> np.ndarray:
    predictions = [learner.estimator.predict(sample) for sample in samples]
    names = ("rigid_body", "nonparametric", "semiparametric")
    return np.array([[getattr(p, name) for name in names] for p in predictions])


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_changes_by_a_penalty_alone(kind: str) -> None:
    learner, samples = learned(kind)
    before = outputs(learner, samples)
    centers = learner.estimator.residual.n_features
    for values in (PENALTIES, BACK):
        learner.configure(replace(learner.config, **values))
        after = outputs(learner, samples)
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9 * np.abs(before).max())
    assert learner.estimator.residual.n_features == centers
    cores = dict(learner.estimator._penalties(learner.config.estimator))
    assert all(core.penalty == penalty for core, penalty in cores.items())
    assert len(cores) == {"nystrom": 3 + learner.model.n_axes, "random_fourier": 3}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_learning_goes_on_with_the_new_penalty(kind: str) -> None:
    """A ridge large enough holds what is known: the same samples move it less."""
    moved = []
    for penalty in (1.0, 1e6):
        learner, samples = learned(kind)
        before = outputs(learner, samples[:1])[0, 2]
        values = dict.fromkeys(PENALTIES, penalty)
        learner.configure(replace(learner.config, **values))
        for sample in samples[1:]:
            shifted = Sample(
                sample.stamp, sample.q, sample.dq, sample.ddq, sample.regressor, sample.y + 3.0
            )
            learner.estimator.update(shifted)
        moved.append(np.abs(outputs(learner, samples[:1])[0, 2] - before).max())
    assert moved[0] > 0.1 and moved[1] < 0.1 * moved[0]


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_changes_by_a_memory_alone_and_learning_goes_on_with_it(kind: str) -> None:
    errors = []
    for memories in ({}, {**MEMORIES, "rigid_body.forgetting": "directional"}, MEMORIES):
        learner, samples = learned(kind)
        before = outputs(learner, samples)
        learner.configure(replace(learner.config, **memories))
        np.testing.assert_array_equal(outputs(learner, samples), before)
        told = learner.estimator.predict(samples[0])
        for k in range(8):  # 8 s with another load
            for s in samples:
                stamp = s.stamp + k * 1_000_000_000
                loaded = Sample(stamp, s.q, s.dq, s.ddq, s.regressor, s.y + 3.0)
                learner.estimator.update_rigid_body(loaded, told)
        rigid = outputs(learner, samples)[:, 0]
        errors.append(np.abs(rigid - np.array([sample.y + 3.0 for sample in samples])).mean())
    assert max(errors[1:]) < 0.75 * errors[0]
    learner.configure(replace(learner.config, **dict.fromkeys(PENALTIES, 2.0)))
    after = outputs(learner, samples)
    learner.configure(replace(learner.config, **{m: 0.0 for m in MEMORIES if "memory" in m}))
    np.testing.assert_array_equal(outputs(learner, samples), after)


def test_a_saved_model_is_loaded_whatever_the_live_parameters_were(tmp_path: Path) -> None:
    learner, samples = learned("nystrom")
    learner.configure(replace(learner.config, **PENALTIES, error_horizon=5.0))
    learner.save(tmp_path / "model.npz")
    own = {"rigid_body.penalty": 1.0, "nystrom.penalty": 9.0, "comparison": False}
    other = InverseDynamicsLearner(small_arm(), replace(learner.config, **own))
    other.load(tmp_path / "model.npz")
    np.testing.assert_allclose(outputs(other, samples)[:, 2], outputs(learner, samples)[:, 2])
    assert other.estimator.residual.shared.core.penalty == 9.0
    assert other.estimator.rigid_body.core.penalty == 1.0

    strict = replace(learner.config, rigid_body__penalty=1e-12)
    third = InverseDynamicsLearner(small_arm(), strict)
    before = {name: value.copy() for name, value in third.estimator.state().items()}
    with pytest.raises(StorageError, match=r"can't be lowered from 50 to 1e-12"):
        third.load(tmp_path / "model.npz")
    for name, value in third.estimator.state().items():
        assert np.array_equal(value, before[name])


def test_what_can_t_be_changed_leaves_all_as_it_was() -> None:
    learner, samples = learned("nystrom")
    before, config = outputs(learner, samples), learner.config
    for values, said in (
        ({"rigid_body.penalty": 1e-12, "nystrom.penalty": 40.0}, "can't be lowered from 1 to"),
        ({"nystrom.novelty": 0.9}, "nystrom.novelty can't be changed while learning"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            learner.configure(replace(config, **values))
        assert learner.config == config
        np.testing.assert_array_equal(outputs(learner, samples), before)
        assert learner.estimator.residual.shared.core.penalty == 5.0


def test_the_comparison_is_switched_off_and_on() -> None:
    learner, _ = learned("nystrom")
    stream = list(measurements(learner.model, 14.0, extra=1.0))[600:]
    for part, on in ((stream[:200], False), (stream[200:], True)):
        learner.configure(replace(learner.config, comparison=on))
        known = learner.estimator.alone.n_features
        for m in part:
            if (step := learner.observe(m)) is not None:
                learner.learn(step)
        assert on == (learner.estimator.alone.n_features > known)
        assert on == bool(np.all(np.isfinite(learner.recent.nmse("nonparametric"))))
        assert np.all(np.isfinite(learner.recent.nmse("semiparametric")))
        assert np.all(np.isfinite(learner.scores.nmse("semiparametric")))


def test_which_parameters_are_live() -> None:
    live = {entry.name for entry in parameters(InverseDynamicsConfig) if entry.live}
    live = {name for name in live if not name.startswith("changes.")}
    output = {f"output.{name}" for name in ("bound", "bound_efforts", "gate", "gate_longest")}
    trust = {f"trust.{name}" for name in ("memory", "threshold", "learning")}
    assert live == {*PENALTIES, *MEMORIES, *output, *trust, "comparison", "error_horizon"}
