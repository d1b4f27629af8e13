"""The demo's live part: two node processes, and this process that watches and records them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.diagnostics import FINAL_S, StatusListener
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

QUEUE = QoSProfile(depth=1000)
OUTPUTS = ("predicted", "rigid_body", "external")


class Monitor(StatusListener):
    """Records a simulated arm and its learner, byte for byte.

    Parameters
    ----------
    bag: takes every message. learner: the learner's node name.

    recorded: number of messages in the bag. urdf: the arm's. motion: s of joint states received.
    """

    def __init__(self, bag: BagWriter, learner: str) -> None:
        super().__init__("demo_monitor", learner)
        self._learner, self._bag = learner, bag
        self._last_stamp = 0  # ns, of the newest joint state
        self.urdf = ""
        self.motion, self.recorded = 0.0, 0
        self._record("robot_description", String, LATCHED, self._described)
        for topic in OUTPUTS:
            self._record(f"{learner}/{topic}", WrenchStamped, QUEUE)
        self._record(f"{learner}/inertial_parameters", Float64MultiArray, QUEUE)
        self._record("/diagnostics", DiagnosticArray, QUEUE)
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

    def _joint_state(self, data: bytes) -> None:
        stamp = stamp_of(deserialize_message(data, JointState))
        step = (stamp - self._last_stamp) * 1e-9
        self.motion += step if 0.0 < step < 0.5 else 0.0
        self._last_stamp = stamp

    def _described(self, data: bytes) -> None:
        self.urdf = deserialize_message(data, String).data


LEARNER, SIMULATOR, PAGE = "inverse_dynamics", "arm_simulator", "live_page"
# The motions, and what is said when they begin.
PHASES = {
    "circle_xy": "the hand draws circles in the XY plane",
    "circle_xz": "now circles in the XZ plane, new to the learner",
}
PROGRESS_TIMEOUT_S = 60.0  # without any motion
START_TIMEOUT_S = 300.0  # until a motion begins: a busy machine compiles the core for minutes
SETTLED_S = 2.0  # of a motion, after which the diagnostics are of it


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
        print("compiling the numerical core takes 20 to 50 s on two cores, this once", flush=True)
    with (
        runtime.open_network() as interrupted,
        BagWriter(bag, overwrite=True) as writer,
        NodeProcess(LEARNER, {}, logs / f"{LEARNER}.log", learner_yaml) as learner,
        serve_page(PAGE, {}, logs, port, interrupted, show),
    ):
        monitor = Monitor(writer, LEARNER)
        executor = SingleThreadedExecutor()
        executor.add_node(monitor)
        for k, (motion, meaning) in enumerate(PHASES.items()):
            print(f"  {motion}: {meaning}", flush=True)
            log = logs / f"{SIMULATOR}.log"
            with NodeProcess(SIMULATOR, {"motion": motion}, log, simulator_yaml) as arm:
                until = seconds * (k + 1) / len(PHASES)
                ended = _follow(executor, monitor, interrupted, until, (learner, arm))
            if not ended:
                break
        runtime.spin_for(executor, FINAL_S)
        monitor.destroy_node()
    urdf = out / "robot.urdf"
    write_files({urdf: monitor.urdf})
    seen, learned = (monitor.values.get(f"samples {done}", "0") for done in ("seen", "learned"))
    print(
        f"{monitor.recorded} messages recorded; the learner saw {seen} samples, learned {learned}"
    )
    for act in ("predict", "learn"):
        if (p50 := monitor.values.get(f"{act} p50 [us]")) is not None:
            p99 = monitor.values[f"{act} p99 [us]"]
            print(f"to {act} took the node {p50} us (median), {p99} us (99 %)")
    return bag, urdf, learner_yaml


def _follow(
    executor: Executor,
    monitor: Monitor,
    interrupted: Event,
    until: float,
    nodes: tuple[NodeProcess, ...],
) -> bool:
    """Spin until so much motion was seen; False if the user ended it before."""
    begin = progress = told = time.monotonic()
    first = moved = monitor.motion
    printed = ""
    while monitor.motion < until:
        executor.spin_once(timeout_sec=0.1)
        if interrupted.is_set():
            if not monitor.motion:
                raise KeyboardInterrupt
            return False
        now = time.monotonic()
        if monitor.motion > moved:
            progress, moved = now, monitor.motion
        limit = PROGRESS_TIMEOUT_S if moved > first else START_TIMEOUT_S
        if now - progress > limit:
            raise SemiparamError(f"the arm has not moved for {limit:g} s: {monitor.message}")
        if now - told >= 1.0:
            told = now
            for node in nodes:
                node.check()
            state = "; ".join(monitor.message.split("; ")[:2])  # a line of a terminal
            if moved <= first + SETTLED_S:  # till then the learner asks for what is on its way
                begins = f"the arm starts, for {10 * int((now - begin) / 10)} s"
                state = "the arm moves" if moved > first else begins
            if (line := f"{monitor.motion:6.1f} s  {state}") != printed:
                print(printed := line, flush=True)
    return True
