"""MuJoCo's model of what was identified, against the regressor of the same parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.offline.identification.identify import export_urdf
from semiparam_dynamics.robot.model import RobotConfig, RobotModel
from semiparam_dynamics.simulation.mjcf_export import export_mjcf, mjcf_efforts, rotor_inertias

from ..robot.pinocchio_states import torques

mujoco = pytest.importorskip("mujoco")
URDF = Path(__file__).parents[1] / "data" / "small_arm.urdf"


def test_mujocos_inverse_dynamics_are_the_identified_models() -> None:
    rng = np.random.default_rng(0)
    text = URDF.read_text()
    model = RobotModel(text)
    armatures = {joint: float(rng.uniform(0.01, 0.3)) for joint in model.joint_names}
    dampings = {joint: float(rng.uniform(0.1, 2.0)) for joint in model.joint_names}
    urdf = export_urdf(
        text, {}, {joint: {"damping": d, "friction": 0.25} for joint, d in dampings.items()}
    )
    q, dq, ddq = rng.uniform(-1.0, 1.0, (3, 20, model.n_joints))
    low, high = model.position_limits
    q = np.clip(q, low + 0.01, high - 0.01)
    dq += 0.1 * np.sign(dq)  # MuJoCo's friction is a soft constraint
    expected = torques(pin.buildModelFromXML(text), model.joint_names, q, dq, ddq)
    expected += np.array([armatures[j] for j in model.joint_names]) * ddq
    expected += np.array([dampings[j] for j in model.joint_names]) * dq + 0.25 * np.sign(dq)
    efforts = mjcf_efforts(export_mjcf(urdf, armatures), model, q, dq, ddq)
    np.testing.assert_allclose(efforts, expected, rtol=1e-5, atol=1e-5)  # six digits


def test_links_without_mass_may_move() -> None:
    text = URDF.read_text().replace('<mass value="0.3"/>', '<mass value="0"/>')
    assert mujoco.MjModel.from_xml_string(export_mjcf(text, {})).body_mass.min() < 1e-8


@pytest.mark.parametrize("gravity", [(0.0, -9.81, 0.0), (3.0, 0.0, -9.34)])
def test_gravity_is_that_of_a_tilted_base(gravity: tuple[float, float, float]) -> None:
    text = URDF.read_text()
    model = RobotModel(text, RobotConfig(gravity=gravity))
    loaded = mujoco.MjModel.from_xml_string(export_mjcf(text, {}, gravity))
    places = [loaded.joint(joint).dofadr[0] for joint in model.joint_names]
    data, rest = mujoco.MjData(loaded), np.zeros(model.n_joints)
    for q in np.random.default_rng(0).uniform(-1.0, 1.0, (5, model.n_joints)):
        data.qpos[places] = q
        mujoco.mj_forward(loaded, data)
        expected = model.inverse_dynamics(q, rest, rest)
        np.testing.assert_allclose(data.qfrc_bias[places], expected, rtol=1e-5, atol=1e-5)


def test_rotor_inertias_are_those_of_the_parameters() -> None:
    model = RobotModel(URDF.read_text())
    parameters = np.arange(float(len(model.full_labels)))
    found = rotor_inertias(model, parameters)
    assert list(found) == list(model.joint_names)
    for joint, value in found.items():
        assert value == parameters[model.full_labels.index(f"rotor_inertia {joint}")]


def test_what_mujoco_does_not_take_is_refused_in_a_sentence() -> None:
    with pytest.raises(RobotModelError, match="MuJoCo"):
        export_mjcf(URDF.read_text().replace('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>'), {})
    with pytest.raises(RobotModelError):
        export_mjcf("<robot name='r'/>", {})
