from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.robot.urdf import UrdfTree, cut_at_sensor, parse_urdf

TEXT = (Path(__file__).resolve().parent.parent / "data/small_arm.urdf").read_text()
TREE = parse_urdf(TEXT)


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
    with pytest.raises(RobotModelError, match="mere marker: name the joint that carries"):
        cut_at_sensor(lone, "j")


def test_an_unknown_frame_lists_likely_ones_first() -> None:
    plate = (
        '<link name="base"/><link name="plate"/><joint name="mount" type="fixed">'
        '<parent link="base"/><child link="plate"/></joint>'
    )
    tree = parse_urdf(TEXT.replace('<link name="base"/>', plate))
    with pytest.raises(RobotModelError, match="there are: boom_sensor, sensor_mark, mount, "):
        cut_at_sensor(tree, "zzz")
