"""The protocols against the estimator led by hand."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.evaluation.experiment import evaluate
from semiparam_dynamics.evaluation.protocols import JoinedRuns, ProtocolRun
from semiparam_dynamics.evaluation.scored_run import ALL_MODELS
from semiparam_dynamics.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.parameters import from_flat, replace
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import measurements, small_arm

CONFIG = from_flat(InverseDynamicsConfig, {"nystrom.window": 1.0})


def whole(learner: InverseDynamicsLearner, m: Measurement) -> Step | None:
    """A step whose prediction holds the nonparametric model's as well."""
    step = learner.observe(m)
    if step is None:
        return None
    return Step(step.sample, learner.estimator.complete(step.sample, step.prediction))


def squares(steps: list, model: str) -> np.ndarray:
    return np.mean([(s.y - getattr(s.prediction, model)) ** 2 for s in steps], axis=0)


def test_sequential_equals_the_learner_step_by_step() -> None:
    model = small_arm()
    stream = list(measurements(model, 6.0, extra=1.0))
    learner = InverseDynamicsLearner(model, CONFIG)
    steps = []
    for m in stream:
        if (step := whole(learner, m)) is not None:
            steps.append(step)
            learner.learn(step)
    found = evaluate(model, CONFIG, [stream])
    scores = found.runs["sequential"].scores
    assert found.samples == len(steps)
    for name in ("rigid_body", "nonparametric", "semiparametric"):
        np.testing.assert_allclose(scores.rmse(name), learner.scores.rmse(name), rtol=1e-12)
        np.testing.assert_allclose(scores.rmse(name) ** 2, squares(steps, name), rtol=1e-9)
    urdf = [s.y - s.sample.regressor @ model.prior for s in steps]
    np.testing.assert_allclose(scores.rmse("urdf") ** 2, np.mean(np.square(urdf), axis=0))
    last, persistence = np.zeros(model.n_axes), []
    for s in steps:
        persistence.append(s.y - s.prediction.rigid_body - last)
        last = s.y - s.prediction.rigid_body
    np.testing.assert_allclose(
        scores.rmse("persistence") ** 2, np.mean(np.square(persistence), axis=0)
    )


def test_delayed_predicts_half_a_second_before_the_residual_learns_it() -> None:
    model = small_arm()
    stream = list(measurements(model, 5.0, extra=1.0))
    learner = InverseDynamicsLearner(model, CONFIG)
    estimator, waiting, steps = learner.estimator, [], []
    for m in stream:
        if (step := whole(learner, m)) is None:
            continue
        steps.append(step)
        estimator.update_rigid_body(step.sample, step.prediction)
        waiting.append(step)
        if step.stamp - waiting[0].stamp >= 500_000_000:
            for late in waiting:
                estimator.update_nonparametric(late.sample, late.prediction)
            waiting.clear()
    scores = evaluate(model, CONFIG, [stream]).runs["delayed"].scores
    for name in ("rigid_body", "nonparametric", "semiparametric"):
        np.testing.assert_allclose(scores.rmse(name) ** 2, squares(steps, name), rtol=1e-9)


@pytest.mark.parametrize("gate", [0.0, 3.0])
def test_delayed_and_frozen_in_blocks_are_the_samples_one_by_one(gate: float) -> None:
    options = {"random_fourier.window": 1.0, "output.gate": gate}
    config = replace(CONFIG, residual="nystrom" if gate else "random_fourier", **options)
    model = small_arm()
    train = list(measurements(model, 3.0, extra=1.0))
    stream = list(measurements(model, 7.3, extra=1.0, seed=1))
    runs = evaluate(model, config, [stream], [train]).runs
    start = InverseDynamicsLearner(model, config)
    for m in train:
        if (step := whole(start, m)) is not None:
            start.learn(step)
    for name, learns in (("delayed", True), ("frozen", False)):
        learner, waiting, steps = InverseDynamicsLearner(model, config), [], []
        learner.estimator.restore(start.estimator.state())
        estimator = learner.estimator
        for m in stream:
            if (step := whole(learner, m)) is None:
                continue
            steps.append(step)
            if not learns:
                continue
            estimator.update_rigid_body(step.sample, step.prediction)
            waiting.append(step)
            if step.stamp - waiting[0].stamp >= 500_000_000:
                for late in waiting:
                    estimator.update_nonparametric(late.sample, late.prediction)
                waiting.clear()
        scores = runs[name].scores
        assert scores.samples == len(steps)
        for key in ("rigid_body", "nonparametric", "semiparametric"):
            np.testing.assert_allclose(scores.rmse(key) ** 2, squares(steps, key), rtol=1e-9)
            told = np.array([getattr(s.prediction, key) for s in steps])
            y = np.array([s.y for s in steps])
            stds = np.array([getattr(s.prediction, f"{key}_std") for s in steps])
            covered = np.mean(np.abs(y - told) <= 2.0 * stds, axis=0)
            np.testing.assert_allclose(scores.coverage(key), covered, atol=1.5 / len(steps))
        assert runs[name].estimator.n_learned == estimator.n_learned


def test_frozen_learns_nothing_after_the_training_part() -> None:
    model = small_arm()
    stream = list(measurements(model, 10.0, extra=1.0))
    found = evaluate(model, CONFIG, [stream])
    frozen = found.runs["frozen"]
    assert 370 <= frozen.scores.samples <= 400
    assert frozen.estimator.n_learned == found.samples - frozen.scores.samples
    rest = found.runs["sequential"].rest
    assert rest is not None and rest.samples == frozen.scores.samples
    names = set(found.results()["scores"])
    assert names == {"sequential", "delayed", "frozen", "sequential_rest", "delayed_rest"}


def test_training_recordings_are_learned_and_not_scored() -> None:
    model = small_arm()
    train, test = (list(measurements(model, 5.0, seed=s)) for s in (0, 1))
    found = evaluate(model, CONFIG, [test], [train])
    assert found.runs["sequential"].scores.samples == found.samples == len(test) - 2
    assert found.runs["frozen"].scores.samples == found.samples
    assert found.runs["frozen"].estimator.n_learned == len(train) - 2
    untrained = evaluate(model, CONFIG, [test])
    key = "rigid_body"
    assert np.all(
        found.runs["sequential"].scores.rmse(key) < untrained.runs["sequential"].scores.rmse(key)
    )


def test_results_have_every_model_and_axis() -> None:
    model = small_arm()
    results = evaluate(model, CONFIG, [list(measurements(model, 5.0))]).results()
    assert results["axes"] == list(model.joint_names)
    np.testing.assert_allclose(results["rate_hz"], 100.0, rtol=0.01)
    for models in results["scores"].values():
        assert tuple(models) == ALL_MODELS
        for score in models.values():
            assert all(len(score[key]) == model.n_axes for key in ("rmse", "nmse", "coverage"))
    assert results["scores"]["sequential"]["urdf"]["coverage"] == [None] * model.n_axes


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(BagError, match="no sample .* could be scored"):
        evaluate(small_arm(), CONFIG, [[]])


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_a_second_thread_changes_no_bit(residual: str) -> None:
    model = small_arm()
    config = replace(CONFIG, residual=residual, **{"random_fourier.window": 1.0})
    estimator = config.estimator
    found = evaluate(model, config, [list(measurements(model, 6.0, extra=1.0))])
    samples = SampleFilter(model, config.filter).filter_recording(
        list(measurements(model, 6.0, extra=1.0))
    )
    alone = JoinedRuns(ProtocolRun(SemiparametricEstimator(model, estimator), "sequential"))
    for sample in samples:
        alone.step(sample)
    alone.finish()
    for name, run in (("sequential", alone.sequential), ("delayed", alone.delayed)):
        for model_name in ALL_MODELS:
            expected = run.scores.rmse(model_name)
            assert np.array_equal(found.runs[name].scores.rmse(model_name), expected)
    state = alone.sequential.estimator.state()
    for key, value in found.runs["sequential"].estimator.state().items():
        assert np.array_equal(value, state[key]), key


def test_an_error_in_the_second_thread_ends_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FloatingPointError("as it was asked to")

    monkeypatch.setattr(JoinedRuns, "_learn", fail)
    model = small_arm()
    with pytest.raises(FloatingPointError, match="as it was asked to"):
        evaluate(model, CONFIG, [list(measurements(model, 3.0))])
