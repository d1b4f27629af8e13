"""The services of a node that learns: save, load, reset, learn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.checkpoints import any_saved
from semiparam_dynamics.errors import SemiparamError, StorageError
from semiparam_dynamics.model_claim import ModelClaim
from semiparam_dynamics.nodes.autosave import Autosave


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
