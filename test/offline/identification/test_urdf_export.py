"""The exported URDF: other programs read the identified robot from it, and nothing else changed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.dynamics.consistent import ConsistentParameters, consistent
from semiparam_dynamics.offline.identification.identify import (
    export_urdf,
    joint_dynamics,
    link_inertias,
    read_inertial,
)
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf

from ...dynamics.arms import URDF, motion, small_arm
from ...robot.pinocchio_states import torques
from .arm_samples import factors, other_robot, samples

SEVEN = URDF.parent / "seven_joint_arm.urdf"
Arm = tuple[RobotModel, ConsistentParameters, str]


def identified(model: RobotModel) -> ConsistentParameters:
    true = model.base.project(other_robot(model))
    return consistent(model, factors(model, samples(model, true, noise=0.01)))


def exported(model: RobotModel, found: ConsistentParameters) -> str:
    friction = joint_dynamics(model, found.values) if model.config.target == "effort" else {}
    return export_urdf(model.urdf_text, link_inertias(model, found), friction)


@pytest.fixture(scope="module")
def arm() -> Arm:
    model = small_arm()
    found = identified(model)
    return model, found, exported(model, found)


def test_rnea_gives_the_identified_torques(arm: Arm) -> None:
    model, found, text = arm
    robot = pin.buildModelFromXML(text)
    inertial = model.inertial_prior.size
    states = motion(model, np.linspace(0.0, 5.0, 20))
    got = torques(robot, model.joint_names, *states)
    for efforts, *state in zip(got, *states, strict=True):
        expected = model.inertial_regressor(*state) @ found.values[:inertial]
        assert np.allclose(efforts, expected, rtol=0, atol=1e-9)


def test_mujoco_takes_it(arm: Arm) -> None:
    mujoco = pytest.importorskip("mujoco")
    model, found, text = arm
    # Unfused, it checks the inertia of each link by itself.
    compiler = '<mujoco><compiler fusestatic="false" balanceinertia="false"/></mujoco></robot>'
    compiled = mujoco.MjModel.from_xml_string(text.replace("</robot>", compiler))
    masses = found.values[: model.inertial_prior.size : 10]
    assert compiled.body_mass.sum() == pytest.approx(masses.sum())
    joints = [compiled.joint(name) for name in model.joint_names]
    friction = joint_dynamics(model, found.values)
    for joint, name in zip(joints, model.joint_names, strict=True):
        assert joint.damping[0] == pytest.approx(friction[name]["damping"])
        assert joint.frictionloss[0] == pytest.approx(friction[name]["friction"])


def test_nothing_else_changes(arm: Arm) -> None:
    model, _, text = arm
    assert _others(text) == _others(URDF.read_text())
    assert text.count("<!--") == URDF.read_text().count("<!--")
    assert len(text.splitlines()) == pytest.approx(len(URDF.read_text().splitlines()), abs=60)
    # The links that share a body keep their share of it.
    urdf = {e.get("name"): e for e in ET.fromstring(text).findall("link")}
    masses = [
        float(urdf[name].find("inertial/mass").get("value")) for name in ("boom_root", "boom")
    ]
    assert masses[1] / masses[0] == pytest.approx(1.1 / 0.8)
    assert urdf["mark"].find("inertial") is None


def _others(text: str) -> list[tuple[str, dict[str, str]]]:
    """The elements that are not exchanged, in their order."""
    root = ET.fromstring(text)
    for element in root:
        for inner in [e for e in element if e.tag in ("inertial", "dynamics")]:
            element.remove(inner)
    return [(element.tag, element.attrib) for element in root.iter()]


CASES = {
    "a sensor inside a link": (
        URDF,
        {"target": "wrench", "sensor_frame": "boom_sensor", "sensor_offset": False},
    ),
    "a sensor at a joint": (URDF, {"target": "wrench", "sensor_frame": "grip"}),
    "some joints stand still": (SEVEN, {"joints": ("joint2", "joint4", "joint6")}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_read_again_has_the_identified_parameters(case: str) -> None:
    urdf, options = CASES[case]
    model = RobotModel(str(urdf), **options)
    found = identified(model)
    again = RobotModel(exported(model, found), model.config)
    assert again.bodies == model.bodies
    expected = found.values[: model.inertial_prior.size]
    assert np.allclose(again.inertial_prior, expected, rtol=1e-9, atol=1e-12)
    assert not np.allclose(model.inertial_prior, expected, rtol=1e-3, atol=1e-3)
    assert all(links[0][0] == body for body, links in zip(model.bodies, model.links, strict=True))
    # What stands still is left alone.
    before = ET.fromstring(model.urdf_text)
    after = ET.fromstring(exported(model, found))
    moving = {name for links in model.links for name, _ in links}
    for old, new in zip(before.findall("link"), after.findall("link"), strict=True):
        if old.get("name") not in moving:
            assert ET.tostring(old) == ET.tostring(new)


def test_a_body_with_a_mere_mass_goes_to_its_first_link() -> None:
    text = URDF.read_text().replace(
        '<inertia ixx="0.000678333" ixy="0" ixz="0" iyy="0.00869917" iyz="0" izz="0.00847917"/>',
        '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
    )
    model = RobotModel(text)
    found = identified(model)
    written = exported(model, found)
    links = {e.get("name"): e for e in ET.fromstring(written).findall("link")}
    assert links["boom"].find("inertial") is None
    again = RobotModel(written)
    expected = found.values[: model.inertial_prior.size]
    assert np.allclose(again.inertial_prior, expected, rtol=1e-9, atol=1e-12)


def test_bodies_that_cannot_exist_are_written_as_ones_that_can() -> None:
    """Of moving links and of the base, which no motion shows; the URDF written is right."""
    text = URDF.read_text().replace('<inertia ixx="', '<inertia ixx="-')
    base = '<link name="base"><inertial><mass value="-1"/></inertial></link>'
    text = text.replace('<link name="base"/>', base)
    assert parse_urdf(text).replaced == ("base", "column", "boom_root", "boom", "slider", "gripper")
    model = RobotModel(text)
    found = identified(model)
    written = exported(model, found)
    assert parse_urdf(written).replaced == () and parse_urdf(written).inertials["base"] is None
    expected = found.values[: model.inertial_prior.size]
    assert np.allclose(RobotModel(written).inertial_prior, expected, rtol=1e-9, atol=1e-12)


def test_what_is_no_urdf_s_is_written_as_it_was() -> None:
    """An undeclared prefix and a document type; and a quaternion where the inertial is another."""
    kind = '<!DOCTYPE robot [<!ENTITY pi "3.14">]><robot '
    plugin = '<controller:p3d name="x"/>'
    text = URDF.read_text().replace("<robot ", kind).replace("</robot>", f"{plugin}</robot>")
    written = export_urdf(text, {"boom": np.array([1.0, *np.zeros(3), 1, 0, 1, 0, 0, 1])})
    assert kind[:-7] in written and plugin in written
    assert parse_urdf(written).mass("boom") == pytest.approx(1.0 + 0.5 + 0.3)


def test_only_columns_that_are_there_are_written() -> None:
    model = small_arm(coulomb=False, presliding=())
    values = np.arange(len(model.full_labels), dtype=float)
    found = joint_dynamics(model, values)
    place = model.full_labels.index("viscous reach")
    assert found["reach"] == {"damping": float(place)}


def test_friction_is_what_is_left_after_a_long_way() -> None:
    model = small_arm(presliding=(0.01, 0.1))
    values = np.arange(len(model.full_labels), dtype=float)
    names = ("coulomb reach", "presliding_0.01 reach", "presliding_0.1 reach")
    places = [model.full_labels.index(name) for name in names]
    assert joint_dynamics(model, values)["reach"]["friction"] == float(sum(places))


TRICKY = """
<?xml version="1.0"?>
<robot name="tricky"><!-- <inertial/> é > -->
\t<link name='a > b'   />
\t<link name="c"><inertial><mass value="1"/></inertial><visual/><inertial/>
\t</link>
  <gazebo reference="c"><link name="c"><inertial/></link></gazebo>
  <joint name="j" type="revolute"> <parent link="a > b"/><child link="c"/><axis xyz="0 0 1"/>
    <dynamics   spring_reference="&quot;" damping='7'></dynamics>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>
"""
BALL = np.array([2.0, 0.2, 0.0, 0.0, 0.1, 0.0, 0.12, 0.0, 0.0, 0.12])


def test_awkward_text() -> None:
    text = export_urdf(TRICKY, {"a > b": BALL, "c": BALL}, {"j": {"friction": 0.5}})
    robot = ET.fromstring(text.strip())
    for link in robot.findall("link"):
        inertials = link.findall("inertial")
        assert len(inertials) == 1
        assert np.allclose(read_inertial(inertials[0]), BALL, atol=1e-15)
    (dynamics,) = robot.iter("dynamics")
    assert dynamics.attrib == {"spring_reference": '"', "damping": "7", "friction": "0.5"}
    assert "<!-- <inertial/> é > -->" in text
    assert '<gazebo reference="c"><link name="c"><inertial/></link></gazebo>' in text
    gone = export_urdf(text, {"a > b": None, "c": None})
    assert not any(link.findall("inertial") for link in ET.fromstring(gone.strip()))
    assert export_urdf(TRICKY, {}) == TRICKY
    assert _others(export_urdf(TRICKY, {"a > b": None}, {"j": {}})) == _others(TRICKY.strip())


def test_what_is_refused() -> None:
    with pytest.raises(RobotModelError, match="no link 'z' to write to"):
        export_urdf(TRICKY, {"z": BALL})
    with pytest.raises(RobotModelError, match="no joint 'z' to write to"):
        export_urdf(TRICKY, {}, {"z": {"damping": 1.0}})
