"""The services of a node that learns: save, load, reset, learn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.errors import SemiparamError, StorageError


class LearningSession(Protocol):
    """What a node does with what it learns."""

    learning: bool

    def save(self, path: Path) -> None:
        """Save what was learned. Raises StorageError."""

    def load(self, path: Path) -> None:
        """Go on from a file. Raises StorageError; what was learned is then what it was."""

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
        self._session = session
        self._model_file = model_file
        for name, act in (("save", self._save), ("load", self._load), ("reset", self._reset)):
            node.create_service(Trigger, f"~/{name}", answering(act))
        node.create_service(SetBool, "~/learn", self._learn)

    def _file(self) -> Path:
        if not self._model_file:
            raise StorageError("the parameter 'model_file' names no file to save to and load from")
        return Path(self._model_file).expanduser().absolute()

    def _save(self) -> str:
        session, path = self._session(), self._file()
        session.save(path)
        return f"saved the model of {session.learned()} to {path}"

    def _load(self) -> str:
        session, path = self._session(), self._file()
        session.load(path)
        return f"loaded {path}, the model of {session.learned()}"

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
