"""The live part of `semiparam teach`: frames, their recognition and the page, each a process."""

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
    serve_page,
    use_own_network,
    write_params,
)
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.storage import ModelLock
from semiparam_dynamics.learner.nodes.config import (
    ImageSourceNodeConfig,
    ObjectRecognitionNodeConfig,
)

RECOGNITION, SOURCE, PAGE = "object_recognition", "image_source", "objects_page"
MODEL = "objects.npz"
TOLD = 5.0  # s between two lines on what is learned
DRAIN = 1.5  # s after the last frame: diagnostics of it


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
    def said(self) -> str:
        return self.status.message if self.status else "the nodes are starting"


def run_teaching(
    out: Path,
    source: ImageSourceNodeConfig,
    *,
    port: int | None,
    show: Callable[[str], object] | None = None,
) -> Path:
    """Show a source's frames, recognise and teach them, until Ctrl-C or the source's end.

    out: has the objects, `objects.npz`, which are there again the next time, and the nodes' logs
        and parameters. port, show: of the page; see `processes.serve_page`.

    Returns the objects' file. Raises StorageError, before anything is written, where another
    teaching has these objects, and SemiparamError where a node ends by itself.
    """
    logs, model = out / "log", out.absolute() / MODEL
    lock = ModelLock(model)  # the recognition's own, from its start on
    lock.take()
    lock.close()
    domain = use_own_network()
    logs.mkdir(parents=True, exist_ok=True)
    for log in logs.glob("*.log"):
        log.unlink()
    recognition = replace(ObjectRecognitionNodeConfig(), model_file=str(model), reliable=True)
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
        runtime.spin_for(executor, 0.0 if interrupted.is_set() else DRAIN)
        print(f"  {listener.said}", flush=True)
        listener.destroy_node()
    return model


def _follow(
    executor: SingleThreadedExecutor,
    listener: _Listener,
    interrupted: Event,
    recognition: NodeProcess,
    source: NodeProcess,
) -> None:
    """Say what is learned until Ctrl-C or the source's end."""
    told, said = 0.0, ""
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
        if listener.said != said and now - told >= TOLD:
            told, said = now, listener.said
            print(f"  {said}", flush=True)
