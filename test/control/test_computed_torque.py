"""The controller's equation, its bounds, and the learner's bounded and smooth correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.control.computed_torque import (
    BOUNDED,
    NO_ANSWER,
    NOT_FINITE,
    NOT_MEASURED,
    LearnedCorrection,
    trust,
)
from semiparam_dynamics.control.config import TrustConfig
from semiparam_dynamics.control.plan import Answer, Point
from semiparam_dynamics.robot.model import RobotModel

from .arm import DATA, controller

MODEL = RobotModel(str(DATA / "small_arm.urdf"))
N = MODEL.n_joints
numbers = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=N, max_size=N)
finite = st.lists(st.floats(-1e6, 1e6), min_size=N, max_size=N)

LARGEST, RATE = np.array([5.0, 0.5]), np.array([50.0, 2.0])
anything = st.floats(allow_nan=True, allow_infinity=True)
answer = st.none() | st.tuples(st.tuples(anything, anything), st.tuples(anything, anything))
moment = st.tuples(answer, st.floats(0.0, 0.1), st.floats(-100.0, 100.0), st.floats(0.0, 1e3))


def point(q, dq, urdf, answer=None) -> Point:
    return Point(*(np.asarray(part, dtype=float) for part in (q, dq, urdf)), np.ones(N), answer)


def test_feed_forward_and_inertia_weighted_feedback():
    control = controller(MODEL, gains__bandwidth=(7.0,), gains__rotor_inertia=(0.5,))
    rng = np.random.default_rng(0)
    q, dq, desired, velocity, urdf = rng.normal(size=(5, N))
    inertia = rng.uniform(0.1, 2.0, N)
    effort = control.command(0.0, q, dq, Point(desired, velocity, urdf, inertia, None))
    mass = inertia + 0.5
    expected = urdf + mass * 49.0 * (desired - q) + mass * 14.0 * (velocity - dq)
    np.testing.assert_allclose(effort, np.clip(expected, -control.limit, control.limit))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(numbers, numbers, finite, numbers, numbers), max_size=10))
def test_no_command_is_beyond_its_bound_or_not_a_number(moments):
    control = controller(MODEL, bounds__effort=(11.0,))
    np.testing.assert_array_equal(control.limit, 11.0)
    for k, (q, dq, urdf, learned, std) in enumerate(moments):
        answer = Answer(np.array(learned), np.array(std))
        with np.errstate(all="ignore"):
            effort = control.command(
                0.01 * k, np.array(q), np.array(dq), point(q, dq, urdf, answer)
            )
        assert np.isfinite(effort).all()
        assert (np.abs(effort) <= 11.0).all()


def test_the_urdfs_limits_bound_and_what_happens_is_counted():
    control = controller(MODEL, bounds__effort_share=0.5)
    np.testing.assert_allclose(control.limit[1:], 43.5)  # 87 N m in the URDF
    assert control.limit[0] > 1e299  # a joint without a limit
    nothing = np.zeros(N)
    control.command(0.0, nothing, nothing, point(nothing, nothing, nothing))
    assert not control.counts[BOUNDED]
    effort = control.command(0.002, nothing, nothing, point(nothing, nothing, np.full(N, 50.0)))
    np.testing.assert_allclose(effort, [50.0, 43.5, 43.5, 43.5])
    assert control.counts[BOUNDED] == 1
    lost = np.full(N, np.nan)
    effort = control.command(0.004, lost, nothing, point(nothing, nothing, np.full(N, 3.0)))
    np.testing.assert_allclose(effort, 3.0)
    assert control.counts[NOT_MEASURED] == 1
    assert control.commands == 3


def test_a_learner_better_than_the_urdf_is_followed_and_a_worse_one_is_not():
    nothing = np.zeros(N)
    for std, share in ((0.1, 1.0), (30.0, 0.0)):
        control = controller(MODEL)
        answer = Answer(np.full(N, 2.0), np.full(N, std))
        for k in range(2000):
            # The joints lag: the feedback supplies what the URDF's feed-forward lacks.
            behind = point(np.full(N, 0.005), nothing, nothing, answer)
            control.command(0.002 * k, nothing, nothing, behind)
        np.testing.assert_allclose(control.correction.share, share)
        assert control.followed / control.commands == pytest.approx(share, abs=0.1)


def test_the_urdf_alone_uses_no_answer():
    control = controller(MODEL, feedforward="urdf")
    nothing = np.zeros(N)
    answer = Answer(np.full(N, 2.0), np.full(N, 1e-9))
    for k in range(100):
        control.command(0.002 * k, nothing + 0.1, nothing, point(nothing, nothing, nothing, answer))
    assert not control.correction.value.any() and not control.correction.counts.total()


def test_parameters_for_another_number_of_joints_are_refused():
    with pytest.raises(ConfigurationError, match=r"gains\.bandwidth.*one for each of the"):
        controller(MODEL, gains__bandwidth=(1.0, 2.0))


@settings(max_examples=200, deadline=None)
@given(st.lists(moment, max_size=30), st.floats(0.0, 2.0))
def test_never_beyond_its_size_its_rate_and_its_fade(moments, fade_time):
    correction = LearnedCorrection(LARGEST, RATE, TrustConfig(fade_time=fade_time))
    before, share = correction.value, correction.share
    for said, dt, urdf, usual in moments:
        learned, std = (None, None) if said is None else (np.array(half) for half in said)
        with np.errstate(over="ignore"):
            value = correction.advance(dt, np.full(2, urdf), learned, std, np.full(2, usual))
        assert np.isfinite(value).all()
        assert (np.abs(value) <= LARGEST).all()
        assert (np.abs(value - before) <= RATE * dt * (1.0 + 1e-9) + 1e-12).all()
        assert ((correction.share >= 0.0) & (correction.share <= 1.0)).all()
        if fade_time > dt:
            assert (np.abs(correction.share - share) <= dt / fade_time + 1e-12).all()
        before, share = value, correction.share


def test_a_sure_learner_is_followed_and_a_missing_one_left_within_the_fade_time():
    correction = LearnedCorrection(np.full(2, 9.0), np.full(2, 1e6), TrustConfig(fade_time=0.2))
    urdf, learned, std = np.array([1.0, -2.0]), np.array([3.0, 1.0]), np.full(2, 0.01)
    values = [correction.advance(0.01, urdf, learned, std, np.ones(2)) for _ in range(20)]
    np.testing.assert_allclose(values[9], 0.5 * (learned - urdf))
    np.testing.assert_allclose(values[-1], learned - urdf)
    fading = [correction.advance(0.01, urdf, None, None, np.ones(2)) for _ in range(20)]
    np.testing.assert_allclose(fading[9], 0.5 * (learned - urdf))
    np.testing.assert_allclose(fading[-1], 0.0, atol=1e-12)
    assert correction.counts[NO_ANSWER] == 20
    correction.advance(0.01, urdf, np.array([np.nan, 1.0]), std, np.ones(2))
    assert correction.counts[NOT_FINITE] == 1


def test_only_the_joint_that_is_unsure_returns_to_the_urdf():
    correction = LearnedCorrection(np.full(2, 9.0), np.full(2, 1e6), TrustConfig(fade_time=0.0))
    std, usual = np.array([0.1, 5.0]), np.ones(2)
    value = correction.advance(0.01, np.zeros(2), np.ones(2), std, usual)
    np.testing.assert_allclose(value, [1.0, 0.0])


def test_trust_falls_from_sure_to_unsure():
    config = TrustConfig(sure=0.5, unsure=1.0)
    ratio = np.array([1e-9, 0.5, 0.6, 0.75, 1.0, 3.0, np.inf])
    np.testing.assert_allclose(
        trust(ratio * 4.0, np.full(7, 4.0), config), [1.0, 1.0, 0.8, 0.5, 0.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(trust(np.ones(1), np.zeros(1), config), 0.0)
    step = TrustConfig(sure=0.5, unsure=0.2)
    np.testing.assert_array_equal(trust(np.array([0.5, 0.51]), np.ones(2), step), [1.0, 0.0])


@pytest.mark.parametrize("unsure", [1.0, 0.5])
def test_a_learner_that_has_learned_nothing_is_not_followed(unsure: float):
    """Its standard deviations are 0, and so are its efforts: the arm would fall."""
    control, nothing = controller(MODEL, trust__unsure=unsure), np.zeros(N)
    held = np.full(N, 20.0)
    for k in range(500):
        answer = Answer(nothing, nothing)
        effort = control.command(0.002 * k, nothing, nothing, point(nothing, nothing, held, answer))
        np.testing.assert_array_equal(effort, held)
