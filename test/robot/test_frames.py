"""Frames of a robot beside finite differences and pinocchio's own numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.robot.frames import FrameMotion, tool_frame
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf

ARMS = Path(__file__).resolve().parent.parent / "data"
SMALL, SEVEN = (str(ARMS / f"{name}.urdf") for name in ("small_arm", "seven_joint_arm"))
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
