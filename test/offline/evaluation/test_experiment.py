"""The protocols against the estimator and the baseline led by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import STANDING
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.evaluation.experiment import (
    UNSCORED,
    CoveredTime,
    Evaluation,
    evaluate,
)
from semiparam_dynamics.offline.evaluation.protocols import (
    ALL_MODELS,
    IDENTIFIED,
    MODELS,
    ProtocolRun,
)
from semiparam_dynamics.samples.measurement import Measurement

from ...dynamics.arms import filtered, measurements, small_arm
from .conftest import CONFIG

HALF_SECOND = 500_000_000


class ByHand:
    """Both models led through samples one by one, with the predictions of each."""

    def __init__(self, config: InverseDynamicsConfig) -> None:
        model = small_arm()
        self.estimator = SemiparametricEstimator(model, config.estimator)
        self.baseline = NonparametricBaseline(model, config.estimator)
        self.steps: list[tuple[Sample, dict[str, object]]] = []

    def predict(self, sample: Sample) -> tuple:
        told, beside = self.estimator.predict(sample), self.baseline.predict(sample)
        models = {"rigid_body": told, "semiparametric": told, "nonparametric": beside}
        self.steps.append((sample, models))
        return sample, told, beside

    def sequential(self, stream: list[Sample]) -> None:
        for sample in stream:
            _, told, beside = self.predict(sample)
            self.estimator.update(sample, told)
            if not self.estimator.gate.closed:
                self.baseline.update(sample, beside)

    def delayed(self, stream: list[Sample]) -> None:
        waiting: list[tuple] = []
        first: int | None = None  # stamp of the block's first sample
        for sample in stream:
            first = sample.stamp if first is None else first
            step = self.predict(sample)
            if not self.estimator.refuses(sample, step[1]):
                waiting.append((*step, self.estimator.update_rigid_body(sample)))
            if sample.stamp - first >= HALF_SECOND:
                for each, told, beside, weights in waiting:
                    self.estimator.update_residual(each, told, weights)
                    self.baseline.update(each, beside)
                waiting, first = [], None

    def rows(self, name: str, what: str = "") -> np.ndarray:
        return np.array([getattr(models[name], f"{name}{what}") for _, models in self.steps])

    @property
    def y(self) -> np.ndarray:
        return np.array([sample.y for sample, _ in self.steps])


def test_sequential_equals_one_sample_after_the_other() -> None:
    model = small_arm()
    stream = list(measurements(model, 4.0, extra=1.0))
    by_hand = ByHand(CONFIG)
    by_hand.sequential(filtered(model, stream))
    found = evaluate(model, CONFIG, [stream])
    scores, y = found.runs["sequential"].scores, by_hand.y
    assert found.samples == len(y)
    for name in MODELS:
        squares = np.mean((y - by_hand.rows(name)) ** 2, axis=0)
        np.testing.assert_allclose(scores.rmse(name) ** 2, squares, rtol=1e-9)
    urdf = [s.y - s.regressor @ model.prior for s, _ in by_hand.steps]
    np.testing.assert_allclose(scores.rmse("urdf") ** 2, np.mean(np.square(urdf), axis=0))
    left = y - by_hand.rows("rigid_body")
    persistence = np.diff(left, axis=0, prepend=0.0)
    np.testing.assert_allclose(
        scores.rmse("persistence") ** 2, np.mean(np.square(persistence), axis=0)
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"output.gate": 3.0},
        {"nystrom.memory": 5.0},
        {"residual": "random_fourier", "rigid_body.memory": 5.0},
    ],
    ids=["blocks", "gate", "memory", "forgetting"],
)
def test_delayed_and_frozen_are_the_samples_one_by_one(settings: dict[str, object]) -> None:
    config = replace(CONFIG, **{"random_fourier.window": 1.0, **settings})
    model = small_arm()
    train = list(measurements(model, 1.5, extra=1.0))
    stream = list(measurements(model, 3.3, extra=1.0, seed=1))
    runs = evaluate(model, config, [stream], [train]).runs
    for name in ("delayed", "frozen"):
        by_hand = ByHand(config)
        by_hand.sequential(filtered(model, train))
        by_hand.steps.clear()
        by_hand.estimator = by_hand.estimator.copy()  # whose gate begins anew
        if name == "delayed":
            by_hand.delayed(filtered(model, stream))
        else:
            by_hand.estimator.infer()  # where learning ends all evidence is looked at
            for sample in filtered(model, stream):
                by_hand.predict(sample)
        scores, y = runs[name].scores, by_hand.y
        assert scores.samples == len(y)
        for key in MODELS:
            squares = np.mean((y - by_hand.rows(key)) ** 2, axis=0)
            np.testing.assert_allclose(scores.rmse(key) ** 2, squares, rtol=1e-9)
            covered = np.abs(y - by_hand.rows(key)) <= 2.0 * by_hand.rows(key, "_std")
            share = np.mean(covered, axis=0)
            np.testing.assert_allclose(scores.coverage(key), share, atol=1.5 / len(y))


def test_from_a_saved_model_the_baseline_learns_what_is_tested_only(tmp_path: Path) -> None:
    model = small_arm()
    train, stream = (list(measurements(model, 3.0, extra=1.0, seed=s)) for s in (0, 1))
    saved, fresh = ByHand(CONFIG), ByHand(CONFIG)
    saved.sequential(filtered(model, train))
    saved.estimator.save(tmp_path / "model.npz")
    found = evaluate(model, CONFIG, [stream], start=tmp_path / "model.npz")
    saved.steps.clear()
    saved.estimator = saved.estimator.copy()
    saved.sequential(filtered(model, stream))
    fresh.sequential(filtered(model, stream))
    sequential, frozen = found.runs["sequential"].scores, found.runs["frozen"].scores
    for by_hand, name in ((saved, "semiparametric"), (fresh, "nonparametric")):
        squares = np.mean((by_hand.y - by_hand.rows(name)) ** 2, axis=0)
        np.testing.assert_allclose(sequential.rmse(name) ** 2, squares, rtol=1e-9)
    for figure in (frozen.rmse, frozen.nmse, frozen.coverage):
        assert np.isnan(figure("nonparametric")).all()
        assert np.isfinite(figure("semiparametric")).all()


def test_frozen_learns_nothing_after_the_training_part(effort_evaluation: Evaluation) -> None:
    found = effort_evaluation
    frozen = found.runs["frozen"]
    assert 0.37 <= frozen.scores.samples / found.samples <= 0.4
    assert frozen.estimator.n_learned == found.samples - frozen.scores.samples
    rest = found.runs["sequential"].scored.scores_apart()["sequential_rest"]
    assert rest.samples == frozen.scores.samples


def test_a_node_scores_as_an_evaluation_and_its_recent_scores_are_of_motion() -> None:
    """Static friction holds the arm for ten seconds."""
    model = small_arm()
    moving = list(measurements(model, 4.0))
    stop, held = moving[-1], np.array([3.0, -2.0, 1.0, 0.5])
    stands = [
        Measurement(stop.stamp + (k + 1) * 10_000_000, stop.q, 0.0 * stop.q, stop.y + held)
        for k in range(1000)
    ]
    learner, recent = InverseDynamicsLearner(model, CONFIG), np.empty(0)
    for measurement in [*moving, *stands]:
        if (step := learner.predict(measurement)) is not None:
            learner.update(learner.admit(step))
            recent = learner.recent.nmse("rigid_body") if step.sample.informative else recent
    scores = evaluate(model, CONFIG, [[*moving, *stands]]).runs["sequential"].scores
    assert learner.scores.samples == scores.samples > learner.recent.samples + 900
    for name in ("rigid_body", "semiparametric"):
        np.testing.assert_allclose(learner.scores.nmse(name), scores.nmse(name), rtol=1e-6)
    np.testing.assert_array_equal(learner.recent.nmse("rigid_body"), recent)
    assert (recent < 0.1 * learner.scores.nmse("rigid_body")).all()


def standing_before(first: Measurement) -> list[Measurement]:
    """Nine seconds of the same position, with other efforts, until a second before it."""
    return [
        Measurement(first.stamp - (1000 - k) * 10_000_000, first.q, 0.0 * first.q, first.y + 9.0)
        for k in range(900)
    ]


def test_what_stands_before_the_first_motion_is_not_scored() -> None:
    """The efforts that hold the arm, which nobody has learned yet, would outweigh all errors."""
    model = small_arm()
    moving = list(measurements(model, 4.0, start=11_000_000_000))
    stands = standing_before(moving[0])
    # After the pause the filters start in motion, with hardly any samples before it, too.
    shorter = [*stands[-3:], *moving]
    found, alone = (evaluate(model, CONFIG, [log]) for log in ([*stands, *moving], shorter))
    for reason in (UNSCORED, STANDING):
        assert found.skipped[reason] - alone.skipped[reason] == found.samples - alone.samples > 890
    assert alone.skipped[STANDING] == 1
    for protocol in ("sequential", "delayed"):
        scores, expected = found.runs[protocol].scores, alone.runs[protocol].scores
        assert scores.samples == expected.samples
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_allclose(scores.nmse(name), expected.nmse(name), rtol=0.02)


@pytest.mark.parametrize("detect", [False, True], ids=["blocks", "noticing"])
def test_the_training_part_begins_with_the_first_motion(detect: bool) -> None:
    """Else frozen would begin before anything is learned where the arm stands for long first."""
    model, config = small_arm(), replace(CONFIG, changes__detect=detect)
    moving = list(measurements(model, 6.0, start=40_000_000_000, extra=1.0))
    first, rng = moving[0], np.random.default_rng(0)
    stands = [
        Measurement(
            first.stamp - k * 10_000_000,
            first.q,
            0.0 * first.q,
            first.y + 0.05 * rng.standard_normal(4),
        )
        for k in range(round(1.8 * len(moving)), 0, -1)
    ]
    found, alone = (evaluate(model, config, [log]) for log in ([*stands, *moving], moving))
    frozen, expected = (each.runs["frozen"].scores for each in (found, alone))
    assert frozen.samples == pytest.approx(expected.samples, rel=0.1)
    assert frozen.samples == found.scores()["sequential_rest"].samples
    ratio = np.mean(frozen.nmse("rigid_body")) / np.mean(expected.nmse("rigid_body"))
    assert 1.0 / 1.5 < ratio < 1.5


def test_a_learner_scores_the_samples_that_an_evaluation_does(tmp_path: Path) -> None:
    """From its first motion on, or from the start where something was learned before."""
    model = small_arm()
    moving = list(measurements(model, 3.0, start=11_000_000_000))
    stands = standing_before(moving[0])
    log, saved = [*stands, *moving], tmp_path / "model.npz"
    knowing = InverseDynamicsLearner(model, CONFIG)
    fed(knowing, moving).save(saved)
    for start in ("", saved):
        learner = InverseDynamicsLearner(model, CONFIG)
        if start:
            learner.load(start)
        scores = evaluate(model, CONFIG, [log], start=start).runs["sequential"].scores
        assert fed(learner, log).scores.samples == scores.samples
        assert (scores.samples > 1100) == bool(start)
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_allclose(learner.scores.nmse(name), scores.nmse(name), rtol=1e-6)
    copied = knowing.copy()
    assert fed(copied, stands).scores.samples > 890


def fed(learner: InverseDynamicsLearner, log: list[Measurement]) -> InverseDynamicsLearner:
    """The learner, once it has learned a recording sample by sample."""
    for measurement in log:
        if (step := learner.predict(measurement)) is not None:
            learner.update(learner.admit(step))
    return learner


def test_samples_between_those_that_are_learned_are_not_told_as_unscored() -> None:
    model = small_arm()
    config = replace(CONFIG, changes__detect=True, filter__learn_ratio=5.0)
    moving = list(measurements(model, 3.0, start=11_000_000_000))
    found = evaluate(model, config, [[*standing_before(moving[0]), *moving]])
    assert 0 < found.skipped[UNSCORED] == found.samples - found.runs["sequential"].scores.samples


def test_results_have_every_model_and_axis(effort_evaluation: Evaluation) -> None:
    results, joints = effort_evaluation.results(), effort_evaluation.model.joint_names
    assert results["axes"] == list(joints)
    np.testing.assert_allclose(results["rate_hz"], 100.0, rtol=0.01)
    parts = {"sequential_rest", "delayed_rest", "frozen_repeated", "frozen_new"}
    assert set(results["scores"]) == {"sequential", "delayed", "frozen", *parts}
    for protocol, models in results["scores"].items():
        identified = protocol == "frozen" or protocol in parts
        expected = [name for name in ALL_MODELS if identified or name not in IDENTIFIED]
        assert list(models) == expected, protocol
        for score in models.values():
            assert all(len(score[key]) == len(joints) for key in ("rmse", "nmse", "coverage"))
    assert results["scores"]["sequential"]["urdf"]["coverage"] == [None] * len(joints)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(BagError, match="no sample .* could be scored"):
        evaluate(small_arm(), CONFIG, [[]])


@pytest.mark.parametrize("residual", ["nystrom", "random_fourier"])
def test_a_second_thread_changes_no_bit(residual: str) -> None:
    model = small_arm()
    config = replace(CONFIG, residual=residual, **{"random_fourier.window": 1.0})
    stream = list(measurements(model, 3.2, extra=1.0))
    found = evaluate(model, config, [stream])
    alone = ProtocolRun(
        InverseDynamicsLearner(model, replace(config, comparison=True)), "sequential"
    )
    alone.add_delayed()
    for sample in filtered(model, stream):
        alone.step(sample)
    alone.finish()
    for name, run in (("sequential", alone), ("delayed", alone.delayed)):
        for model_name in ALL_MODELS:
            expected = run.scores.rmse(model_name)
            found_errors = found.runs[name].scores.rmse(model_name)
            if model_name not in IDENTIFIED:  # known to what has a frozen part
                assert np.array_equal(found_errors, expected)
    state = alone.estimator.state()
    for key, value in found.runs["sequential"].estimator.state().items():
        assert np.array_equal(value, state[key]), key


def test_an_error_in_the_second_thread_ends_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FloatingPointError("as it was asked to")

    monkeypatch.setattr(ProtocolRun, "_learn_block", fail)
    model = small_arm()
    with pytest.raises(FloatingPointError, match="as it was asked to"):
        evaluate(model, CONFIG, [list(measurements(model, 3.0))])


@pytest.mark.parametrize("jump", [-1000.0, 1000.0], ids=["back", "ahead"])
def test_a_clock_that_is_set_moves_no_border_between_learning_and_frozen(jump: float) -> None:
    model = small_arm()
    stream = list(measurements(model, 6.0))
    was_set = [
        m if k < 200 else dataclasses.replace(m, stamp=m.stamp + round(jump * 1e9))
        for k, m in enumerate(stream)
    ]
    found = evaluate(model, CONFIG, [was_set])
    share = found.runs["frozen"].scores.samples / found.samples
    assert share == pytest.approx(0.4, abs=0.005)


def test_covered_time_leaves_out_pauses_late_messages_and_set_clocks() -> None:
    seconds = [0.0, 0.1, 0.2, 0.15, 0.3, 9.0, 9.1, -5.0, -4.9]
    covered = CoveredTime(0.5, (round(s * 1e9) for s in seconds))
    assert covered.total == pytest.approx(0.5)
    assert [covered.at(round(s * 1e9)) for s in (0.1, 0.3, 9.0, -4.9)] == pytest.approx(
        [0.1, 0.3, 0.3, 0.5]
    )
    assert CoveredTime(0.5).total == 0.0
