"""Capsules between a robot's joints, against pinocchio's own placements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.skeleton import Skeleton

URDF = Path(__file__).resolve().parents[1] / "data" / "seven_joint_arm.urdf"
NAMES = [f"joint{k}" for k in range(1, 8)]


def test_capsules_go_from_joint_to_joint() -> None:
    skeleton, q = Skeleton(str(URDF)), np.linspace(-1.0, 1.2, 7)
    ends = skeleton.place(dict(zip(NAMES, q, strict=True)))
    model = pin.buildModelFromUrdf(str(URDF))
    data = model.createData()
    values = pin.neutral(model)
    for name, value in zip(NAMES, q, strict=True):
        values[model.joints[model.getJointId(name)].idx_q] = value
    pin.framesForwardKinematics(model, data, values)
    origins = np.array([placed.translation for placed in data.oMi])
    for capsule, (begin, end) in zip(skeleton.capsules, ends, strict=True):
        np.testing.assert_allclose(begin, origins[capsule.body], atol=1e-12)
        if model.children[capsule.body]:
            assert min(np.linalg.norm(origins - end, axis=1)) < 1e-12
    rotation, origin = skeleton.frame("hand")
    hand = data.oMf[model.getFrameId("hand", pin.FrameType.BODY)]
    np.testing.assert_allclose(rotation, hand.rotation, atol=1e-12)
    np.testing.assert_allclose(origin, hand.translation, atol=1e-12)
    assert skeleton.frame("nothing") is None
    fixed = next(f for f in model.frames if f.type == pin.FrameType.FIXED_JOINT)
    for name, placed in (
        ("joint3", data.oMi[3]),
        (fixed.name, data.oMf[model.getFrameId(fixed.name)]),
    ):
        _, origin = skeleton.frame(name)  # markers of joint frames, such as a sensor's
        np.testing.assert_allclose(origin, placed.translation, atol=1e-12)


def test_unknown_names_and_numbers_that_are_none_move_nothing() -> None:
    skeleton = Skeleton(str(URDF))
    before = skeleton.place({})
    np.testing.assert_array_equal(skeleton.place({"gripper": 1.0, "joint2": np.nan}), before)
    moved = skeleton.place({"joint4": 1.0})
    changed = np.abs(moved - before).max(axis=(1, 2)) > 1e-9
    movable = np.array(skeleton.moved_by(["joint4"]))
    assert changed[skeleton.tip(["joint4"])] and not (changed & ~movable).any()


def test_a_robot_in_one_place_is_refused() -> None:
    with pytest.raises(RobotModelError, match="nothing to draw"):
        Skeleton('<robot name="a"><link name="b"/></robot>')
