"""The way to a motion, and wrong masses."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.control.comparison import with_wrong_masses
from semiparam_dynamics.control.plan import Approach, trajectory_of
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.config import MotionConfig

from .arm import JOINTS, SEVEN


def test_approach_begins_where_the_arm_stands_without_jumps():
    motion = MotionConfig(motion="exciting")
    trajectory = trajectory_of(SEVEN, JOINTS, motion, seed=1)
    start = trajectory(np.zeros(1))[0][0] + np.array([0.5, -0.2, 0.0, 0.1])
    approach = Approach(start, trajectory, speed=0.4)
    assert approach.duration == pytest.approx(1.875 * 0.5 / 0.4)
    t = np.arange(0.0, approach.duration + 3.0, 1e-3)
    q, dq, ddq = approach(t)
    np.testing.assert_allclose(q[0], start)
    assert not dq[0].any() and not ddq[0].any()
    np.testing.assert_allclose(np.gradient(q, t, axis=0)[1:-1], dq[1:-1], atol=2e-5)
    np.testing.assert_allclose(np.gradient(dq, t, axis=0)[1:-1], ddq[1:-1], atol=5e-3)
    on_the_way = t < approach.duration
    assert np.abs(dq[on_the_way]).max() == pytest.approx(0.4, rel=1e-3)
    later = t[~on_the_way]
    np.testing.assert_array_equal(q[~on_the_way], trajectory(later - approach.duration)[0])


def test_wrong_masses_move_every_link_and_nothing_else():
    right = RobotModel(SEVEN, joints=JOINTS)
    wrong = RobotModel(with_wrong_masses(right.urdf_text, 0.1, 0.3, seed=2), joints=JOINTS)
    first, second = (m.inertial_prior.reshape(-1, 10) for m in (right, wrong))
    ratio = second[:-1, 0] / first[:-1, 0]  # the last body is several links, each its own way off
    assert ((np.abs(ratio - 1.0) >= 0.1) & (np.abs(ratio - 1.0) <= 0.3)).all()
    assert (ratio > 1.0).any() and (ratio < 1.0).any()
    np.testing.assert_allclose(second[:-1], ratio[:, None] * first[:-1], rtol=1e-9)
    assert right.joint_names == wrong.joint_names
    same = RobotModel(with_wrong_masses(right.urdf_text, 0.0, 0.0, seed=2), joints=JOINTS)
    np.testing.assert_array_equal(same.inertial_prior, right.inertial_prior)
    with pytest.raises(ConfigurationError, match="wrong by"):
        with_wrong_masses(right.urdf_text, 0.3, 0.1, seed=0)
