"""The Fourier series against differences and sums; limits, and what the URDF leaves out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.offline.identification.joint_motion import (
    FourierTrajectory,
    FreeJointsConfig,
    motion_limits,
    resting_directions,
    series_basis,
)
from semiparam_dynamics.robot.model import RobotModel

from ...dynamics.arms import URDF

TEXT = URDF.read_text()
LIFT = '<limit lower="-1.5" upper="1.5" effort="87" velocity="2"/>'


def random_series(seed: int = 0, harmonics: int = 4, joints: int = 3) -> FourierTrajectory:
    coefficients = np.random.default_rng(seed).standard_normal((2 * harmonics + 1, joints))
    return FourierTrajectory(coefficients, period=7.0)


def test_it_is_the_sum_of_sines_and_cosines() -> None:
    series = random_series()
    q, _, _ = series([1.3])
    for joint, (offset, *rest) in enumerate(series.coefficients.T):
        expected = offset
        for k in range(1, 5):
            angle = 2 * math.pi * k * 1.3 / 7.0
            expected += rest[k - 1] * math.sin(angle) + rest[4 + k - 1] * math.cos(angle)
        assert q[0, joint] == pytest.approx(expected, rel=1e-12)


def test_velocity_acceleration_and_jerk_are_the_derivatives() -> None:
    series, h, t = random_series(), 1e-5, np.linspace(0.0, 7.0, 50)
    slopes = (np.array(series(t + h)) - np.array(series(t - h))) / (2 * h)
    expected = [*series(t)[1:], series.jerk(t)]
    np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-6)


def test_periods_repeat_after_hours() -> None:
    series = random_series()
    t = np.linspace(0.0, 7.0, 20)
    for early, late in zip(series(t), series(t + 7.0 * 10_000), strict=True):
        np.testing.assert_allclose(late, early, atol=1e-9)


@pytest.mark.parametrize("harmonics", [2, 5, 20])
def test_resting_directions_are_all_that_rest(harmonics: int) -> None:
    directions = resting_directions(harmonics)
    assert directions.shape == (2 * harmonics + 1, 2 * harmonics - 1)
    np.testing.assert_allclose(directions.T @ directions, np.eye(2 * harmonics - 1), atol=1e-12)
    np.testing.assert_array_equal(directions[:, 0], np.eye(2 * harmonics + 1)[0])  # the offset
    for t in (0.0, 7.0):
        _, velocity, acceleration, _ = series_basis([t], harmonics, 7.0)
        np.testing.assert_allclose(velocity @ directions, 0.0, atol=1e-11)
        np.testing.assert_allclose(acceleration @ directions, 0.0, atol=1e-10)


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


def test_limits_of_acceleration_and_jerk_are_those_of_urdf_1_2() -> None:
    given = 'effort="87" acceleration="4" deceleration="3" jerk="20"'
    text = TEXT.replace('effort="87"', given, 1)
    limits = motion_limits(text, RobotModel(text))
    index = int(np.flatnonzero(np.isfinite(limits.jerk)).item())
    assert (limits.acceleration[index], limits.jerk[index]) == (3.0, 20.0)
    assert np.isinf(np.delete(limits.acceleration, index)).all()
    usable = limits.scaled(0.1, 0.5, 0.5)
    assert (usable.acceleration[index], usable.jerk[index]) == (3.0, 20.0)
    broken = text.replace('jerk="20"', 'jerk="much"')
    with pytest.raises(RobotModelError, match="limit of jerk that is no number: 'much'"):
        motion_limits(broken, RobotModel(broken))


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
    with pytest.raises(RobotModelError, match="'lift' .* limit of effort that is no number"):
        motion_limits(words, RobotModel(words))
    endless = TEXT.replace('lower="0" upper="0.2"', 'lower="0" upper="0"')
    with pytest.raises(RobotModelError, match="'reach' has no position limits"):
        motion_limits(endless, RobotModel(endless))
    given = motion_limits(endless, RobotModel(endless), ranges={"reach": (0.0, 0.3)})
    assert given.upper[2] == 0.3


@pytest.mark.parametrize(
    ("stops", "used"),
    [
        ((-0.2, 13.0), (-0.2, np.pi)),
        ((-13.0, 0.2), (-np.pi, 0.2)),
        ((-7.0, 7.0), (-np.pi, np.pi)),
        ((5.0, 20.0), (5.0, 5.0 + np.pi)),
        ((-20.0, -5.0), (-5.0 - np.pi, -5.0)),
    ],
)
def test_limits_wider_than_two_turns_are_kept(stops, used) -> None:
    text = TEXT.replace('lower="-1.5" upper="1.5"', f'lower="{stops[0]}" upper="{stops[1]}"', 1)
    model = RobotModel(text)
    lift = model.joint_names.index("lift")
    limits = motion_limits(text, model)
    assert (limits.lower[lift], limits.upper[lift]) == pytest.approx(used)
    (told,) = (warning for warning in limits.warnings if "lift" in warning)
    assert "wider than two turns" in told and "no position limit" not in told
    with pytest.raises(ConfigurationError, match="beyond the URDF's limits"):
        motion_limits(text, model, ranges={"lift": (stops[0] - 0.1, stops[1])})
    far = (stops[1] - 1.0, stops[1])
    given = motion_limits(text, model, ranges={"lift": far})
    assert (given.lower[lift], given.upper[lift]) == far
    assert not any("lift" in warning for warning in given.warnings)


def test_a_long_axis_keeps_its_range() -> None:
    """Two turns are no measure of metres."""
    slide = 'lower="0" upper="0.2"'
    text = TEXT.replace(slide, 'lower="0" upper="13"')
    model = RobotModel(text, joints=("lift", "reach"))
    assert (model.position_limits[0][1], model.position_limits[1][1]) == (0.0, 13.0)
    limits = motion_limits(text, model)
    assert (limits.lower[1], limits.upper[1], limits.warnings) == (0.0, 13.0, ())
    none = TEXT.replace(slide, 'lower="-1e9" upper="1e9"')
    assert np.isinf(RobotModel(none, joints=("reach",)).position_limits).all()
    with pytest.raises(RobotModelError, match="'reach' has position limits more than 100 m apart"):
        motion_limits(none, RobotModel(none))


def test_where_the_arm_may_be_parked_is_not_narrowed() -> None:
    text = TEXT.replace('lower="0" upper="0.2"', 'lower="0" upper="0"')
    model = RobotModel(text, joints=("slew", "lift", "reach"))
    ranges = {"lift": (1.0, 1.3), "reach": (0.1, 0.3), "slew": (3.0, 4.0)}
    usable = motion_limits(text, model, ranges=ranges).scaled(0.1, 0.8, 0.6)
    assert usable.parked is not None
    np.testing.assert_allclose(usable.parked, [[-np.pi, -1.5, 0.1], [4.0, 1.5, 0.3]])
    np.testing.assert_allclose(usable.lower, [3.1, 1.03, 0.12])
