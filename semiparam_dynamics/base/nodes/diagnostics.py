"""Statuses on `/diagnostics`, and their words and figures, for all nodes."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSProfile

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
SETTLING_S = 3.0  # for which something has been wrong before it is logged
FINAL_S = 1.5  # after the last message, until diagnostics of all have come: one a second
REPEAT_S = 60.0  # until it is logged again
# How often, and how much: what may change from one second to the next in the same sentence.
NUMBERS = re.compile(r"\bonce\b|\d+ times|[-+]?\d[\d.]*(?:e[-+]?\d+)?|-?\b(?:nan|inf)\b")


def node_status(
    node: Node, level: bytes, summary: str, values: Mapping[str, str]
) -> DiagnosticStatus:
    """Return a status of a node, under its name with the namespace."""
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
    name = node.get_fully_qualified_name().removeprefix("/")
    return DiagnosticStatus(level=level, name=name, message=summary, values=pairs)


def publish_status(outlet: Any, node: Node, status: DiagnosticStatus) -> None:
    """Publish one status of a node by an `Outlet` of `/diagnostics`."""
    message = DiagnosticArray(status=[status])
    message.header.stamp = node.get_clock().now().to_msg()
    outlet.publish(message)


class StatusListener(Node):  # type: ignore[misc]
    """A node that keeps the last diagnostics of another one, named `watched`."""

    def __init__(self, name: str, watched: str) -> None:
        super().__init__(name)
        self._watched = watched
        self.message = "the nodes are starting"
        self.values: dict[str, str] = {}
        self.create_subscription(
            DiagnosticArray, "/diagnostics", self._diagnosed, QoSProfile(depth=20)
        )

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == self._watched:
                self.message = status.message
                self.values = {pair.key: pair.value for pair in status.values}


def how_often(count: int) -> str:
    """Return a count in words."""
    return "once" if count == 1 else f"{count} times"


def number(value: float) -> str:
    """A number for the diagnostics; 0 for what isn't known yet."""
    return f"{value:.4g}" if math.isfinite(value) else "0"


def stopped(what: str, problem: str) -> str:
    """The sentence for an exception in a node's thread."""
    return f"{what} has stopped ({problem}); ~/reset, or ~/learn with true, starts it again"


def timing_values(timings: Mapping[str, deque[float]]) -> dict[str, str]:
    """Median and 99th percentile of each kind's times, in us, as text; none of empty ones."""
    values = {}
    for name, times in timings.items():
        if times:
            # A third of the time that NumPy's percentiles take, for which messages wait.
            ordered = np.sort(np.fromiter(times, np.float64, len(times)))
            for percent in (50, 99):
                value = ordered[round(0.01 * percent * (len(ordered) - 1))]
                values[f"{name} p{percent} [us]"] = f"{value:.0f}"
    return values


class LastingWarnings:
    """Decides which of the warnings, one a second, are logged.

    One that is the same for `SETTLING_S` but for its numbers is, and again after `REPEAT_S`. Where
    more than numbers changes, such as which joints are listed, so is the newest one as soon as none
    that was logged has come for that long; the next one of such only after twice that time, and so
    on, up to `REPEAT_S`, until nothing is wrong.
    """

    def __init__(self) -> None:
        self._kind = ""  # what was wrong a second ago
        self._since = 0.0  # when it began, s
        self._unsaid_since = 0.0  # when something began to be wrong that was not logged
        self._wait_s = SETTLING_S
        self._logged: dict[str, float] = {}  # when each kind was, s

    def due(self, sentence: str) -> bool:
        """Return whether to log the sentence; empty where nothing is wrong."""
        now = time.monotonic()
        if not sentence:
            self._kind, self._wait_s = "", SETTLING_S
            self._logged.clear()
            return False
        kind = NUMBERS.sub("", sentence)
        if not self._kind or self._kind in self._logged:
            self._unsaid_since = now
        if kind != self._kind:
            self._kind, self._since = kind, now
        if kind in self._logged:
            if now - self._logged[kind] < REPEAT_S:
                return False
        elif now - self._since < SETTLING_S:
            if now - self._unsaid_since < self._wait_s:
                return False
            self._wait_s = min(2.0 * self._wait_s, REPEAT_S)
        self._logged = {k: at for k, at in self._logged.items() if now - at < REPEAT_S}
        self._logged[kind] = now
        return True
