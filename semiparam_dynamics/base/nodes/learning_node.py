"""A managed node that learns, with its services save, load, reset and learn."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.logging import get_logger
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from semiparam_dynamics.base.errors import (
    ConfigurationError,
    ForeignModelError,
    SemiparamError,
    StorageError,
)
from semiparam_dynamics.base.nodes import parameters
from semiparam_dynamics.base.nodes.autosave import LearningSession, model_path
from semiparam_dynamics.base.nodes.managed import ManagedNode, MonitoredSubscription
from semiparam_dynamics.base.storage import (
    ModelLock,
    any_saved,
    saved_files,
    saved_header,
    set_aside,
)


@contextmanager
def refusing(response: Trigger.Response) -> Iterator[None]:
    """Put into a service's response why what is done within was refused, or failed.

    No exception leaves it: one that leaves a coroutine ends the process in EventsExecutor.
    """
    try:
        yield
    except SemiparamError as error:
        response.message = str(error)
    except Exception as error:
        get_logger(__name__).error(traceback.format_exc())
        what = f"unexpected {type(error).__name__}: {error}"
        response.message = f"{what}; its traceback is in the log"


def answering(act: Callable[[], str]) -> Callable[[Trigger.Request, Trigger.Response], object]:
    """A service's callback: it answers with what `act` returns, or with the reason for refusing.

    It is a coroutine as `~/save` is, although it waits for nothing: EventsExecutor begins those
    after callbacks that wait, so that any other would overtake a save that was asked for before.
    """

    async def answer(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with refusing(response):
            response.message, response.success = act(), True
        return response

    return answer


S = TypeVar("S", bound=LearningSession[Any])


class LearningNode(ManagedNode, Generic[S]):
    """A managed node that, configured, has a session, and, active, answers messages by it.

    A node of this kind makes the session in `set_up`, within :meth:`owning_model_file`, and
    subscribes by :meth:`listen` in `begin`. Its services `~/save`, `~/load`, `~/reset` and
    `~/learn` answer with the reason when they refuse.

    Parameters
    ----------
    config_type: of its parameters, a `LearningNodeConfig`. options: as for `rclpy.node.Node`.

    Raises ConfigurationError where `model_file` begins with a home that is not known.

    Attributes
    ----------
    set_aside: the sentence on a model that did not fit and was moved away; empty if none was.
    """

    def __init__(self, name: str, config_type: type, **options: Any) -> None:
        super().__init__(name, **options)
        self._config: Any = parameters.declare(self, config_type)
        self.session: S | None = None
        self._inputs: list[MonitoredSubscription] = []
        self._model_path = model_path(self._config.model_file)
        self._model_lock: ModelLock | None = None
        self.set_aside = ""
        if self._model_path is not None:
            owner = f"{self.get_fully_qualified_name()}, process {os.getpid()}"
            self._model_lock = ModelLock(self._model_path, owner)
        # A group of its own: while the answer waits for the disk, its group runs nothing else.
        # Before the others: of requests that wait, SingleThreadedExecutor takes those first that
        # are of the service which was made first, and to load or forget first would lose what was
        # to be saved.
        group = MutuallyExclusiveCallbackGroup()
        self.create_service(Trigger, "~/save", self._save, callback_group=group)
        for service, act in (("load", self._load), ("reset", self._reset)):
            self.create_service(Trigger, f"~/{service}", answering(act))
        self.create_service(SetBool, "~/learn", self._learn)

    def start(self) -> bool:
        """With `autostart` come to the active state; False if that failed."""
        return not self._config.autostart or self.bring_to("active")

    def pause(self) -> None:
        """Unsubscribe and save; what was learned stays, and a failure to save is logged."""
        try:
            self.finish()
        except StorageError as error:
            self.get_logger().error(str(error))

    def finish(self) -> None:
        """Unsubscribe, and save unsaved changes. Raises StorageError."""
        self._unsubscribe()
        if (session := self.session) is not None and (path := session.finish()) is not None:
            self.get_logger().info(f"saved the model of {session.learned()} to {path}")

    def release(self) -> None:
        """Give up the session and its topics."""
        self._unsubscribe()
        self.release_session()

    def release_session(self) -> None:
        """Give up the session alone: messages come on."""
        self.session = None
        self._unlock()

    def listen(self, *given: Any, **options: Any) -> None:
        """Subscribe until the node is deactivated: as `MonitoredSubscription` of this node."""
        self._inputs.append(MonitoredSubscription(self, *given, **options))

    def session_status(
        self, session: S, level: bytes, summary: str, values: dict[str, str]
    ) -> DiagnosticStatus:
        """The status of a session, which is all right where the node is not active."""
        if self.set_aside:
            values["model set aside"] = self.set_aside
        wrong = level == DiagnosticStatus.ERROR or session.autosave.trouble()
        if self.state != "active" and not wrong:
            level, summary = DiagnosticStatus.OK, f"the node is {self.state}"
        return self.status(level, summary, values)

    def _unsubscribe(self) -> None:
        for topic in self._inputs:
            topic.destroy()
        self._inputs.clear()

    def _required_session(self) -> S:
        if self.session is None:
            raise ConfigurationError(self._waiting())
        return self.session

    def _waiting(self) -> str:
        """The reason why there is no session."""
        return self.problem or f"the node is {self.state}"

    # The model's file, and the services.

    @contextmanager
    def owning_model_file(self) -> Iterator[None]:
        """Own model_file until the session is released, or until this block fails.

        Without `autosave` the first `~/save` locks it. Raises StorageError where another node owns
        it.
        """
        if self._config.autosave:
            self._take()
        try:
            yield
        except BaseException:
            self._unlock()
            raise

    def _unlock(self) -> None:
        if self._model_lock is not None:
            self._model_lock.close()

    def load_saved(self, session: S) -> bool:
        """Load the saved model, if there is one, into a new session; returns whether it did.

        One of another robot or configuration is set aside. Raises StorageError.
        """
        if self._model_path is None or not any_saved(self._model_path):
            return False
        log = self.get_logger()
        try:
            session.load(self._model_path)
        except ForeignModelError as error:
            self.set_aside = f"{error}: it was moved to {set_aside(self._model_path)}"
            log.error(f"{self.set_aside}, and learning begins with nothing")
            return False
        if session.autosave.problem:
            log.error(session.autosave.problem)
        log.info(f"resumed from {session.autosave.loaded}: {session.learned()} learned")
        if other := session.differences():
            log.warning(f"{session.autosave.loaded} was learned under {', '.join(other)}")
        return True

    def saved(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the saved model's identity and parameters; empty where none can be read."""
        if self._model_path is not None and any_saved(self._model_path):
            with suppress(StorageError):
                return saved_header(self._model_path)
        return {}, {}

    def _take(self) -> None:
        if self._model_lock is not None and (warning := self._model_lock.take()):
            self.get_logger().warning(warning)

    def _file(self) -> Path:
        if self._model_path is None:
            raise StorageError("the parameter 'model_file' names no file to save to and load from")
        return self._model_path

    async def _save(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Answers when the file is on the disk; messages are answered meanwhile."""
        written = Future(executor=self.executor)

        def done(problem: str) -> None:
            # In the writing thread. At the end of the process nobody waits any more.
            with suppress(Exception):
                self.executor.create_task(lambda: written.set_result(problem))

        with refusing(response):
            session, path = self._required_session(), self._file()
            self._take()
            session.begin_save(path, done)
            learned = session.learned()
            problem = await written
            response.success = not problem
            response.message = problem or f"saved the model of {learned} to {path}"
        return response

    def _load(self) -> str:
        session, path = self._required_session(), self._file()
        session.load(path)
        loaded = f"loaded {session.autosave.loaded}, the model of {session.learned()}"
        if other := session.differences():
            loaded = f"{loaded}, learned under {', '.join(other)}"
        return f"{loaded}; {problem}" if (problem := session.autosave.problem) else loaded

    def _reset(self) -> str:
        self._required_session().reset()
        done = "forgot everything learned"
        if self._model_path is None or not (files := saved_files(self._model_path)):
            return done
        return (
            f"{done}, but the next start loads what was saved before: to forget for good, delete "
            f"{' and '.join(map(str, files))}"
        )

    def _learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            self._required_session().learning = request.data
            response.success = True
            response.message = "learning" if request.data else "not learning, only predicting"
        except SemiparamError as error:
            response.message = str(error)
        return response
