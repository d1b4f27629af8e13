"""The demo's live part: two node processes, and this process that watches and records them."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path

import rclpy
from rclpy.executors import Executor
from rclpy.signals import SignalHandlerOptions

from semiparam_dynamics.errors import SemiparamError
from semiparam_dynamics.nodes import runtime
from semiparam_dynamics.nodes.demo_config import learner_config, simulator_config
from semiparam_dynamics.nodes.live_table import LiveTable
from semiparam_dynamics.nodes.monitor import Monitor
from semiparam_dynamics.nodes.processes import NodeProcess, use_own_network, write_params
from semiparam_dynamics.nodes.recorder import Recorder

LEARNER, SIMULATOR = "inverse_dynamics", "arm_simulator"
# The motions, and what is said when they begin.
PHASES = {
    "circle_xy": "the hand draws circles in the XY plane",
    "circle_xz": "now circles in the XZ plane, new to the learner",
}
PATIENCE = 60.0  # s without any progress: the first start compiles the numerical core
DRAIN = 1.5  # s after the motion: the last predictions, and diagnostics of all samples
ERROR_WINDOW = 3.0  # s


def run_demo(
    out: Path, *, seconds: float, rate: float, seed: int, residual: str
) -> tuple[Path, Path, Path]:
    """Run `seconds` of motion; returns the bag, the URDF's file and the learner's YAML.

    Ctrl-C ends the motion early and keeps what was recorded. Raises SemiparamError where a node
    ends by itself or nothing moves.
    """
    domain = use_own_network()
    out.mkdir(parents=True, exist_ok=True)
    bag, logs = out / "bag", out / "log"
    _make_room(bag)
    logs.mkdir(exist_ok=True)
    for log in logs.glob("*.log"):
        log.unlink()
    learner_yaml = write_params(out, LEARNER, learner_config(residual, seed))
    simulator_yaml = write_params(out, SIMULATOR, simulator_config(rate, seed))
    print(f"starting the learner and the arm (ROS_DOMAIN_ID={domain}, logs in {logs})", flush=True)
    # Not rclpy's own handlers: they would take the network down before the last messages.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    terminate = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            Recorder(bag) as recorder,
            NodeProcess(LEARNER, {}, logs / f"{LEARNER}.log", learner_yaml) as learner,
        ):
            monitor = Monitor(recorder, LEARNER, ERROR_WINDOW)
            executor = runtime.make_executor()
            executor.add_node(monitor)
            table = LiveTable(sys.stdout)
            for k, (motion, meaning) in enumerate(PHASES.items()):
                table.note(meaning)
                log = logs / f"{SIMULATOR}.log"
                with NodeProcess(SIMULATOR, {"motion": motion}, log, simulator_yaml) as arm:
                    until = seconds * (k + 1) / len(PHASES)
                    ended = _follow(executor, monitor, table, motion, until, (learner, arm))
                if not ended:
                    break
            runtime.spin_for(executor, DRAIN)
            monitor.destroy_node()
    finally:
        signal.signal(signal.SIGTERM, terminate)
        rclpy.try_shutdown()
    urdf = out / "robot.urdf"
    urdf.write_text(monitor.urdf)
    table.summary(monitor, recorder.messages)
    return bag, urdf, learner_yaml


def _follow(
    executor: Executor,
    monitor: Monitor,
    table: LiveTable,
    motion: str,
    until: float,
    nodes: tuple[NodeProcess, ...],
) -> bool:
    """Spin until so much motion was seen; False if the user ended it before."""
    progress, told, moved = time.monotonic(), time.monotonic(), monitor.motion
    try:
        while monitor.motion < until:
            executor.spin_once(timeout_sec=0.1)
            now = time.monotonic()
            if monitor.motion > moved:
                progress, moved = now, monitor.motion
            if now - progress > PATIENCE:
                why = (
                    monitor.status.message if monitor.status else "no diagnostics from the learner"
                )
                raise SemiparamError(f"the arm has not moved for {PATIENCE:g} s: {why}")
            if now - told >= 1.0:
                told = now
                for node in nodes:
                    node.check()
                table.row(monitor, motion)
    except KeyboardInterrupt:
        if not monitor.motion:
            raise
        return False
    return True


def _make_room(bag: Path) -> None:
    """Remove an earlier demo's bag; anything else in its place stays, and the recorder refuses."""
    if bag.is_dir() and all(
        p.suffix == ".mcap" or p.name == "metadata.yaml" for p in bag.iterdir()
    ):
        shutil.rmtree(bag)
