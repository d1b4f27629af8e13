"""The demo's live part: two node processes, and this process that watches and records them."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TextIO

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.managed import LATCHED
from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.base.nodes.processes import (
    NodeProcess,
    make_logs,
    serve_page,
    use_own_network,
    write_params,
)
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.learner.nodes.compilation import is_compiled
from semiparam_dynamics.samples.bag_writer import BagWriter, offered_qos
from semiparam_dynamics.simulation.config import learner_config, simulator_config

# -------------------------------------------------------------------------------------------------
# Watching a learner of a wrench from outside, over its topics alone.

QUEUE = QoSProfile(depth=1000)
OUTPUTS = ("predicted", "rigid_body", "external")
PENDING = 1000  # samples of which some topic's message has not come yet


class Monitor(Node):  # type: ignore[misc]
    """Records a simulated arm and its learner, byte for byte, and follows the learner's errors.

    Parameters
    ----------
    bag: takes every message.
    learner: the learner's node name.
    window: seconds over which the errors are averaged.

    recorded: number of messages in the bag.
    """

    def __init__(self, bag: BagWriter, learner: str, window: float) -> None:
        super().__init__("demo_monitor")
        self.status: DiagnosticStatus | None = None
        self.last_stamp = 0  # ns, of the newest joint state
        self.urdf = ""
        self.motion = 0.0  # s of joint states received
        self._learner = learner
        self._window = round(window * 1e9)
        self._pending: dict[int, dict[str, np.ndarray]] = {}
        self._errors: deque[tuple[int, np.ndarray, np.ndarray]] = deque()
        self._bag = bag
        self.recorded = 0
        self._record("robot_description", String, LATCHED, self._described)
        for topic in OUTPUTS:
            self._record(f"{learner}/{topic}", WrenchStamped, QUEUE, self._part(topic))
        self._record(f"{learner}/inertial_parameters", Float64MultiArray, QUEUE)
        self._record("/diagnostics", DiagnosticArray, QUEUE, self._diagnosed)
        self._waiting = self.create_timer(0.05, self._listen_when_connected)

    def _record(
        self,
        topic: str,
        kind: type,
        qos: QoSProfile,
        also: Callable[[bytes], None] | None = None,
    ) -> None:
        """Subscribe a topic for recording; `also` gets each message's bytes too."""
        latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        offered = [offered_qos(qos.depth, latched)]
        name = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
        full = self.resolve_topic_name(topic)

        def take(data: bytes) -> None:
            self._bag.serialized(full, name, time.time_ns(), data, offered)
            self.recorded += 1
            if also is not None:
                also(data)

        self.create_subscription(kind, topic, take, qos, raw=True)

    def _listen_when_connected(self) -> None:
        """Subscribe the arm's readings once the learner's answers can be heard.

        The simulator waits for its subscribers, so that not even the first answer is missed.
        """
        if all(self.count_publishers(f"{self._learner}/{topic}") for topic in OUTPUTS):
            self.destroy_timer(self._waiting)
            self._record("joint_states", JointState, QUEUE, self._joint_state)
            self._record("wrench", WrenchStamped, QUEUE)

    def rmse(self) -> dict[str, tuple[float, float]] | None:
        """Force (N) and torque (N m) RMSE of each model over the window, averaged over axes.

        None before the first prediction.
        """
        if not self._errors:
            return None
        newest = self._errors[-1][0]
        while newest - self._errors[0][0] > self._window:
            self._errors.popleft()
        _, rigid, semiparametric = zip(*self._errors, strict=True)
        errors = {"rigid_body": np.array(rigid), "semiparametric": np.array(semiparametric)}
        rmse = {name: np.sqrt(np.mean(error**2, axis=0)) for name, error in errors.items()}
        return {n: (float(e[:3].mean()), float(e[3:].mean())) for n, e in rmse.items()}

    def figures(self) -> dict[str, str]:
        """The learner's last diagnostics by name."""
        return {pair.key: pair.value for pair in self.status.values} if self.status else {}

    def _joint_state(self, data: bytes) -> None:
        stamp = stamp_of(deserialize_message(data, JointState))
        step = (stamp - self.last_stamp) * 1e-9
        self.motion += step if 0.0 < step < 0.5 else 0.0
        self.last_stamp = stamp

    def _described(self, data: bytes) -> None:
        self.urdf = deserialize_message(data, String).data

    def _part(self, topic: str) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            message = deserialize_message(data, WrenchStamped)
            f, t = message.wrench.force, message.wrench.torque
            stamp = stamp_of(message)
            parts = self._pending.setdefault(stamp, {})
            parts[topic] = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
            if len(parts) == len(OUTPUTS):
                del self._pending[stamp]
                # What was measured is not published: it is the prediction plus the difference.
                rigid = parts["predicted"] + parts["external"] - parts["rigid_body"]
                self._errors.append((stamp, rigid, parts["external"]))
            elif len(self._pending) > PENDING:
                del self._pending[next(iter(self._pending))]

        return take

    def _diagnosed(self, data: bytes) -> None:
        for status in deserialize_message(data, DiagnosticArray).status:
            if status.name == self._learner:
                self.status = status


# -------------------------------------------------------------------------------------------------
# The demo's progress on a terminal or in a file.

HEADER = (
    "                                          force RMSE [N]        torque RMSE [N m]\n"
    "   time  motion     samples  dropped   rigid body  semipar.   rigid body  semipar."
)
ROWS_A_HEADER = 20


class LiveTable:
    """One line a second: how much was learned, and both models' errors over the last seconds."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._rows = 0
        self._waiting = ""
        self._told = 0.0  # s of motion at the last line

    def row(self, monitor: Monitor, motion: str) -> None:
        """Add a line if the arm has moved; says what is awaited before the first prediction."""
        rmse = monitor.rmse()
        if rmse is None:
            waiting = monitor.status.message if monitor.status else "the nodes are starting"
            if waiting != self._waiting:
                self.note(waiting)
                self._waiting = waiting
            return
        if monitor.motion == self._told:
            return
        self._told = monitor.motion
        if self._rows % ROWS_A_HEADER == 0:
            self._print(HEADER)
        self._rows += 1
        rigid, semiparametric = rmse["rigid_body"], rmse["semiparametric"]
        figures = monitor.figures()
        self._print(
            f"{monitor.motion:6.1f} s  {motion:9} {figures.get('samples learned', '0'):>8} "
            f"{dropped(figures):8d}   {rigid[0]:10.3f}  {semiparametric[0]:8.3f}   "
            f"{rigid[1]:10.4f}  {semiparametric[1]:8.4f}"
        )

    def note(self, text: str) -> None:
        """Add a line of text."""
        self._print(f"  {text}")

    def summary(self, monitor: Monitor, messages: int) -> None:
        """Say what came of it all."""
        known = {"samples seen": "0", "samples learned": "0"} | monitor.figures()
        self._print(
            f"{messages} messages recorded; the learner saw {known['samples seen']} samples, "
            f"learned {known['samples learned']}, dropped {dropped(known)}"
        )
        for act in ("predict", "learn"):
            if f"{act} p50 [us]" in known:
                p50, p99 = known[f"{act} p50 [us]"], known[f"{act} p99 [us]"]
                self._print(f"to {act} took the node {p50} us (median), {p99} us (99 %)")

    def _print(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def dropped(figures: dict[str, str]) -> int:
    """Everything that the learner left out, for whatever reason."""
    return sum(int(value) for name, value in figures.items() if name.startswith("dropped: "))


LEARNER, SIMULATOR, PAGE = "inverse_dynamics", "arm_simulator", "live_page"
# The motions, and what is said when they begin.
PHASES = {
    "circle_xy": "the hand draws circles in the XY plane",
    "circle_xz": "now circles in the XZ plane, new to the learner",
}
PROGRESS_TIMEOUT_S = 60.0  # without any motion
START_TIMEOUT_S = 300.0  # without any motion at first: a busy machine compiles the core for minutes
DRAIN_S = 1.5  # after the motion: the last predictions, and diagnostics of all samples
ERROR_WINDOW_S = 3.0  # over which errors are averaged


def run_demo(
    out: Path,
    *,
    seconds: float,
    rate: float,
    seed: int,
    residual: str,
    port: int | None = None,
    show: Callable[[str], object] | None = None,
) -> tuple[Path, Path, Path]:
    """Run `seconds` of motion; returns the bag, the URDF's file and the learner's YAML.

    A URDF that is replaced is kept, see `output_files`; earlier logs of these nodes are not.

    port: of the live page, which ends with the motion; another free one where it is taken; None:
    no page. show: gets the page's address when it is there.

    Ctrl-C ends the motion early and keeps what was recorded. Raises SemiparamError where a node
    ends by itself or nothing moves.
    """
    domain = use_own_network()
    bag = out / "bag"
    logs = make_logs(out, (LEARNER, SIMULATOR, PAGE))
    learner_yaml = write_params(out, LEARNER, learner_config(residual, seed))
    simulator_yaml = write_params(out, SIMULATOR, simulator_config(rate, seed))
    print(f"starting the learner and the arm (ROS_DOMAIN_ID={domain}, logs in {logs})", flush=True)
    if not is_compiled():
        print("compiling the numerical core takes some 20 s on two cores, this once", flush=True)
    with (
        runtime.open_network() as interrupted,
        BagWriter(bag, overwrite=True) as writer,
        NodeProcess(LEARNER, {}, logs / f"{LEARNER}.log", learner_yaml) as learner,
        serve_page(PAGE, {}, logs, port, interrupted, show),
    ):
        monitor = Monitor(writer, LEARNER, ERROR_WINDOW_S)
        executor = SingleThreadedExecutor()
        executor.add_node(monitor)
        table = LiveTable(sys.stdout)
        for k, (motion, meaning) in enumerate(PHASES.items()):
            table.note(meaning)
            log = logs / f"{SIMULATOR}.log"
            with NodeProcess(SIMULATOR, {"motion": motion}, log, simulator_yaml) as arm:
                until = seconds * (k + 1) / len(PHASES)
                ended = _follow(
                    executor, monitor, table, interrupted, motion, until, (learner, arm)
                )
            if not ended:
                break
        runtime.spin_for(executor, DRAIN_S)
        monitor.destroy_node()
    urdf = out / "robot.urdf"
    write_files({urdf: monitor.urdf})
    table.summary(monitor, monitor.recorded)
    return bag, urdf, learner_yaml


def _follow(
    executor: Executor,
    monitor: Monitor,
    table: LiveTable,
    interrupted: Event,
    motion: str,
    until: float,
    nodes: tuple[NodeProcess, ...],
) -> bool:
    """Spin until so much motion was seen; False if the user ended it before."""
    progress, told, moved = time.monotonic(), time.monotonic(), monitor.motion
    while monitor.motion < until:
        executor.spin_once(timeout_sec=0.1)
        if interrupted.is_set():
            if not monitor.motion:
                raise KeyboardInterrupt
            return False
        now = time.monotonic()
        if monitor.motion > moved:
            progress, moved = now, monitor.motion
        limit = PROGRESS_TIMEOUT_S if monitor.motion else START_TIMEOUT_S
        if now - progress > limit:
            why = monitor.status.message if monitor.status else "no diagnostics from the learner"
            raise SemiparamError(f"the arm has not moved for {limit:g} s: {why}")
        if now - told >= 1.0:
            told = now
            for node in nodes:
                node.check()
            table.row(monitor, motion)
    return True
