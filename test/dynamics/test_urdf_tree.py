from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.robot.urdf import closest, parse_urdf, read_urdf

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
            "limits, but no numbers",
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
    joint = JOINT.format("j", "a", "b").replace("</j", "<limit lower='-1' upper='2'/><mimic/></j")
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


def test_masses_must_be_numbers() -> None:
    tree = parse_urdf(robot("<link name='a'><inertial><mass value='x'/></inertial></link>"))
    with pytest.raises(RobotModelError, match="link 'a' of the URDF has a mass that is no number"):
        tree.mass("a")


def test_long_lists_of_names_are_cut() -> None:
    hint = closest("joint7x", [f"joint{i}" for i in range(30)], shown=3)
    assert hint == "; did you mean 'joint7'? there are: joint0, joint1, joint2, ..."
