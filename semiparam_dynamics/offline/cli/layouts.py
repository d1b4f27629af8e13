"""`semiparam layouts DIR`: what `inverse_dynamics` publishes, in Foxglove, PlotJuggler and RViz."""

from __future__ import annotations

import argparse
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from semiparam_dynamics.base.arrays import WRENCH_AXES
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import check_replaced, write_files
from semiparam_dynamics.learner.learner import MODELS
from semiparam_dynamics.offline.cli.options import add_options, add_overwrite

EXAMPLES = {
    "layouts": (
        "semiparam layouts layouts",
        "semiparam layouts layouts --joints joint1 joint2 joint3",
        "semiparam layouts layouts --node /left/inverse_dynamics --base left_base",
    ),
}


def add_layouts(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `layouts`."""
    parser.add_argument("out", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--joints",
        nargs="+",
        default=UR_JOINTS,
        metavar="NAME",
        help="learned joints, in order (default: those of a UR arm)",
    )
    add_options(
        parser,
        ("--node", NODE, "NAME", "the node's name with its namespace (default %(default)s)"),
        ("--base", "base_link", "FRAME", "fixed frame of the 3D view (default %(default)s)"),
    )
    add_overwrite(parser)


def run_layouts(args: argparse.Namespace) -> int:
    """Write the layouts with which PlotJuggler (3.9 or newer), Foxglove and RViz show what the
    node inverse_dynamics publishes: DIR/plotjuggler/effort.xml, DIR/foxglove/effort.json, the
    same for a wrench, and DIR/rviz/semiparam_dynamics.rviz. The joints' names are those that
    are learned, in their order.
    """
    found = contents(args.joints, args.node, args.base)
    files = {args.out / name: text for name, text in found.items()}
    check_replaced(files, overwrite=args.overwrite)
    write_files(files)
    print(*files, sep="\n")
    return 0


DESCRIPTION_TOPIC = "/robot_description"
DIAGNOSTICS = "/diagnostics"
ROS_NAME = re.compile(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)  # where rclpy may not be there
UR_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)


NODE = "/inverse_dynamics"


class Curve(NamedTuple):
    """A number of a message, as each viewer finds it; the factories below make one."""

    topic: str
    label: str
    path: str  # Foxglove's message path; text that is a number is plotted as one
    series: str  # PlotJuggler's name by its parser of ROS messages: fields with slashes between


# Curves with common axes, by their title; and such plots one above the other, by the page's title.
Plots = dict[str, list[Curve]]
Pages = dict[str, Plots]
LABELS = {"measured": "measured", "predicted": "predicted", "rigid_body": "rigid body"}  # of topics


def field(topic: str, path: str, label: str) -> Curve:
    """A number of a stamped message, such as ``wrench.force.x``."""
    return Curve(topic, label, f"{topic}.{path}", f"{topic}/{path.replace('.', '/')}")


def effort(topic: str, joint: str, index: int, label: str) -> Curve:
    """A joint's effort in a JointState: Foxglove finds it by its index, PlotJuggler by its name."""
    return Curve(topic, label, f"{topic}.effort[{index}]", f"{topic}/{joint}/effort")


def statuses(node: str, labels: dict[str, str]) -> list[Curve]:
    """Numbers of the node's status on /diagnostics, with a label for each key."""
    name = node.removeprefix("/")
    values = f'{DIAGNOSTICS}.status[:]{{name=="{name}"}}.values[:]'
    return [
        Curve(DIAGNOSTICS, label, f'{values}{{key=="{key}"}}.value', f"{DIAGNOSTICS}/{name}/{key}")
        for key, label in labels.items()
    ]


def contents(
    joints: Sequence[str] = UR_JOINTS, node: str = NODE, base: str = "base_link"
) -> dict[str, str]:
    """The files' texts by their paths: for both targets, for both viewers, and for RViz.

    Raises ConfigurationError where a joint has no name or that of another, and for a node's name
    that ROS does not take.
    """
    if len(set(joints)) < len(joints) or not all(joints):
        raise ConfigurationError(f"each joint needs a name of its own, not {', '.join(joints)}")
    if not ROS_NAME.fullmatch(node):
        raise ConfigurationError(
            f"'{node}' is no name in ROS: between slashes one has letters, digits and "
            "underscores, and no digit first"
        )
    markers = f"{node}/markers"
    rviz = RVIZ.replace("MARKERS", markers).replace("BASE", json.dumps(base))
    files = {"rviz/semiparam_dynamics.rviz": rviz}
    for target, pages in (("effort", effort_pages(node, joints)), ("wrench", wrench_pages(node))):
        files[f"plotjuggler/{target}.xml"] = plotjuggler_layout(pages)
        files[f"foxglove/{target}.json"] = foxglove_layout(pages, markers, base)
    return files


def wrench_pages(node: str) -> Pages:
    """For the target wrench: each axis measured and predicted, the external wrench, learning."""
    pages: Pages = {"forces": {}, "torques": {}, "external": {}}
    for kind in ("force", "torque"):
        paths = {f"{kind} {axis}": f"wrench.{kind}.{axis}" for axis in "xyz"}
        pages[f"{kind}s"] = {
            title: [field(f"{node}/{topic}", path, label) for topic, label in LABELS.items()]
            for title, path in paths.items()
        }
        pages["external"][f"external {kind}"] = [
            field(f"{node}/external", path, title) for title, path in paths.items()
        ]
    return pages | learning_pages(node, WRENCH_AXES, ("payload", "offset"))


def effort_pages(node: str, joints: Sequence[str]) -> Pages:
    """For the target effort: each of the learned `joints`, the external efforts, learning."""
    efforts = {
        joint: [effort(f"{node}/{topic}", joint, i, label) for topic, label in LABELS.items()]
        for i, joint in enumerate(joints)
    }
    external = [effort(f"{node}/external", joint, i, joint) for i, joint in enumerate(joints)]
    pages = {"efforts": efforts, "external": {"external efforts": external}}
    return pages | learning_pages(node, joints, ("payload", "friction", "offset"))


def learning_pages(node: str, axes: Sequence[str], causes: Sequence[str]) -> Pages:
    """Two pages: how well it learns and how long that takes; the payload, changes, and deviations.

    The models' errors on each axis are those so far; `causes` of changes have evidence each.
    """
    samples = ("samples predicted", "samples learned", "samples waiting")
    times = ("predict p50 [us]", "predict p99 [us]", "learn p50 [us]", "learn p99 [us]")
    learning = {
        f"normalised MSE, {model}": {f"nmse {model} {axis}": axis for axis in axes}
        for model in MODELS
        if model != "nonparametric"  # it is compared only where that is asked for
    }
    learning["samples"] = {key: key for key in samples}
    learning["time of a step"] = {key: key for key in times}
    evidence = {f"changes: evidence of {cause}": cause for cause in causes}
    deviations = {f"deviation {axis} [std]": axis for axis in axes}
    payload = [
        field(f"{node}/payload", "inertia.m", "mass"),
        field(f"{node}/payload_std", "inertia.m", "its standard deviation"),
    ]
    return {
        "learning": {title: statuses(node, labels) for title, labels in learning.items()},
        "changes": {
            "payload": payload,
            "evidence": statuses(node, evidence | {"changes: threshold": "threshold"}),
            "external, in standard deviations": statuses(
                node, deviations | {"contact: threshold [std]": "threshold of contacts"}
            ),
        },
    }


# Foxglove: the JSON that its layouts menu imports.

FOXGLOVE_COLORS = "#4e98e2 #f5774d #7ac36a #f7df71 #be6bff #5ac8c8 #f45bd7 #b2b2b2".split()
SECONDS_SHOWN = 30


def foxglove_layout(pages: Pages, markers: str, base: str) -> str:
    """The layout's text: tabs for the robot, for each page, and for a summary of /diagnostics."""
    panels: dict[str, Any] = {"3D!robot": _scene(markers, base)}
    tabs: list[dict[str, Any]] = [{"title": "robot", "layout": "3D!robot"}]
    for title, plots in pages.items():
        names = [f"Plot!{title}{k}".replace(" ", "") for k in range(len(plots))]
        panels |= {name: _panel(*plot) for name, plot in zip(names, plots.items(), strict=True)}
        tabs.append({"title": title, "layout": _column(names)})
    panels["DiagnosticSummary!node"] = {
        "minLevel": 0,
        "pinnedIds": [],
        "hardwareIdFilter": "",
        "topicToRender": DIAGNOSTICS,
        "sortByLevel": True,
    }
    tabs.append({"title": "diagnostics", "layout": "DiagnosticSummary!node"})
    panels["Tab!pages"] = {"activeTabIdx": 0, "tabs": tabs}
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": "Tab!pages",
    }
    return json.dumps(layout, indent=2) + "\n"


def _panel(title: str, curves: Sequence[Curve]) -> dict[str, Any]:
    paths = [
        {
            "value": curve.path,
            "label": curve.label,
            "enabled": True,
            "color": color,
            "timestampMethod": "receiveTime" if curve.topic == DIAGNOSTICS else "headerStamp",
        }
        for curve, color in zip(curves, cycle(FOXGLOVE_COLORS), strict=False)
    ]
    return {
        "foxglovePanelTitle": title,
        "lichtblickPanelTitle": title,  # in Foxglove's open fork
        "paths": paths,
        "showXAxisLabels": True,
        "showYAxisLabels": True,
        "showLegend": True,
        "legendDisplay": "left",  # floating, it covers low plots
        "showPlotValuesInLegend": False,
        "isSynced": True,
        "xAxisVal": "timestamp",
        "followingViewWidth": SECONDS_SHOWN,
        "sidebarDimension": 190,
    }


def _scene(markers: str, base: str) -> dict[str, Any]:
    """The robot in three dimensions with the node's markers."""
    grid = {"layerId": "foxglove.Grid", "label": "grid", "visible": True, "size": 4, "divisions": 8}
    return {
        "followTf": base,
        "followMode": "follow-none",
        "layers": {"grid": grid},
        "cameraState": {"distance": 2.5},  # m; else an arm is a few pixels at 20
        "scene": {"transforms": {"showLabel": False}},
        "topics": {topic: {"visible": True} for topic in (DESCRIPTION_TOPIC, markers)},
    }


def _column(names: Sequence[str]) -> Any:
    """Panels of equal height, one above the other: a tree of splits in two."""
    if len(names) == 1:
        return names[0]
    return {
        "direction": "column",
        "splitPercentage": round(100.0 / len(names), 3),
        "first": names[0],
        "second": _column(names[1:]),
    }


# PlotJuggler 3: the XML that `plotjuggler --layout FILE` or its File menu loads. Before version 3.9
# it can't read JointState messages without positions, as predictions are.

PLOTJUGGLER_COLORS = "#1f77b4 #d62728 #1ac938 #ff7f0e #9467bd #17becf #f14cc1 #bcbd22".split()
# The node's messages have the stamps of what they answer: compared in that time, they agree.
# /diagnostics is stamped as well.
PLOTJUGGLER = """<root>
<tabbed_widget name="Main Window" parent="main_window"/>
<use_relative_time_offset enabled="1"/>
<Plugins><plugin ID="ROS2 Topic Subscriber">
    <use_header_stamp value="true"/>
    <discard_large_arrays value="true"/>
    <max_array_size value="500"/>
    <boolean_strings_to_number value="true"/>
    <remove_suffix_from_strings value="true"/>
    <selected_topics/>
</plugin></Plugins>
<previouslyLoaded_Datafiles/>
<previouslyLoaded_Streamer name="ROS2 Topic Subscriber"/>
<customMathEquations/>
<snippets/>
</root>"""


def plotjuggler_layout(pages: Pages) -> str:
    """The layout's text; it also has the subscriber choose the topics that it needs."""
    root = ElementTree.fromstring(PLOTJUGGLER)  # nosec B314 # ours
    add = ElementTree.SubElement
    for title, plots in pages.items():
        container = add(add(root[0], "Tab", {"containers": "1", "tab_name": title}), "Container")
        n = len(plots)
        sizes = ";".join([f"{1.0 / n:.6f}"] * n)
        split = {"orientation": "-", "count": str(n), "sizes": sizes}
        splitter = add(container, "DockSplitter", split)
        for heading, curves in plots.items():
            area = add(splitter, "DockArea", {"name": heading})
            kind = {"mode": "TimeSeries", "style": "Lines", "flip_x": "false", "flip_y": "false"}
            drawn = add(area, "plot", kind)
            add(drawn, "limitY")
            for curve, color in zip(curves, cycle(PLOTJUGGLER_COLORS), strict=False):
                add(drawn, "curve", {"name": curve.series, "color": color})
    add(root[0], "currentTabIndex", {"index": "0"})
    curves = [curve for plots in pages.values() for plot in plots.values() for curve in plot]
    chosen = ";".join(dict.fromkeys(curve.topic for curve in curves))
    next(root.iter("selected_topics")).set("value", chosen)
    ElementTree.indent(root, " ")
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, 'unicode')}\n"


# RViz 2: the YAML that `rviz2 -d FILE` loads: the robot as its description has it, with the node's
# markers.
RVIZ = f"""\
Panels: [{{Class: rviz_common/Displays, Name: Displays}}]
Visualization Manager:
  Displays:
  - {{Class: rviz_default_plugins/Grid, Name: Grid, Enabled: true}}
  - Class: rviz_default_plugins/RobotModel
    Name: RobotModel
    Enabled: true
    Alpha: 0.7
    Description Source: Topic
    Description Topic:
      Value: {DESCRIPTION_TOPIC}
      Durability Policy: Transient Local
      Reliability Policy: Reliable
  - Class: rviz_default_plugins/MarkerArray
    Name: forces, contacts, payload
    Enabled: true
    Topic: {{Value: MARKERS, Reliability Policy: Best Effort}}
  Global Options: {{Fixed Frame: BASE, Frame Rate: 30}}
  Tools: [{{Class: rviz_default_plugins/MoveCamera}}]
  Views:
    Current:
      Class: rviz_default_plugins/Orbit
      Name: Current View
      Distance: 2.5
      Pitch: 0.4
      Yaw: 0.8
"""
