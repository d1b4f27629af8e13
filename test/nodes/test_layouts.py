"""The layouts for PlotJuggler and Foxglove against what the node really publishes."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml
from geometry_msgs.msg import InertiaStamped, WrenchStamped

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.nodes.messages import joint_state_message, wrench_message
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.live_page import SHOWN
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.learner.nodes.session_report import ChangeReport, SessionReport
from semiparam_dynamics.offline.cli.layouts import (
    NODE,
    UR_JOINTS,
    contents,
    effort_pages,
    wrench_pages,
)
from semiparam_dynamics.offline.cli.main import main

from .conftest import take

OUTPUTS = {f"{NODE}/{name}" for name in ("measured", "predicted", "rigid_body", "external")}
PAYLOAD = {f"{NODE}/{name}" for name in ("payload", "payload_std")}


def curves(xml: str) -> set[str]:
    return {curve.attrib["name"] for curve in ElementTree.fromstring(xml).iter("curve")}


def paths(text: str) -> set[str]:
    panels = json.loads(text)["configById"].values()
    return {path["value"] for panel in panels for path in panel.get("paths", ())}


def panels_of(layout: Any) -> list[str]:
    if isinstance(layout, str):
        return [layout]
    assert layout["direction"] in ("row", "column") and 0 < layout["splitPercentage"] < 100
    return panels_of(layout["first"]) + panels_of(layout["second"])


def test_another_robot_s_names_and_topics(tmp_path: Path) -> None:
    options = ["--joints", "a", "b", "--node", "/arm/learner"]
    assert main(["layouts", str(tmp_path), *options]) == 0
    named = curves((tmp_path / "plotjuggler" / "effort.xml").read_text())
    assert {"/arm/learner/measured/a/effort", "/arm/learner/predicted/b/effort"} <= named
    assert "/diagnostics/arm/learner/nmse semiparametric b" in named
    assert "/arm/learner/external.effort[1]" in paths(
        (tmp_path / "foxglove/effort.json").read_text()
    )


@pytest.mark.parametrize(
    "name", ["my node", "", "/", "/left//arm", "2nd", "/arm/", "a-b", "/bras/é", "~/arm", "a\n"]
)
def test_names_that_ros_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no name in ROS: between slashes"):
        contents(node=name)


@pytest.mark.parametrize("joints", [("a", "b", "a"), ("a", "")])
def test_joints_without_a_name_of_their_own_are_refused(joints: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match=f"name of its own, not {', '.join(joints)}$"):
        contents(joints)


@pytest.mark.parametrize("target", ["effort", "wrench"])
def test_plotjuggler_s_layouts_are_whole(target: str) -> None:
    root = ElementTree.fromstring(contents()[f"plotjuggler/{target}.xml"])
    assert root.tag == "root"
    (window,) = root.findall("tabbed_widget")
    assert window.attrib == {"name": "Main Window", "parent": "main_window"}
    pages = effort_pages(NODE, UR_JOINTS) if target == "effort" else wrench_pages(NODE)
    assert [tab.attrib["tab_name"] for tab in window.findall("Tab")] == list(pages)
    for splitter in root.iter("DockSplitter"):
        sizes = [float(size) for size in splitter.attrib["sizes"].split(";")]
        assert len(sizes) == int(splitter.attrib["count"]) == len(splitter.findall("DockArea"))
        assert sum(sizes) == pytest.approx(1.0, abs=1e-4)
    for plot in root.iter("plot"):
        colors = [curve.attrib["color"] for curve in plot.findall("curve")]
        assert colors and len(colors) == len(set(colors))
    (chosen,) = (topic.attrib["value"] for topic in root.iter("selected_topics"))
    topics = chosen.split(";")
    assert set(topics) == OUTPUTS | PAYLOAD | {"/diagnostics"}
    for curve in root.iter("curve"):
        assert any(curve.attrib["name"].startswith(f"{topic}/") for topic in topics)


def test_rviz_shows_the_robot_with_the_node_s_markers() -> None:
    files = contents(node="/left/inverse_dynamics", base="world")
    manager = yaml.safe_load(files["rviz/semiparam_dynamics.rviz"])["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "world"
    by_class = {display["Class"].split("/")[1]: display for display in manager["Displays"]}
    assert by_class["RobotModel"]["Description Topic"]["Value"] == "/robot_description"
    assert by_class["MarkerArray"]["Topic"]["Value"] == "/left/inverse_dynamics/markers"


@pytest.mark.parametrize("target", ["effort", "wrench"])
def test_foxglove_s_layouts_are_whole(target: str) -> None:
    layout = json.loads(contents()[f"foxglove/{target}.json"])
    panels = layout["configById"]
    (tabs,) = (panels[name]["tabs"] for name in panels_of(layout["layout"]))
    shown = [name for tab in tabs for name in panels_of(tab["layout"])]
    assert sorted([*shown, layout["layout"]]) == sorted(panels)
    assert {name.partition("!")[0] for name in panels} == {"Plot", "Tab", "DiagnosticSummary", "3D"}
    for name, panel in panels.items():
        if name.startswith("Plot!"):
            assert panel["xAxisVal"] == "timestamp" and panel["paths"]
            for path in panel["paths"]:
                assert path["timestampMethod"] in ("receiveTime", "headerStamp")


def test_efforts_are_found_in_what_the_node_publishes(peer, start, urdf, connect) -> None:
    start("inverse_dynamics", urdf=urdf, changes__detect="true")
    arm = connect()
    kind = type(arm.message())
    heard = {topic: peer.listen(kind, topic) for topic in OUTPUTS}
    peer.meet(NODE)  # before that, nothing is published for them
    types = dict(peer.node.get_topic_names_and_types())
    assert all(types[topic] == ["geometry_msgs/msg/InertiaStamped"] for topic in PAYLOAD)
    assert types[f"{NODE}/markers"] == ["visualization_msgs/msg/MarkerArray"]  # RViz's and 3D
    arm.move(60)
    peer.until(lambda: all(len(one) > 40 for one in heard.values()), "40 messages of each topic")
    peer.until(lambda: int(peer.figures().get("samples learned", 0)) > 40, "diagnostics")
    assert peer.figures().keys() >= set(SHOWN)  # on the live page
    name, keys = peer.status.name, set(peer.figures())
    assert not peer.status.hardware_id

    there = {
        f"{topic}/{joint}/effort"
        for topic, messages in heard.items()
        for joint, _ in zip(messages[-1].name, messages[-1].effort, strict=True)
    } | {f"/diagnostics/{name}/{key}" for key in keys}
    files = contents(("shoulder", "elbow"))
    there |= {f"{topic}/inertia/m" for topic in PAYLOAD}
    assert curves(files["plotjuggler/effort.xml"]) <= there

    for path in paths(files["foxglove/effort.json"]):
        if path.startswith("/diagnostics"):
            assert_told(path, name, keys)
        elif path.endswith(".inertia.m"):
            assert path.removesuffix(".inertia.m") in PAYLOAD
        else:
            topic, index = re.fullmatch(r"(.+)\.effort\[(\d+)\]", path).groups()
            message = heard[topic][-1]
            assert isinstance(message.effort[int(index)], float)
    labelled = json.loads(files["foxglove/effort.json"])["configById"]["Plot!external0"]["paths"]
    assert [path["label"] for path in labelled] == list(heard[f"{NODE}/external"][-1].name)


def test_wrenches_are_found_in_their_messages(urdf) -> None:
    values: dict[str, Any] = {"target": "wrench", "sensor_frame": "upper", "joints": ("elbow",)}
    values["changes__detect"] = True
    session = Session(str(urdf), replace(InverseDynamicsNodeConfig(), **values))
    for k in range(60):  # more than the filters have to forget, once velocities are no longer 0
        stamp, q = 10_000_000 * (k + 1), [0.0, 0.02 * k]
        joints = joint_state_message(stamp, ("shoulder", "elbow"), q, q, q)
        take(session, wrench_message(stamp, "upper", [1.0] * 6))
        take(session, joints)
        session.drain()
    keys = set(SessionReport(session).values() | ChangeReport(session.learner).values())
    assert "learn p99 [us]" in keys
    files = contents()
    kinds = dict.fromkeys(OUTPUTS, WrenchStamped)
    kinds |= dict.fromkeys(PAYLOAD, InertiaStamped)
    for name in curves(files["plotjuggler/wrench.xml"]):
        if name.startswith("/diagnostics/inverse_dynamics/"):
            assert name.removeprefix("/diagnostics/inverse_dynamics/") in keys
        else:
            (topic,) = (topic for topic in kinds if name.startswith(f"{topic}/"))
            assert isinstance(field(kinds[topic], name.removeprefix(f"{topic}/").split("/")), float)
    for path in paths(files["foxglove/wrench.json"]):
        if path.startswith("/diagnostics"):
            assert_told(path, "inverse_dynamics", keys)
        else:
            topic, _, rest = path.partition(".")
            assert isinstance(field(kinds[topic], rest.split(".")), float)


def field(kind: type, names: list[str]) -> object:
    value: object = kind()
    for name in names:
        value = getattr(value, name)
    return value


def assert_told(path: str, node: str, keys: set[str]) -> None:
    """That a message path picks a key that the node's status has."""
    parts = re.fullmatch(
        r'/diagnostics\.status\[:\]\{name=="(.+?)"\}\.values\[:\]\{key=="(.+?)"\}\.value', path
    )
    assert parts is not None and parts[1] == node and parts[2] in keys, path
