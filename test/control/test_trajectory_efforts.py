"""Efforts in a trajectory's points against pinocchio, and motion between them against scipy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.interpolate import BPoly

from semiparam_dynamics.base.errors import ConfigurationError, SampleError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.control.config import TrajectoryEffortsConfig
from semiparam_dynamics.control.plan import Answer
from semiparam_dynamics.control.trajectory_efforts import (
    TrajectoryEfforts,
    Waypoints,
    resampled,
    rigid_efforts,
    states_at,
)
from semiparam_dynamics.robot.model import RobotModel

from .arm import JOINTS, SEVEN

ROWS = 20
TILTED = (1.0, -2.0, -9.0)


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel(SEVEN, joints=JOINTS, gravity=TILTED)


@pytest.fixture
def states() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, ROWS, len(JOINTS)))


def made(model: RobotModel, **changes: object) -> TrajectoryEfforts:
    config = replace(TrajectoryEffortsConfig(), **{"gravity": "include", **changes})
    return TrajectoryEfforts(model, config)


def test_gravity_is_taken_off_as_the_urdf_has_it(model, states) -> None:
    kinematics = model.kinematics
    data = kinematics.createData()
    whole = np.array([pin.rnea(kinematics, data, *state) for state in zip(*states, strict=True)])
    np.testing.assert_allclose(rigid_efforts(model, *states), whole, atol=1e-9)
    held = [pin.computeGeneralizedGravity(kinematics, data, q).copy() for q in states[0]]
    friction = np.full_like(whole, 1.5)
    answer = Answer(whole + friction, np.full_like(whole, 0.1))
    efforts, told = made(model)(states[0], answer)
    assert not told
    np.testing.assert_allclose(efforts, whole + friction, atol=1e-9)
    without, _ = made(model, gravity="exclude")(states[0], answer)
    np.testing.assert_allclose(without, whole + friction - held, atol=1e-9)


def test_neither_what_is_sent_nor_what_is_exerted_is_beyond_the_limits(model, states) -> None:
    limits = np.array([87.0] * len(JOINTS))  # of the file
    data = model.kinematics.createData()
    held = [pin.computeGeneralizedGravity(model.kinematics, data, q).copy() for q in states[0]]
    answer = Answer(np.where(states[1] > 0.0, 1e6, -1e6), np.full_like(states[1], 0.1))
    for share in (1.0, 0.5):
        efforts, _ = made(model, effort_share=share)(states[0], answer)
        np.testing.assert_allclose(np.abs(efforts), np.tile(share * limits, (ROWS, 1)))
        sent, _ = made(model, effort_share=share, gravity="exclude")(states[0], answer)
        assert (np.abs(sent) <= share * limits).all()
        assert (np.abs(sent + held) <= share * limits + 1e-9).all()
    efforts, _ = made(model, effort=(10.0, 20.0, 30.0, 200.0))(states[0], answer)
    np.testing.assert_allclose(np.abs(efforts), np.tile([10.0, 20.0, 30.0, 87.0], (ROWS, 1)))
    with pytest.raises(ConfigurationError, match="'effort' needs one number"):
        made(model, effort=(1.0, 2.0))


def test_joints_that_the_learner_is_unsure_of_get_none(model, states) -> None:
    stds = np.full_like(states[1], 0.1)
    stds[7, 2] = 8.8  # 87 N m and a tenth
    efforts, told = made(model)(states[0], Answer(states[1], stds))
    assert not efforts[:, 2].any()
    np.testing.assert_array_equal(efforts[:, [0, 1, 3]], states[1][:, [0, 1, 3]])
    assert told == "no efforts for joint3: the learner is unsure of it"
    stds[7, 2] = 8.6
    assert made(model)(states[0], Answer(states[1], stds))[1] == ""
    stds[:, 1] = 0.0
    efforts, told = made(model)(states[0], Answer(states[1], stds))
    assert not efforts[:, 1].any() and "has learned nothing" in told and "joint2" in told


def test_answers_that_are_none_are_refused(model, states) -> None:
    stds = np.full_like(states[1], 0.1)
    with pytest.raises(SampleError, match="another size"):
        made(model)(states[0], Answer(states[1][1:], stds[1:]))
    for part in (states[1], stds):
        before, part[3, 1] = part[3, 1], np.nan
        with pytest.raises(SampleError, match="not finite"):
            made(model)(states[0], Answer(states[1], stds))
        part[3, 1] = before


# -------------------------------------------------------------------------------------------------
# The motion between points.

K, N = 7, 3
NANO = 1e-9
MOST = 1000


def given(degree: int, seed: int = 0) -> Waypoints:
    """Random points at random times, with as many derivatives as the degree needs."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.integers(100_000_000, 700_000_000, K))
    q, dq, ddq = rng.normal(size=(3, K, N))
    missing = np.full((K, N), np.nan)
    return Waypoints(times, q, dq if degree > 1 else missing, ddq if degree > 3 else missing)


def motion(points: Waypoints) -> BPoly:
    """The trajectory (t in s) that scipy makes of positions and what derivatives there are."""
    rows = np.stack((points.q, points.dq, points.ddq), axis=1)
    kept = [row[np.isfinite(row).all(axis=1)] for row in rows]
    return BPoly.from_derivatives(NANO * points.times, kept)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_states_at_points_are_those_of_the_motion(degree: int) -> None:
    points = given(degree)
    q, dq, ddq = states_at(points)
    t, oracle = NANO * points.times, motion(points)
    np.testing.assert_array_equal(q, points.q)
    # Left and right of each inner point, in the middle between them.
    pieces = [BPoly(oracle.c[:, [i]], oracle.x[i : i + 2]) for i in range(K - 1)]
    for k, found in ((1, dq), (2, ddq)):
        after = np.array([piece.derivative(k)(t[i]) for i, piece in enumerate(pieces)])
        before = np.array([piece.derivative(k)(t[i + 1]) for i, piece in enumerate(pieces)])
        np.testing.assert_allclose(found[0], after[0], rtol=1e-9, atol=1e-9)
        mean = 0.5 * (after[1:] + before[:-1])
        np.testing.assert_allclose(found[1:-1], mean, rtol=1e-9, atol=1e-9)
        if degree > 1:  # a straight motion ends at rest
            np.testing.assert_allclose(found[-1], before[-1], rtol=1e-9, atol=1e-9)
    if degree == 1:
        assert not dq[-1].any() and not ddq.any()
    if degree > 1:
        np.testing.assert_allclose(dq, points.dq, atol=1e-9)
    if degree > 3:
        np.testing.assert_allclose(ddq, points.ddq, atol=1e-8)


def test_the_last_point_is_held_where_its_velocity_is_zero() -> None:
    points = given(3)
    points.dq[-1] = 0.0
    _, dq, ddq = states_at(points)
    assert not dq[-1].any() and not ddq[-1].any()
    only = Waypoints(points.times[:1], points.q[:1], points.dq[:1], points.ddq[:1])
    _, dq, ddq = states_at(only)
    np.testing.assert_array_equal(dq, points.dq[:1])
    assert not ddq.any()


def test_each_segment_has_the_degree_of_what_both_its_ends_have() -> None:
    points = given(5)
    points.ddq[2] = np.nan
    points.dq[4] = points.ddq[4] = np.nan
    fine = resampled(points, 0.01, MOST)
    place = np.searchsorted(points.times, fine.times, side="right") - 1
    for i, degree in enumerate((5, 3, 3, 1, 1, 5)):
        inside = (place == i) & (fine.times != points.times[i])
        assert inside.any()
        assert np.isfinite(fine.dq[inside]).all() == (degree > 1)
        assert np.isfinite(fine.ddq[inside]).all() == (degree > 3)
        ends = [
            [row[j] for row in (points.q, points.dq, points.ddq)[: (degree + 1) // 2]]
            for j in (i, i + 1)
        ]
        oracle = BPoly.from_derivatives(NANO * points.times[i : i + 2], ends)
        np.testing.assert_allclose(fine.q[inside], oracle(NANO * fine.times[inside]), atol=1e-9)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_added_points_change_nothing_in_the_motion(degree: int) -> None:
    points = given(degree)
    fine = resampled(points, 0.05, MOST)
    steps = np.diff(fine.times)
    assert steps.max() <= 50_000_000 and steps.min() > 25_000_000
    kept = np.isin(fine.times, points.times)
    assert kept.sum() == K
    for before, after in zip(
        (points.q, points.dq, points.ddq), (fine.q, fine.dq, fine.ddq), strict=True
    ):
        np.testing.assert_array_equal(after[kept], before)
    t = NANO * np.linspace(points.times[0], points.times[-1], 5000)
    np.testing.assert_allclose(motion(fine)(t), motion(points)(t), atol=1e-8)
    exact = motion(points).derivative()(NANO * fine.times[~kept])
    _, dq, _ = states_at(fine)
    np.testing.assert_allclose(dq[~kept], exact, atol=1e-8)


def test_there_are_never_too_many_points() -> None:
    points = given(3)
    for most in (K, K + 1, 12, 100):
        fine = resampled(points, 1e-6, most)
        assert K <= len(fine.times) <= most
        assert most < 100 or len(fine.times) > 80
    assert resampled(points, 0.0, MOST) is points
    centuries = Waypoints(np.array([0, 2**62]), points.q[:2], points.dq[:2], points.ddq[:2])
    assert len(resampled(centuries, 1e-3, MOST).times) <= MOST


def test_points_without_a_motion_are_refused() -> None:
    points = given(5)
    for times in (points.times[::-1].copy(), np.zeros(K, dtype=np.int64), points.times - 10**12):
        with pytest.raises(SampleError, match="must increase"):
            Waypoints(times, points.q, points.dq, points.ddq)
    with pytest.raises(SampleError, match="accelerations and no velocities"):
        Waypoints(points.times, points.q, np.full((K, N), np.nan), points.ddq)
    far = Waypoints(np.arange(K), 1e300 * points.q, points.dq, np.full((K, N), np.nan))
    with pytest.raises(SampleError, match="not finite"):
        states_at(far)


def test_a_joint_without_a_limit_gets_no_efforts_until_it_is_given_one(states) -> None:
    """Whatever the deviation, it is small beside a bound that is not known."""
    text = Path(SEVEN).read_text()
    boundless = text.replace('effort="87"', 'effort="0"', 1)
    assert boundless != text
    model, q = RobotModel(boundless, joints=JOINTS), states[0]
    answer = Answer(np.full_like(q, 20.0), np.full_like(q, 500.0))
    answer.stds[:, 1:] = 0.1
    efforts, told = made(model)(q, answer)
    assert (efforts[:, 0] == 0.0).all() and (efforts[:, 1:] == 20.0).all()
    assert told.startswith(f"no efforts for {JOINTS[0]}: the URDF has no effort limit of it")
    efforts, told = made(model, effort=(50.0,))(q, answer)
    assert (efforts[:, 0] == 0.0).all() and told.endswith("the learner is unsure of it")
    answer.stds[:, 0] = 0.1
    efforts, told = made(model, effort=(50.0,))(q, answer)
    assert (efforts == 20.0).all() and not told
