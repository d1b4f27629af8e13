"""Limits from the URDF, narrowed, scaled, and what is said where the URDF is silent."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.identification.motion_limits import FreeJointsConfig, motion_limits
from semiparam_dynamics.robot.model import RobotModel

from ..dynamics.arms import URDF

TEXT = URDF.read_text()
LIFT = '<limit lower="-1.5" upper="1.5" effort="87" velocity="2"/>'


def test_they_are_the_urdf_s_in_the_joints_order() -> None:
    limits = motion_limits(TEXT, RobotModel(TEXT, joints=("reach", "lift")))
    np.testing.assert_array_equal(limits.lower, [0.0, -1.5])
    np.testing.assert_array_equal(limits.upper, [0.2, 1.5])
    np.testing.assert_array_equal(limits.velocity, [2.0, 2.0])
    np.testing.assert_array_equal(limits.effort, [87.0, 87.0])
    assert limits.warnings == ()


def test_a_continuous_joint_gets_limits_and_a_warning() -> None:
    model = RobotModel(TEXT)
    limits = motion_limits(TEXT, model, free=FreeJointsConfig(free_range=2.0, free_velocity=0.5))
    assert (limits.lower[0], limits.upper[0], limits.velocity[0]) == (-2.0, 2.0, 0.5)
    assert np.isinf(limits.effort[0])
    assert len(limits.warnings) == 3 and all("slew" in text for text in limits.warnings)
    assert not any("lift" in text for text in limits.warnings)


def test_the_usable_part() -> None:
    limits = motion_limits(TEXT, RobotModel(TEXT, joints=("lift", "reach")))
    usable = limits.scaled(0.1, 0.8, 0.5)
    np.testing.assert_allclose(usable.lower, [-1.2, 0.02])
    np.testing.assert_allclose(usable.upper, [1.2, 0.18])
    np.testing.assert_allclose(usable.velocity, 1.6)
    np.testing.assert_allclose(usable.effort, 43.5)


def test_a_range_narrows() -> None:
    model = RobotModel(TEXT)
    limits = motion_limits(TEXT, model, ranges={"slew": (-0.3, 0.4), "lift": (0.0, 1.0)})
    np.testing.assert_array_equal(limits.lower[:2], [-0.3, 0.0])
    np.testing.assert_array_equal(limits.upper[:2], [0.4, 1.0])
    assert not any("position" in text for text in limits.warnings)


@pytest.mark.parametrize(
    ("name", "bounds", "said"),
    [
        ("lfit", (0.0, 1.0), "the joints are slew, lift"),
        ("lift", (1.0, 1.0), "no extent"),
        ("lift", (float("nan"), 1.0), "no extent"),
        ("lift", (-1.6, 1.0), "beyond the URDF's limits, -1.5 to 1.5"),
    ],
)
def test_a_wrong_range_is_refused(name: str, bounds: tuple[float, float], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        motion_limits(TEXT, RobotModel(TEXT), ranges={name: bounds})


def test_limits_that_are_none() -> None:
    assert LIFT in TEXT
    words = TEXT.replace(LIFT, LIFT.replace('"87"', '"much"'))
    with pytest.raises(RobotModelError, match="effort limit of joint 'lift' is no number"):
        motion_limits(words, RobotModel(words))
    endless = TEXT.replace('lower="0" upper="0.2"', 'lower="0" upper="0"')
    with pytest.raises(RobotModelError, match="'reach' has no position limits"):
        motion_limits(endless, RobotModel(endless))
    given = motion_limits(endless, RobotModel(endless), ranges={"reach": (0.0, 0.3)})
    assert given.upper[2] == 0.3
