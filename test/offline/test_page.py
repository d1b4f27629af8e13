"""Plots as SVG inside a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes

from semiparam_dynamics.offline.page import axis_groups, axis_units, draw
from semiparam_dynamics.robot.model import RobotModel

from ..dynamics.arms import URDF, small_arm

XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
TITLE = '$a_b$ <g id="x" url(#y) & 1.23456'


def plot(axes: Axes) -> None:
    axes.plot([0.0, 1.0], [0.0, 1.23456789])
    axes.set_title(TITLE)


def test_svg_is_well_formed_with_its_text_untouched() -> None:
    text = draw("one", 'says "this" & <that>', plot, 300, 200)
    root = ET.fromstring(text.replace("<svg ", f"<svg {XLINK} ", 1))
    assert root.attrib["aria-label"] == 'says "this" & <that>'
    assert root.attrib["viewBox"] == "0 0 300 200"
    assert TITLE in [element.text for element in root.iter("text")]
    assert "http" not in text and "DejaVu" not in text


def test_ids_of_two_plots_differ_and_the_same_plot_is_the_same_text() -> None:
    one, two = (draw(name, "", plot, 300, 200) for name in ("one", "two"))

    def ids(text: str) -> set[str]:
        root = ET.fromstring(text.replace("<svg ", f"<svg {XLINK} ", 1))
        return {element.attrib["id"] for element in root.iter() if "id" in element.attrib}

    assert ids(one) and not ids(one) & ids(two)
    assert one == draw("one", "", plot, 300, 200)


def test_efforts_of_sliding_joints_are_forces_in_a_group_of_their_own() -> None:
    mixed = small_arm()
    turning = RobotModel(URDF.read_text().replace('"prismatic"', '"revolute"'))
    (group,) = axis_groups(turning)
    assert group.axes == tuple(range(turning.n_axes)) and group.unit == "N m"
    [slides] = np.flatnonzero(mixed.sliding)
    groups = axis_groups(mixed)
    assert [(one.unit, slides in one.axes) for one in groups] == [("N m", False), ("N", True)]
    assert sorted(k for one in groups for k in one.axes) == list(range(mixed.n_axes))
    assert [k for k, unit in enumerate(axis_units(mixed)) if unit == "N"] == [slides]


def test_settings_of_the_user_are_left_alone() -> None:
    before = rcParams.copy()
    draw("one", "", plot, 300, 200)
    assert rcParams == before
