"""Saving what was taught without keeping frames waiting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.storage import State, save_state

Snapshot = tuple[dict[str, object], State]


class Autosave:
    """Writes a model's file in a thread, from a copy, at most one write at a time.

    Parameters
    ----------
    path: the model's file; None: nothing is ever written by itself.
    snapshot: returns the model's identity and a copy of its state.

    Attributes
    ----------
    problem: why the last write failed; empty if it didn't.
    """

    def __init__(self, path: Path | None, snapshot: Callable[[], Snapshot]) -> None:
        self._path = path
        self._snapshot = snapshot
        self._writer: Thread | None = None
        self._changes = self._saved = 0
        self._wanted = False
        self.problem = ""

    @property
    def unsaved(self) -> int:
        """How many changes are in no file."""
        return self._changes - self._saved

    def changed(self) -> None:
        """Note that the model has changed."""
        self._changes += 1

    def agree(self) -> None:
        """Note that the model is what the file has, or nothing."""
        self.wait()
        self._saved, self._wanted = self._changes, False

    def request(self) -> None:
        """Ask for a write, if there is anything to write."""
        self._wanted = self._path is not None and self.unsaved > 0

    def step(self) -> None:
        """Begin the write that was asked for, unless the last one is still at it."""
        if self._path is None or not self._wanted or self._busy():
            return
        self._wanted = False
        self._writer = Thread(
            target=self._write, args=(self._path, *self._snapshot(), self._changes)
        )
        self._writer.start()

    def wait(self) -> None:
        """Until a write that has begun has ended."""
        if self._writer is not None:
            self._writer.join()

    def save(self, path: Path) -> None:
        """Write now, to this file. Raises StorageError."""
        self.wait()
        save_state(path, *self._snapshot())
        self._saved, self._wanted, self.problem = self._changes, False, ""

    def finish(self) -> None:
        """Write now what is in no file yet. Raises StorageError."""
        self.wait()
        if self._path is not None and self.unsaved:
            self.save(self._path)

    def _busy(self) -> bool:
        return self._writer is not None and self._writer.is_alive()

    def _write(self, path: Path, identity: dict[str, object], state: State, changes: int) -> None:
        try:
            save_state(path, identity, state)
        except StorageError as error:
            self.problem = str(error)
        else:
            self._saved, self.problem = changes, ""
