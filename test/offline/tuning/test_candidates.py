"""The rule by which candidates are compared, and the errors that it compares."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Motion, Sample
from semiparam_dynamics.offline.tuning.candidates import (
    Candidate,
    Fold,
    FoldScore,
    choose,
    evaluate,
)

from ...dynamics.arms import small_arm
from .recorded import CONFIG, recordings

PIECES = 12
SPREAD = 1.0 + 0.1 * np.sin(np.arange(PIECES))  # of the pieces' errors


def fold(delayed: float, frozen: float = 0.9, axis: float = 0.9, noise: int = 0) -> FoldScore:
    """Of pieces around these means; the rigid body's errors are 1."""
    scatter = np.random.default_rng(noise).normal(0.0, 0.03, PIECES) if noise else 0.0
    pieces = tuple((delayed * SPREAD * np.exp(scatter)).tolist())
    return FoldScore("m", pieces, tuple((frozen * SPREAD).tolist()), 1.0, 1.0, axis)


def scored(*delayed: float, **others: float) -> Candidate:
    return Candidate({}, tuple(fold(error, **others) for error in delayed))


OWN = scored(0.6, 0.6)


@pytest.mark.parametrize(
    ("other", "better"),
    [
        (scored(0.55, 0.59), True),
        (scored(0.2, 0.61), False),  # worse on one motion
        (scored(0.2), False),  # given up after the first motion
        (scored(0.5, 0.5, frozen=0.905), True),
        (scored(0.5, 0.5, frozen=0.92), False),  # worse where nothing is learned any more
        (scored(0.5, 0.5, axis=1.1), False),  # harm on one axis
        (scored(0.5, 0.5, axis=1.01), True),
        (OWN, False),
    ],
)
def test_a_candidate_replaces_the_configuration_where_it_is_better_throughout(
    other: Candidate, better: bool
) -> None:
    assert other.betters(OWN, "delayed") is better
    assert choose(OWN, [other], "delayed") is (other if better else OWN)


def test_chance_replaces_nothing() -> None:
    """Errors of the same size that scatter: of many such candidates hardly one is taken."""
    taken = [
        Candidate({}, (fold(0.6, noise=k + 1), fold(0.6, noise=k + 1000))).betters(OWN, "delayed")
        for k in range(200)
    ]
    assert sum(taken) <= 6
    gains = [
        Candidate({}, (fold(0.55, noise=k + 1), fold(0.55, noise=k + 1000))) for k in range(20)
    ]
    assert all(candidate.betters(OWN, "delayed") for candidate in gains)


def test_the_best_of_those_that_are_better_is_chosen_by_the_criterion() -> None:
    slow, quick = scored(0.5, 0.5, frozen=0.7), scored(0.4, 0.4, frozen=0.8)
    assert choose(OWN, [slow, quick], "delayed") is quick
    assert choose(OWN, [slow, quick], "frozen") is slow


def test_what_a_search_makes_small_is_never_small_for_what_may_not_be_chosen() -> None:
    assert scored(0.3, 0.3).value(OWN, "delayed") == pytest.approx(0.5)
    assert scored(0.3, 0.3, axis=1.5).value(OWN, "delayed") == 1.0
    assert scored(1.2).value(OWN, "delayed") == pytest.approx(2.0)


def test_harm_that_the_configuration_does_may_stay_but_not_grow() -> None:
    own = scored(0.6, 0.6, axis=1.1)
    assert scored(0.5, 0.5, axis=1.1).betters(own, "delayed")
    assert not scored(0.5, 0.5, axis=1.2).betters(own, "delayed")


# -------------------------------------------------------------------------------------------------


def samples_of(motion: Motion) -> list[Sample]:
    columns = motion.stamps, motion.q, motion.dq, motion.ddq, motion.regressors(), motion.y
    return [
        Sample(int(stamp), *rest, weight=float(weight))
        for (stamp, *rest), weight in zip(zip(*columns, strict=True), motion.weights, strict=True)
    ]


@pytest.mark.parametrize("memory", [0.0, 20.0])
def test_errors_are_those_of_learning_sample_by_sample(memory: float) -> None:
    """With a residual that forgets, too, which learns in no blocks."""
    [first, _] = recordings(2, 8.0, same=True).folds(8.0, thinned=True)
    settings = {"nystrom.max_centers": 60, "nystrom.wide_max_centers": 0, "nystrom.window": 1.0}
    settings |= {"nystrom.length_scale": 0.5, "nystrom.memory": memory}
    config = replace(CONFIG.estimator, **settings)
    found = evaluate(small_arm(target="effort"), config, first, delay=0.5)

    estimator = SemiparametricEstimator(small_arm(target="effort"), config)
    for sample in samples_of(first.train[0]):
        estimator.update(sample)
    [held_out] = first.scored
    samples, seconds = samples_of(held_out), (held_out.stamps - held_out.stamps[0]) * 1e-9
    frozen, delayed = predicted(estimator, samples), []
    for number in range(int(seconds[-1] / 0.5) + 1):
        block = [s for s, at in zip(samples, seconds, strict=True) if int(at / 0.5) == number]
        delayed += predicted(estimator, block)
        for sample in block:
            estimator.update(sample)
    piece = np.floor(seconds / ((seconds[-1] + 1e-6) / 4))
    for values, pieces in ((frozen, found.frozen), (delayed, found.delayed)):
        squares = np.mean((held_out.y - values) ** 2 / held_out.y.var(axis=0), axis=1)
        means = [squares[piece == k].mean() for k in range(4)]
        assert pieces == pytest.approx(means, rel=1e-4)
    assert found.rigid_frozen != pytest.approx(found.error("frozen"), rel=0.01)


def predicted(estimator: SemiparametricEstimator, samples: list[Sample]) -> list[np.ndarray]:
    return [estimator.predict(sample).semiparametric for sample in samples]


def test_an_axis_that_never_varies_has_no_part_in_the_errors() -> None:
    """A finger that nobody measures, or a joint with its brake on."""

    def braked(motion: Motion) -> Motion:
        return dataclasses.replace(motion, y=np.where(np.arange(4) == 3, 5.0, motion.y))

    [first, _] = recordings(2, 8.0).folds(8.0, thinned=True)
    train, [held_out] = tuple(map(braked, first.train)), map(braked, first.scored)
    few = {"nystrom.max_centers": 30, "nystrom.wide_max_centers": 10}
    config = replace(CONFIG.estimator, **few)
    fold = Fold("a", train, (held_out,), (held_out,))
    found = evaluate(small_arm(target="effort"), config, fold, delay=2.0)
    assert 0.0 < found.ratio("delayed") < 2.0 and 0.0 < found.worst_axis < 3.0
    at_rest = dataclasses.replace(held_out, y=np.full_like(held_out.y, 5.0))
    nothing = evaluate(
        small_arm(target="effort"), config, Fold("b", train, (at_rest,), (at_rest,)), delay=2.0
    )
    assert nothing.ratio("delayed") == nothing.ratio("frozen") == 1.0 and nothing.harm == 0.0
