"""One process at a time has a model's file: two that save into it would undo each other's work."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from semiparam_dynamics.errors import StorageError

NOTE = 200  # bytes of the lock's file that a sentence quotes
TAKEN = (errno.EAGAIN, errno.EACCES)  # what flock(2) and fcntl(2) say of another's lock


def lock_of(path: str | Path) -> Path:
    """The file that is locked: model.npz.lock beside model.npz. It stays, empty of meaning."""
    path = Path(path)
    return path.with_name(path.name + ".lock")


class ModelClaim:
    """A process' claim to a model's file, an advisory lock of the system (flock).

    It ends with the process, however that ends; the lock's file stays. Only those who ask for a
    claim are kept off, and where a network file system has no locks, or keeps them to each machine,
    nobody is.

    Parameters
    ----------
    path: the model's file. owner: what the refused are told who has it.
    """

    def __init__(self, path: str | Path, owner: str = "") -> None:
        self._path = Path(path)
        self._owner = owner or f"process {os.getpid()}"
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        """Whether this claim has the file."""
        return self._handle is not None

    def take(self) -> str:
        """Have the file until :meth:`give_up`; returns why no lock can be had here, or nothing.

        Raises StorageError where another claim has it.
        """
        if self.held:
            return ""
        lock = lock_of(self._path)
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            return self._unlocked(error)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            other = _note(handle)
            os.close(handle)
            if error.errno in TAKEN:
                raise StorageError(
                    f"{self._path} is in use by {other}: give each node a model_file of its own"
                ) from None
            return self._unlocked(error)
        self._handle = handle
        with contextlib.suppress(OSError):  # a full disk: the lock holds without it
            os.ftruncate(handle, 0)
            os.pwrite(handle, self._owner.encode(errors="replace")[:NOTE], 0)
        return ""

    def give_up(self) -> None:
        """Let others have the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _unlocked(self, error: OSError) -> str:
        return (
            f"can't lock {lock_of(self._path)} ({error.strerror}): see to it that no other node "
            f"has this model_file"
        )


def _note(handle: int) -> str:
    """Who has the lock, as far as is known: what others wrote is quoted, and no more than that."""
    try:
        text = os.pread(handle, NOTE, 0).decode(errors="replace")
    except OSError:
        text = ""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown or "another process"
