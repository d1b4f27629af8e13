"""Layouts of PlotJuggler 3: the XML that `plotjuggler --layout FILE` or its File menu loads.

Before version 3.9 it can't read JointState messages without positions, as predictions are.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from semiparam_dynamics.nodes.layouts import DIAGNOSTICS, Curve, Diagnostic, Effort, Page

COLORS = ("#1f77b4", "#d62728", "#1ac938", "#ff7f0e", "#9467bd", "#17becf", "#f14cc1", "#bcbd22")
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
        "selected_topics": ";".join(dict.fromkeys(topic_of(curve) for curve in curves)),
    }
    for name, value in settings.items():
        ElementTree.SubElement(subscriber, name, {"value": value})
    ElementTree.SubElement(root, "previouslyLoaded_Datafiles")
    ElementTree.SubElement(root, "previouslyLoaded_Streamer", {"name": STREAMER})
    ElementTree.SubElement(root, "customMathEquations")
    ElementTree.SubElement(root, "snippets")
    ElementTree.indent(root, " ")
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, 'unicode')}\n"


def series(curve: Curve) -> str:
    """The name under which PlotJuggler keeps a number, by its parser of ROS messages.

    Fields with slashes between them; a JointState by the joints' names, diagnostics by the node's
    name, which stands alone where the status names no hardware, and the key.
    """
    if isinstance(curve, Effort):
        return f"{curve.topic}/{curve.joint}/effort"
    if isinstance(curve, Diagnostic):
        return f"{DIAGNOSTICS}/{curve.node}/{curve.key}"
    return f"{curve.topic}/{curve.path.replace('.', '/')}"


def topic_of(curve: Curve) -> str:
    """The topic that a curve's numbers come on."""
    return DIAGNOSTICS if isinstance(curve, Diagnostic) else curve.topic


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
            color = COLORS[k % len(COLORS)]
            ElementTree.SubElement(drawn, "curve", {"name": series(curve), "color": color})
