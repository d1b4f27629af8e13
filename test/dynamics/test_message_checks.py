"""What a URDF tells about the messages to be expected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.robot.urdf import effort_limits, frame_names, parse_urdf

TEXT = (Path(__file__).resolve().parent.parent / "data/small_arm.urdf").read_text()
TREE = parse_urdf(TEXT)


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


def test_an_unknown_frame_is_refused() -> None:
    with pytest.raises(RobotModelError, match="no frame 'boom_sensr'; did you mean"):
        frame_names(TREE, "boom_sensr")


def test_efforts_are_limited_where_the_urdf_says_so() -> None:
    limits = effort_limits(TREE, ["slew", "lift"])
    assert np.array_equal(limits, [np.inf, 87.0])
    none = parse_urdf(TEXT.replace('effort="87"', 'effort="0"'))
    assert np.isinf(effort_limits(none, ["slew", "lift"])).all()
    broken = parse_urdf(TEXT.replace('effort="87"', 'effort="much"'))
    with pytest.raises(RobotModelError, match="'lift' .* no number: 'much'"):
        effort_limits(broken, ["slew", "lift"])


def test_the_checks_fit_the_target() -> None:
    wrench = message_checks(RobotModel(TEXT, target="wrench", sensor_frame="boom"))
    assert wrench["wrench_frame"][0] == "boom"
    effort = message_checks(RobotModel(TEXT, joints=("lift", "slew")))
    assert not effort["wrench_frame"]
    assert np.array_equal(effort["effort_limits"], [87.0, np.inf])
