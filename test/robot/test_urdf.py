"""URDFs of any content, as trees; cut at a sensor; and the messages to expect of a robot.

Whatever a robot_description holds, it gives a model with finite numbers, or a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from semiparam_dynamics.base.errors import RobotModelError
from semiparam_dynamics.robot.inertia import nearest_moments
from semiparam_dynamics.robot.model import RobotModel, message_checks, told_of_urdf
from semiparam_dynamics.robot.urdf import (
    MAX_LENGTH,
    UrdfTree,
    closest,
    cut_at_sensor,
    followers,
    frame_names,
    joint_limits,
    parse_urdf,
    parse_xml,
    read_urdf,
)

TEXT = (Path(__file__).resolve().parent.parent / "data/small_arm.urdf").read_text()
TREE = parse_urdf(TEXT)
BARE = TEXT[TEXT.index("<robot") :]
JOINT = '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/></joint>'
LINKS = '<link name="a"/><link name="b"/>'


def robot(*parts: str) -> str:
    return f"<robot name='r'>{''.join(parts)}</robot>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot><link", "not well-formed XML"),
        ("<sdf/>", "outermost element is <sdf>"),
        ("<robot/>", "no links"),
        (robot("<link/>"), "a link of the URDF has no 'name'"),
        (robot(LINKS, LINKS), "link 'a' more than once"),
        (robot(LINKS, JOINT.format("j", "a", "b") * 2), "joint 'j' more than once"),
        (robot(LINKS), "one root link; found: a, b"),
        (robot(LINKS, JOINT.format("j", "a", "c")), "names the link 'c', not defined"),
        (
            robot(LINKS, JOINT.format("j", "a", "b"), JOINT.format("k", "a", "b")),
            "link 'b' hangs on 2 joints",
        ),
        (robot(LINKS, JOINT.format("j", "a", "b"), JOINT.format("k", "b", "a")), "a loop"),
        (
            robot(
                *("<link name='c'/>", LINKS),
                *(JOINT.format("j", "a", "b"), JOINT.format("k", "b", "a")),
            ),
            "don't hang on the root 'c'.*: a, b",
        ),
        (robot(LINKS, '<joint name="j" type="revolute"/>'), "no <parent> link"),
        (robot(LINKS, '<joint name="j" type="screw"/>'), "unknown type 'screw'"),
        (robot(LINKS, '<joint type="fixed"/>'), "a joint of the URDF has no 'name'"),
        (
            robot(LINKS, JOINT.format("j", "a", "b").replace("</j", "<limit lower='x'/></j")),
            "limit of lower that is no number: 'x'",
        ),
        (
            '<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:macro name="m"/></robot>',
            "expand it with xacro",
        ),
    ],
)
def test_faults_are_explained(text: str, message: str) -> None:
    with pytest.raises(RobotModelError, match=message):
        parse_urdf(text)


@pytest.mark.parametrize("urdf", ["", " \n"])
def test_an_empty_urdf_is_refused(urdf: str) -> None:
    with pytest.raises(RobotModelError, match="the URDF is empty"):
        read_urdf(urdf)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RobotModelError, match=r"none\.urdf' can't be read: .*No such file"):
        read_urdf(tmp_path / "none.urdf")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RobotModelError, match="can't be read"):
        read_urdf(tmp_path / "binary")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(RobotModelError, match="empty' is empty"):
        read_urdf(str(tmp_path / "empty"))


def test_only_what_the_dynamics_needs_is_kept() -> None:
    limits = "<limit lower='-1' upper='2'/><mimic joint='gone'/>"
    joint = JOINT.format("j", "a", "b").replace("</j", f"{limits}</j")
    mass = "<inertial><mass value='2'/></inertial>"
    noise = "<visual><geometry><mesh filename='none.stl'/></geometry></visual>"
    text = robot("<link name='a'/>", f"<link name='b'>{mass}{noise}</link>", joint, "<gazebo/>")
    tree = parse_urdf(text)
    assert (tree.root, tree.mass("a"), tree.mass("b")) == ("a", 2.0, 2.0)
    read = tree.joints["j"]
    assert (read.lower, read.upper, read.mimic, read.actuated) == (-1.0, 2.0, True, False)
    plain = tree.to_xml()
    assert "mass" in plain and not any(tag in plain for tag in ("mesh", "gazebo", "mimic"))
    assert parse_urdf(plain).joints.keys() == {"j"}


def mimics(leaders: dict[str, str]) -> str:
    """A robot whose joints follow others: by name the joint that each follows, or none."""
    links = [f"<link name='{name}'/>" for name in ("base", *leaders)]
    joints = [
        JOINT.format(name, "base", name).replace(
            "</j", (f"<mimic joint='{leader}'/>" if leader else "") + "</j"
        )
        for name, leader in leaders.items()
    ]
    return robot(*links, *joints)


def test_joints_that_follow_a_learned_one_are_found_through_others() -> None:
    tree = parse_urdf(mimics({"learned": "", "near": "learned", "far": "near", "own": "gone"}))
    assert followers(tree, ("learned",)) == {"near": "learned", "far": "learned"}
    assert followers(tree, ("learned", "near")) == {"far": "near"}
    assert followers(tree, ("own",)) == {}
    (note,) = tree.notes
    assert "own ('gone')" in note and "stand still" in note


@pytest.mark.parametrize(
    ("leaders", "ring"),
    [({"a": "a"}, "a -> a"), ({"a": "", "b": "c", "c": "d", "d": "b"}, "-> b|b ->")],
)
def test_mimic_joints_that_follow_themselves_are_refused(
    leaders: dict[str, str], ring: str
) -> None:
    with pytest.raises(RobotModelError, match=f"follows itself by <mimic> .*({ring})"):
        parse_urdf(mimics(leaders))


def test_a_long_chain_of_mimic_joints_takes_no_longer_than_others() -> None:
    chain = {f"j{k}": f"j{k - 1}" if k else "" for k in range(1500)}
    tree = parse_urdf(mimics(chain))
    assert tree.actuated() == ("j0",) and not tree.notes


BODY = (
    "<inertial><origin xyz='0 0 0.1' rpy='0 0 0'/><mass value='2.6054'/><inertia ixx='0.1' "
    "iyy='0.1' izz='0.1' ixy='0' ixz='0' iyz='0'/></inertial>"
)
MOVES = (
    "<joint name='j' type='revolute'><parent link='a'/><child link='b'/><origin xyz='0 0 0.3'/>"
    "<axis xyz='0 0 1'/><limit lower='-1.5' upper='1.5' effort='20' velocity='2.5'/></joint>"
)


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("2.6054", "2,6054", r"'b' of the URDF has a mass that is no number: '2,6054' \(decimals"),
        ("2.6054", "${m3}", r"'b' .* a mass that is no number: '\$\{m3\}': expand it with xacro"),
        ("2.6054", "nan", "link 'b' of the URDF has a mass that is no number: 'nan'$"),
        ("iyy='0.1'", "iyy='0,1'", "link 'b' of the URDF has an inertia iyy that is no number: '0"),
        ("0 0 0.1", "0 0 0,1", r"link 'b' .* an origin \(xyz\) that is not 3 numbers: '0 0 0,1'"),
        ("rpy='0 0 0'", "rpy='0 0'", r"link 'b' .* an origin \(rpy\) that is not 3 numbers: '0 0'"),
        ("0 0 0.3", "0 0 $(arg h)", r"joint 'j' .* an origin \(xyz\) .* expand it with xacro"),
        ("0 0 1'", "0 0 0'", "joint 'j' .* an axis .xyz. without a direction: '0 0 0'"),
        ("0 0 1'", "0 0 1e200'", "joint 'j' .* an axis .xyz. without a direction: '0 0 1e200'"),
        ("0 0 0.1", "0 0 1e200", "the URDF's masses and distances are too large"),
        ("0 0 1'", "0 0 ${s}'", r"joint 'j' .* an axis \(xyz\) .* expand it with xacro first$"),
        (
            "lower='-1.5'",
            "lower='-1,5'",
            "'j' .* limit of lower that is no number: '-1,5' .decimals",
        ),
        ("'2.5'", "'2,5'", "'j' .* limit of velocity that is no number: '2,5' .decimals"),
    ],
)
def test_numbers_that_cannot_be_read_are_refused(written: str, instead: str, message: str) -> None:
    text = robot("<link name='a'/>", f"<link name='b'>{BODY}</link>", MOVES)
    assert RobotModel(text).inertial_prior[0] == 2.6054 and text.count(written) == 1
    with pytest.raises(RobotModelError, match=message):
        RobotModel(text.replace(written, instead))


def test_numbers_of_an_inertial_that_are_left_out_are_zero() -> None:
    """urdfdom loses the mass with them, and says so only on the terminal."""
    links = "<link name='a'/>", f"<link name='b'>{BODY}</link>"
    whole = RobotModel(robot(*links, MOVES)).inertial_prior
    assert whole[0] == 2.6054 and np.abs(whole[4:]).max() > 0.09
    for left_out in (" ixy='0' ixz='0' iyz='0'", " iyz='0'"):
        text = robot(links[0], links[1].replace(left_out, ""), MOVES)
        assert left_out not in text
        np.testing.assert_array_equal(RobotModel(text).inertial_prior, whole)
    point = re.sub("<inertia .*?/>", "", links[1])
    prior = RobotModel(robot(links[0], point, MOVES)).inertial_prior
    np.testing.assert_allclose(prior[:4], whole[:4])
    assert sorted(set(np.round(prior[4:], 9))) == [0.0, round(2.6054 * 0.01, 9)]  # m z^2


def with_body(mass: float, moments: tuple[float, ...]) -> str:
    """A robot with a body about its link's origin: kg, (ixx, iyy, izz) kg m^2."""
    values = zip(("ixx", "iyy", "izz"), moments, strict=True)
    inertia = " ".join(f"{name}='{value}'" for name, value in values)
    body = f"<inertial><mass value='{mass}'/><inertia {inertia}/></inertial>"
    return robot("<link name='a'/>", f"<link name='b'>{body}</link>", MOVES)


@pytest.mark.parametrize(
    ("mass", "moments", "nearest", "told"),
    [
        # Second moments (-ixx + iyy + izz) / 2 and so on; those below 0 become 0.
        (2.0, (0.1, 0.1, 0.3), (0.15, 0.15, 0.3), "b (moments of inertia 0.1, 0.1 and 0.3 kg"),
        (2.0, (-0.1, 0.2, 0.2), (0.0, 0.25, 0.25), "b (moments of inertia -0.1, 0.2 and 0.2 kg"),
        (2.0, (-0.1, -0.1, -0.1), (0.0, 0.0, 0.0), "b (moments of inertia -0.1, -0.1 and -0.1 kg"),
        (-2.0, (0.1, 0.1, 0.1), (0.0, 0.0, 0.0), "b (mass -2 kg)"),
    ],
)
def test_a_body_that_cannot_exist_is_replaced_by_the_nearest(
    mass: float, moments: tuple[float, ...], nearest: tuple[float, ...], told: str
) -> None:
    text = with_body(mass, moments)
    tree = parse_urdf(text)
    (note,) = tree.notes
    assert told in note and "correct the URDF" in note and tree.replaced == ("b",)
    model = pin.buildModelFromXML(tree.to_xml())  # the text that the dynamics is made of
    assert model.inertias[1].mass == max(mass, 0.0)
    np.testing.assert_allclose(np.diag(model.inertias[1].inertia), nearest, atol=1e-12)
    assert told_of_urdf(RobotModel(text)) == [note]


def test_the_nearest_body_does_not_depend_on_the_axes_and_comes_of_no_other_second_moments() -> (
    None
):
    """Against a search over all bodies: the squared distance of second moments is smallest."""
    turn = pin.rpy.rpyToMatrix(np.array([0.3, -0.7, 1.1]))
    moments = turn @ np.diag([0.02, 0.05, 0.2]) @ turn.T

    def second(inertia: np.ndarray) -> np.ndarray:
        return 0.5 * np.trace(inertia) * np.eye(3) - inertia

    found = second(nearest_moments(moments, 1.0))
    assert np.linalg.eigvalsh(found)[0] >= -1e-12

    def distance(x: np.ndarray) -> float:
        root = x.reshape(3, 3)
        return float(np.sum((root @ root.T - second(moments)) ** 2))

    best = min(
        minimize(distance, x, method="BFGS").fun
        for x in np.random.default_rng(0).normal(0.0, 0.3, (5, 9))
    )
    assert np.sum((found - second(moments)) ** 2) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize(
    "moments", [(0.00083, 0.00083, 0.00167), (0.0, 0.0, 0.0), (1e-20, 0, -1e-20)]
)
def test_what_digits_leave_open_and_points_are_left_as_they_are(moments) -> None:
    tree = parse_urdf(with_body(1.0, moments))
    assert not tree.notes and not tree.replaced
    inertia = pin.buildModelFromXML(tree.to_xml()).inertias[1].inertia
    np.testing.assert_allclose(np.diag(inertia), moments, rtol=1e-12, atol=0)


def test_an_axis_of_a_fixed_joint_is_not_read() -> None:
    fixed = MOVES.replace("revolute", "fixed").replace("0 0 1'", "'")
    assert parse_urdf(robot("<link name='a'/>", "<link name='b'/>", fixed)).joints["j"]


@pytest.mark.parametrize("pitch", [0.3, 0.5 * np.pi, -0.5 * np.pi, 0.5 * np.pi - 1e-8])
def test_a_quaternion_is_the_same_rotation_as_its_angles(pitch: float) -> None:
    """URDF 1.1: of joints, of bodies, and of shapes alike; rows are those that pinocchio makes."""
    rotation = pin.rpy.rpyToMatrix(np.array([0.4, pitch, -1.2]))
    x, y, z, w = 3.0 * pin.Quaternion(rotation).coeffs()  # of any length
    given = f"quat_xyzw='{x!r} {y!r} {z!r} {w!r}'".replace("np.float64(", "").replace(")", "")
    inertial = BODY.replace("rpy='0 0 0'", given).replace("iyy='0.1'", "iyy='0.15'")
    text = robot(
        "<link name='a'/>",
        f"<link name='b'>{inertial}<collision><origin {given}/></collision></link>",
        MOVES.replace("xyz='0 0 0.3'", f"xyz='0 0 0.3' {given}"),
    )
    model = pin.buildModelFromXML(parse_urdf(text).to_xml())
    np.testing.assert_allclose(model.jointPlacements[1].rotation, rotation, atol=1e-14)
    turned = rotation @ np.diag([0.1, 0.15, 0.1]) @ rotation.T
    np.testing.assert_allclose(model.inertias[1].inertia, turned, atol=1e-14)
    origins = list(parse_xml(text).iter("origin"))
    assert len({origin.get("rpy") for origin in origins}) == 1 and len(origins) == 3


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ("quat_xyzw='0 0 0 0'", "joint 'j' .* no quaternion, 4 numbers that are not all 0"),
        ("quat_xyzw='0 0 1'", "joint 'j' .* no quaternion, 4 numbers"),
        ("quat_xyzw='0 0 ${s} 1'", "expand it with xacro"),
        ("quat_xyzw='0 0 0 1' rpy='0 0 1'", "both rpy and quat_xyzw"),
    ],
)
def test_a_quaternion_that_is_none_is_refused(origin: str, message: str) -> None:
    with pytest.raises(RobotModelError, match=message):
        parse_urdf(robot(LINKS, MOVES.replace("xyz='0 0 0.3'", origin)))


DECLARED = '<?xml version="1.0" encoding="{}"?><!-- f\xfcr -->{}'


@pytest.mark.parametrize(
    ("declared", "written"),
    [
        ("iso-8859-1", "iso-8859-1"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-8", "utf-8-sig"),
        ("utf-8", "iso-8859-1"),
        ("no-such-encoding", "utf-8"),
    ],
)
def test_a_file_in_any_encoding_is_read(declared: str, written: str, tmp_path: Path) -> None:
    """As it declares, by its byte order mark, and where its declaration is wrong."""
    file = tmp_path / "robot.urdf"
    file.write_bytes(DECLARED.format(declared, BARE).encode(written))
    text = read_urdf(file)
    assert parse_urdf(text).to_xml() == TREE.to_xml()
    assert ("f\xfcr" in text) == (declared != "no-such-encoding")


def test_what_is_no_urdf_s_is_passed_over() -> None:
    """Undeclared prefixes, a default namespace, and plugins of simulators."""
    other = "<controller:p3d name='x'><on>1</on></controller:p3d><gazebo a:b='1'><link/></gazebo>"
    text = TEXT.replace("</robot>", f"{other}</robot>").replace(
        "<robot ", "<robot xmlns='urdf' ", 1
    )
    assert "xmlns" in text and text.count(other) == 1
    tree = parse_urdf(text)
    assert tree.to_xml() == TREE.to_xml() and not tree.notes


def test_elements_that_xacro_left_are_passed_over_and_told() -> None:
    macro = "<xacro:macro name='m'><link name='x'/></xacro:macro>"
    left = f"<xacro:property name='pi' value='3.14'/>{macro}"
    tree = parse_urdf(TEXT.replace("</robot>", f"{left}</robot>"))
    assert tree.to_xml() == TREE.to_xml()
    (note,) = tree.notes
    assert "xacro:macro and xacro:property" in note and "expand it with xacro" in note
    with pytest.raises(RobotModelError, match="no joint that moves; .*expand it with xacro"):
        RobotModel(robot("<link name='a'/>", "<xacro:arm/>"))


FIELD = ("doctype", "latin1", "unbound_prefix", "neg_inertia", "neg_mass_one")


@pytest.mark.parametrize("name", FIELD)
def test_urdfs_as_they_come(name: str, data_file: Callable[[str], Path]) -> None:
    """An arm's URDF, damaged in one respect: efforts are those of the good one where it can be."""
    model = RobotModel(data_file(f"field/urdf/{name}.urdf"))
    good = RobotModel(data_file("robots/xmate7p/xmate7p.urdf"))
    state = np.random.default_rng(0).standard_normal((3, 7))
    efforts, expected = (robot.inverse_dynamics(*state) for robot in (model, good))
    assert bool(told_of_urdf(model)) == name.startswith("neg")
    if name.startswith("neg"):
        assert np.abs(efforts - expected).max() < 0.05 * np.abs(expected).max()
    else:
        np.testing.assert_array_equal(efforts, expected)


def test_long_lists_of_names_are_cut() -> None:
    hint = closest("joint7x", [f"joint{i}" for i in range(30)], shown=3)
    assert hint == "; did you mean 'joint7'? there are: joint0, joint1, joint2, ..."


def shape(tree: UrdfTree, joint: str) -> tuple[str, str, str]:
    return tree.joints[joint].type, tree.joints[joint].parent, tree.joints[joint].child


@pytest.mark.parametrize("frame", ["boom_sensor", "boom"])
def test_a_fixed_sensor_joint_is_freed(frame: str) -> None:
    cut, sensor = cut_at_sensor(TREE, frame)
    assert sensor == "boom_sensor"
    assert shape(cut, sensor) == ("floating", "boom_root", "boom")
    assert TREE.joints[sensor].type == "fixed"  # the tree given is not touched


@pytest.mark.parametrize("frame", ["grip", "gripper"])
def test_a_moving_joint_keeps_moving_before_the_cut(frame: str) -> None:
    cut, sensor = cut_at_sensor(TREE, frame)
    between = cut.joints["grip"].child
    assert shape(cut, "grip") == ("revolute", "slider", between)
    assert shape(cut, sensor) == ("floating", between, "gripper")
    assert parse_urdf(cut.to_xml()).mass("base") == TREE.mass("base")
    assert TREE.joints["grip"].element.find("child").attrib == {"link": "gripper"}


def test_a_marker_with_nothing_beside_it() -> None:
    lone = parse_urdf(
        "<robot><link name='a'/><link name='b'/><joint name='j' type='fixed'>"
        "<parent link='a'/><child link='b'/></joint></robot>"
    )
    with pytest.raises(RobotModelError, match="marks a place: name the joint that carries"):
        cut_at_sensor(lone, "j")


def test_an_unknown_frame_lists_likely_ones_first() -> None:
    plate = (
        '<link name="base"/><link name="plate"/><joint name="mount" type="fixed">'
        '<parent link="base"/><child link="plate"/></joint>'
    )
    tree = parse_urdf(TEXT.replace('<link name="base"/>', plate))
    with pytest.raises(RobotModelError, match="there are: boom_sensor, sensor_mark, mount, "):
        cut_at_sensor(tree, "zzz")


def fixed(name: str, parent: str, origin: str = "") -> str:
    return (
        f"<link name='{name}'/><joint name='{name}_joint' type='fixed'><parent link='{parent}'/>"
        f"<child link='{name}'/>{origin}</joint>"
    )


@pytest.mark.parametrize("frame", ["boom_sensor", "boom"])
def test_a_joint_and_the_link_behind_it_are_one_frame(frame: str) -> None:
    names = frame_names(TREE, frame)
    assert names[0] == frame
    assert {"boom_sensor", "boom"} <= set(names)
    assert not {"base", "boom_root", "gripper", "lift", "reach"} & set(names)


def test_what_is_fixed_there_without_an_offset_is_the_same_frame_and_nothing_else() -> None:
    shift = "<origin xyz='0 0 0.1'/>"
    same = "<origin xyz='1 0 0' rpy='0 0.5 0'/>"
    text = (
        "<robot name='r'><link name='root'/>"
        + fixed("ft", "root", same)
        + fixed("marker", "root", "<origin rpy='0 0.50 0' xyz='1.0 0 0'/>")
        + fixed("elsewhere", "root", shift)
        + fixed("tool", "ft", "<origin xyz='0 0 0'/>")
        + fixed("tip", "tool", shift)
        + "</robot>"
    )
    names = frame_names(parse_urdf(text), "ft_joint")
    assert set(names) == {"ft_joint", "ft", "marker", "marker_joint", "tool", "tool_joint"}


def test_efforts_and_velocities_are_limited_where_the_urdf_says_so() -> None:
    for kind, own in (("effort", 87.0), ("velocity", 2.0)):
        assert np.array_equal(joint_limits(TREE, ["slew", "lift"], kind), [np.inf, own])
    none = parse_urdf(TEXT.replace('effort="87"', 'effort="0"'))
    assert np.isinf(joint_limits(none, ["slew", "lift"], "effort")).all()
    broken = parse_urdf(TEXT.replace('effort="87"', 'effort="much"'))
    with pytest.raises(RobotModelError, match="'lift' .* no number: 'much'"):
        joint_limits(broken, ["slew", "lift"], "effort")


def test_the_checks_fit_the_target() -> None:
    wrench = message_checks(RobotModel(TEXT, target="wrench", sensor_frame="boom"))
    assert wrench["wrench_frame"][0] == "boom"
    effort = message_checks(RobotModel(TEXT, joints=("lift", "slew")))
    assert not effort["wrench_frame"]


VALUES = list(re.finditer(r'"([^"]*)"', TEXT))
TAGS = list(re.finditer(r"<(\w+)[^>]*>", TEXT))
WRONG = st.sampled_from(
    ["", "x", "nan", "inf", "-inf", "1e400", "-1", "0", "1 2", "1 2 3 4", "base", "0x1", "1,5"]
)
SETTINGS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def tried(text: str) -> None:
    for config in ({}, {"target": "wrench", "sensor_frame": "boom_sensor"}):
        try:
            model = RobotModel(text, **config)
            message_checks(model)
        except RobotModelError as error:
            assert str(error)
            continue
        zeros = np.zeros(model.n_joints)
        assert np.isfinite(model.regressor(zeros + 0.1, zeros + 0.2, zeros + 0.3)).all()
        assert np.isfinite(model.prior).all()


@given(st.integers(0, len(VALUES) - 1), WRONG)
@SETTINGS
def test_a_value_that_is_wrong(which, value) -> None:
    found = VALUES[which]
    tried(f'{TEXT[: found.start()]}"{value}"{TEXT[found.end() :]}')


@given(st.integers(0, len(TAGS) - 1), st.sampled_from(["", "<link/>", "<joint/>", "<x>", "]]>"]))
@SETTINGS
def test_a_tag_that_is_another(which, tag) -> None:
    found = TAGS[which]
    tried(TEXT[: found.start()] + tag + TEXT[found.end() :])


@given(st.integers(0, len(TEXT)), st.integers(0, 3), st.text(max_size=3), st.booleans())
@SETTINGS
def test_characters_that_are_others_or_missing(at, removed, text, cut) -> None:
    tried(TEXT[:at] + text + ("" if cut else TEXT[at + removed :]))


def chain(n: int) -> str:
    links = "".join(f"<link name='l{k}'/>" for k in range(n + 1))
    joints = "".join(
        f"<joint name='j{k}' type='fixed'><parent link='l{k}'/><child link='l{k + 1}'/></joint>"
        for k in range(n)
    )
    return f"<robot name='r'>{links}{joints}</robot>"


@pytest.mark.parametrize(
    ("n", "why"), [(5, "no joint that moves"), (1900, "no joint that moves"), (2001, "than 2000")]
)
def test_a_chain_however_long_is_answered_in_a_sentence(n, why) -> None:
    with pytest.raises(RobotModelError, match=why):
        RobotModel(chain(n))


def test_entities_that_grow_are_refused() -> None:
    grown = [f'<!ENTITY e{k} "{f"&e{k - 1};" * 9}">' for k in range(1, 12)]
    entities = f'<!ENTITY e0 "{"x" * 10}">{"".join(grown)}'
    with pytest.raises(RobotModelError):
        RobotModel(f"<!DOCTYPE robot [{entities}]><robot name='&e11;'/>")


HARMLESS = (
    "",
    '<!ENTITY e "x">',
    '<!ENTITY e SYSTEM "file:///etc/passwd">',
    '<!ENTITY % e SYSTEM "x"> %e;',
    '<!ATTLIST mass value CDATA "7">',
)


@pytest.mark.parametrize("declared", HARMLESS)
def test_a_document_type_has_no_effect(declared: str) -> None:
    model = RobotModel(f'<?xml version="1.0"?><!DOCTYPE robot [{declared}]>{BARE}')
    np.testing.assert_array_equal(model.inertial_prior, RobotModel(BARE).inertial_prior)


@pytest.mark.parametrize("used", ["<a>&e;</a>", "<a b='&e;'/>"])
@pytest.mark.parametrize("declared", ['"x"', 'SYSTEM "file:///etc/passwd"', '"&#38;f;"'])
def test_an_entity_that_is_used_is_refused(declared: str, used: str) -> None:
    text = BARE.replace("</robot>", f"{used}</robot>")
    with pytest.raises(RobotModelError, match="uses the entity '&e;' .* write its value instead"):
        parse_urdf(f"<!DOCTYPE robot [<!ENTITY f 'y'><!ENTITY e {declared}>]>{text}")


def test_a_default_of_a_document_type_cannot_grow() -> None:
    entities = f"<!ENTITY e0 '{'x' * 99}'><!ATTLIST robot name CDATA '&e0;'>"
    with pytest.raises(RobotModelError, match="uses the entity '&e0;'"):
        parse_urdf(f"<!DOCTYPE robot [{entities}]><robot/>")


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(RobotModelError, match="10000001 characters"):
        RobotModel("<" * (MAX_LENGTH + 1))
