"""The semiparametric estimator on a small arm with an effect that no rigid body has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.parameters import from_flat

from .arms import measurements, small_arm

KINDS = ("nystrom", "random_fourier")


def learner(kind: str = "nystrom", **values: object) -> InverseDynamicsLearner:
    settings = {"residual": kind, "nystrom.window": 2.0, "random_fourier.window": 2.0}
    settings |= {"random_fourier.n_features": 100, **values}
    return InverseDynamicsLearner(small_arm(), from_flat(InverseDynamicsConfig, settings))


def run(target: InverseDynamicsLearner, seconds: float, extra: float, seed: int = 0) -> list:
    steps = []
    for m in measurements(target.model, seconds, extra=extra, seed=seed):
        step = target.observe(m)
        if step is not None:
            whole = target.estimator.complete(step.sample, step.prediction)
            steps.append(Step(step.sample, whole))
            target.learn(step)
    return steps


@pytest.mark.parametrize("kind", KINDS)
def test_learns_what_the_rigid_body_leaves(kind: str) -> None:
    target = learner(kind)
    steps = run(target, 25.0, extra=2.0)
    last = steps[-800:]
    error = {
        name: np.sqrt(np.mean([(s.y - getattr(s.prediction, name)) ** 2 for s in last]))
        for name in ("rigid_body", "nonparametric", "semiparametric")
    }
    assert error["semiparametric"] < 0.5 * error["rigid_body"]
    assert target.estimator.n_learned == len(steps)


@pytest.mark.parametrize("kind", KINDS)
def test_on_rigid_data_the_residual_stays_small(kind: str) -> None:
    steps = run(learner(kind), 15.0, extra=0.0)
    last = steps[-300:]
    size = np.sqrt(np.mean([s.y**2 for s in last]))
    left = np.sqrt(np.mean([(s.y - s.prediction.semiparametric) ** 2 for s in last]))
    assert left < 0.02 * size


@pytest.mark.parametrize("kind", KINDS)
def test_the_rigid_body_never_sees_the_residual(kind: str) -> None:
    other = "random_fourier" if kind == "nystrom" else "nystrom"
    a, b = learner(kind), learner(other)
    for x, y in zip(run(a, 6.0, 2.0), run(b, 6.0, 2.0), strict=True):
        assert np.array_equal(x.prediction.rigid_body, y.prediction.rigid_body)


def test_prediction_does_not_look_at_the_measurement() -> None:
    target = learner()
    steps = run(target, 6.0, 2.0)
    sample = steps[-1].sample
    blind = type(sample)(sample.stamp, sample.q, sample.dq, sample.ddq, sample.regressor, None)
    a, b = target.estimator.predict(sample), target.estimator.predict(blind)
    assert np.array_equal(a.semiparametric, b.semiparametric)
    before = target.estimator.state()
    target.estimator.update(blind, b)
    after = target.estimator.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_comparison_can_be_asked_later() -> None:
    target = learner()
    sample = run(target, 6.0, 2.0)[-1].sample
    at_once = target.estimator.predict(sample)
    quick = target.estimator.predict(sample, alone=False)
    assert np.all(np.isnan(quick.nonparametric))
    later = target.estimator.complete(sample, quick)
    assert np.array_equal(later.nonparametric, at_once.nonparametric)
    assert np.array_equal(later.semiparametric, at_once.semiparametric)
    target.estimator.update(sample, quick)  # learns as from the whole prediction


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("late", [False, True])
def test_prompt_predictions_are_the_same_and_so_is_what_is_learned(kind: str, late: bool) -> None:
    eager, prompt = learner(kind), learner(kind)
    steps = []
    for measurement in measurements(eager.model, 6.0):
        one, other = eager.observe(measurement), prompt.observe(measurement, promptly=True)
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        for name in ("rigid_body", "semiparametric"):
            expected = getattr(one.prediction, name)
            assert getattr(other.prediction, name) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        steps.append((one, other))
        if late and len(steps) < 7:  # they wait for a pause
            continue
        for one, other in steps:
            eager.learn(one)
            prompt.learn(other)
        steps.clear()
    assert eager.estimator.n_learned == prompt.estimator.n_learned > 500
    assert not np.isnan(prompt.estimator.errors["semiparametric"].value).any()
    after = prompt.estimator.state()
    for name, value in eager.estimator.state().items():
        if "residual" in name or "rigid_body.core" in name:
            assert np.array_equal(value, after[name]), name
        assert after[name] == pytest.approx(value, rel=1e-7, abs=1e-9), name
    for name in ("rigid_body", "nonparametric", "semiparametric"):
        assert prompt.scores.rmse(name) == pytest.approx(eager.scores.rmse(name), rel=1e-7)
        if not late:
            assert np.array_equal(prompt.scores.coverage(name), eager.scores.coverage(name))


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_comparison_the_rest_is_the_same(kind: str) -> None:
    with_it, without = learner(kind), learner(kind, comparison=False)
    for a, b in zip(run(with_it, 5.0, 2.0), run(without, 5.0, 2.0), strict=True):
        assert np.array_equal(a.prediction.semiparametric, b.prediction.semiparametric)
        assert np.array_equal(a.prediction.std, b.prediction.std)
        assert np.all(np.isnan(b.prediction.nonparametric))
    assert np.all(np.isfinite(without.scores.nmse("semiparametric")))


def test_far_from_its_data_the_local_residual_is_the_rigid_body() -> None:
    target = learner()
    run(target, 12.0, 2.0)
    far = np.full(target.model.n_joints, 3.0)
    prediction = target.estimator.predict(target.estimator.sample(far, 5 * far, 0 * far))
    assert np.array_equal(prediction.semiparametric, prediction.rigid_body)


@pytest.mark.parametrize("kind", KINDS)
def test_standard_deviations_cover_about_what_they_promise(kind: str) -> None:
    steps = run(learner(kind), 30.0, extra=2.0)[-1500:]
    inside = np.mean(
        [np.abs(s.y - s.prediction.semiparametric) <= 2 * s.prediction.std for s in steps]
    )
    assert inside > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_deferred_learning_of_a_block_uses_what_was_predicted(kind: str) -> None:
    prompt, deferred = learner(kind), learner(kind)
    waiting = []
    for m in measurements(prompt.model, 6.0, extra=1.0):
        if (step := prompt.observe(m)) is not None:
            prompt.learn(step)
        if (step := deferred.observe(m)) is not None:
            waiting.append(step)
        if len(waiting) == 25:
            for step in waiting:
                deferred.learn(step)
            waiting.clear()
    assert deferred.estimator.n_learned == prompt.estimator.n_learned - len(waiting)
    a, b = prompt.estimator, deferred.estimator
    for step in waiting:
        deferred.learn(step)
    # Identification does not depend on when it happens; the residual sees other inputs.
    np.testing.assert_allclose(
        a.rigid_body.parameters, b.rigid_body.parameters, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_goes_on_bit_by_bit(kind: str, tmp_path: Path) -> None:
    target = learner(kind)
    stream = list(measurements(target.model, 8.0, extra=1.0))
    for m in stream[:500]:
        if (step := target.observe(m)) is not None:
            target.learn(step)
    target.save(tmp_path / "model.npz")
    other = learner(kind)
    other.load(tmp_path / "model.npz")
    copied = target.estimator.copy()
    sampler = target.filter
    for m in stream[500:]:
        sample = sampler.push(m)
        predictions = [e.predict(sample) for e in (target.estimator, other.estimator, copied)]
        for estimator, p in zip(
            (target.estimator, other.estimator, copied), predictions, strict=True
        ):
            estimator.update(sample, p)
            assert np.array_equal(p.semiparametric, predictions[0].semiparametric)
            assert np.array_equal(p.std, predictions[0].std)


def test_a_model_of_another_configuration_is_refused(tmp_path: Path) -> None:
    learner().save(tmp_path / "model.npz")
    other = learner(**{"nystrom.novelty": 0.7})
    with pytest.raises(StorageError, match=r"nystrom.novelty is 0.5 there, 0.7 here"):
        other.load(tmp_path / "model.npz")
    frictionless = SemiparametricEstimator(small_arm(viscous=False))
    with pytest.raises(StorageError, match=r"robot.viscous"):
        frictionless.load(tmp_path / "model.npz")


def test_the_state_does_not_grow_once_the_centres_are_used_up() -> None:
    target = learner(**{"nystrom.max_centers": 20, "nystrom.joint_max_centers": 10})
    run(target, 8.0, 1.0)
    size = sum(array.nbytes for array in target.estimator.state().values())
    run(target, 8.0, 1.0, seed=5)
    assert sum(array.nbytes for array in target.estimator.state().values()) == size
