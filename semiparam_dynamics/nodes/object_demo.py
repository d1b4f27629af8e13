"""The live part of `semiparam objects`: two node processes, and this one that watches them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import rclpy
from rclpy.executors import Executor
from rclpy.signals import SignalHandlerOptions

from semiparam_dynamics.errors import SemiparamError
from semiparam_dynamics.nodes import runtime
from semiparam_dynamics.nodes.config import ObjectRecognitionNodeConfig, ObjectStreamNodeConfig
from semiparam_dynamics.nodes.object_monitor import ObjectMonitor
from semiparam_dynamics.nodes.object_table import ObjectTable
from semiparam_dynamics.nodes.processes import NodeProcess, use_own_network, write_params
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.recognition.tally import Tally

RECOGNITION, STREAM = "object_recognition", "object_stream"
LISTENERS = 2  # of the label: the recognition and the monitor
PATIENCE = 120.0  # s without an answer: the first start compiles, and makes the network's file
DRAIN = 1.2  # s after the last frame: its answer, and diagnostics of all


@dataclass(frozen=True)
class Watched:
    """What was seen: the tally, the recognition's last figures, and whether the script ended."""

    tally: Tally
    figures: dict[str, str]
    complete: bool


def run_objects(out: Path, config: ObjectStreamNodeConfig, *, features: bool) -> Watched:
    """Run the script that `config` describes; logs and the nodes' parameters go to `out`.

    features: the source has feature vectors and no pictures.

    Each answer is to one picture: the recognition does not smooth over several. Ctrl-C ends the
    script early. Raises SemiparamError where a node ends by itself or no answer comes.
    """
    domain = use_own_network()
    logs = out / "log"
    logs.mkdir(parents=True, exist_ok=True)
    for log in logs.glob("*.log"):
        log.unlink()
    stream_yaml = write_params(out, STREAM, replace(config, wait_for_subscribers=LISTENERS))
    recognition_yaml = write_params(out, RECOGNITION, recognition_config(features))
    print(f"starting the recognition and the pictures (ROS_DOMAIN_ID={domain}, logs in {logs})")
    # Not rclpy's own handlers: they would take the network down before the last messages.
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    terminate = signal.signal(signal.SIGTERM, signal.default_int_handler)
    table = ObjectTable(sys.stdout)
    try:
        with (
            NodeProcess(RECOGNITION, {}, logs / f"{RECOGNITION}.log", recognition_yaml) as answers,
            # It waits until the recognition listens.
            NodeProcess(STREAM, {}, logs / f"{STREAM}.log", stream_yaml) as pictures,
        ):
            monitor = ObjectMonitor(RECOGNITION, table.row)
            executor = runtime.make_executor()
            executor.add_node(monitor)
            complete = _follow(executor, monitor, table, answers, pictures)
            runtime.spin_for(executor, DRAIN)
            monitor.end()
            monitor.destroy_node()
    finally:
        signal.signal(signal.SIGTERM, terminate)
        rclpy.try_shutdown()
    table.summary(monitor.tally, monitor.figures())
    return Watched(monitor.tally, monitor.figures(), complete)


def recognition_config(features: bool) -> ObjectRecognitionNodeConfig:
    """The recognition's parameters: the defaults, but every picture is answered by itself."""
    kind = "features" if features else "image"
    return replace(ObjectRecognitionNodeConfig(), input=kind, reliable=True, smoothing__frames=1)


def _follow(
    executor: Executor,
    monitor: ObjectMonitor,
    table: ObjectTable,
    recognition: NodeProcess,
    stream: NodeProcess,
) -> bool:
    """Spin until the script has ended; False if the user ended it before."""
    progress, answers = time.monotonic(), 0
    try:
        while not _ended(stream):
            executor.spin_once(timeout_sec=0.1)
            recognition.check()
            why = monitor.status.message if monitor.status else "the nodes are starting"
            if not monitor.tally.answers:
                table.waiting(why)
            now, paused = time.monotonic(), monitor.begun and monitor.tally.now is None
            if monitor.tally.answers > answers or paused:
                progress, answers = now, monitor.tally.answers
            if now - progress > PATIENCE:
                raise SemiparamError(f"no picture was recognised for {PATIENCE:g} s: {why}")
    except KeyboardInterrupt:
        if not monitor.tally.answers:
            raise
        return False
    return True


def _ended(stream: NodeProcess) -> bool:
    """Whether the script has come to its end; raises SemiparamError if it ended otherwise."""
    try:
        code = stream.wait(0.0)
    except subprocess.TimeoutExpired:
        return False
    if code:
        stream.check()
    return True
