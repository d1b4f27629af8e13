"""Loads in a driver's frame, against pinocchio's own inertias and gravity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.changes.load import LoadFrame, load_of, parameters_of, tool_parameters
from semiparam_dynamics.robot.regressor import reduced_model
from semiparam_dynamics.robot.urdf import parse_urdf

URDF = Path(__file__).resolve().parents[1] / "data" / "seven_joint_arm.urdf"
JOINTS = tuple(f"joint{i}" for i in range(1, 8))
CENTER = np.array([0.02, -0.03, 0.11])
INERTIA = np.array([[0.02, 0.003, -0.002], [0.003, 0.03, 0.004], [-0.002, 0.004, 0.025]])
SIX = INERTIA[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]


@pytest.fixture(scope="module")
def frame() -> LoadFrame:
    return LoadFrame(str(URDF), JOINTS, "hand")


@pytest.mark.parametrize("mass", [1.7, -1.7])
def test_a_body_and_its_parameters(mass: float) -> None:
    sign = np.sign(mass)
    parameters = parameters_of(mass, CENTER, sign * SIX)
    body = pin.Inertia(abs(mass), CENTER, INERTIA)
    np.testing.assert_allclose(parameters, sign * body.toDynamicParameters(), atol=1e-12)
    load = load_of(parameters)
    assert load.mass == mass
    np.testing.assert_allclose(load.center, CENTER)
    np.testing.assert_allclose(load.inertia, sign * INERTIA, atol=1e-12)
    assert not load_of(np.zeros(10)).inertia.any()


def test_moved_to_the_flange_as_pinocchio_moves_it(frame: LoadFrame) -> None:
    model = pin.buildModelFromXML(URDF.read_text())
    poses = [model.frames[model.getFrameId(name)].placement for name in ("hand", "link7")]
    body = pin.Inertia(1.7, CENTER, INERTIA)
    there = (poses[0].inverse() * poses[1]).act(body)
    moved = frame.moved("link7", body.toDynamicParameters())
    np.testing.assert_allclose(moved, there.toDynamicParameters(), atol=1e-12)
    load = load_of(moved)
    np.testing.assert_allclose(load.center, there.lever)
    np.testing.assert_allclose(load.inertia, there.inertia, atol=1e-12)
    np.testing.assert_allclose(frame.moved("hand", moved), moved)


def test_the_share_of_the_limits_bounds_what_gravity_does(frame: LoadFrame) -> None:
    load = parameters_of(2.0, CENTER, SIX)
    model = reduced_model(parse_urdf(URDF.read_text()), JOINTS, {})
    heavy = model.copy()
    heavy.inertias[7] += pin.Inertia.FromDynamicParameters(frame.in_body(load))
    data, rng, shares = model.createData(), np.random.default_rng(5), []
    for q in rng.uniform(-1.0, 1.0, (200, 7)) * [2.9, 1.7, 2.9, 1.5, 2.9, 1.8, 2.9]:
        q[3] -= 1.57
        weight = pin.computeGeneralizedGravity(heavy, heavy.createData(), q)
        weight = weight - pin.computeGeneralizedGravity(model, data, q)
        shares.append(np.max(np.abs(weight) / frame.limits))
    assert 0.8 * frame.share(load) < max(shares) < 1.1 * frame.share(load)
    assert frame.share(0.5 * load) == pytest.approx(0.5 * frame.share(load))


def test_other_frames_are_refused(frame: LoadFrame) -> None:
    with pytest.raises(RobotModelError, match="'hnad'; did you mean 'hand'"):
        LoadFrame(str(URDF), JOINTS, "hnad")
    with pytest.raises(RobotModelError, match="'link3', which is not fixed to 'hand'"):
        frame.moved("link3", np.ones(10))


def test_a_frame_behind_a_joint_that_is_not_learned_is_refused() -> None:
    """Where the joint stands is not known here."""
    with pytest.raises(RobotModelError, match="'hand' hangs on the joint 'joint7'.*not among"):
        LoadFrame(str(URDF), JOINTS[:-1], "hand")
    assert LoadFrame(str(URDF), JOINTS[:-1], "link6").name == "link6"


def test_joints_may_have_limits_anywhere() -> None:
    """Such as a lift that begins at 4 m, or a joint whose zero is behind it."""
    text = URDF.read_text().replace('lower="-2.9" upper="2.9"', 'lower="4.0" upper="6.0"')
    load = parameters_of(2.0, CENTER, SIX)
    assert 0.0 < LoadFrame(text, JOINTS, "hand").share(load) < 1.0


def test_one_joint_is_enough() -> None:
    """The share of its limit is that of the load's weight at its lever, held out."""
    load = parameters_of(2.0, np.array([0.0, 0.0, 0.0]), SIX)
    share = LoadFrame(str(URDF), ("joint2",), "link2").share(load)
    assert share == 0.0  # on the axis
    load = parameters_of(2.0, np.array([0.0, -0.5, 0.0]), SIX)
    share = LoadFrame(str(URDF), ("joint2",), "link2").share(load)
    assert share == pytest.approx(2.0 * 9.81 * 0.5 / 87.0, rel=0.05)


def test_the_tool_is_a_body() -> None:
    assert not tool_parameters(0.0, (), ()).any()
    np.testing.assert_allclose(load_of(tool_parameters(1.0, (0.0, 0.0, 0.1), ())).center[2], 0.1)
    given = (0.02, 0.003, -0.002, 0.03, 0.004, 0.025)  # as a URDF orders them
    tool = tool_parameters(1.7, tuple(CENTER), given)
    np.testing.assert_allclose(load_of(tool).inertia, INERTIA, atol=1e-12)
    with pytest.raises(ConfigurationError, match="no body has this 'tool_inertia'"):
        tool_parameters(1.0, (), (1.0, 0.0, 0.0, 0.1, 0.0, 0.1))
    with pytest.raises(ConfigurationError, match="3 numbers"):
        tool_parameters(1.0, (1.0,), ())
