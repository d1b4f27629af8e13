"""The `payload_bridge` node: gives a payload that was weighed to the robot's driver.

It takes the learner's estimates and calls the driver's service; `changes.payload_bridge` decides
when, and with which load. The drivers' messages are imported when one of them is chosen.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from std_srvs.srv import Trigger

from semiparam_dynamics.base.errors import MissingExtraError, SemiparamError
from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.managed import LATCHED, DescribedNode
from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.changes.load import Load, LoadFrame
from semiparam_dynamics.changes.nodes.change_messages import payload_parameters
from semiparam_dynamics.changes.payload_bridge import Call, PayloadBridge, PayloadBridgeNodeConfig

LEARNER = "inverse_dynamics"
PERIOD_S = 0.05  # between two checks of whether a call is due
ENTRIES = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}


def fill_ur(request: Any, load: Load) -> None:
    """Write a load into a request of ur_msgs/srv/SetPayload, of either definition.

    Until 2026 it had a mass and a centre of gravity; since then it has a geometry_msgs/Inertia, and
    a transition time, which stays 0: the bridge's steps are the transition.
    """
    x, y, z = load.center.tolist()
    if hasattr(request, "payload"):
        request.payload.m, center = float(load.mass), request.payload.com
        for name, place in ENTRIES.items():
            setattr(request.payload, f"i{name}", float(load.inertia[place]))
    else:
        request.mass, center = float(load.mass), request.center_of_gravity
    center.x, center.y, center.z = x, y, z


def fill_franka(request: Any, load: Load) -> None:
    """Write a load into a request of franka_msgs/srv/SetLoad, its inertia column by column."""
    request.mass = float(load.mass)
    request.center_of_mass = load.center.tolist()
    request.load_inertia = load.inertia.ravel(order="F").tolist()


@dataclass(frozen=True)
class Driver:
    """A driver's service, and the frame in which it takes loads."""

    package: str
    kind: str
    service: str
    frame: str
    fill: Callable[[Any, Load], None]

    def service_type(self) -> Any:
        """The service's class. Raises MissingExtraError where its package is not installed."""
        try:
            return getattr(importlib.import_module(f"{self.package}.srv"), self.kind)
        except (ImportError, AttributeError) as error:
            apt = self.package.replace("_", "-")
            raise MissingExtraError(
                f"this driver needs {self.package}/srv/{self.kind} ({error}): install "
                f"ros-$ROS_DISTRO-{apt}, or build {self.package} with the driver, and source it"
            ) from None


DRIVERS = {
    "ur": Driver("ur_msgs", "SetPayload", "io_and_status_controller/set_payload", "tool0", fill_ur),
    "franka": Driver("franka_msgs", "SetLoad", "service_server/set_load", "fr3_link8", fill_franka),
}


class Service:
    """A client of a service that is asked one thing at a time; a later request drops an earlier."""

    def __init__(self, node: Node, kind: Any, name: str) -> None:
        self.client = node.create_client(kind, name)
        self._pending: Any = None  # the last request, until it is answered

    def ask(self, request: Any, answered: Callable[[bool, str], None]) -> None:
        """Send a request; `answered` is given whether it succeeded, and why not."""

        def done(future: Any) -> None:
            if future.cancelled() or future is not self._pending:
                return
            self._pending = None
            if (error := future.exception()) is not None:
                answered(False, str(error))
                return
            answer = future.result()
            why = getattr(answer, "error", getattr(answer, "message", ""))
            answered(bool(answer.success), why)

        if self._pending is not None:
            self.client.remove_pending_request(self._pending)
        self._pending = self.client.call_async(request)
        self._pending.add_done_callback(done)


class PayloadBridgeNode(DescribedNode):
    """Subscribes the learner's `payload` and `payload_std`; see the module."""

    def __init__(self) -> None:
        super().__init__("payload_bridge", PayloadBridgeNodeConfig)
        config = self._config
        parameters.follow(self, config, self._configure)
        self._driver = DRIVERS[config.driver]
        kind = self._driver.service_type()
        name = parameters.check_name(self, "service", config.service or self._driver.service)
        self._loads, self._request = Service(self, kind, name), kind.Request
        # By it the learner counts what the driver compensates as not held.
        wanted = config.bridge.compensated
        self._release = Service(self, Trigger, f"{LEARNER}/release") if wanted else None
        self.bridge: PayloadBridge | None = None
        self._refused = ""  # why the last estimate was
        self._parts: dict[str, InertiaStamped] = {}  # of an estimate
        self.await_urdf()
        for part in ("payload", "payload_std"):
            take: Callable[[InertiaStamped], None] = partial(self._estimated, part)
            self.create_subscription(InertiaStamped, f"{LEARNER}/{part}", take, LATCHED)
        self.create_timer(PERIOD_S, self._advance, clock=self.steady)

    def set_up(self, urdf: str) -> None:
        """Make the bridge of a URDF."""
        config = self._config
        frame = LoadFrame(urdf, config.joints, config.frame or self._driver.frame)
        self.bridge = PayloadBridge(frame, config.bridge)
        self.get_logger().info(f"loads go to {self._loads.client.srv_name} in {frame.name}")
        self._take_estimate()

    def _configure(self, config: PayloadBridgeNodeConfig) -> None:
        self._config = config
        if self.bridge is not None:
            self.bridge.configure(config.bridge)

    def _estimated(self, part: str, message: InertiaStamped) -> None:
        self._parts[part] = message
        self._take_estimate()

    def _take_estimate(self) -> None:
        """Pass on an estimate of which both messages have come."""
        if self.bridge is None or len(self._parts) < 2:
            return
        value, std = self._parts["payload"], self._parts["payload_std"]
        if stamp_of(value) != stamp_of(std):
            return
        self._parts, self._refused = {}, ""
        link, body, now = value.header.frame_id, payload_parameters(value), time.monotonic()
        try:
            self.bridge.estimated(now, link, body, std.inertia.m)
        except SemiparamError as error:
            self._refused = str(error)

    def _advance(self) -> None:
        """Make the calls that are due, if any."""
        if (bridge := self.bridge) is None:
            return
        now, release = time.monotonic(), self._release
        if release is not None and release.client.service_is_ready() and bridge.release_due(now):
            release.ask(Trigger.Request(), partial(self._released, bridge))
        call = bridge.advance(now, self._loads.client.service_is_ready())
        if call is not None:
            request = self._request()
            self._driver.fill(request, call.load)
            self._loads.ask(request, partial(self._answered, bridge, call))

    def _answered(self, bridge: PayloadBridge, call: Call, accepted: bool, why: str) -> None:
        bridge.answered(time.monotonic(), call, accepted, why)
        load = f"{call.load.mass:.3f} kg at {call.load.center.round(4).tolist()} m"
        self.get_logger().info(f"{load}: {'accepted' if accepted else f'refused {why}'}")

    def _released(self, bridge: PayloadBridge, accepted: bool, why: str) -> None:
        bridge.release_answered(accepted, why)
        if not accepted:
            self.get_logger().warning(bridge.release_failure, throttle_duration_sec=10.0)

    def report(self) -> tuple[bytes, str, dict[str, str]]:
        """The driver's load, what is estimated, and why that is not given."""
        values = {"service": self._loads.client.srv_name}
        if (bridge := self.bridge) is None:
            level, summary, _ = self.waiting()
            return level, summary, values
        summary = "; ".join(filter(None, (bridge.sentence(), self._refused)))
        wrong = bridge.trouble or bridge.release_failure or self._refused
        level = DiagnosticStatus.WARN if wrong else DiagnosticStatus.OK
        return level, summary, values | bridge.values()


main = partial(runtime.run, "payload_bridge", PayloadBridgeNode, runtime.spin_node)
