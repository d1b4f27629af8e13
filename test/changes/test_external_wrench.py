"""Wrenches at a frame beside pinocchio's inverse dynamics with external forces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.stats import chi2

from semiparam_dynamics.changes.external_wrench import (
    SIZE,
    ExternalWrench,
    FrameMotion,
    tool_frame,
    unseen_directions,
)
from semiparam_dynamics.errors import ConfigurationError, RobotModelError
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
    """By standard deviations that differ between the joints; 95 % lie within the ellipsoid."""
    target, rng = ExternalWrench(MODEL), np.random.default_rng(2)
    stds = rng.uniform(0.1, 2.0, 7)
    within = []
    for q in states(400, seed=3):
        external = left_by(MODEL, q, WRENCH, "hand") + stds * rng.normal(size=7)
        value, covariance, _ = target.estimate(q, external, stds)
        error = value - WRENCH
        within.append(error @ np.linalg.solve(covariance, error) <= chi2.ppf(0.95, 6))
    assert 0.92 <= np.mean(within) <= 0.98


def test_is_the_mean_of_bayes_rule_in_higher_precision() -> None:
    target, q = ExternalWrench(MODEL), states(1, seed=5)[0]
    stds = np.array([0.5, 1.0, 0.3, 2.0, 0.1, 0.2, 0.7])
    external = np.random.default_rng(4).normal(size=7)
    unit = [left_by(MODEL, q, one, "hand") for one in np.eye(6)]
    A = np.array(unit).T.astype(np.longdouble)  # external = A w
    information = A.T @ np.diag(stds**-2.0) @ A + np.diag(PRIOR**-2.0)
    expected = np.linalg.inv(information.astype(np.float64))
    value, covariance, _ = target.estimate(q, external, stds)
    np.testing.assert_allclose(covariance, expected, rtol=1e-7, atol=1e-9)
    mean = expected @ (A.T @ (external / stds**2)).astype(np.float64)
    np.testing.assert_allclose(value, mean, rtol=1e-6, atol=1e-9)


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
        np.testing.assert_allclose(nothing.covariance, np.diag(PRIOR**2))


def test_an_arm_of_few_joints_says_what_it_can_not_see() -> None:
    """Behind two joints four of six directions are hidden, and nothing is made up along them."""
    model, q = RobotModel(SEVEN, joints=("joint2", "joint4")), np.array([0.3, -0.8])
    found = ExternalWrench(model, "hand").estimate(q, np.array([1.0, 2.0]), np.full(2, 0.01))
    told = unseen_directions(found)
    assert len(told) == 4 and any("N force" in one for one in told)
    seen = FrameMotion(model, "hand").jacobian(q) * PRIOR[:, None]
    along, *_ = np.linalg.lstsq(seen, found.value / PRIOR, rcond=None)
    np.testing.assert_allclose(seen @ along, found.value / PRIOR, atol=1e-12)


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
