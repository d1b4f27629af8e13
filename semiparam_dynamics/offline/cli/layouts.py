"""`semiparam layouts DIR`: what `inverse_dynamics` publishes, in Foxglove, PlotJuggler and RViz."""

from __future__ import annotations

import argparse
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from semiparam_dynamics.base.arrays import WRENCH_AXES
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.output_files import check_replaced, write_files
from semiparam_dynamics.learner.learner import MODELS
from semiparam_dynamics.offline.cli.options import add_overwrite

DESCRIPTION = """\
Write the layouts with which PlotJuggler (3.9 or newer), Foxglove and RViz show what the node
inverse_dynamics publishes: DIR/plotjuggler/effort.xml, DIR/foxglove/effort.json, the same for a
wrench, and DIR/rviz/semiparam_dynamics.rviz. The joints' names are those that are learned, in their
order."""
EXAMPLES = (
    "semiparam layouts layouts",
    "semiparam layouts layouts --joints joint1 joint2 joint3",
    "semiparam layouts layouts --node /left/inverse_dynamics --base left_base",
)

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


@dataclass(frozen=True)
class Topics:
    """The node's full name, the topics of what is measured, and the frame that stands still.

    Raises ConfigurationError for a name that ROS does not take.
    """

    node: str = "/inverse_dynamics"
    joint_states: str = "/joint_states"
    wrench: str = "/wrench"
    description: str = "/robot_description"
    base: str = "base_link"

    def __post_init__(self) -> None:
        """Check the names."""
        for name in (self.node, self.joint_states, self.wrench, self.description):
            if not ROS_NAME.fullmatch(name):
                raise ConfigurationError(
                    f"'{name}' is no name in ROS: between slashes one has letters, digits and "
                    "underscores, and no digit first"
                )

    @property
    def name(self) -> str:
        """The node's name as /diagnostics has it, with the namespace."""
        return self.node.removeprefix("/")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    default = Topics()
    parser.add_argument("out", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--joints",
        nargs="+",
        default=UR_JOINTS,
        metavar="NAME",
        help="learned joints, in order (default: those of a UR arm)",
    )
    parser.add_argument(
        "--node",
        default=default.node,
        metavar="NAME",
        help="the node's name with its namespace (default %(default)s)",
    )
    for option, topic in (("--joint-states", default.joint_states), ("--wrench", default.wrench)):
        parser.add_argument(
            option,
            default=topic,
            metavar="TOPIC",
            help="topic of the measurement (default %(default)s)",
        )
    parser.add_argument(
        "--base",
        default=default.base,
        metavar="FRAME",
        help="fixed frame of the 3D view (default %(default)s)",
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Write the files, and print their names."""
    topics = Topics(args.node, args.joint_states, args.wrench, base=args.base)
    files = {args.out / name: text for name, text in contents(topics, args.joints).items()}
    check_replaced(files, overwrite=args.overwrite)
    write_files(files)
    print(*files, sep="\n")
    return 0


@dataclass(frozen=True)
class Curve:
    """A number of a message, as each viewer finds it; the factories below make one."""

    topic: str
    label: str
    path: str  # Foxglove's message path; text that is a number is plotted as one
    series: str  # PlotJuggler's name by its parser of ROS messages: fields with slashes between
    nameless: bool = False  # an effort by its index, of a driver that may have another order


def field(topic: str, path: str, label: str) -> Curve:
    """A number of a stamped message, such as ``wrench.force.x``."""
    return Curve(topic, label, f"{topic}.{path}", f"{topic}/{path.replace('.', '/')}")


def effort(topic: str, joint: str, index: int, label: str, *, nameless: bool = False) -> Curve:
    """A joint's effort in a JointState. Foxglove can't find a joint by its name, only by an index.

    PlotJuggler has the joints' names.
    """
    return Curve(topic, label, f"{topic}.effort[{index}]", f"{topic}/{joint}/effort", nameless)


def diagnostic(topics: Topics, key: str, label: str) -> Curve:
    """A number of the node's status on /diagnostics; PlotJuggler names the status by the node."""
    status = f'{DIAGNOSTICS}.status[:]{{name=="{topics.name}"}}'
    path = f'{status}.values[:]{{key=="{key}"}}.value'
    return Curve(DIAGNOSTICS, label, path, f"{DIAGNOSTICS}/{topics.name}/{key}")


@dataclass(frozen=True)
class Plot:
    """Curves with common axes."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Page:
    """Plots that are seen together, one above the other."""

    title: str
    plots: tuple[Plot, ...]


def contents(topics: Topics, joints: Sequence[str]) -> dict[str, str]:
    """The files' texts by their paths: for both targets, for both viewers.

    Raises ConfigurationError where a joint has no name or that of another.
    """
    if len(set(joints)) < len(joints) or not all(joints):
        raise ConfigurationError(f"each joint needs a name of its own, not {', '.join(joints)}")
    files = {}
    for target, pages in (
        ("effort", effort_pages(topics, joints)),
        ("wrench", wrench_pages(topics)),
    ):
        files[f"plotjuggler/{target}.xml"] = plotjuggler_layout(pages)
        files[f"foxglove/{target}.json"] = foxglove_layout(pages, topics)
    files["rviz/semiparam_dynamics.rviz"] = rviz_config(topics)
    return files


def wrench_pages(topics: Topics) -> list[Page]:
    """For the target wrench: each axis measured and predicted, the external wrench, learning."""
    shown = {
        "measured": topics.wrench,
        "predicted": f"{topics.node}/predicted",
        "rigid body": f"{topics.node}/rigid_body",
    }
    pages = []
    for kind in ("force", "torque"):
        plots = [
            Plot(
                f"{kind} {axis}",
                tuple(field(t, f"wrench.{kind}.{axis}", label) for label, t in shown.items()),
            )
            for axis in "xyz"
        ]
        pages.append(Page(f"{kind}s", tuple(plots)))
    external = f"{topics.node}/external"
    plots = [
        Plot(
            f"external {kind}",
            tuple(field(external, f"wrench.{kind}.{axis}", f"{kind} {axis}") for axis in "xyz"),
        )
        for kind in ("force", "torque")
    ]
    pages.append(Page("external", tuple(plots)))
    pages.append(learning_page(topics, WRENCH_AXES))
    return [*pages, changes_page(topics, WRENCH_AXES, ("payload", "offset"))]


def effort_pages(topics: Topics, joints: Sequence[str] = UR_JOINTS) -> list[Page]:
    """For the target effort: each of the learned `joints`, the external efforts, learning."""
    plots = []
    for i, joint in enumerate(joints):
        measured = effort(topics.joint_states, joint, i, "measured", nameless=True)
        predicted = effort(f"{topics.node}/predicted", joint, i, "predicted")
        rigid_body = effort(f"{topics.node}/rigid_body", joint, i, "rigid body")
        plots.append(Plot(joint, (measured, predicted, rigid_body)))
    external = tuple(
        effort(f"{topics.node}/external", joint, i, joint) for i, joint in enumerate(joints)
    )
    return [
        Page("efforts", tuple(plots)),
        Page("external", (Plot("external efforts", external),)),
        learning_page(topics, joints),
        changes_page(topics, joints, ("payload", "friction", "offset")),
    ]


def learning_page(topics: Topics, axes: Sequence[str]) -> Page:
    """The models' errors on each axis so far, the samples that wait, and the time of a step."""
    plots = [
        status_plot(
            topics, f"normalised MSE, {model}", {f"nmse {model} {axis}": axis for axis in axes}
        )
        for model in MODELS
        if model != "nonparametric"  # it is compared only where that is asked for
    ]
    samples = ("samples predicted", "samples learned", "samples waiting")
    times = ("predict p50 [us]", "predict p99 [us]", "learn p50 [us]", "learn p99 [us]")
    plots.append(status_plot(topics, "samples", {key: key for key in samples}))
    plots.append(status_plot(topics, "time of a step", {key: key for key in times}))
    return Page("learning", tuple(plots))


def changes_page(topics: Topics, axes: Sequence[str], causes: Sequence[str]) -> Page:
    """The payload held, the evidence for each cause, and the deviation of each axis."""
    payload = Plot(
        "payload",
        (
            field(f"{topics.node}/payload", "inertia.m", "mass"),
            field(f"{topics.node}/payload_std", "inertia.m", "its standard deviation"),
        ),
    )
    evidence = {f"changes: evidence of {cause}": cause for cause in causes}
    deviations = {f"deviation {axis} [std]": axis for axis in axes}
    return Page(
        "changes",
        (
            payload,
            status_plot(topics, "evidence", evidence | {"changes: threshold": "threshold"}),
            status_plot(
                topics,
                "external, in standard deviations",
                deviations | {"contact: threshold [std]": "threshold of contacts"},
            ),
        ),
    )


def status_plot(topics: Topics, title: str, keys: dict[str, str]) -> Plot:
    """A plot of numbers of the node's status on /diagnostics, with a label for each key."""
    return Plot(title, tuple(diagnostic(topics, key, label) for key, label in keys.items()))


# Foxglove: the JSON that its layouts menu imports.

FOXGLOVE_COLORS = (
    "#4e98e2",
    "#f5774d",
    "#7ac36a",
    "#f7df71",
    "#be6bff",
    "#5ac8c8",
    "#f45bd7",
    "#b2b2b2",
)
SECONDS_SHOWN = 30


def foxglove_layout(pages: Sequence[Page], topics: Topics) -> str:
    """The layout's text: tabs for the robot, for each page, and for a summary of /diagnostics."""
    panels: dict[str, Any] = {"3D!robot": _scene(topics)}
    tabs: list[dict[str, Any]] = [{"title": "robot", "layout": "3D!robot"}]
    for page in pages:
        names: list[str] = []
        for plot in _by_index(page.plots):
            names.append(f"Plot!{page.title}{len(names)}".replace(" ", ""))
            panels[names[-1]] = _panel(plot)
        tabs.append({"title": page.title, "layout": _column(names)})
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


def _by_index(plots: Sequence[Plot]) -> list[Plot]:
    """The plots with nameless efforts in one of their own at the end."""
    apart = [curve for plot in plots for curve in plot.curves if curve.nameless]
    if not apart:
        return list(plots)
    kept = [Plot(p.title, tuple(c for c in p.curves if not c.nameless)) for p in plots]
    unknown = [replace(curve, label=f"[{k}]") for k, curve in enumerate(apart)]
    return [*kept, Plot("measured, in the order of the driver's message", tuple(unknown))]


def _panel(plot: Plot) -> dict[str, Any]:
    paths = [
        {
            "value": curve.path,
            "label": curve.label,
            "enabled": True,
            "color": FOXGLOVE_COLORS[k % len(FOXGLOVE_COLORS)],
            "timestampMethod": "receiveTime" if curve.topic == DIAGNOSTICS else "headerStamp",
        }
        for k, curve in enumerate(plot.curves)
    ]
    return {
        "foxglovePanelTitle": plot.title,
        "paths": paths,
        "showXAxisLabels": True,
        "showYAxisLabels": True,
        "showLegend": True,
        "legendDisplay": "floating",
        "showPlotValuesInLegend": False,
        "isSynced": True,
        "xAxisVal": "timestamp",
        "followingViewWidth": SECONDS_SHOWN,
        "sidebarDimension": 240,
    }


def _scene(topics: Topics) -> dict[str, Any]:
    """The robot in three dimensions with the node's markers."""
    grid = {"layerId": "foxglove.Grid", "label": "grid", "visible": True, "size": 4, "divisions": 8}
    return {
        "followTf": topics.base,
        "followMode": "follow-none",
        "layers": {"grid": grid},
        "topics": {
            topics.description: {"visible": True},
            f"{topics.node}/markers": {"visible": True},
        },
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

PLOTJUGGLER_COLORS = (
    "#1f77b4",
    "#d62728",
    "#1ac938",
    "#ff7f0e",
    "#9467bd",
    "#17becf",
    "#f14cc1",
    "#bcbd22",
)
STREAMER = "ROS2 Topic Subscriber"


def plotjuggler_layout(pages: Sequence[Page]) -> str:
    """The layout's text; it also has the subscriber choose the topics that it needs."""
    root = ElementTree.Element("root")
    window = ElementTree.SubElement(
        root, "tabbed_widget", {"name": "Main Window", "parent": "main_window"}
    )
    for page in pages:
        _tab(window, page)
    ElementTree.SubElement(window, "currentTabIndex", {"index": "0"})
    ElementTree.SubElement(root, "use_relative_time_offset", {"enabled": "1"})
    curves = [curve for page in pages for plot in page.plots for curve in plot.curves]
    plugins = ElementTree.SubElement(root, "Plugins")
    subscriber = ElementTree.SubElement(plugins, "plugin", {"ID": STREAMER})
    # The node's messages have the stamps of what they answer: compared in that time, they agree.
    # /diagnostics is stamped as well.
    settings = {
        "use_header_stamp": "true",
        "discard_large_arrays": "true",
        "max_array_size": "500",
        "boolean_strings_to_number": "true",
        "remove_suffix_from_strings": "true",
        "selected_topics": ";".join(dict.fromkeys(curve.topic for curve in curves)),
    }
    for name, value in settings.items():
        ElementTree.SubElement(subscriber, name, {"value": value})
    ElementTree.SubElement(root, "previouslyLoaded_Datafiles")
    ElementTree.SubElement(root, "previouslyLoaded_Streamer", {"name": STREAMER})
    ElementTree.SubElement(root, "customMathEquations")
    ElementTree.SubElement(root, "snippets")
    ElementTree.indent(root, " ")
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, 'unicode')}\n"


def _tab(window: ElementTree.Element, page: Page) -> None:
    tab = ElementTree.SubElement(window, "Tab", {"containers": "1", "tab_name": page.title})
    container = ElementTree.SubElement(tab, "Container")
    n = len(page.plots)
    sizes = ";".join([f"{1.0 / n:.6f}"] * n)
    splitter = ElementTree.SubElement(
        container, "DockSplitter", {"orientation": "-", "count": str(n), "sizes": sizes}
    )
    for plot in page.plots:
        area = ElementTree.SubElement(splitter, "DockArea", {"name": plot.title})
        kind = {"mode": "TimeSeries", "style": "Lines", "flip_x": "false", "flip_y": "false"}
        drawn = ElementTree.SubElement(area, "plot", kind)
        ElementTree.SubElement(drawn, "limitY")
        for k, curve in enumerate(plot.curves):
            color = PLOTJUGGLER_COLORS[k % len(PLOTJUGGLER_COLORS)]
            ElementTree.SubElement(drawn, "curve", {"name": curve.series, "color": color})


# RViz 2: the YAML that `rviz2 -d FILE` loads.


def rviz_config(topics: Topics) -> str:
    """The configuration's text: the robot as its description has it, with the node's markers."""
    displays = [
        {"Class": "rviz_default_plugins/Grid", "Name": "Grid", "Enabled": True},
        {
            "Class": "rviz_default_plugins/RobotModel",
            "Name": "RobotModel",
            "Enabled": True,
            "Alpha": 0.7,
            "Description Source": "Topic",
            "Description Topic": {
                "Value": topics.description,
                "Durability Policy": "Transient Local",
                "Reliability Policy": "Reliable",
            },
        },
        {
            "Class": "rviz_default_plugins/MarkerArray",
            "Name": "forces, contacts, payload",
            "Enabled": True,
            "Topic": {"Value": f"{topics.node}/markers", "Reliability Policy": "Best Effort"},
        },
    ]
    view = {"Class": "rviz_default_plugins/Orbit", "Name": "Current View", "Distance": 2.5}
    manager = {
        "Displays": displays,
        "Global Options": {"Fixed Frame": topics.base, "Frame Rate": 30},
        "Tools": [{"Class": "rviz_default_plugins/MoveCamera"}],
        "Views": {"Current": view | {"Pitch": 0.4, "Yaw": 0.8}},
    }
    panels = [{"Class": "rviz_common/Displays", "Name": "Displays"}]
    whole = {"Panels": panels, "Visualization Manager": manager}
    text: str = yaml.safe_dump(whole, sort_keys=False)
    return text
