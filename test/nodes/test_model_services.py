"""The services of a node that learns: what is asked for first is done first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from semiparam_dynamics.nodes.model_services import ModelServices
from semiparam_dynamics.nodes.runtime import make_executor


class Session:
    """Notes what it has to do, and in which order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.autosave = SimpleNamespace(loaded="file", problem="")

    def begin_save(self, path: Path, done: Callable[[str], None]) -> None:
        self.done.append("save")
        done("")

    def load(self, path: Path) -> None:
        self.done.append("load")

    def reset(self) -> None:
        self.done.append("reset")

    def differences(self) -> list[str]:
        return []

    def learned(self) -> str:
        return "nothing"


@pytest.mark.parametrize("other", ["load", "reset"])
@pytest.mark.parametrize(
    "executor_of", [make_executor, lambda context: SingleThreadedExecutor(context=context)]
)
def test_what_is_saved_first_is_not_lost_by_what_is_asked_for_at_once(
    ros_environment, tmp_path: Path, executor_of: Callable[[Context], Any], other: str
) -> None:
    context = Context()
    rclpy.init(context=context)
    node, session = rclpy.create_node("learns", context=context), Session()
    executor = executor_of(context)
    try:
        executor.add_node(node)
        ModelServices(node, lambda: session, str(tmp_path / "model.npz"))
        asks = rclpy.create_node("asks", context=context)
        executor.add_node(asks)
        clients = [asks.create_client(Trigger, f"learns/{name}") for name in ("save", other)]

        def until(condition: Callable[[], bool]) -> None:
            while not condition():
                executor.spin_once(timeout_sec=0.05)

        until(lambda: all(client.service_is_ready() for client in clients))
        for k in range(4):
            session.done.clear()
            # Within a process a request has come when the call returns: both wait.
            answers = [client.call_async(Trigger.Request()) for client in clients]
            until(lambda answers=answers: all(answer.done() for answer in answers))
            assert all(answer.result().success for answer in answers)
            # The first of a client may come later, when both sides have found each other.
            assert session.done == ["save", other] or k == 0
    finally:
        executor.shutdown()
        rclpy.try_shutdown(context=context)
