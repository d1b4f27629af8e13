"""The `live_page` node: a web page on which a learner is watched while it learns.

It subscribes what `inverse_dynamics` publishes, shows 20 times a second what is newest, and
publishes nothing. It runs in a process of its own, so that it takes no time of the learner's.
"""

from __future__ import annotations

import re
import time
from collections import deque
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point, WrenchStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from semiparam_dynamics.base.arrays import SECOND, WRENCH_AXES, Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.live_server import (
    MAX_POINTS,
    PageNode,
    level_of,
    read_count,
    shown_values,
    watch,
)
from semiparam_dynamics.base.nodes.managed import await_description
from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.learner.config import LivePageNodeConfig
from semiparam_dynamics.learner.curves import COMPARED, NEEDS_RERUN, RerunPlots
from semiparam_dynamics.robot.skeleton import Skeleton
from semiparam_dynamics.samples.nodes.serialized import read

PARTS = {"measured": "measured", "rigid_body": "rigid_body", "semiparametric": "predicted"}
WRENCH = "geometry_msgs/msg/WrenchStamped"
KINDS: dict[str, Any] = {"sensor_msgs/msg/JointState": JointState, WRENCH: WrenchStamped}
# The middleware overwrites what comes between two updates, whatever the topic's rate.
NEWEST = QoSProfile(depth=2, reliability=ReliabilityPolicy.BEST_EFFORT)
# Messages kept between two updates. A gripper may publish more often than the arm on the same
# topic: the arm's must not be overwritten.
MAX_STATES = 16
MAX_PENDING = 6  # stamps of which a part may still come
MAX_SAMPLE_GAP = 3600 * SECOND  # ns between two samples of one motion
ERROR_PERIOD = 1.0  # s between two errors, and between two searches for the learner's topics
MAX_AXES = 64
SHOWN = (
    "samples seen",
    "samples predicted",
    "samples learned",
    "samples waiting",
    "learning",
    "rank of the excitation",
    "outputs behind the joint states [ms]",
    "predict p50 [us]",
    "predict p99 [us]",
    "learn p50 [us]",
    "contact",
    "payload",
    "payload: mass [kg]",
    "changes not saved",
    "resumed from",
)


class Group(NamedTuple):
    """Axes of one unit, whose errors are averaged."""

    name: str
    unit: str
    axes: list[int]


class LivePageNode(PageNode):
    """Subscribes the learner's topics, and serves the page; see the module."""

    _config: LivePageNodeConfig

    def __init__(self) -> None:
        super().__init__("live_page", LivePageNodeConfig, "learner")
        config = self._config
        self._skeleton: Skeleton | None = None
        self._learned: tuple[str, ...] = ()  # joints, where each one's effort is learned
        self._stated: dict[str, None] = {}  # joints of the robot whose positions have come
        self._axes: tuple[str, ...] = ()
        self._groups: tuple[Group, ...] = ()
        self._units: list[tuple[str, str]] = []  # each axis with its unit
        self._plots: RerunPlots | None = None
        self._unsent: list[tuple[float, dict[str, Array]]] = []  # seconds and samples
        if config.rerun:
            imported("rerun", NEEDS_RERUN)  # rather than when the first sample comes
            if not re.fullmatch(r"rerun(\+https?)?://[^/]+/proxy", config.rerun):
                raise ConfigurationError(
                    f"'{config.rerun}' is no address of a viewer Rerun: one is "
                    "rerun+http://127.0.0.1:9876/proxy"
                )
        self._kind = ""
        self._subscriptions_of_kind: list[Any] = []
        self._states: deque[bytes] = deque(maxlen=MAX_STATES)
        self._marked = 0.0  # s, when the last markers came
        self._pending: dict[int, dict[str, Array]] = {}
        self._begun = 0  # ns, the first sample's stamp
        self._sampled = 0  # ns, the last one's
        self._recent: deque[tuple[float, Array, Array]] = deque()
        self._errors: list[dict[str, object]] = []
        self._summed = 0.0  # s, when errors were last summed up
        await_description(self, config.urdf, self.describe, self.get_logger().error)
        states = QoSProfile(depth=MAX_STATES, reliability=ReliabilityPolicy.BEST_EFFORT)
        topics = (("joint_states", JointState, states), ("markers", MarkerArray, NEWEST))
        for name, kind, qos in topics:
            topic = name if kind is JointState else f"{config.learner}/{name}"
            self.create_subscription(kind, topic, partial(self.take, name), qos, raw=True)
        self.feed.publish({"status": {**self._status, "learned": [], "left": []}})
        self.serve("live.html")

    def update(self) -> None:
        """Publish what the messages since the last time have changed."""
        now = time.monotonic()
        if now - self._summed >= ERROR_PERIOD:
            self._summed = now
            self._find()
            self._add_errors()
            self._send()
        self.check_silence()
        self._arm()

    # Messages.

    def describe(self, urdf: str) -> None:
        """Show this robot: its URDF's text, or file."""
        self._skeleton = Skeleton(urdf)
        self._publish_robot()
        if self._axes and self._groups != self._grouped(self._axes):
            self._begin(self._axes)  # only now it is known which joints slide

    def _publish_robot(self) -> None:
        if (skeleton := self._skeleton) is not None:
            joints = self._learned or tuple(self._stated)
            moved, tip = skeleton.moved_by(joints), skeleton.tip(joints)
            robot = {"radii": skeleton.radii, "tip": tip, "learned": moved}
            self.feed.publish({"robot": robot})

    def take(self, name: str, data: bytes) -> None:
        """Take a message, serialised, of `joint_states` or of the learner's `markers`."""
        super().take(name, data)
        if name == "joint_states":
            self._states.append(data)
        else:
            self._marked = time.monotonic()

    def take_part(self, name: str, data: bytes) -> None:
        """Take a message, serialised, of the measurement or a prediction: one of `PARTS`."""
        self.taken += 1
        if (message := read(data, KINDS[self._kind])) is None:
            return
        if isinstance(message, WrenchStamped):
            f, t = message.wrench.force, message.wrench.torque
            axes, values = tuple(WRENCH_AXES), np.array([f.x, f.y, f.z, t.x, t.y, t.z])
        else:
            axes, values = tuple(message.name), np.asarray(message.effort)
        if len(axes) != len(values) or not 0 < len(axes) <= MAX_AXES:
            return
        if axes != self._axes:
            self._begin(axes)
        stamp = stamp_of(message)
        parts = self._pending.setdefault(stamp, {})
        parts[name] = values
        if len(parts) == len(PARTS):
            self._sample(stamp, parts)
            self._pending = {s: p for s, p in self._pending.items() if s > stamp}
        while len(self._pending) > MAX_PENDING:
            # The one that came first: after a clock was set back it has not the smallest stamp.
            del self._pending[next(iter(self._pending))]

    def report(self, status: DiagnosticStatus) -> dict[str, object]:
        """The learner's state in words, with what is learned, what is left out, and why."""
        values = {pair.key: pair.value for pair in status.values}
        begin = "dropped: "
        drops = {k.removeprefix(begin): v for k, v in values.items() if k.startswith(begin)}
        return {
            "level": level_of(status),
            "message": status.message,
            "learned": shown_values(values, SHOWN),
            "left": sorted(map(list, drops.items()), key=lambda pair: -read_count(pair[1]))[:20],
        }

    def _find(self) -> None:
        """Subscribe the learner's outputs, of whichever type they are."""
        topic = self.resolve_topic_name(f"{self._config.learner}/predicted")
        kinds = dict(self.get_topic_names_and_types()).get(topic, [])
        kind = next((one for one in kinds if one in KINDS), "")
        if kind and kind != self._kind and len(kinds) == 1:
            self.listen(kind)

    def listen(self, kind: str) -> None:
        """Subscribe the learner's outputs, which are of this type, one of `KINDS`."""
        for one in self._subscriptions_of_kind:
            self.destroy_subscription(one)
        self._kind, self._axes = kind, ()
        self._subscriptions_of_kind = [
            self.create_subscription(
                KINDS[kind],
                f"{self._config.learner}/{output}",
                partial(self.take_part, name),
                NEWEST,
                raw=True,
            )
            for name, output in PARTS.items()
        ]

    def _begin(self, axes: tuple[str, ...]) -> None:
        """Begin again, with these axes: of Rerun, in another recording."""
        self._send()
        self._axes, self._pending, self._begun, self._sampled = axes, {}, 0, 0
        self._recent.clear()
        self._errors, self._plots = [], None
        self._groups = self._grouped(axes)
        units = {k: group.unit for group in self._groups for k in group.axes}
        self._units = [(axis, units[k]) for k, axis in enumerate(axes)]
        if self._kind != WRENCH:
            self._learned = axes
            self._publish_robot()
        layout = {
            "axes": [{"name": axis, "unit": unit} for axis, unit in self._units],
            "groups": [{"name": group.name, "unit": group.unit} for group in self._groups],
            "window": self._config.window,
        }
        self.feed.publish({"layout": layout, "errors": []})

    def _grouped(self, axes: tuple[str, ...]) -> tuple[Group, ...]:
        """The axes by unit: errors of newtons and of newton metres have no average."""
        if self._kind == WRENCH:
            return Group("Force", "N", [0, 1, 2]), Group("Torque", "N m", [3, 4, 5])
        sliding = frozenset() if self._skeleton is None else self._skeleton.sliding
        turn, slide = (
            [k for k, a in enumerate(axes) if (a in sliding) is s] for s in (False, True)
        )
        groups = Group("Joint effort", "N m", turn), Group("Joint force", "N", slide)
        return tuple(group for group in groups if group.axes)

    def _sample(self, stamp: int, parts: dict[str, Array]) -> None:
        # Another recording, or a clock that was set: back, or forward from 1970, say. On one axis
        # of time nothing could be seen of what comes before or after.
        if self._sampled and not 0 <= stamp - self._sampled <= MAX_SAMPLE_GAP:
            self._begin(self._axes)
        if not self._begun:
            self._begun = stamp
        self._sampled = stamp
        t = (stamp - self._begun) / SECOND
        rigid, semiparametric = parts["rigid_body"], parts["semiparametric"]
        self._recent.append((t, parts["measured"] - rigid, parts["measured"] - semiparametric))
        while self._recent[0][0] < t - self._config.window:
            self._recent.popleft()
        self.feed.publish({"sample": {"t": t, **{n: p.tolist() for n, p in parts.items()}}})
        if self._config.rerun:
            self._unsent.append((t, parts))

    def _send(self) -> None:
        """Send new samples to the viewer Rerun: all at once, since what costs is their number."""
        if not self._unsent:
            return
        if self._plots is None:
            self._plots = RerunPlots(
                "semiparam_dynamics live", self._units, {"live": self._watched}
            )
            self._plots.recording.connect_grpc(self._config.rerun)
            self._plots.lay_out()
        times, parts = zip(*self._unsent, strict=True)
        curves = {look: np.array([one[name] for one in parts]) for name, look in COMPARED.items()}
        self._plots.send("live", times, curves)
        self._unsent.clear()

    def close(self) -> None:
        """End the page, and what is sent to Rerun."""
        self._send()
        super().close()

    def _add_errors(self) -> None:
        """Sum up the errors of the window, for each unit, averaged over its axes."""
        if not self._recent or (self._errors and self._recent[-1][0] == self._errors[-1]["t"]):
            return
        times, rigid, semiparametric = zip(*self._recent, strict=True)
        groups = [group.axes for group in self._groups]
        self._errors.append(
            {
                "t": times[-1],
                "rigid_body": [rmse(np.array(rigid)[:, g]) for g in groups],
                "semiparametric": [rmse(np.array(semiparametric)[:, g]) for g in groups],
            }
        )
        if len(self._errors) > MAX_POINTS:
            self._errors = self._errors[::2]
        self.feed.publish({"errors": self._errors})

    # The robot.

    def _arm(self) -> None:
        """Place the robot, and what the learner draws at it."""
        if (skeleton := self._skeleton) is None:
            return
        positions = self._positions()
        if not positions:
            return
        if new := [j for j in skeleton.joints if j in positions and j not in self._stated]:
            self._stated.update(dict.fromkeys(new))
            if not self._learned:
                self._publish_robot()
        ends = skeleton.place(positions)
        markers = self._messages.get("markers")
        arrows: list[object] = []
        balls: list[object] = []
        drawn = None if markers is None else read(markers, MarkerArray)
        age = time.monotonic() - self._marked
        for marker in [] if drawn is None else drawn.markers:
            # As RViz does: the learner publishes none for what is no longer there.
            if age <= lifetime(marker):
                self._draw(marker, arrows, balls)
        capsules = np.round(ends.reshape(-1, 6), 4).tolist()
        self.feed.publish({"arm": {"capsules": capsules, "arrows": arrows, "balls": balls}})

    def _positions(self) -> dict[str, float]:
        """The newest position of each joint, by name, of all messages since the last update.

        Joints of one robot may have publishers of their own, such as a gripper's.
        """
        positions: dict[str, float] = {}
        for data in self._states:
            state = read(data, JointState)
            if state is not None and len(state.name) == len(state.position):
                positions.update(zip(state.name, state.position, strict=True))
        self._states.clear()
        return positions

    def _draw(self, marker: Marker, arrows: list[object], balls: list[object]) -> None:
        placed = self._skeleton.frame(marker.header.frame_id) if self._skeleton else None
        if placed is None:
            return
        rotation, origin = placed

        def world(point: Point) -> list[float]:
            there: Array = rotation @ np.array([point.x, point.y, point.z]) + origin
            coordinates: list[float] = there.tolist()
            return coordinates

        color = marker.color
        shade = f"rgba({255 * color.r:.0f},{255 * color.g:.0f},{255 * color.b:.0f},{color.a:.2f})"
        if marker.type == Marker.ARROW and len(marker.points) == 2:
            begin, end = map(world, marker.points)
            arrows.append({"from": begin, "to": end, "color": shade})
        elif marker.type == Marker.SPHERE and marker.ns in ("contact", "payload"):
            at, radius = world(marker.pose.position), 0.5 * float(marker.scale.x)
            balls.append({"at": at, "radius": radius, "color": shade, "text": marker.ns})


def lifetime(marker: Marker) -> float:
    """Seconds for which a marker is drawn that no newer one replaces; infinite where it has 0."""
    seconds = marker.lifetime.sec + marker.lifetime.nanosec / SECOND
    return float(seconds) or float("inf")


def rmse(errors: Array) -> float:
    """Root mean square over samples, averaged over those of the axes (columns) that are known."""
    known = errors[:, np.isfinite(errors).any(axis=0)]
    if not known.size:
        return float("nan")
    return float(np.mean(np.sqrt(np.nanmean(known**2, axis=0))))


main = partial(runtime.run, "live_page", LivePageNode, watch)
