"""The live part of `semiparam teach` and `objects`: frames, recognition and page as processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.processes import (
    NodeProcess,
    make_logs,
    serve_page,
    use_own_network,
    write_params,
)
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.storage import ModelLock
from semiparam_dynamics.recognition.config import ImageSourceNodeConfig, ObjectRecognitionNodeConfig

RECOGNITION, SOURCE, PAGE = "object_recognition", "image_source", "objects_page"
MODEL = "objects.npz"
REPORT_PERIOD = 5.0  # s between two lines on what is learned
FINAL_DIAGNOSTICS = 1.5  # s after the last frame; diagnostics come once a second


class _Listener(Node):  # type: ignore[misc]
    """Keeps the recognition's last diagnostics."""

    def __init__(self) -> None:
        super().__init__("teaching_monitor")
        self.status: DiagnosticStatus | None = None
        self.create_subscription(
            DiagnosticArray, "/diagnostics", self._diagnosed, QoSProfile(depth=20)
        )

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == RECOGNITION:
                self.status = status

    @property
    def message(self) -> str:
        return self.status.message if self.status else "the nodes are starting"

    def summary(self) -> str:
        """Lines with the figures of each object, worst first; empty if nothing was learned."""
        values = {pair.key: pair.value for pair in self.status.values} if self.status else {}
        begin = "object: "
        objects = {k.removeprefix(begin): v for k, v in values.items() if k.startswith(begin)}
        lines = [f"  {name}: {figures}" for name, figures in objects.items()]
        if lines:
            taught, known = (
                values.get(key, "?")
                for key in ("frames taught", "frames taught, recognised before")
            )
            lines = [
                f"{known} of {taught} taught frames were recognised before they were learned; "
                "examples, and the share recognised of those held out:",
                *lines,
            ]
        return "\n".join(lines)


def run_teaching(
    out: Path,
    source: ImageSourceNodeConfig,
    *,
    port: int | None,
    show: Callable[[str], object] | None = None,
    resume: bool = True,
) -> Path:
    """Show a source's frames, recognise and teach them, until Ctrl-C or the source's end.

    out: folder of the objects' file, `objects.npz`, and of the nodes' logs and parameters.
    port, show: of the page; see `processes.serve_page`.
    resume: continue with the objects that the file has.

    Returns the objects' file. Raises StorageError, before anything is written, where another
    teaching has these objects, and SemiparamError where a node ends by itself.
    """
    model = out.absolute() / MODEL
    lock = ModelLock(model)  # the recognition's own, from its start on
    lock.take()
    lock.close()
    domain = use_own_network()
    logs = make_logs(out, (RECOGNITION, SOURCE, PAGE))
    recognition = replace(
        ObjectRecognitionNodeConfig(), model_file=str(model), autoload=resume, reliable=True
    )
    recognition_yaml = write_params(out, RECOGNITION, recognition)
    source_yaml = write_params(out, SOURCE, source)
    print(f"starting the recognition (ROS_DOMAIN_ID={domain}, logs in {logs})", flush=True)
    with (
        runtime.open_network() as interrupted,
        NodeProcess(RECOGNITION, {}, logs / f"{RECOGNITION}.log", recognition_yaml) as answers,
        serve_page(PAGE, {"reliable": "true"}, logs, port, interrupted, show) as page,
        # It waits until the recognition listens, and the page where there is one.
        NodeProcess(
            SOURCE, {"wait_for_subscribers": 1 + page}, logs / f"{SOURCE}.log", source_yaml
        ) as frames,
    ):
        listener = _Listener()
        executor = SingleThreadedExecutor()
        executor.add_node(listener)
        _follow(executor, listener, interrupted, answers, frames)
        runtime.spin_for(executor, 0.0 if interrupted.is_set() else FINAL_DIAGNOSTICS)
        print(f"  {listener.message}", flush=True)
        if summary := listener.summary():
            print(summary, flush=True)
        listener.destroy_node()
    return model


def _follow(
    executor: SingleThreadedExecutor,
    listener: _Listener,
    interrupted: Event,
    recognition: NodeProcess,
    source: NodeProcess,
) -> None:
    """Print what is learned until Ctrl-C or the source's end."""
    printed, message = 0.0, ""
    while not interrupted.is_set():
        executor.spin_once(timeout_sec=0.1)
        recognition.check()
        try:
            if source.wait(0.0):
                source.check()
            return
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        if listener.message != message and now - printed >= REPORT_PERIOD:
            printed, message = now, listener.message
            print(f"  {message}", flush=True)
