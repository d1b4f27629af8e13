"""What is said of an evaluation follows from its numbers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from semiparam_dynamics.dynamics.filtering import BETWEEN, PARTIAL, STANDING
from semiparam_dynamics.offline.evaluation.experiment import Evaluation, evaluate
from semiparam_dynamics.offline.evaluation.prediction_plots import mean_rmse
from semiparam_dynamics.offline.evaluation.protocols import IDENTIFIED
from semiparam_dynamics.offline.evaluation.report import subject_of, warnings_of
from semiparam_dynamics.offline.page import axis_groups

from ...dynamics.arms import measurements, small_arm
from .conftest import CONFIG
from .judged import GOOD, judged


def about(evaluation: Evaluation, word: str) -> list[str]:
    return [warning for warning in warnings_of(evaluation) if word in warning]


def test_good_models_raise_no_warning_about_models() -> None:
    for word in ("persistence", "worse", "URDF's own", "standard deviation", "constant"):
        assert not about(judged(GOOD), word)


@pytest.mark.parametrize(
    ("errors", "said", "times"),
    [
        ({"persistence": 0.05}, ": persistence, ", 2),  # sequential it usually wins
        ({"persistence": 0.05}, "(nmse 0.00", 2),
        ({"semiparametric": 0.3}, "worse than the rigid body alone on ", 3),
        ({"semiparametric": 0.3}, "lift (2.25 ×)", 3),
        ({"semiparametric": 1.5}, "no better than a constant", 3),
        ({"urdf": 0.1}, "URDF's own parameters predict better", 3),
        ({"urdf": 2.0}, "may be guesses", 1),
        ({"urdf": 2.0}, "far from the measurement, nmse above 2, on slew (", 1),
        ({"urdf": 1.2}, "far from the measurement", 0),
    ],
)
def test_models_that_are_worse_than_they_should_be_are_told(errors, said, times) -> None:
    assert len(about(judged(GOOD | errors), said)) == times


def test_a_deviation_that_is_too_small_is_told() -> None:
    assert len(about(judged(GOOD, std=0.04), "standard deviation")) == 3
    assert not about(judged(GOOD, std=0.06), "standard deviation")


def test_facts_about_the_data() -> None:
    evaluation = judged(GOOD, motion=4.0, timing=[0.02] * 5)
    evaluation.received = 10000
    evaluation.skipped["out of order"] += 100
    evaluation.skipped[BETWEEN] += 9500  # predicted, which is no fault
    evaluation.skipped[STANDING] += 50  # scored, so that they are among the samples
    evaluation.skipped[PARTIAL] += 90  # the same, for a fault that is counted itself
    told = "Of 10000 messages some were not used in full: out of order: 100 (1 %)."
    assert about(evaluation, told)
    assert about(evaluation, "took longer (20.00 ms)")
    n = evaluation.model.n_parameters
    assert about(evaluation, f"only 0 of {n} independent")  # nothing was learned at all
    assert about(evaluation, "never began to learn")


def test_motion_that_what_was_learned_does_not_show_is_said_joint_by_joint() -> None:
    evaluation = judged(GOOD)
    assert not about(evaluation, "does not show")
    evaluation.runs["frozen"].scored.novel[:] = 4.0, 400.0, 19.0, 100.0
    [said] = about(evaluation, "does not show")
    names = evaluation.model.axes
    assert f"{names[1]} (100 % of the time)" in said and f"{names[3]} (25 % of the time)" in said
    assert names[0] not in said and names[2] not in said  # hardly ever


def test_a_joint_that_moves_elsewhere_than_before_is_found_in_a_recording() -> None:
    model, config = small_arm(), CONFIG
    first = list(measurements(model, 7.0))
    turned, later = np.array([0.0, 3.0, 0.0, 0.0]), first[-1].stamp + 10**9
    moved = [replace(m, q=m.q + turned) for m in measurements(model, 3.0, seed=5, start=later)]
    [said] = about(evaluate(model, config, [moved], [first]), "does not show")
    assert f"{model.axes[1]} (" in said


def test_messages_that_count_under_several_reasons_are_not_summed() -> None:
    evaluation = judged(GOOD, received=3001)
    # The second of each of two joints, in most of the messages.
    evaluation.skipped.update({"unpaired joint state": 1968, "effort stuck": 3969, "late": 7})
    (told,) = about(evaluation, "not used in full")
    assert told == (
        "Of 3001 messages some were not used in full: effort stuck: 3001 (100 %), "
        "unpaired joint state: 1968 and late: 7."
    )


def test_messages_of_a_recording_are_those_received() -> None:
    model = small_arm()
    stream = list(measurements(model, 3.0))
    twice = [m for m in stream for _ in range(2)]  # each second one is out of order
    evaluation = evaluate(model, CONFIG, [twice])
    assert evaluation.received == 2 * len(stream) > 1.9 * evaluation.samples
    (told,) = about(evaluation, "not used in full")
    assert told.startswith(f"Of {2 * len(stream)} messages") and f": {len(stream)} (50 %)" in told


def test_what_was_learned_before_is_said(effort_evaluation, wrench_evaluation) -> None:
    assert "frozen are the last" in subject_of(effort_evaluation)
    subject = subject_of(wrench_evaluation)
    assert "six-axis reading at boom_sensor" in subject
    assert "other recordings" in subject


def test_an_effort_that_was_never_measured_is_told_as_such_and_hides_no_other() -> None:
    model = small_arm()
    dead = [replace(m, y=m.y * [1.0, np.nan, 1.0, 1.0]) for m in measurements(model, 4.0)]
    evaluation = evaluate(model, CONFIG, [dead])
    assert f"{model.axes[1]}: never measured" in " ".join(warnings_of(evaluation))
    assert not about(evaluation, "diverged") and not about(evaluation, "squared error is .")
    for run, group in itertools.product(evaluation.runs.values(), axis_groups(model)):
        _, curves = mean_rmse(run, group)
        assert all(np.isfinite(curve).all() for n, curve in curves.items() if n not in IDENTIFIED)


def test_a_model_that_diverged_is_told_where_something_was_measured() -> None:
    evaluation = judged(GOOD | {"semiparametric": np.array([0.1, np.inf, 0.1, 0.1])})
    assert len(about(evaluation, "diverged on")) == 3
    nothing = judged(GOOD | {"semiparametric": np.inf})
    assert "The learner diverged" in nothing.verdict.why


def test_time_at_rest_is_no_motion() -> None:
    evaluation = judged(GOOD, motion=340.0, standing=334.0)
    subject = subject_of(evaluation)
    assert "400 samples, 6.0 s of motion and 334.0 s at rest" in subject and "4 joints" in subject
    model = small_arm()
    moving = list(measurements(model, 3.0))
    stands = [
        replace(moving[-1], stamp=moving[-1].stamp + k * 10_000_000, dq=np.zeros(4))
        for k in range(1, 301)
    ]
    found = evaluate(model, CONFIG, [[*moving, *stands]])
    assert abs(found.standing - 3.0) < 0.5 and abs(found.motion - 6.0) < 0.1
