"""The choice: harmless first, then best."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.candidates import (
    Curve,
    FoldScore,
    Outcome,
    Step,
    Tuning,
    choose,
)
from semiparam_dynamics.offline.tuning.choices import (
    SHARED,
    _simplest,
    choose_memory,
    keep_or_change,
    memories_for,
)
from semiparam_dynamics.offline.tuning.tuner import _earned


def scored(
    delayed: float, frozen: float, region: float, axis: float | None = None, evidence: float = 0.0
) -> Outcome:
    ones = np.ones(2)
    motion = FoldScore("m", frozen * ones, ones, delayed * ones, ones, evidence)
    both = np.array([2.0 * region - axis, axis]) if axis is not None else region * ones
    place = FoldScore("r", both, ones, None, ones, np.nan)
    return Outcome({}, (motion, place))


def test_the_best_that_does_no_harm_is_chosen() -> None:
    wide, narrow, dull = scored(0.3, 0.5, 1.2), scored(0.5, 0.9, 0.99), scored(0.9, 0.95, 1.0)
    assert choose([wide, dull, narrow]) is narrow
    assert wide.harm == pytest.approx(0.2) and narrow.harm == 0.0


def test_harm_to_a_single_axis_counts() -> None:
    lopsided, dull = scored(0.3, 0.5, 0.9, 1.1), scored(0.9, 0.95, 1.0)
    assert lopsided.worst_mean < 1.0 and lopsided.worst_axis == pytest.approx(1.1)
    assert choose([lopsided, dull]) is dull


def test_where_all_do_harm_the_least_is_chosen() -> None:
    assert choose([scored(0.3, 0.5, 1.3), scored(0.8, 0.9, 1.1)]).delayed == pytest.approx(0.8)


def test_other_criteria_choose_by_other_figures() -> None:
    a, b = scored(0.4, 0.9, 0.9, evidence=1.0), scored(0.5, 0.7, 0.9, evidence=2.0)
    assert choose([a, b]) is a
    assert choose([a, b], a, "frozen") is b
    assert choose([a, b], a, "evidence") is b


@pytest.mark.parametrize("criterion", ["frozen", "evidence"])
def test_by_another_criterion_what_is_worse_while_learning_may_be_the_simplest(
    criterion: str,
) -> None:
    widths = dict.fromkeys(SHARED.outer, 1.0)

    def tried(outcome: Outcome, penalty: float) -> Outcome:
        return Outcome({**widths, SHARED.penalty: penalty, SHARED.size: 100}, outcome.scores)

    own = tried(scored(0.4, 0.9, 0.9, evidence=1.0), 1.0)
    best = tried(scored(0.5, 0.7, 0.9, evidence=2.0), 0.1)
    alike = tried(scored(0.5, 0.71, 0.9, evidence=2.0), 0.2)
    tries = [own, best, alike]
    assert choose(tries, own, criterion) is best
    assert _simplest(best, own, tries, SHARED, criterion) is alike


def test_what_is_configured_stays_unless_another_is_better_on_every_motion() -> None:
    def two(a: float, b: float, frozen: float = 0.9) -> Outcome:
        return Outcome({}, (scored(a, frozen, 0.9).scores[0], scored(b, frozen, 0.9).scores[0]))

    own, mixed, better = two(0.6, 0.6), two(0.2, 0.61), two(0.55, 0.58)
    assert choose([own, mixed, better], own) is better
    assert choose([own, mixed], own) is own and choose([own, mixed]) is mixed
    assert choose([own, two(0.5, 0.5, frozen=0.92)], own) is own
    harmful = Outcome({}, (*own.scores, scored(0.6, 0.9, 1.2).scores[1]))
    assert choose([harmful, mixed], harmful) is mixed


def test_what_the_learner_itself_is_no_better_with_on_every_motion_is_not_earned() -> None:
    """By the errors themselves: the rigid body beside may be another."""

    def two(a: float, b: float, frozen: float = 0.9) -> Outcome:
        return Outcome({}, (scored(a, frozen, 0.9).scores[0], scored(b, frozen, 0.9).scores[0]))

    own = two(0.6, 0.6)
    assert two(0.55, 0.58).errs_less_than(own)
    assert not two(0.2, 0.61).errs_less_than(own)
    assert not two(0.59, 0.59).errs_less_than(own)
    assert not two(0.5, 0.5, frozen=0.92).errs_less_than(own)
    halved = [dataclasses.replace(s, rigid_delayed=0.5 * s.rigid_delayed) for s in own.motions]
    assert not Outcome({}, tuple(halved)).errs_less_than(own)


def test_a_little_harm_while_learning_is_off_does_not_cost_what_learning_gains() -> None:
    def judged(configured: Outcome, tuned: Outcome) -> Tuning:
        config = InverseDynamicsConfig()
        confirmed = {"configured": configured, "tuned": tuned}
        return Tuning(config, config, [], confirmed=confirmed)

    harmful, harmless = scored(0.6, 0.99, 1.05), scored(0.9, 0.99, 1.0)
    assert harmful.harm > 0.0 and harmless.harm == 0.0
    assert not _earned(judged(harmful, harmless))
    assert _earned(judged(harmful, scored(0.61, 0.99, 1.0)))
    assert _earned(judged(scored(0.6, 1.03, 1.05), scored(0.9, 0.99, 1.0)))


def test_values_of_the_rigid_body_change_only_by_common_consent() -> None:
    errors = {1.0: [1.0, 1.0], 10.0: [0.9, 0.95], 100.0: [0.2, 1.1], 30.0: [0.9, 0.94]}
    assert keep_or_change(errors, 1.0) == 10.0  # the nearest of the two that are alike
    assert keep_or_change({1.0: [1.0, 1.0], 10.0: [0.99, 0.99]}, 1.0) == 1.0


def test_a_memory_is_tried_where_the_recordings_are_ten_times_as_long() -> None:
    assert memories_for(120.0, 0.0) == [0.0]
    assert memories_for(700.0, 0.0) == [0.0, 30.0, 60.0]
    kept = {0.0: [(1.0, 1.0), (1.0, 1.0)], 30.0: [(0.5, 1.0), (0.5, 1.1)]}
    assert choose_memory(kept, 0.0) == 0.0
    assert choose_memory({**kept, 60.0: [(0.9, 1.0), (0.8, 0.9)]}, 0.0) == 60.0


def test_a_part_in_which_nothing_varies_counts_as_alike() -> None:
    nothing = np.zeros(2)
    still = FoldScore("rest", nothing, nothing, nothing, nothing, 0.0)
    assert still.ratio == still.worst_mean == 1.0
    assert Outcome({}, (still,)).harm == 0.0


def extremes(name: str, tried: list[float], chosen: float) -> dict[str, str]:
    """Of a tuning from the defaults that took `chosen` for `name`."""
    config = InverseDynamicsConfig()
    outcomes = tuple(Outcome({name: value}, scored(1.0, 1.0, 1.0).scores) for value in tried)
    tuning = Tuning(config, replace(config, **{name: chosen}), [])
    tuning.steps.append(Step("stage", outcomes, outcomes[0]))
    return tuning.extremes


def test_a_change_to_the_end_of_what_was_tried_is_told() -> None:
    width, own = "nystrom.length_scale", InverseDynamicsConfig().estimator.nystrom.length_scale
    values = [0.5 * own, own, 2.0 * own]
    assert extremes(width, values, 0.5 * own) == {width: "smallest"}
    assert extremes(width, values, 2.0 * own) == {width: "largest"}
    assert extremes(width, [*values, 4.0 * own], 2.0 * own) == {}
    assert extremes(width, values, own) == {}  # it is no change
    assert extremes(width, values[:2], 0.5 * own) == {}
    assert extremes("nystrom.max_centers", [100, 200, 400], 100) == {}
    assert extremes("rigid_body.memory", [0.0, 30.0, 60.0], 60.0) == {}


def test_ends_count_over_all_stages_and_curves() -> None:
    config = InverseDynamicsConfig()
    name = "rigid_body.penalty"
    tuning = Tuning(config, replace(config, **{name: 0.001}), [])
    tuning.curves.append(Curve(name, {0.001: 1.0, 0.01: 1.1, 1.0: 1.2}, 0.001))
    assert tuning.extremes == {name: "smallest"}
    further = Outcome({name: 0.0005}, scored(1.0, 1.0, 1.0).scores)
    tuning.steps.append(Step("stage", (further,), further))
    assert tuning.extremes == {}
