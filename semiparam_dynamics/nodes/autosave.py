"""Saving what was learned without keeping messages waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.storage import State, load_newest, save_state

Snapshot = tuple[dict[str, object], State]
LONG = 10.0  # s that a write may take where there is no interval


class Autosave:
    """Writes a model's file in a thread, from a copy, at most one write at a time.

    The file that was there before is kept beside it.

    Parameters
    ----------
    path: the model's file; None: nothing is ever written by itself.
    snapshot: returns the model's identity and a copy of its state.
    interval: at most so much of what was learned is in no file, s, as long as :meth:`step` is
        called and a write takes no longer than the one before; 0: only what was asked for is
        written. It may be changed.
    clock: seconds that never go back.

    Attributes
    ----------
    problem: why the last write failed, or what was wrong with the file that was to be loaded; empty
        once a write has succeeded.
    loaded: the file that the model went on from; None if it began with nothing.
    copy_s, write_s: how long the last copy and the last write took, s.
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
        self._asked = False  # whether that write is one of begin()
        self._changes = self._saved = 0
        self._began = 0.0  # when the write under way did
        self._since = 0.0  # when the first of the changes that are in no file was, at the latest
        self._wanted = False
        self.interval = interval
        self.problem = ""
        self.loaded: Path | None = None
        self.copy_s = self.write_s = 0.0

    @property
    def unsaved(self) -> int:
        """How many changes are in no file."""
        return self._changes - self._saved

    def trouble(self) -> str:
        """What a person should know: why nothing is saved, or that a write takes too long."""
        taken = self._clock() - self._began
        if not self.problem and self._busy() and taken > (self.interval or LONG):
            return (
                f"the model has been on its way to the disk for {taken:.0f} s: what was learned "
                "since is in memory alone until the disk answers"
            )
        return self.problem

    def changed(self) -> None:
        """Note that the model has changed."""
        if not self.unsaved:
            self._since = self._clock()
        self._changes += 1

    def agree(self) -> None:
        """Note that the model is what the file has, or nothing."""
        self.wait()
        self._saved, self._wanted = self._changes, False

    def request(self) -> None:
        """Ask for a write, if there is anything to write."""
        self._wanted = self._path is not None and self.unsaved > 0

    def step(self) -> None:
        """Begin a write that was asked for or is due, unless the last one is still at it."""
        if self._path is None or not (self._wanted or self._due()) or self._busy():
            return
        self._wanted = self._asked = False
        self._start(self._path, lambda problem: None)

    def begin(self, path: Path, done: Callable[[str], None]) -> None:
        """Begin a write of what the model is now to this file, after the one that is under way.

        done: called in another thread when it has ended, with why it failed, or nothing.

        Raises StorageError while another such write has not ended.
        """
        if self._asked and self._busy():
            raise StorageError("the save that was asked for before is still being written")
        self._asked = True
        self._start(path, done)

    def wait(self) -> None:
        """Until a write that has begun has ended."""
        if self._writer is not None:
            self._writer.join()

    def save(self, path: Path) -> None:
        """Write now, to this file. Raises StorageError."""
        self.wait()
        changes = self._changes
        self._write(path, self._copy(), changes)
        self._wanted = False

    def finish(self) -> None:
        """Write now what is in no file yet. Raises StorageError, which `problem` then tells too."""
        self.wait()
        if self._path is None or not self.unsaved:
            return
        try:
            self.save(self._path)
        except StorageError as error:
            self.problem = str(error)
            raise

    def load(self, path: Path, load: Callable[[Path], None]) -> None:
        """Have `load` go on from the newest whole one of the file and the one before it.

        Raises StorageError.
        """
        self.wait()
        self.loaded, self.problem = load_newest(path, load)
        self.agree()

    def values(self) -> dict[str, str]:
        """What there is to say on `/diagnostics`."""
        values = {"went on from": str(self.loaded or ""), "changes not saved": str(self.unsaved)}
        if self.write_s:
            values["saving: copy [ms]"] = f"{1e3 * self.copy_s:.1f}"
            values["saving: write [ms]"] = f"{1e3 * self.write_s:.1f}"
        return values

    def _due(self) -> bool:
        if not self.interval or not self.unsaved:
            return False
        # So early that the write should be over in time.
        ahead = min(self.write_s, 0.5 * self.interval)
        return self._clock() - self._since >= self.interval - ahead

    def _busy(self) -> bool:
        return self._writer is not None and self._writer.is_alive()

    def _copy(self) -> Snapshot:
        start = time.perf_counter()
        copy = self._snapshot()
        self.copy_s = time.perf_counter() - start
        return copy

    def _write(self, path: Path, copy: Snapshot, changes: int) -> None:
        start = self._clock()
        save_state(path, *copy, keep_previous=True)
        self.write_s = self._clock() - start
        self._saved, self.problem = changes, ""

    def _start(self, path: Path, done: Callable[[str], None]) -> None:
        if not self._busy():
            self._began = self._clock()
        before, changes, copy = self._writer, self._changes, self._copy()
        self._since = self._clock()

        def write() -> None:
            if before is not None:
                before.join()
            try:
                self._write(path, copy, changes)
            except StorageError as error:
                self.problem = str(error)
            done(self.problem)

        self._writer = Thread(target=write)
        self._writer.start()
