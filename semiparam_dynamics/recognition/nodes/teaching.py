"""The live part of `semiparam teach` and `objects`: frames, recognition and page as processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

from rclpy.executors import SingleThreadedExecutor

from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.diagnostics import FINAL_S, StatusListener
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


def summary(values: Mapping[str, str]) -> str:
    """Lines with the figures of each object, worst first; empty if nothing was learned."""
    begin = "object: "
    objects = {k.removeprefix(begin): v for k, v in values.items() if k.startswith(begin)}
    if not objects:
        return ""
    taught = values.get("frames taught", "?")
    known = values.get("frames taught, recognised before", "?")
    lines = [
        f"{known} of {taught} taught frames were recognised before they were learned; "
        "examples, and the share recognised of those held out:",
        *(f"  {name}: {figures}" for name, figures in objects.items()),
    ]
    return "\n".join(lines)


def run_teaching(
    out: Path,
    source: ImageSourceNodeConfig,
    *,
    port: int | None,
    region: str,
    show: Callable[[str], object] | None = None,
    resume: bool = True,
) -> Path:
    """Show a source's frames, recognise and teach them, until Ctrl-C or the source's end.

    out: folder of the objects' file, `objects.npz`, and of the nodes' logs and parameters.
    port, show: of the page; see `processes.serve_page`. region: the recognition's parameter.
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
        ObjectRecognitionNodeConfig(),
        model_file=str(model),
        autoload=resume,
        reliable=True,
        region=region,
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
        listener = StatusListener("teaching_monitor", RECOGNITION)
        executor = SingleThreadedExecutor()
        executor.add_node(listener)
        _follow(executor, listener, interrupted, answers, frames)
        runtime.spin_for(executor, 0.0 if interrupted.is_set() else FINAL_S)
        print(f"  {listener.message}", flush=True)
        if told := summary(listener.values):
            print(told, flush=True)
        listener.destroy_node()
    return model


def _follow(
    executor: SingleThreadedExecutor,
    listener: StatusListener,
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
