"""Learning and saving in threads, so that no message waits for either."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeVar

from semiparam_dynamics.base.errors import ConfigurationError, NothingToSaveError, StorageError
from semiparam_dynamics.base.nodes.learner_thread import LearnerThread
from semiparam_dynamics.base.storage import (
    LearningNodeConfig,
    State,
    at_link_end,
    load_newest,
    save_state,
)

T = TypeVar("T")

Snapshot = tuple[dict[str, object], dict[str, Any], State]  # identity, parameters, state
LONG = 10.0  # s that a write may take where there is no interval


def model_path(model_file: str) -> Path | None:
    """The absolute path of the parameter `model_file`; None where it is empty.

    Where that is a symbolic link it is what the link leads to now: what is locked, written and read
    stays one file if the link is changed. Raises ConfigurationError where it begins with a home
    that is not known, as ~nobody.
    """
    try:
        return at_link_end(Path(model_file).expanduser().absolute()) if model_file else None
    except RuntimeError as error:
        raise ConfigurationError(f"the parameter 'model_file', '{model_file}': {error}") from None


class Autosave:
    """Writes a model's file in a thread, from a copy, one write at a time.

    The file before is kept beside it.

    Parameters
    ----------
    path: the model's file; None: only :meth:`begin` and :meth:`save` write.
    snapshot: returns the model's identity, its parameters and a copy of its state; StorageError
        where there is no memory for one.
    interval: age in s that unsaved changes may reach, as long as :meth:`step` is called and a write
        takes no longer than the last one; 0: written on request only. It may be changed.
    clock: seconds that never decrease.

    Attributes
    ----------
    problem: why the last write failed, or the damage of the file to be loaded; empty once a write
        has succeeded.
    loaded: the file that the model was resumed from; None if it began with nothing.
    copy_s, write_s: duration of the last copy and of the last write, s.
    """

    def __init__(
        self,
        path: Path | None,
        snapshot: Callable[[], Snapshot],
        interval: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._snapshot = snapshot
        self._clock = clock
        self._writer: Thread | None = None
        self._changes = self._saved = 0
        self._requested = False  # a write, not begun yet
        self._ordered = False  # the last write was, by begin()
        self._since = 0.0  # time of the oldest unsaved change, or before
        self._began = 0.0  # time since when something is being written
        self.interval = interval
        self.problem = ""
        self.loaded: Path | None = None
        self.copy_s = self.write_s = 0.0

    @property
    def unsaved(self) -> int:
        """The number of changes that are in no file."""
        return self._changes - self._saved

    def changed(self, times: int = 1) -> None:
        """Count changes of the model."""
        if not self.unsaved:
            self._since = self._clock()
        self._changes += times

    def begin_anew(self) -> None:
        """Note that the model knows nothing, and comes from no file."""
        self.mark_saved()
        self.loaded = None

    def mark_saved(self) -> None:
        """Take the model for saved: it was loaded, or has learned nothing."""
        self.wait()
        self._saved, self._requested = self._changes, False

    def request(self) -> None:
        """Have the next :meth:`step` write, if anything changed."""
        self._requested = self._path is not None and self.unsaved > 0

    def step(self) -> None:
        """Begin a write that was requested or is due, unless one is under way.

        Where it can't begin, that is the `problem`, and it is tried again when it is due.
        """
        if self._path is None or self._writing():
            return
        # So early that the write should be over in time.
        ahead = min(self.write_s, 0.5 * self.interval)
        age = self._clock() - self._since
        if self._requested or (self.interval and self.unsaved and age >= self.interval - ahead):
            self._requested = self._ordered = False
            with suppress(StorageError):
                self._start(self._path)

    def begin(self, path: Path, done: Callable[[str], None]) -> None:
        """Begin a write of the model as it is now, after one that is under way.

        done: called in another thread at the end, with the reason for a failure, or nothing.

        Raises StorageError while another such write has not ended, or where it can't begin.
        """
        if self._ordered and self._writing():
            raise StorageError("the save that was asked for before is still being written")
        self._start(path, done)
        self._ordered = True

    def wait(self) -> None:
        """Wait for the end of a write that has begun."""
        if self._writer is not None:
            self._writer.join()

    def save(self, path: Path) -> None:
        """Write now. Raises StorageError, whose sentence is then the `problem`, too."""
        self._start(path)
        self.wait()
        if self.problem:
            raise StorageError(self.problem)
        self._requested = False

    def finish(self) -> Path | None:
        """Write unsaved changes now, if there is a path; returns it where there were any.

        Raises StorageError as :meth:`save`.
        """
        self.wait()
        if self._path is None or not self.unsaved:
            return None
        self.save(self._path)
        return self._path

    def load(self, path: Path, load: Callable[[Path], None]) -> None:
        """Have `load` resume from the newest whole one of a file and the one before it.

        Raises StorageError.
        """
        self.wait()
        self.loaded, self.problem = load_newest(path, load)
        self.mark_saved()

    def trouble(self) -> str:
        """Return why nothing is saved, or that a write takes too long; empty if all is well."""
        taken = self._clock() - self._began
        if not self.problem and self._writing() and taken > (self.interval or LONG):
            return (
                f"the model has been on its way to the disk for {taken:.0f} s: what was learned "
                "since is in memory alone until the disk answers"
            )
        return self.problem

    def values(self) -> dict[str, str]:
        """The figures for `/diagnostics`."""
        values = {"resumed from": str(self.loaded or ""), "changes not saved": str(self.unsaved)}
        if self.write_s:
            values["saving: copy [ms]"] = f"{1e3 * self.copy_s:.1f}"
            values["saving: write [ms]"] = f"{1e3 * self.write_s:.1f}"
        return values

    def _writing(self) -> bool:
        return self._writer is not None and self._writer.is_alive()

    def _start(self, path: Path, done: Callable[[str], None] = lambda problem: None) -> None:
        """Begin a write. Raises StorageError, whose sentence is then the `problem`.

        But for NothingToSaveError, which leaves the last one.
        """
        if not self._writing():
            self._began = self._clock()
        self._since = self._clock()
        try:
            self._writer = self._begun(path, done)
        except NothingToSaveError:
            raise  # the caller reports it; nothing that was learned is in danger
        except StorageError as error:
            self.problem = str(error)
            raise

    def _begun(self, path: Path, done: Callable[[str], None]) -> Thread:
        """The thread that writes the model as it is now, after the one before."""
        start = time.perf_counter()
        before, changes = self._writer, self._changes
        identity, parameters, state = self._snapshot()
        self.copy_s = time.perf_counter() - start

        def write() -> None:
            if before is not None:
                before.join()
            start, problem = self._clock(), "the model was not written"
            try:
                save_state(path, identity, state, parameters=parameters, keep_previous=True)
                self._saved, self.write_s, problem = changes, self._clock() - start, ""
            except StorageError as error:
                problem = str(error)
            finally:
                self.problem = problem
                done(problem)

        writer = Thread(target=write)
        try:
            writer.start()
        except RuntimeError as error:
            raise StorageError(f"the model can't be written in a thread: {error}") from None
        return writer


class LearningSession(ABC, Generic[T]):
    """A model, the thread in which it learns beside the messages, and its file.

    Parameters
    ----------
    config: of the node. thread: works off what is to be learned. What it owns is only to be read
        while it is :meth:`paused`.

    Raises ConfigurationError as :func:`model_path`.
    """

    def __init__(self, config: LearningNodeConfig, thread: LearnerThread[T]) -> None:
        self.thread = thread
        path = model_path(config.model_file) if config.autosave else None
        self.autosave = Autosave(path, self._snapshot, config.save_interval)
        self._learning = True

    @abstractmethod
    def _forget(self) -> None:
        """Forget everything learned, and count anew, while paused."""

    @abstractmethod
    def _copied(self) -> Snapshot:
        """The model's identity, its parameters and a copy of its state."""

    @abstractmethod
    def _resume(self, path: Path) -> None:
        """Load the model of a file. Raises StorageError, and keeps what was learned before."""

    @abstractmethod
    def learned(self) -> str:
        """The amount of what was learned, such as ``58 samples``."""

    def differences(self) -> list[str]:
        """In which parameters the file that was loaded was learned under others, in words."""
        return []

    def note_changes(self) -> None:
        """Count changes of the model that come from elsewhere than learning; while paused."""

    def reset(self) -> None:
        """Forget everything learned, and count anew.

        The file stays as it is until something is saved.
        """
        self.thread.clear()
        with self.paused():
            self._forget()
            self.autosave.begin_anew()
            self.thread.restart()
            self.thread.dropped = 0

    def paused(self, *, drained: bool = False) -> AbstractContextManager[None]:
        """Nothing is learned meanwhile; with `drained` also nothing waits to be learned."""
        return self.thread.paused(drained=drained)

    @property
    def learning(self) -> bool:
        """True while it learns; setting it to true continues after a `problem`."""
        return self._learning

    @learning.setter
    def learning(self, wanted: bool) -> None:
        self._learning = wanted
        if wanted:
            self.thread.restart()

    @property
    def problem(self) -> str:
        """The error that stopped learning, as a sentence; empty where none did."""
        return self.thread.problem

    def begin_save(self, path: Path, done: Callable[[str], None]) -> None:
        """Save what was learned, with what still waits, in a thread; see `Autosave.begin`."""
        with self.paused(drained=True):
            self.note_changes()
            self.autosave.begin(path, done)

    def load(self, path: Path) -> None:
        """Resume from a file, or from the one before it where it is damaged.

        Raises StorageError; what was learned is then what it was.
        """
        with self.paused(drained=True):
            self.autosave.load(path, self._resume)

    def finish(self) -> Path | None:
        """Learn what still waits and save unsaved changes, unless autosave is off.

        Returns the file that was written. Raises StorageError.
        """
        self.thread.close()
        self.note_changes()
        return self.autosave.finish()

    def _snapshot(self) -> Snapshot:
        try:
            return self._copied()
        except MemoryError:
            raise StorageError("there is not enough memory to copy what was learned") from None
