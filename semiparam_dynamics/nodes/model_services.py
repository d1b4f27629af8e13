"""The services of a node that learns: save, load, reset, learn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.changes.payload import BARE
from semiparam_dynamics.errors import ConfigurationError, SemiparamError, StorageError
from semiparam_dynamics.nodes.autosave import Autosave
from semiparam_dynamics.nodes.session import Session
from semiparam_dynamics.storage import ModelClaim, any_saved

if TYPE_CHECKING:
    from semiparam_dynamics.changes.monitor import ChangeMonitor


class LearningSession(Protocol):
    """What a node does with what it learns."""

    learning: bool
    autosave: Autosave

    def begin_save(self, path: Path, done: Callable[[str], None]) -> None:
        """Begin to save what was learned; see `Autosave.begin`."""

    def load(self, path: Path) -> None:
        """Go on from a file, or from the one before it where it is damaged.

        Raises StorageError; what was learned is then what it was.
        """

    def finish(self) -> None:
        """Save what isn't saved yet, if that is to happen by itself. Raises StorageError."""

    def reset(self) -> None:
        """Forget everything learned."""

    def learned(self) -> str:
        """How much was learned, such as ``58 samples``."""


class ModelServices:
    """`~/save`, `~/load`, `~/reset` and `~/learn`, which answer with the reason when they refuse.

    Parameters
    ----------
    node: the node that offers them.
    session: returns the session; raises SemiparamError with the reason while there is none.
    model_file: where `~/save` and `~/load` go; may be empty, then they refuse.
    """

    def __init__(self, node: Node, session: Callable[[], LearningSession], model_file: str) -> None:
        self._node = node
        self._session = session
        self._model_file = model_file
        self._claim: ModelClaim | None = None
        if model_file:
            owner = f"{node.get_fully_qualified_name()}, process {os.getpid()}"
            self._claim = ModelClaim(self._file(), owner)
        for name, act in (("load", self._load), ("reset", self._reset)):
            node.create_service(Trigger, f"~/{name}", answering(act))
        node.create_service(Trigger, "~/save", self._save)
        node.create_service(SetBool, "~/learn", self._learn)

    @contextmanager
    def claiming(self, autosave: bool) -> Iterator[None]:
        """Have model_file for this node alone until :meth:`give_up`, or until this block fails.

        Without `autosave` it is claimed by the first `~/save`. Raises StorageError where another
        node has it.
        """
        if autosave:
            self._take()
        try:
            yield
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Let others have the file."""
        if self._claim is not None:
            self._claim.give_up()

    def _take(self) -> None:
        if self._claim is not None and (unlocked := self._claim.take()):
            self._node.get_logger().warning(unlocked)

    def go_on(self, session: LearningSession) -> None:
        """Have a new session go on from the saved model, if there is one. Raises StorageError."""
        if not self._model_file or not any_saved(self._file()):
            return
        session.load(self._file())
        if session.autosave.problem:
            self._node.get_logger().error(session.autosave.problem)
        self._node.get_logger().info(
            f"goes on from {session.autosave.loaded}: {session.learned()} learned"
        )

    def keep(self, session: LearningSession) -> None:
        """Save what isn't saved yet; where that fails it is told, and nothing is lost yet."""
        try:
            session.finish()
        except StorageError as error:
            self._node.get_logger().error(str(error))

    def _file(self) -> Path:
        if not self._model_file:
            raise StorageError("the parameter 'model_file' names no file to save to and load from")
        return Path(self._model_file).expanduser().absolute()

    async def _save(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Answers when the file is there; messages are answered meanwhile."""
        written = Future(executor=self._node.executor)

        def tell(problem: str) -> None:
            # In the thread that wrote. At the end of the process nobody waits any more.
            with suppress(Exception):
                self._node.executor.create_task(lambda: written.set_result(problem))

        try:
            session, path = self._session(), self._file()
            self._take()
            session.begin_save(path, tell)
            learned = session.learned()
            problem = await written
            response.success = not problem
            response.message = problem or f"saved the model of {learned} to {path}"
        except SemiparamError as error:
            response.message = str(error)
        return response

    def _load(self) -> str:
        session, path = self._session(), self._file()
        session.load(path)
        loaded = f"loaded {session.autosave.loaded}, the model of {session.learned()}"
        return f"{loaded}; {problem}" if (problem := session.autosave.problem) else loaded

    def _reset(self) -> str:
        self._session().reset()
        return "forgot everything learned"

    def _learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            self._session().learning = request.data
            response.success = True
            response.message = "learning" if request.data else "not learning, only predicting"
        except SemiparamError as error:
            response.message = str(error)
        return response


def answering(act: Callable[[], str]) -> Callable[[Trigger.Request, Trigger.Response], object]:
    """A service's callback that does `act` and answers with what it returns, or why it refuses."""

    def answer(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message, response.success = act(), True
        except SemiparamError as error:
            response.message = str(error)
        return response

    return answer


# -------------------------------------------------------------------------------------------------
# The services by which payloads get names: snapshot, recall, release, forget_snapshot.


class SnapshotServices:
    """`~/snapshot`, `~/recall`, `~/release` and `~/forget_snapshot`, of the type std_srvs/Trigger.

    A Trigger carries no text: the name is that of the live parameter `snapshot_name`. It is a name
    inside the model's file and never one of a file. What the services change is saved as soon as
    the disk allows, where the model is saved by itself.

    Parameters
    ----------
    node: the node that offers them.
    session: returns the session; raises SemiparamError with the reason while there is none.
    name: returns the name that the services are about.
    changed: called after each change, to publish it.
    """

    def __init__(
        self,
        node: Node,
        session: Callable[[], Session],
        name: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self._session, self._name, self._changed = session, name, changed
        services = {
            "snapshot": self._snapshot,
            "recall": self._recall,
            "release": self._release,
            "forget_snapshot": self._forget,
        }
        for service, act in services.items():
            node.create_service(Trigger, f"~/{service}", answering(self._keeping(act)))

    def _keeping(self, act: Callable[[ChangeMonitor], str]) -> Callable[[], str]:
        def act_and_keep() -> str:
            session = self._session()
            monitor = session.learner.changes
            if monitor is None:
                raise ConfigurationError("set the parameter changes.detect to know of payloads")
            answer = act(monitor)
            session.autosave.changed()
            session.autosave.request()
            session.autosave.step()
            self._changed()
            return answer

        return act_and_keep

    def _wanted(self) -> str:
        if not self._name():
            raise ConfigurationError("set the parameter snapshot_name first: it is empty")
        return self._name()

    def _snapshot(self, monitor: ChangeMonitor) -> str:
        name, held = self._wanted(), monitor.payload
        if held is None:
            raise ConfigurationError(
                "nothing is held beyond what the model has learned: there is no payload to keep"
            )
        monitor.remember(name)
        unsure = "" if held.settled else "; it is still being estimated, call again when it settled"
        return f"kept {held.mass:.3g} kg, give or take {held.mass_std:.2g} kg, as '{name}'{unsure}"

    def _recall(self, monitor: ChangeMonitor) -> str:
        monitor.recall(self._wanted())
        return f"'{self._wanted()}' is held from now on"

    def _release(self, monitor: ChangeMonitor) -> str:
        monitor.recall(BARE)
        return "nothing is held from now on"

    def _forget(self, monitor: ChangeMonitor) -> str:
        name = self._wanted()
        monitor.snapshots.remove(name)
        if monitor.correction.name == name:
            # It stays what is held, without a name.
            monitor.correction.name = ""
        return f"forgot '{name}'"
