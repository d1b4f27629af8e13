"""Whatever the learner says, the correction stays within its bounds and moves smoothly."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.control.computed_torque import (
    NO_ANSWER,
    NOT_FINITE,
    LearnedCorrection,
    trust,
)
from semiparam_dynamics.control.config import TrustConfig

LARGEST, RATE = np.array([5.0, 0.5]), np.array([50.0, 2.0])
anything = st.floats(allow_nan=True, allow_infinity=True)
answer = st.none() | st.tuples(st.tuples(anything, anything), st.tuples(anything, anything))
moment = st.tuples(answer, st.floats(0.0, 0.1), st.floats(-100.0, 100.0), st.floats(0.0, 1e3))


@settings(max_examples=200, deadline=None)
@given(st.lists(moment, max_size=30), st.floats(0.0, 2.0))
def test_never_beyond_its_size_its_rate_and_its_fade(moments, fade_time):
    correction = LearnedCorrection(LARGEST, RATE, TrustConfig(fade_time=fade_time))
    before, share = correction.value, correction.share
    for said, dt, urdf, usual in moments:
        learned, std = (None, None) if said is None else (np.array(half) for half in said)
        value = correction.advance(dt, np.full(2, urdf), learned, std, np.full(2, usual))
        assert np.isfinite(value).all()
        assert (np.abs(value) <= LARGEST).all()
        assert (np.abs(value - before) <= RATE * dt * (1.0 + 1e-9) + 1e-12).all()
        assert ((correction.share >= 0.0) & (correction.share <= 1.0)).all()
        if fade_time > dt:
            assert (np.abs(correction.share - share) <= dt / fade_time + 1e-12).all()
        before, share = value, correction.share


def test_a_sure_learner_is_followed_and_a_silent_one_left_within_the_fade_time():
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


def test_an_unsure_joint_alone_goes_back():
    correction = LearnedCorrection(np.full(2, 9.0), np.full(2, 1e6), TrustConfig(fade_time=0.0))
    std, usual = np.array([0.1, 5.0]), np.ones(2)
    value = correction.advance(0.01, np.zeros(2), np.ones(2), std, usual)
    np.testing.assert_allclose(value, [1.0, 0.0])


def test_trust_falls_from_sure_to_unsure():
    config = TrustConfig(sure=0.5, unsure=1.0)
    ratio = np.array([0.0, 0.5, 0.6, 0.75, 1.0, 3.0, np.inf])
    np.testing.assert_allclose(
        trust(ratio * 4.0, np.full(7, 4.0), config), [1.0, 1.0, 0.8, 0.5, 0.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(trust(np.ones(1), np.zeros(1), config), 0.0)
    step = TrustConfig(sure=0.5, unsure=0.2)
    np.testing.assert_array_equal(trust(np.array([0.5, 0.51]), np.ones(2), step), [1.0, 0.0])
