"""Saved models: one file of arrays and a header, whole or not at all, and nothing executed.

A file is a sealed archive (sealed_archive.py) of the state's arrays and the header, JSON text as
bytes, with the format's version and the identity: the URDF's hash, the joints and the
configuration. Format 1 had a checksum of the arrays in its header instead of the seal, and is still
read.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import struct
import time
import tokenize
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.errors import DamagedModelError, StorageError

# -------------------------------------------------------------------------------------------------
# One process at a time has a model's file: two that save into it would undo each other's work.

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


# -------------------------------------------------------------------------------------------------
# Arrays in a zip archive as `numpy.savez` writes them, sealed, and read without trusting the file.
#
# The seal is the archive's comment, its last 71 bytes: the SHA-256 of all before it, checked before
# anything is made of them. `numpy.load` opens such a file too; it unpickles nothing either, but
# inflates, and allocates what an entry's header asks for.

# What zipfile, numpy and json raise for bytes that are none of theirs.
MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    EOFError,
    RuntimeError,  # also of encrypted entries, and of JSON nested too deep
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
)
KINDS = "biufU"  # of the arrays' types: bool, integers, floats, text
ENCRYPTED = 1  # a flag of zip entries
MOMENT = (1980, 1, 1, 0, 0, 0)  # the same arrays make the same file
SEAL = b"sha256:"
SEAL_LENGTH = len(SEAL) + 64
BLOCK = 1 << 20  # bytes read at a time


def write_archive(file: IO[bytes], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write the arrays, uncompressed, and the seal; other threads may run meanwhile."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = bytes(SEAL_LENGTH)
        for name, value in arrays.items():
            array = np.asarray(value, order="C")
            info = zipfile.ZipInfo(f"{name}.npy", MOMENT)
            with archive.open(info, "w", force_zip64=True) as entry:
                about = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(entry, about)
                # Not tobytes(): a copy would keep all other threads waiting.
                entry.write(array.reshape(-1).view(np.uint8).data)
    file.flush()
    digest = _digest(file)
    file.seek(-SEAL_LENGTH, os.SEEK_END)
    file.write(SEAL + digest)
    file.flush()


def seal_holds(file: IO[bytes]) -> bool | None:
    """Whether the seal is right; None where there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - SEAL_LENGTH, 0))
    seal = file.read(SEAL_LENGTH)
    if len(seal) < SEAL_LENGTH or not seal.startswith(SEAL):
        return None
    return seal[len(SEAL) :] == _digest(file)


def read_archive(file: IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays, whatever the seal; allocates no more than the file is long.

    Raises one of `MALFORMED`, or OSError.
    """
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if sum(info.file_size for info in entries) > size:
            raise ValueError("its entries are longer than it")
        return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in entries}


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ENCRYPTED:
        raise ValueError("an entry is compressed")
    with cast(zipfile.ZipExtFile, archive.open(info)) as entry:
        if np.lib.format.read_magic(entry) != (1, 0):
            raise ValueError("an entry has another version")
        shape, columns_first, dtype = np.lib.format.read_array_header_1_0(entry)
        if dtype.hasobject or dtype.kind not in KINDS or not dtype.itemsize:
            raise ValueError(f"an entry has type {dtype}")
        left = info.file_size - entry.tell()
        if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != left:
            raise ValueError("an entry is not as long as it says")
        array = np.empty(shape[::-1] if columns_first else shape, dtype)
        target = array.reshape(-1).view(np.uint8)
        if entry.readinto(target.data) != left or entry.read(1):
            raise EOFError("an entry is cut short")
        return array.T if columns_first else array


def _digest(file: IO[bytes]) -> bytes:
    """SHA-256 of all but the seal's bytes, as hexadecimal text."""
    left = file.seek(0, os.SEEK_END) - SEAL_LENGTH
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0 and (block := file.read(min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest().encode()


FORMAT_VERSION = 2
HEADER = "header"
LOCK_WAIT = 20.0  # s for which another process' save is waited for
SHOWN = 120  # characters of a value that a sentence quotes
State = dict[str, npt.NDArray[Any]]


def previous_of(path: str | Path) -> Path:
    """Where the model that was at `path` before is kept: model.previous.npz beside model.npz."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save_state(
    path: str | Path, identity: dict[str, object], state: State, *, keep_previous: bool = False
) -> None:
    """Write `state` with the `identity` of what it belongs to.

    The file is written beside its place, synced and renamed, and so is its folder, so that a crash
    or a full disk leaves either the old one or the new one. With `keep_previous` the old one, if it
    is whole, is kept as :func:`previous_of` says. Other threads may run meanwhile. Raises
    StorageError where the system refuses; nothing has changed then.
    """
    path = Path(path)
    header = json.dumps({"format": FORMAT_VERSION, "identity": _plain(identity)})
    text = np.frombuffer(header.encode(), dtype=np.uint8)
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.parent) as folder:
            part.unlink(missing_ok=True)  # of a process that was killed
            try:
                with open(part, "x+b", opener=_for_the_user_alone) as file:
                    write_archive(file, {HEADER: text, **state})
                    os.fsync(file.fileno())
                if keep_previous and _is_whole(path):
                    os.replace(path, previous_of(path))
                os.replace(part, path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            os.fsync(folder)
    except OSError as error:
        raise StorageError(f"can't write the model to {path}: {error.strerror}") from error


def load_state(
    path: str | Path,
    identity: dict[str, object],
    *,
    ignore: Collection[str] = (),
    defaults: Mapping[str, object] | None = None,
) -> State:
    """Read what :func:`save_state` wrote for the same `identity`; entries to `ignore` may differ.

    defaults : what the identity's entries were before there was a choice, for files of older
        versions that don't name them.

    Raises DamagedModelError where there is no whole file, and StorageError where it is of a newer
    version or its identity differs, with what differs.
    """
    path = Path(path)
    header, state = _read(path)
    expected = _plain(identity)
    saved = {**_plain({k: v for k, v in (defaults or {}).items() if k in expected}), **header}
    named = {*saved, *expected}.difference(ignore)
    differing = sorted(k for k in named if saved.get(k) != expected.get(k))
    if differing:
        what = ", ".join(
            f"{k[:SHOWN]} is {_shown(saved.get(k))} there, {_shown(expected.get(k))} here"
            for k in differing
        )
        raise StorageError(f"{path} belongs to another robot or configuration: {what[:2000]}")
    return state


def check_finite(state: State) -> None:
    """Raise ValueError where an array has a number that is not finite."""
    for name, array in state.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")


def _read(path: Path) -> tuple[dict[str, Any], State]:
    """The identity and the state in a file; raises as :func:`load_state` does."""
    try:
        if path.exists() and not path.is_file():
            raise DamagedModelError(f"{path} is not a file, so no saved model")
        with path.open("rb") as file:
            sealed = seal_holds(file)
            if sealed is False:
                raise DamagedModelError(f"{path} is damaged: its checksum does not match")
            state = read_archive(file)
        header = json.loads(bytes(state.pop(HEADER)))
        version, identity = int(header["format"]), dict(header["identity"])
        if version > FORMAT_VERSION:
            raise StorageError(
                f"{path} has format {version}, newer than this version's {FORMAT_VERSION}: "
                "update semiparam_dynamics"
            )
        whole = sealed if version > 1 else header["checksum"] == _checksum(state)
    except FileNotFoundError:
        raise DamagedModelError(f"there is no saved model {path}") from None
    except PermissionError as error:
        raise StorageError(f"may not read the model {path}: {error.strerror}") from error
    except OSError as error:
        raise DamagedModelError(f"can't read the model {path}: {error}") from error
    except MALFORMED as error:
        raise DamagedModelError(f"{path} is not a saved model, or is damaged ({error})") from None
    if not whole:
        raise DamagedModelError(f"{path} is damaged: its checksum does not match")
    return identity, state


def _is_whole(path: Path) -> bool:
    """Whether there is an undamaged file, of any robot and version."""
    try:
        with path.open("rb") as file:
            sealed = seal_holds(file)
        if sealed is None:
            _read(path)
        return sealed is not False
    except DamagedModelError:
        return False
    except StorageError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The folder's descriptor, while no other process saves into it. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    end = time.monotonic() + LOCK_WAIT
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > end:
                    reason = f"another process has been saving into {folder} for {LOCK_WAIT:g} s"
                    raise OSError(error.errno, reason) from None
                time.sleep(0.01)
                continue
            except OSError:
                break  # some network file systems lock no folders: save without
            break
        yield handle
    finally:
        os.close(handle)


def _for_the_user_alone(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _plain(identity: Mapping[str, object]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(identity))
    return plain


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _checksum(state: State) -> str:
    """The checksum that format 1 had."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# -------------------------------------------------------------------------------------------------
# Which of the saved models to go on from: the newest that is whole.


class Loaded(NamedTuple):
    """The file that was loaded, and what is wrong with a newer one; empty if nothing is."""

    path: Path
    problem: str


def any_saved(path: str | Path) -> bool:
    """Whether there is a file at `path`, or one that was there before."""
    return Path(path).exists() or previous_of(path).exists()


def load_newest(path: str | Path, load: Callable[[Path], None]) -> Loaded:
    """Have `load` take the file at `path`; where that is damaged, the one that was there before.

    Where there is only the one before, the process was killed between the two renames of a save:
    nothing is wrong then. A file of another robot, configuration or newer version is no reason to
    take an older one: StorageError. The same where neither can be loaded.
    """
    path, previous = Path(path), previous_of(path)
    try:
        load(path)
    except DamagedModelError as error:
        if not previous.exists():
            raise
        try:
            load(previous)
        except DamagedModelError as other:
            raise DamagedModelError(
                f"{error}, and {other}: move both away to start from nothing"
            ) from None
        problem = f"{error}: goes on from the one before it, {previous}" if path.exists() else ""
        return Loaded(previous, problem)
    return Loaded(path, "")


def sub_state(state: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays whose names start with `prefix`, such as ``core.``, by the rest of their names."""
    return {n.removeprefix(prefix): array for n, array in state.items() if n.startswith(prefix)}
