"""The desired motion: circles are circles, derivatives are derivatives, limits are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.simulation.config import MotionConfig
from semiparam_dynamics.simulation.trajectories import HandKinematics, Trajectory, make_trajectory
from semiparam_dynamics.simulation.urdf import SimulatedArm, without_meshes

DATA = Path(__file__).resolve().parent.parent / "data"


@pytest.fixture(scope="module")
def hand() -> HandKinematics:
    arm = SimulatedArm(
        without_meshes(str(DATA / "seven_joint_arm.urdf")), hand_frame="wrist_sensor"
    )
    return HandKinematics(arm.moving_part(), arm.joints, arm.hand_frame, (0.0, 0.05, 0.1))


@pytest.fixture(scope="module")
def varied(hand: HandKinematics) -> list[Trajectory]:
    """Varied circles of two seeds."""
    return [make_trajectory(MotionConfig(variation=0.1), hand, seed) for seed in range(2)]


def positions(hand: HandKinematics, q: np.ndarray) -> np.ndarray:
    return np.array([hand.position(row) for row in q])


def test_jacobian_is_the_positions_derivative(hand: HandKinematics) -> None:
    q = hand.middle + 0.1
    steps = 1e-6 * np.eye(len(q))
    numeric = np.array([(hand.position(q + s) - hand.position(q - s)) / 2e-6 for s in steps]).T
    np.testing.assert_allclose(hand.jacobian(q), numeric, atol=1e-8)


def test_an_arm_of_one_joint_draws_no_circles_and_says_so() -> None:
    arm = SimulatedArm(without_meshes(str(DATA / "seven_joint_arm.urdf")), ("joint2",))
    one = HandKinematics(arm.moving_part(), arm.joints, arm.hand_frame)
    assert one.jacobian(one.middle).shape == (3, 1)
    with pytest.raises(ConfigurationError, match="can't draw a circle with a radius of 0.1 m"):
        make_trajectory(MotionConfig(), one, 0)
    q, _, _ = make_trajectory(MotionConfig(motion="exciting"), one, 0)(np.arange(3.0))
    assert q.shape == (3, 1)


def test_inverse_kinematics_reaches_and_stays_nearest_to_rest(hand: HandKinematics) -> None:
    rest = hand.middle
    target = hand.position(rest) + [0.05, -0.05, 0.02]
    q = hand.solve(target, rest, rest)
    np.testing.assert_allclose(hand.position(q), target, atol=1e-9)
    # At the nearest solution, the way to rest (by range) has no part in the null space.
    span = hand.upper - hand.lower
    free = np.linalg.svd(hand.jacobian(q) * span)[2][3:]
    np.testing.assert_allclose(free @ ((rest - q) / span), 0.0, atol=1e-7)


def test_inverse_kinematics_says_what_is_out_of_reach(hand: HandKinematics) -> None:
    with pytest.raises(ConfigurationError, match="can't reach"):
        hand.solve(np.array([5.0, 0.0, 0.0]), hand.middle, hand.middle)


@pytest.mark.parametrize(("motion", "flat"), [("circle_xy", 2), ("circle_xz", 1)])
def test_circle_has_radius_speed_and_plane(hand: HandKinematics, motion: str, flat: int) -> None:
    config = MotionConfig(motion=motion, variation=0.0)
    trajectory = make_trajectory(config, hand, 0)
    t = 2.0 + np.arange(0.0, 2.0 * np.pi / 6.0, 0.005)
    points = positions(hand, trajectory(t)[0])
    assert np.ptp(points[:, flat]) < 1e-6
    center = 0.5 * (points.max(axis=0) + points.min(axis=0))
    np.testing.assert_allclose(np.linalg.norm(points - center, axis=1), 0.1, atol=1e-5)
    speed = np.linalg.norm(np.diff(points, axis=0), axis=1) / 0.005
    np.testing.assert_allclose(speed, 0.6, rtol=1e-3)


def test_circles_vary_slowly_within_their_bounds(
    hand: HandKinematics, varied: list[Trajectory]
) -> None:
    exact = make_trajectory(MotionConfig(variation=0.0), hand, 0)
    center = positions(hand, exact(np.linspace(2.0, 2.0 + np.pi / 3.0, 64, endpoint=False))[0])
    t = np.arange(2.0, 122.0, 0.05)
    away = positions(hand, varied[0](t)[0]) - center.mean(axis=0)
    distance = np.linalg.norm(away[:, :2], axis=1)
    assert 0.005 < np.ptp(distance) and np.abs(distance - 0.1).max() < 0.03
    assert 0.001 < np.abs(away[:, 2]).max() < 0.013
    assert np.abs(varied[1](t)[0] - varied[0](t)[0]).max() > 0.01


@pytest.mark.parametrize("motion", ["circle_xy", "exciting"])
def test_derivatives_and_start_from_rest(
    hand: HandKinematics, varied: list[Trajectory], motion: str
) -> None:
    exciting = make_trajectory(MotionConfig(motion="exciting"), hand, 3)
    trajectory = exciting if motion == "exciting" else varied[1]
    h = 1e-4
    t = np.linspace(2 * h, 8.0, 300)
    q, dq, ddq = trajectory(t)
    ahead, behind = trajectory(t + h), trajectory(t - h)
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), dq, atol=1e-4)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), ddq, atol=2e-3)
    start = trajectory(np.zeros(1))
    np.testing.assert_array_equal(start[1], 0.0)
    np.testing.assert_array_equal(start[2], 0.0)


def test_trajectory_without_ramp_is_the_path() -> None:
    def path(s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return s[:, None] ** 2, 2.0 * s[:, None], 2.0 + 0.0 * s[:, None]

    t = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(Trajectory(path, 0.0)(t)[0][:, 0], t**2)
    # A ramp of 2 s takes half of its time away.
    np.testing.assert_allclose(Trajectory(path, 2.0)(np.array([3.0]))[0], [[4.0]])


def test_exciting_motion_keeps_range_and_velocity(hand: HandKinematics) -> None:
    config = MotionConfig(motion="exciting", excitation=0.8, max_velocity=1.0, period=10.0)
    q, dq, _ = make_trajectory(config, hand, 5)(np.arange(2.0, 22.0, 0.01))
    half = 0.4 * (hand.upper - hand.lower)
    reached = np.abs(q - hand.middle).max(axis=0) / half
    fastest = np.abs(dq).max(axis=0)
    assert reached.max() < 1.001 and fastest.max() < 1.001
    np.testing.assert_allclose(np.maximum(reached, fastest), 1.0, atol=0.01)
    np.testing.assert_allclose(q[0], q[1000], atol=1e-9)


def test_impossible_circles_are_refused(hand: HandKinematics) -> None:
    config = MotionConfig(variation=0.0)
    with pytest.raises(ConfigurationError, match="center"):
        make_trajectory(config, hand, 0, center=(3.0, 0.0, 0.0))
    with pytest.raises(ConfigurationError, match="3 numbers"):
        make_trajectory(config, hand, 0, center=(3.0, 0.0))
