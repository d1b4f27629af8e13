"""The `payload_bridge` node: a payload that was weighed is told to the robot's driver.

It takes the learner's estimates and calls the driver's service; `changes.payload_bridge` decides
when, and with which load. The drivers' messages are imported when one of them is chosen.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger

from semiparam_dynamics.base.errors import MissingExtraError, SemiparamError
from semiparam_dynamics.base.nodes import parameters, runtime
from semiparam_dynamics.base.nodes.managed import LATCHED, Outlet, await_description, publish_status
from semiparam_dynamics.base.nodes.messages import payload_parameters, stamp_of
from semiparam_dynamics.changes.load import Load, LoadFrame
from semiparam_dynamics.changes.payload_bridge import Call, PayloadBridge
from semiparam_dynamics.learner.nodes.config import PayloadBridgeNodeConfig

LEARNER = "inverse_dynamics"
PERIOD = 0.05  # s, between two looks at what is to be told
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


class PayloadBridgeNode(Node):  # type: ignore[misc]
    """Subscribes the learner's `payload` and `payload_std`; see the module."""

    def __init__(self) -> None:
        super().__init__("payload_bridge")
        self._config = config = parameters.declare(self, PayloadBridgeNodeConfig)
        parameters.follow(self, config, self._configure)
        self._driver = DRIVERS[config.driver]
        kind = self._driver.service_type()
        self._request = kind.Request
        service = parameters.check_name(self, "service", config.service or self._driver.service)
        self._client = self.create_client(kind, service)
        self.bridge: PayloadBridge | None = None
        self._problem = ""
        self._refused = ""  # why the last estimate was
        self._parts: dict[str, InertiaStamped] = {}  # of an estimate
        self._asked: dict[int, Future] = {}  # by the call's number, what may still be answered
        # With it the learner is told that the driver compensates what it had estimated.
        wanted = config.bridge.compensated
        self._release = self.create_client(Trigger, f"{LEARNER}/release") if wanted else None
        self._releasing: Future | None = None
        self._release_sent, self._release_late = 0.0, False  # s, and whether no answer came in time
        self._unreleased = ""  # why the last release failed
        self._unsent: Counter[str] = Counter()
        self._diagnostics = Outlet(self, DiagnosticArray, "/diagnostics", 10, self._unsent)
        # Not the node's clock: a paused simulation must not stop the driver's time-out.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0, self._publish_diagnostics, clock=steady)
        if config.urdf:
            self._set_up(os.path.expanduser(config.urdf))
        else:
            await_description(self, self._set_up, self._refuse)
        for part in ("payload", "payload_std"):
            take: Callable[[InertiaStamped], None] = partial(self._estimated, part)
            self.create_subscription(InertiaStamped, f"{LEARNER}/{part}", take, LATCHED)
        self.create_timer(PERIOD, self._advance, clock=steady)

    def _refuse(self, problem: str) -> None:
        self._problem = problem
        self.get_logger().error(problem)

    def _set_up(self, urdf: str) -> None:
        config = self._config
        frame = LoadFrame(urdf, config.joints, config.frame or self._driver.frame)
        self.bridge = PayloadBridge(frame, config.bridge)
        self._problem = ""
        self.get_logger().info(f"loads are told to {self._client.srv_name} in {frame.name}")
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
        """Make the call that is due, if any."""
        if self.bridge is None:
            return
        now = time.monotonic()
        if self._release is not None:
            self._tell_release(self.bridge, self._release, now)
        call = self.bridge.advance(now, self._client.service_is_ready())
        if call is None:
            return
        for number in self._asked.keys() - self.bridge.awaited:
            # Nobody waits for it any more.
            self._client.remove_pending_request(self._asked.pop(number))
        request = self._request()
        self._driver.fill(request, call.load)
        self._asked[call.number] = self._client.call_async(request)
        self._asked[call.number].add_done_callback(partial(self._answered, call))

    def _answered(self, call: Call, future: Future) -> None:
        self._asked.pop(call.number, None)
        if self.bridge is None or future.cancelled():
            return
        if (error := future.exception()) is not None:
            said, why = False, str(error)
        else:
            said, why = future.result().success, getattr(future.result(), "error", "")
        self.bridge.answered(time.monotonic(), call.number, bool(said), why)
        told = f"{call.load.mass:.3f} kg at {call.load.center.round(4).tolist()} m"
        self.get_logger().info(f"{told}: {'accepted' if said else f'refused {why}'}")

    def _tell_release(self, bridge: PayloadBridge, client: Any, now: float) -> None:
        """Have the learner count nothing as held, where that is due.

        It is due until the learner has done so: else it counts the payload again.
        """
        timeout = self._config.bridge.timeout
        waits = self._releasing is not None and not self._release_late
        if waits and now > self._release_sent + timeout:
            self._release_late = True
            self._release_failed(now, f"it did not answer within {timeout:g} s")
        if not client.service_is_ready() or not bridge.release_due(now):
            return
        if self._releasing is not None:
            client.remove_pending_request(self._releasing)  # nobody waits for it any more
        self._releasing = client.call_async(Trigger.Request())
        self._release_sent, self._release_late = now, False
        self._releasing.add_done_callback(self._released)

    def _released(self, future: Future) -> None:
        if self.bridge is None or future.cancelled() or future != self._releasing:
            return
        self._releasing, now = None, time.monotonic()
        if (error := future.exception()) is not None:
            self._release_failed(now, str(error))
        elif not future.result().success:
            self._release_failed(now, future.result().message)
        else:
            self._unreleased = ""
            self.bridge.release_answered(now, self._release_sent, True)

    def _release_failed(self, now: float, why: str) -> None:
        assert self.bridge is not None  # noqa: S101 # else nothing was asked
        self.bridge.release_answered(now, self._release_sent, False)
        said = f"the learner's service release failed ({why}): it may count the payload again"
        if said != self._unreleased:
            self.get_logger().warning(said)
        self._unreleased = said

    def _publish_diagnostics(self) -> None:
        level, values = DiagnosticStatus.OK, {"service": self._client.srv_name}
        if (bridge := self.bridge) is None:
            summary = self._problem or "waiting for the robot's URDF on robot_description"
            level = DiagnosticStatus.ERROR if self._problem else DiagnosticStatus.WARN
        else:
            summary = bridge.sentence()
            if bridge.trouble or self._refused or self._unreleased:
                level = DiagnosticStatus.WARN
                summary = "; ".join(filter(None, (summary, self._refused, self._unreleased)))
            values |= bridge.values()
        publish_status(self._diagnostics, self, level, summary, values)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return runtime.run("payload_bridge", PayloadBridgeNode, runtime.spin_node, arguments)


if __name__ == "__main__":
    sys.exit(main())
