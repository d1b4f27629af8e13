"""The controller's equation, and that no command exceeds its bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.control.computed_torque import BOUNDED, NOT_MEASURED
from semiparam_dynamics.control.plan import Answer, Point
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.robot.model import RobotModel

from .arm import DATA, controller

MODEL = RobotModel(str(DATA / "small_arm.urdf"))
N = MODEL.n_joints
numbers = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=N, max_size=N)
finite = st.lists(st.floats(-1e6, 1e6), min_size=N, max_size=N)


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


def test_urdf_alone_asks_nobody():
    control = controller(MODEL, feedforward="urdf")
    nothing = np.zeros(N)
    answer = Answer(np.full(N, 2.0), np.full(N, 1e-9))
    for k in range(100):
        control.command(0.002 * k, nothing + 0.1, nothing, point(nothing, nothing, nothing, answer))
    assert not control.correction.value.any() and not control.correction.counts.total()


def test_parameters_for_another_number_of_joints_are_refused():
    with pytest.raises(ConfigurationError, match=r"gains\.bandwidth.*one for each of the"):
        controller(MODEL, gains__bandwidth=(1.0, 2.0))
