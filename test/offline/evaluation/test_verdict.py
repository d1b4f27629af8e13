"""What to use follows from the errors, and from whether they may be chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.dynamics.inferred_kernel import InferredKernel
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.evaluation.report import warnings_of
from semiparam_dynamics.offline.evaluation.verdict import (
    USE_LEARNER,
    USE_NOTHING,
    USE_RIGID_BODY,
    Ratio,
)

from ...dynamics.arms import measurements, small_arm
from .conftest import CONFIG
from .judged import GOOD, SAMPLES, judged


def test_a_learner_that_gains_is_to_be_used_and_what_it_gains_is_said() -> None:
    found = judged(GOOD).verdict
    assert found.use == USE_LEARNER and "ros2 launch" in found.advice
    assert "75 % less squared error half a second ahead while it learns" in found.why
    assert "75 % less squared error with learning off" in found.why
    for name, error in (("urdf", 0.5), ("plain_rigid_body", 0.25), ("rigid_body", 0.2)):
        for protocol in ("frozen", "delayed"):
            ratio = found.gains[name][protocol]
            assert ratio.value == pytest.approx((0.1 / error) ** 2)
            assert ratio.low == pytest.approx(ratio.value) == ratio.high  # in every piece the same


def test_an_interval_is_the_jackknife_s_of_pieces_that_grow_with_the_motion() -> None:
    rng = np.random.default_rng(0)
    semiparametric = np.abs(0.1 + 0.04 * rng.standard_normal((SAMPLES, 1)))
    found = judged(GOOD | {"semiparametric": semiparametric}).verdict
    ratio = found.gains["rigid_body"]["frozen"]
    # 49.875 s: 99 windows of four samples, of which the first is left out, in 14 pieces.
    squares = (semiparametric[:, 0] / 0.2) ** 2
    starts = 4 * (1 + np.arange(14) * 99 // 14)
    sums, counts = (np.add.reduceat(a, starts) for a in (squares, np.ones(SAMPLES)))
    k = len(sums)
    logs = np.log(
        [(sums.sum() - s) / (counts.sum() - n) for s, n in zip(sums, counts, strict=True)]
    )
    value = sums.sum() / counts.sum()
    reach = stats.t.ppf(0.95, k - 1) * np.sqrt((k - 1) / k * np.sum((logs - logs.mean()) ** 2))
    assert ratio.value == pytest.approx(value, rel=1e-6)
    assert ratio.low == pytest.approx(value * np.exp(-reach), rel=1e-6)
    assert ratio.high == pytest.approx(value * np.exp(reach), rel=1e-6)


def test_a_gain_that_may_be_chance_or_a_loss_with_learning_off_leaves_the_rigid_body() -> None:
    lucky = np.full((SAMPLES, 1), 0.2)
    lucky[:30] = 0.02  # three seconds of forty
    chance = judged(GOOD | {"semiparametric": 0.2}, delayed={"semiparametric": lucky}).verdict
    assert chance.use == USE_RIGID_BODY and "which may be chance" in chance.why
    worse = judged(GOOD | {"semiparametric": 0.22}, delayed={"semiparametric": 0.1}).verdict
    assert worse.use == USE_RIGID_BODY
    assert "21 % more squared error compared with that with learning off" in worse.why
    harm = judged(GOOD | {"semiparametric": 0.3}).verdict
    assert harm.use == USE_RIGID_BODY and "2.2 times the squared error" in harm.why
    for found in (chance, worse, harm):
        assert "semiparam identify" in found.advice and "84 % less" in found.why


def test_a_learner_that_is_worse_on_states_held_out_of_it_leaves_the_rigid_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for left in (0.95, 1.05):
        squares = np.ones((4, 10)) * np.array([1.0, left])[:, None, None]
        monkeypatch.setattr(InferredKernel, "held_out", lambda *_, squares=squares: squares)
        found = judged(GOOD).verdict
        assert (found.use == USE_LEARNER) == (left < 1.0)
    assert found.use == USE_RIGID_BODY
    assert "5 % more squared error compared with that on states that are held out" in found.why


@pytest.mark.parametrize(
    ("errors", "why"),
    [
        ({"urdf": 0.19, "semiparametric": 0.195}, "compared with the URDF as it is"),
        ({"urdf": 1.35, "rigid_body": 1.05, "semiparametric": 1.05}, "no better than a constant"),
        ({"urdf": np.nan}, "no better than a constant"),
    ],
)
def test_without_a_rigid_body_that_gains_nothing_is_to_be_used(errors, why: str) -> None:
    found = judged(GOOD | errors).verdict
    assert found.use == USE_NOTHING and why in found.why and "Record" in found.advice


def test_a_learner_that_gains_is_used_even_where_the_urdf_is_as_good_as_the_rigid_body() -> None:
    found = judged(GOOD | {"urdf": 0.19}).verdict
    assert found.use == USE_LEARNER and found.gains["urdf"]["frozen"].value == pytest.approx(
        0.277, 1e-2
    )


def test_of_a_few_seconds_nothing_is_said_and_a_split_that_is_too_short_has_no_verdict() -> None:
    config = from_flat(InverseDynamicsConfig, {"filter.cutoff": 6.0})
    found = evaluate(small_arm(), config, [list(measurements(small_arm(), 4.0))])
    assert found.verdict.use == USE_NOTHING
    assert "less than 2 s of motion" in found.verdict.why
    longer = evaluate(small_arm(), config, [list(measurements(small_arm(), 18.0, extra=0.3))])
    assert longer.verdict.use == USE_LEARNER
    assert longer.results()["verdict"]["use"] == USE_LEARNER
    # The motion comes back every 5 s.
    assert "repeats what was learned: record other motion" in longer.verdict.why
    assert "repeats" not in judged(GOOD).verdict.why


@pytest.mark.parametrize(
    ("factor", "kind", "joints"),
    [
        ([1.0, -1.0, 1.0, 1.0], "effort sign", 1),
        (4 * [-1.0], "effort sign", 4),
        (4 * [1000.0], "effort scale", 4),
        (4 * [0.02], "effort scale", 4),
    ],
)
def test_signs_and_units_that_contradict_the_urdf_are_the_verdict(factor, kind, joints) -> None:
    model = small_arm()
    wrong = [replace(m, y=m.y * factor) for m in measurements(model, 20.0)]
    evaluation = evaluate(model, CONFIG, [wrong])
    found = evaluation.verdict
    assert found.use == USE_NOTHING and "semiparam doctor" in found.advice
    assert found.why == f"The measurement contradicts the URDF on {joints} of 4 joints: {kind}."
    assert warnings_of(evaluation)[0].startswith(f"{kind}: ")


@pytest.mark.parametrize(
    ("urdf", "rigid_body", "said"),
    [
        (2.0, 0.6, True),  # of all joints
        (2.0, 0.2, False),
        (3.0, np.array([0.9, 0.05, 0.05, 0.05]), True),  # of this joint alone
        (3.0, np.array([0.6, 0.05, 0.05, 0.05]), False),
    ],
)
def test_a_joint_far_from_the_urdf_is_the_verdict_where_no_parameters_fit(
    urdf: float, rigid_body: object, said: bool
) -> None:
    errors = {"urdf": np.array([urdf, 0.5, 0.5, 0.5]), "rigid_body": rigid_body}
    start = "The measurement contradicts the URDF on 1 of 4 joints"
    assert judged(GOOD | errors).verdict.why.startswith(start) == said


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (Ratio(0.8, 0.7, 0.9), "20 % less squared error (10 to 30 % less)"),
        (Ratio(0.98, 0.9, 1.04), "2 % less squared error (4 % more to 10 % less)"),
        (Ratio(1.2, 1.1, 1.3), "20 % more squared error (10 to 30 % more)"),
        (Ratio(1.0, 1.0, 1.0), "the same squared error"),
        (Ratio(0.02, 0.01, 0.04), "1/50 of the squared error"),
        (Ratio(17.0, 16.0, 20.0), "17 times the squared error"),
    ],
)
def test_ratios_in_words(ratio: Ratio, words: str) -> None:
    assert ratio.words() == words
