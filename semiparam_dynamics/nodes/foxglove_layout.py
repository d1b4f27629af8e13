"""Layouts of Foxglove: the JSON that its layouts menu imports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from semiparam_dynamics.nodes.layouts import DIAGNOSTICS, Curve, Diagnostic, Effort, Page, Plot

COLORS = ("#4e98e2", "#f5774d", "#7ac36a", "#f7df71", "#be6bff", "#5ac8c8", "#f45bd7", "#b2b2b2")
SECONDS_SHOWN = 30


def foxglove_layout(pages: Sequence[Page]) -> str:
    """The layout's text: a tab for each page, and one with what /diagnostics says."""
    panels: dict[str, Any] = {}
    tabs = []
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


def message_path(curve: Curve) -> str:
    """A number in Foxglove's message path syntax; text that is a number is plotted as one."""
    if isinstance(curve, Effort):
        return f"{curve.topic}.effort[{curve.index}]"
    if isinstance(curve, Diagnostic):
        status = f'{DIAGNOSTICS}.status[:]{{name=="{curve.node}"}}'
        return f'{status}.values[:]{{key=="{curve.key}"}}.value'
    return f"{curve.topic}.{curve.path}"


def _by_index(plots: Sequence[Plot]) -> list[Plot]:
    """The plots with efforts whose joint an index doesn't tell in one of their own at the end.

    Foxglove can't look a joint up by its name, and drivers have orders of their own.
    """
    apart = [c for plot in plots for c in plot.curves if isinstance(c, Effort) and not c.named]
    if not apart:
        return list(plots)
    kept = [Plot(p.title, tuple(c for c in p.curves if c not in apart)) for p in plots]
    unknown = [Effort(c.topic, c.joint, c.index, f"[{c.index}]", False) for c in apart]
    return [*kept, Plot("measured, in the order of the driver's message", tuple(unknown))]


def _panel(plot: Plot) -> dict[str, Any]:
    paths = [
        {
            "value": message_path(curve),
            "label": curve.label,
            "enabled": True,
            "color": COLORS[k % len(COLORS)],
            "timestampMethod": "receiveTime" if isinstance(curve, Diagnostic) else "headerStamp",
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
