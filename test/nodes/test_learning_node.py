"""The services of a node that learns: their order, and answers where they fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from semiparam_dynamics.base.nodes.learning_node import LearningNode
from semiparam_dynamics.base.nodes.runtime import make_executor
from semiparam_dynamics.base.storage import LearningNodeConfig

from .conftest import TIMEOUT


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


EXECUTORS = pytest.mark.parametrize(
    "executor_of", [make_executor, lambda context: SingleThreadedExecutor(context=context)]
)


class Services:
    """A node with the services of a session, and a client of each that is asked for."""

    def __init__(self, executor_of: Callable[[Context], Any], session: Session, path: Path) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.executor = executor_of(self.context)
        file = Parameter("model_file", value=str(path))
        node: LearningNode[Any] = LearningNode(
            "learns", LearningNodeConfig, context=self.context, parameter_overrides=[file]
        )
        node.session = session
        self._asks = rclpy.create_node("asks", context=self.context)
        for one in (node, self._asks):
            self.executor.add_node(one)

    def clients(self, *names: str) -> list[Any]:
        """Clients of the services, which are there."""
        clients = [self._asks.create_client(Trigger, f"learns/{name}") for name in names]
        self.until(lambda: all(client.service_is_ready() for client in clients))
        return clients

    def until(self, condition: Callable[[], bool]) -> None:
        """Spin until it holds."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < end
            self.executor.spin_once(timeout_sec=0.05)


@pytest.fixture
def serve(ros_environment, tmp_path: Path) -> Iterator[Callable[..., Services]]:
    made: list[Services] = []

    def serve(executor_of: Callable[[Context], Any], session: Session) -> Services:
        made.append(Services(executor_of, session, tmp_path / "model.npz"))
        return made[-1]

    yield serve
    for services in made:
        services.executor.shutdown()
        rclpy.try_shutdown(context=services.context)


@pytest.mark.parametrize("other", ["load", "reset"])
@EXECUTORS
def test_what_is_saved_first_is_not_lost_by_what_is_asked_for_at_once(
    serve, executor_of: Callable[[Context], Any], other: str
) -> None:
    session = Session()
    services = serve(executor_of, session)
    clients = services.clients("save", other)
    for k in range(4):
        session.done.clear()
        # Within a process a request has come when the call returns: both wait.
        answers = [client.call_async(Trigger.Request()) for client in clients]
        services.until(lambda answers=answers: all(answer.done() for answer in answers))
        assert all(answer.result().success for answer in answers)
        # The first of a client may come later, when both sides have found each other.
        assert session.done == ["save", other] or k == 0


@EXECUTORS
def test_what_fails_without_a_reason_of_its_own_is_answered(serve, executor_of, capfd) -> None:
    """An exception that leaves a coroutine ends a process with an EventsExecutor."""

    def fail(*_: object) -> None:
        raise MemoryError("no more")

    session = Session()
    session.reset = session.begin_save = fail
    services = serve(executor_of, session)
    for client in services.clients("reset", "save"):
        answer = client.call_async(Trigger.Request())
        services.until(answer.done)
        assert not answer.result().success
        assert "unexpected MemoryError: no more" in answer.result().message
    assert capfd.readouterr().err.count("Traceback") == 2


def test_who_resets_is_told_which_files_still_have_what_was_learned(serve, tmp_path: Path) -> None:
    model, previous = tmp_path / "model.npz", tmp_path / "model.previous.npz"
    services = serve(make_executor, Session())
    (client,) = services.clients("reset")

    def reset() -> str:
        answer = client.call_async(Trigger.Request())
        services.until(answer.done)
        assert answer.result().success
        message: str = answer.result().message
        return message

    assert reset() == "forgot everything learned"
    previous.touch()
    assert reset().endswith(
        f"but the next start loads what was saved before: to forget for good, delete {previous}"
    )
    model.touch()
    assert reset().endswith(f"delete {model} and {previous}")
    assert model.exists() and previous.exists()
