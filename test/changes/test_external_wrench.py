"""Wrenches at a frame beside pinocchio's inverse dynamics with external forces."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.stats import chi2, multivariate_normal

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.changes.external_wrench import (
    FACTORS,
    PROBABLE,
    SHARES,
    SIZE,
    ExternalWrench,
    FrameMotion,
    tool_frame,
    unseen_directions,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf

ARMS = Path(__file__).resolve().parent.parent / "data"
SMALL, SEVEN = (str(ARMS / f"{name}.urdf") for name in ("small_arm", "seven_joint_arm"))
PRIOR = np.repeat(SIZE, 3)
JOINTS = tuple(f"joint{k}" for k in range(1, 8))
MODEL = RobotModel(SEVEN, joints=JOINTS)
WRENCH = np.array([10.0, -4.0, 6.0, 0.5, 1.0, -0.7])


def left_by(model: RobotModel, q: np.ndarray, wrench: np.ndarray, link: str) -> np.ndarray:
    """What a wrench of the surroundings at a link changes of the efforts, by pinocchio's rnea."""
    kinematics = model.kinematics
    data, zero = kinematics.createData(), np.zeros(model.n_joints)
    pin.framesForwardKinematics(kinematics, data, q)
    frame = kinematics.frames[kinematics.getFrameId(link, pin.FrameType.BODY)]
    forces = [pin.Force.Zero() for _ in range(kinematics.njoints)]
    forces[frame.parentJoint] = frame.placement.act(pin.Force(wrench))
    free = pin.rnea(kinematics, data, q, zero, zero).copy()
    return pin.rnea(kinematics, data, q, zero, zero, forces) - free


def states(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (n, 7))


@pytest.mark.parametrize("link", ["hand", "link7"])
def test_finds_a_wrench_at_a_link(link: str) -> None:
    target = ExternalWrench(MODEL, link)
    for q in states(10):
        estimate = target.estimate(q, left_by(MODEL, q, WRENCH, link), np.full(7, 1e-4))
        np.testing.assert_allclose(estimate.value, WRENCH, rtol=1e-3, atol=1e-3)


def test_the_axes_may_be_those_of_the_base() -> None:
    target, q = ExternalWrench(MODEL, axes="link0"), states(1)[0]
    data = MODEL.kinematics.createData()
    pin.framesForwardKinematics(MODEL.kinematics, data, q)
    turn = data.oMf[MODEL.kinematics.getFrameId("hand", pin.FrameType.BODY)].rotation
    found = target.estimate(q, left_by(MODEL, q, WRENCH, "hand"), np.full(7, 1e-4)).value
    expected = np.concatenate((turn @ WRENCH[:3], turn @ WRENCH[3:]))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_its_covariance_is_that_of_its_errors() -> None:
    """Of wrenches and errors of all sizes that are held possible."""
    target, rng = ExternalWrench(MODEL), np.random.default_rng(2)
    stds = rng.uniform(0.1, 2.0, 7)
    lengths = []
    for q in states(1500, seed=3):
        wrench = rng.choice(SHARES) * PRIOR * rng.normal(size=6)
        errors = rng.choice(FACTORS, p=PROBABLE) * stds * rng.normal(size=7)
        value, covariance, *_ = target.estimate(q, left_by(MODEL, q, wrench, "hand") + errors, stds)
        lengths.append((value - wrench) @ np.linalg.solve(covariance, value - wrench))
    assert np.mean(lengths) == pytest.approx(6.0, abs=0.5)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_ellipsoids_cover_nearly_95_percent_while_a_factor_lasts(factor: float) -> None:
    """A mixture has longer tails than the normal distribution of its mean and covariance."""
    target, rng = ExternalWrench(MODEL), np.random.default_rng(8)
    stds = rng.uniform(0.1, 2.0, 7)
    within = []
    for k, q in enumerate(states(1000, seed=9)):
        wrench = rng.choice(SHARES) * PRIOR * rng.normal(size=6)
        external = left_by(MODEL, q, wrench, "hand") + factor * stds * rng.normal(size=7)
        value, covariance, *_ = target.estimate(q, external, stds, 10**9 + 10**8 * k)
        length = (value - wrench) @ np.linalg.solve(covariance, value - wrench)
        within.append(length <= chi2.ppf(0.95, 6))
    assert 0.88 <= np.mean(within[100:]) <= 0.98


def test_is_the_mean_of_bayes_rule_over_all_sizes() -> None:
    """Each pair of a size and a factor by its own normal distribution of what is measured."""
    target, q = ExternalWrench(MODEL), states(1, seed=5)[0]
    stds = np.array([0.5, 1.0, 0.3, 2.0, 0.1, 0.2, 0.7])
    A = np.array([left_by(MODEL, q, one, "hand") for one in np.eye(6)]).T  # external = A w
    for external in np.random.default_rng(4).normal(size=(5, 7)) * np.logspace(-1, 2, 5)[:, None]:
        weights, means, covariances = [], [], []
        for factor, probable in zip(FACTORS, PROBABLE, strict=True):
            for share in SHARES:
                prior = np.diag((share * PRIOR) ** 2)
                measured = A @ prior @ A.T + np.diag((factor * stds) ** 2)
                normal = multivariate_normal(np.zeros(7), measured)
                weights.append(np.log(probable) + normal.logpdf(external))
                gain = prior @ A.T @ np.linalg.inv(measured)
                means.append(gain @ external)
                covariances.append(prior - gain @ A @ prior)
        p = np.exp(np.array(weights) - np.max(weights))
        p /= p.sum()
        mean = p @ np.array(means)
        apart = np.array(means) - mean
        covariance = np.einsum("i,ijk->jk", p, covariances) + (apart.T * p) @ apart
        value, found, *_ = target.estimate(q, external, stds)
        np.testing.assert_allclose(value, mean, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found, covariance, rtol=1e-5, atol=1e-7)


def test_what_remains_is_damped_least_squares() -> None:
    target, q = ExternalWrench(MODEL), states(1, seed=5)[0]
    stds = np.array([0.5, 1.0, 0.3, 2.0, 0.1, 0.2, 0.7])
    A = np.array([left_by(MODEL, q, one, "hand") for one in np.eye(6)]).T
    expected = np.linalg.inv(A.T @ np.diag(stds**-2.0) @ A + np.diag(PRIOR**-2.0))
    for external in (np.zeros(7), np.full(7, 30.0)):  # whatever is measured
        remaining = target.estimate(q, external, stds).remaining
        np.testing.assert_allclose(remaining, expected, rtol=1e-7, atol=1e-9)


def test_errors_alone_are_hardly_told_as_a_wrench() -> None:
    """Of six joints' errors as predicted damped least squares of one size makes tens of newtons."""
    target, rng, stds = ExternalWrench(MODEL), np.random.default_rng(6), np.full(7, 1.0)
    told, damped = [], []
    for q in states(200, seed=6):
        errors = stds * rng.normal(size=7)
        estimate = target.estimate(q, errors, stds)
        rows = target._motion.jacobian(q) / stds
        told.append(np.linalg.norm(estimate.value[:3]))
        damped.append(np.linalg.norm((estimate.remaining @ rows @ errors)[:3]))
    assert np.mean(told) < 0.3 * np.mean(damped)


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_learns_by_how_much_errors_differ_from_their_deviations(factor: float) -> None:
    target, rng, stds = ExternalWrench(MODEL), np.random.default_rng(7), np.full(7, 0.5)
    q = states(1)[0]
    before = target.estimate(q, left_by(MODEL, q, WRENCH, "hand"), stds).covariance
    for k in range(800):
        errors = factor * stds * rng.normal(size=7)
        target.estimate(states(1, seed=k)[0], errors, stds, 10**9 + 20_000_000 * k)
    last = 10**9 + 20_000_000 * 800
    external = left_by(MODEL, q, WRENCH, "hand")
    after = target.estimate(q, external, stds, last).covariance
    ratio = np.sqrt(np.trace(after) / np.trace(before))
    assert ratio < 0.8 if factor < 1.0 else ratio > 1.25
    # Half a minute later nothing of it is known any more, as of no instant.
    for stamp in (0, last + 40 * 10**9):
        forgotten = target.estimate(q, external, stds, stamp).covariance
        np.testing.assert_allclose(forgotten, before, rtol=1e-2)


def test_numbers_stay_finite() -> None:
    q = states(1)[0]
    for size, std in itertools.product((1e-300, 1e-9, 1e9, 1e200), (1e-11, 1.0, 1e200)):
        target = ExternalWrench(MODEL)
        for stamp in (0, 1, 10**9, 10**9, 5):
            found = target.estimate(q, np.full(7, size), np.full(7, std), stamp)
            assert all(np.isfinite(part).all() for part in found), (size, std)


def test_a_joint_that_is_not_measured_tells_nothing() -> None:
    target, q = ExternalWrench(MODEL), states(1)[0]
    external = left_by(MODEL, q, WRENCH, "hand")
    external[3] = np.nan
    found = target.estimate(q, external, np.full(7, 1e-4))
    np.testing.assert_allclose(found.value, WRENCH, rtol=2e-2, atol=2e-2)  # six joints are enough
    assert unseen_directions(found) == []
    for left, stds in ((np.full(7, np.nan), np.full(7, 1e-4)), (external, np.zeros(7))):
        nothing = target.estimate(q, left, stds)
        assert np.array_equal(nothing.value, np.zeros(6))
        np.testing.assert_allclose(nothing.covariance, np.diag(PRIOR**2) * np.mean(SHARES**2))
        np.testing.assert_allclose(nothing.remaining, np.diag(PRIOR**2))
        assert len(unseen_directions(nothing)) == 6


def test_an_arm_of_few_joints_says_what_it_can_not_see() -> None:
    """Behind two joints four of six directions are hidden, and nothing is made up along them."""
    model, q = RobotModel(SEVEN, joints=("joint2", "joint4")), np.array([0.3, -0.8])
    found = ExternalWrench(model, "hand").estimate(q, np.array([1.0, 2.0]), np.full(2, 0.01))
    told = unseen_directions(found)
    assert len(told) == 4 and any("N force" in one for one in told)
    seen = FrameMotion(model, "hand").jacobian(q) * PRIOR[:, None]
    along, *_ = np.linalg.lstsq(seen, found.value / PRIOR, rcond=None)
    np.testing.assert_allclose(seen @ along, found.value / PRIOR, atol=1e-12)


def test_one_joint_tells_of_one_direction() -> None:
    model = RobotModel(SEVEN, joints=("joint4",))
    found = ExternalWrench(model, "hand").estimate(np.array([-0.8]), np.array([2.0]), np.ones(1))
    assert np.isfinite(found.value).all() and len(unseen_directions(found)) == 5


def test_a_singular_arm_gives_what_it_sees() -> None:
    """Stretched out, a force along the arm moves no joint."""
    model, q = RobotModel(SEVEN, joints=JOINTS), np.zeros(7)
    found = ExternalWrench(model).estimate(q, left_by(model, q, WRENCH, "hand"), np.full(7, 0.01))
    assert np.isfinite(found.value).all() and np.isfinite(found.covariance).all()
    assert unseen_directions(found)


def test_a_sensors_wrench_is_moved_to_the_frame() -> None:
    model = RobotModel(SEVEN, joints=JOINTS, target="wrench", sensor_frame="wrist_sensor")
    stds = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    q = states(1)[0]
    here = ExternalWrench(model).estimate(q, -WRENCH, stds)
    np.testing.assert_allclose(here.value, WRENCH)
    np.testing.assert_allclose(here.covariance, np.diag(stds**2), atol=1e-12)
    there = ExternalWrench(model, "link7").estimate(q, -WRENCH, stds)
    moved = MODEL.kinematics.frames[MODEL.kinematics.getFrameId("hand", pin.FrameType.BODY)]
    placed = MODEL.kinematics.frames[MODEL.kinematics.getFrameId("link7", pin.FrameType.BODY)]
    way = placed.placement.inverse() * moved.placement
    np.testing.assert_allclose(there.value, way.act(pin.Force(WRENCH)).vector, rtol=1e-9)


def test_refuses_frames_that_are_not_there_or_do_not_move() -> None:
    with pytest.raises(ConfigurationError, match="no frame 'tool'"):
        ExternalWrench(MODEL, "tool")
    with pytest.raises(ConfigurationError, match="none of the learned joints moves 'link0'"):
        ExternalWrench(MODEL, "link0")
    with pytest.raises(ConfigurationError, match="a force and a moment above 0"):
        ExternalWrench(MODEL, "hand", size=(100.0, 0.0))
    with pytest.raises(ConfigurationError, match="external_axes: the URDF has no frame"):
        ExternalWrench(MODEL, "hand", "bse")


# -------------------------------------------------------------------------------------------------
# Frames, beside finite differences and pinocchio's own numbers.

LOCKED = RobotModel(
    SEVEN, joints=("joint6", "joint2", "joint4", "joint1"), locked={"joint3": 0.4, "joint5": -1.1}
)
CASES = {
    "turning and sliding joints": (RobotModel(SMALL), "gripper", ""),
    "a frame amid the arm": (RobotModel(SMALL), "boom", ""),
    "the base's axes": (RobotModel(SEVEN), "hand", "link0"),
    "another link's axes": (RobotModel(SEVEN), "link4", "finger"),
    "joints in another order, others locked": (LOCKED, "hand", ""),
    "one joint": (RobotModel(SEVEN, joints=("joint4",)), "hand", "link0"),
}


def pose(model: RobotModel, q: np.ndarray, link: str) -> pin.SE3:
    """Of a link in the world, by pinocchio's model of all joints."""
    full = pin.buildModelFromXML(parse_urdf(model.urdf_text).to_xml())
    data, positions = full.createData(), pin.neutral(full)
    given = dict(zip(model.joint_names, q, strict=True)) | model.locked
    for name, value in given.items():
        joint = full.joints[full.getJointId(name)]
        values = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
        positions[joint.idx_q : joint.idx_q + joint.nq] = values
    pin.framesForwardKinematics(full, data, positions)
    return data.oMf[full.getFrameId(link, pin.FrameType.BODY)]


@pytest.mark.parametrize("model, frame, axes", CASES.values(), ids=CASES.keys())
def test_the_jacobian_is_the_derivative_of_the_pose(model, frame, axes) -> None:
    motion = FrameMotion(model, frame, axes)
    q, step = np.random.default_rng(0).uniform(-1.0, 1.0, model.n_joints), 1e-6
    turn = pose(model, q, axes or frame).rotation.T
    expected = np.empty((6, model.n_joints))
    for j, unit in enumerate(np.eye(model.n_joints)):
        after, before = (pose(model, q + s * unit, frame) for s in (step, -step))
        turned = pin.log3(after.rotation @ before.rotation.T)
        expected[:3, j] = turn @ (after.translation - before.translation) / (2.0 * step)
        expected[3:, j] = turn @ turned / (2.0 * step)
    np.testing.assert_allclose(motion.jacobian(q), expected, atol=1e-8)
    assert np.array_equal(motion.moved, np.abs(expected).max(axis=0) > 1e-6)


@pytest.mark.parametrize("model, frame, axes", CASES.values(), ids=CASES.keys())
def test_a_wrench_does_the_same_power_wherever_it_is_taken(model, frame, axes) -> None:
    """One at a link, taken to the frame, along any motion of the link's body."""
    rng = np.random.default_rng(1)
    q, wrench = rng.uniform(-1.0, 1.0, model.n_joints), rng.normal(size=6)
    link = model.bodies[-1]
    there, here = pose(model, q, link), pose(model, q, frame)
    turn = pose(model, q, axes or frame).rotation
    moved = FrameMotion(model, frame, axes).from_frame(q, link) @ wrench
    for velocity, spin in rng.normal(size=(5, 2, 3)):  # of the world's origin, in the world
        powers = [
            (rotation @ w[:3]) @ (velocity + np.cross(spin, at)) + (rotation @ w[3:]) @ spin
            for rotation, at, w in (
                (there.rotation, there.translation, wrench),
                (turn, here.translation, moved),
            )
        ]
        assert powers[0] == pytest.approx(powers[1], rel=1e-9)


def test_frames_by_name() -> None:
    model = RobotModel(SEVEN, joints=tuple(f"joint{k}" for k in range(1, 8)))
    assert FrameMotion(model).frame == "hand"  # behind the last joint and a fixed one
    assert FrameMotion(model, "wrist_sensor").frame == "hand"
    assert tool_frame(parse_urdf(model.urdf_text), ("joint3", "joint1")) == "link3"
    assert not FrameMotion(model, "link0").moved.any()
    with pytest.raises(RobotModelError, match="no frame 'hnad'; did you mean 'hand'"):
        FrameMotion(model, "hnad")
