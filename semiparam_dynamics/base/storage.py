"""Saved models: one file of arrays and a header, whole or not at all, and nothing executed.

A file is a zip archive of `.npy` arrays, uncompressed, that `numpy.load` opens too. Its header is
JSON text with the identity of what it belongs to, such as the URDF's hash, the joints and the
configuration. The archive's comment, the file's last bytes, is the
SHA-256 of all before it, checked before anything else is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import stat
import struct
import tokenize
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.errors import (
    DamagedModelError,
    ForeignModelError,
    SemiparamError,
    StorageError,
)
from semiparam_dynamics.base.parameters import parameter

HEADER = "header"
SEAL = b"sha256:"
PREVIOUS = ".previous"  # in the name of the file before
SEAL_LENGTH = len(SEAL) + 64
QUOTED = 120  # characters of a value in a sentence
KINDS = "biufU"  # types of arrays: bool, integers, floats, text
TIME = (1980, 1, 1, 0, 0, 0)  # of each entry: the same arrays make the same file
State = dict[str, npt.NDArray[Any]]

# Raised by zipfile, numpy and json for content of another kind.
MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    EOFError,
    RuntimeError,  # also for encrypted entries, and for JSON nested too deep
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
)


@dataclasses.dataclass(frozen=True)
class LearningNodeConfig:
    """Parameters of a node that learns, on its start and on the file of what it learned."""

    autostart: bool = parameter(
        True, "configure and activate at the start, without a lifecycle manager"
    )
    model_file: str = parameter(
        "",
        "file that what was learned is saved to and loaded from; the one before is kept beside it; "
        "empty: nothing is saved",
        basic=True,
    )
    autosave: bool = parameter(
        True,
        "save to model_file every save_interval, when the teaching of an object ends, when "
        "deactivated and at the end",
    )
    save_interval: float = parameter(
        60.0,
        "at most so much learning is lost by a kill or a power cut; 0: not saved in between",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
    )


def save_state(
    path: str | Path,
    identity: Mapping[str, object],
    state: State,
    *,
    parameters: Mapping[str, object] | None = None,
    keep_previous: bool = False,
) -> None:
    """Write `state` with the `identity` of what it belongs to, and the `parameters` with it.

    The file is written beside its place, synced and renamed, and its folder synced, so that a
    crash or a full disk leaves either the old file or the new one. With `keep_previous` the old
    one, unless damaged, is kept at :func:`previous_of`. Where the path is a symbolic link, so is
    it afterwards, and what it leads to is written. Other threads may run meanwhile. Raises
    StorageError where the system refuses, and as :func:`require_places`; nothing has changed then.
    """
    path = at_link_end(path)
    require_places(path)
    about = {"identity": identity, "parameters": parameters or {}}
    header = json.dumps(about).encode()
    arrays = {HEADER: np.frombuffer(header, dtype=np.uint8), **state}
    part = part_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent) as folder:
            part.unlink(missing_ok=True)  # of a process that was killed
            try:
                with open(part, "x+b", opener=lambda name, how: os.open(name, how, 0o600)) as file:
                    write_archive(file, arrays)
                    os.fsync(file.fileno())
                if keep_previous and _is_whole(path):
                    os.replace(path, previous_of(path))
                os.replace(part, path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            os.fsync(folder)
    except OSError as error:
        raise StorageError(
            f"can't write the model to {path}: {error.strerror}; see that its folder can be "
            "written and has room, or name another"
        ) from error


def at_link_end(path: str | Path) -> Path:
    """The file that a path leads to where it is a symbolic link; any other path as it is.

    To rename a file to a link's name would replace the link, and leave what it leads to.
    """
    path = Path(path)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def load_state(
    path: str | Path,
    identity: dict[str, object],
    *,
    ignore: Collection[str] = (),
) -> State:
    """Read what :func:`save_state` wrote for the same `identity`, the file once.

    To resume from a file, build a model of the state first, within :func:`resuming`, and assign
    it when it is whole: nothing has to be put back where that fails.

    ignore: entries of the identity that may differ. Raises DamagedModelError where there is no
    whole file, and ForeignModelError where its identity differs, with what differs.
    """
    saved, _, state = _read(Path(path))
    expected: dict[str, Any] = json.loads(json.dumps(identity))
    names = {*saved, *expected}.difference(ignore)
    if differing := sorted(name for name in names if saved.get(name) != expected.get(name)):
        what = ", ".join(
            f"{name[:QUOTED]} is {_quoted(saved.get(name))} there, "
            f"{_quoted(expected.get(name))} here"
            for name in differing
        )
        raise ForeignModelError(
            f"{path} belongs to another robot or configuration: {what}; name another file, "
            "or take those values"
        )
    return state


def saved_header(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The identity and the parameters that a file was written with.

    Raises DamagedModelError where there is no whole file.
    """
    return _read(Path(path))[:2]


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any], State]:
    """The identity, the parameters and the arrays of a file. Raises StorageError as above."""
    content = _content(path)
    try:
        state = read_archive(content)
        header = json.loads(bytes(state.pop(HEADER)))
        return dict(header["identity"]), dict(header.get("parameters", {})), state
    except MALFORMED as error:
        raise DamagedModelError(f"{path} is not a saved model, or is damaged ({error})") from None


@contextlib.contextmanager
def resuming(path: str | Path) -> Iterator[None]:
    """Raise StorageError, "cannot resume from ...", where a loaded state makes no model.

    It stands for the errors that reading an array of another name, shape or content raises.
    """
    try:
        yield
    except StorageError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        what = error if isinstance(error, SemiparamError) else repr(error)
        raise StorageError(
            f"cannot resume from {path}: {what}; take another file, or start anew without it"
        ) from None


def sub_state(state: State, prefix: str) -> State:
    """The arrays whose names start with `prefix`, such as ``core.``, by the rest of their names."""
    return {k.removeprefix(prefix): array for k, array in state.items() if k.startswith(prefix)}


def check_finite(state: State) -> None:
    """Raise ValueError where an array has a number that is not finite."""
    for name, array in state.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")


# -------------------------------------------------------------------------------------------------
# Two files: the newest, and the one before it.


def previous_of(path: str | Path) -> Path:
    """The place of the one before: model.previous.npz beside model.npz."""
    path = Path(path)
    return path.parent / f"{path.stem}{PREVIOUS}{path.suffix}"


NAMED_PLACES = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def part_of(path: Path) -> Path:
    """The place of a file that is being written."""
    return path.with_name(path.name + ".part")


def require_places(path: Path) -> None:
    """Raise StorageError where a model at `path`, at the end of links, would replace other things.

    These are pipes, devices, sockets and folders there or where the file before and the next one
    are written, and the file before of another model.
    """
    if path.stem.endswith(PREVIOUS):
        raise StorageError(
            f"{path} is the name of a backup, of {path.stem.removesuffix(PREVIOUS)}{path.suffix}, "
            "which would replace it: copy it to a name of its own"
        )
    for place in (path, previous_of(path), part_of(path)):
        with contextlib.suppress(OSError):  # nothing is there, or what uses it says why
            kind = stat.S_IFMT(os.lstat(place).st_mode)
            if kind != stat.S_IFREG:
                named = NAMED_PLACES.get(kind, "a device or a link")
                raise StorageError(
                    f"{place} is {named}, no file, and is left as it is: name another file for the "
                    "model"
                )


def any_saved(path: str | Path) -> bool:
    """Return whether there is a model at `path`, or the one before it."""
    return bool(saved_files(path))


def saved_files(path: str | Path) -> list[Path]:
    """Those that there are of the model at `path` and the one before it."""
    path = at_link_end(path)
    return [file for file in (path, previous_of(path)) if file.exists()]


def load_newest(path: str | Path, load: Callable[[Path], None]) -> tuple[Path, str]:
    """Call `load` with the file at `path`; where that is damaged, with the one before it.

    Returns the file that was loaded, and the problem with a newer one, or nothing. Where there is
    only the one before, a save was killed between its two renames: that is no problem. A file of
    another robot or configuration is no reason to take an older one: StorageError. The
    same where neither can be loaded. The one before what a symbolic link leads to is beside that.
    """
    path = at_link_end(path)
    previous = previous_of(path)
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
        problem = f"{error}: resumed from the one before it, {previous}" if path.exists() else ""
        return previous, problem
    return path, ""


def set_aside(path: str | Path) -> Path:
    """Rename a model and the one before it, so that another can be saved at `path`.

    Returns the new place, such as model.set-aside.npz, or model.set-aside-2.npz if there is one.
    What a symbolic link leads to is renamed beside itself, and the link stays. Raises StorageError
    where the system refuses, and as :func:`require_places`.
    """
    path = at_link_end(path)
    require_places(path)
    kept, count = path.with_name(f"{path.stem}.set-aside{path.suffix}"), 1
    while any_saved(kept):
        count += 1
        kept = path.with_name(f"{path.stem}.set-aside-{count}{path.suffix}")
    try:
        for old, new in ((previous_of(path), previous_of(kept)), (path, kept)):
            if old.exists():
                os.rename(old, new)
    except OSError as error:
        raise StorageError(
            f"can't rename {path} to {kept}: {error.strerror}; move it away yourself, or see that "
            "its folder can be written"
        ) from error
    return kept


# -------------------------------------------------------------------------------------------------
# One owner of a model's file: two that save into it would undo each other's work.


def lock_of(path: str | Path) -> Path:
    """The file that is locked: model.npz.lock beside model.npz. It stays, empty of meaning.

    Symbolic links to one file have one lock.
    """
    path = at_link_end(path)
    return path.with_name(path.name + ".lock")


class ModelLock:
    """The ownership of a model's file by one process, an advisory lock of the system (flock).

    It ends with the process, however that ends. It keeps off only those who ask for it too, and
    nobody where a network file system has no locks, or keeps them to each machine.

    Parameters
    ----------
    path: the model's file; where it is a symbolic link, what it leads to now.
    owner: named to those who are refused.
    """

    def __init__(self, path: str | Path, owner: str = "") -> None:
        self._path = at_link_end(path)
        self._owner = owner or f"process {os.getpid()}"
        self._handle: int | None = None

    def take(self) -> str:
        """Own the file until :meth:`close`; returns why it can't be locked here, or nothing.

        Raises StorageError where another one owns it, and as :func:`require_places`.
        """
        if self._handle is not None:
            return ""
        require_places(self._path)
        lock, handle = lock_of(self._path), -1
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise OSError(0, "it is no file")
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note = os.pread(handle, QUOTED, 0).decode(errors="replace")
            os.close(handle)
            other = "".join(letter if letter.isprintable() else "?" for letter in note)
            raise StorageError(
                f"{self._path} is in use by {other or 'another process'}: give each node a "
                "model_file of its own"
            ) from None
        except OSError as error:
            if handle >= 0:
                os.close(handle)
            return (
                f"can't lock {lock} ({error.strerror}): see to it that no other node has this "
                "model_file"
            )
        self._handle = handle
        with contextlib.suppress(OSError):  # a full disk: the lock holds without it
            if about.st_nlink == 1:  # else it is another file, too, whose content stays
                os.ftruncate(handle, 0)
                os.pwrite(handle, self._owner.encode(errors="replace")[:QUOTED], 0)
        return ""

    def close(self) -> None:
        """Let others have the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """The folder's descriptor, as soon as no other process has it locked. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network file systems lock no folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


# -------------------------------------------------------------------------------------------------
# The archive.


def write_archive(file: IO[bytes], arrays: State) -> None:
    """Write the arrays and the seal into an empty file; other threads may run meanwhile."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = bytes(SEAL_LENGTH)  # its length is part of what is sealed
        for name, value in arrays.items():
            array = np.asarray(value, order="C")
            with archive.open(zipfile.ZipInfo(f"{name}.npy", TIME), "w", force_zip64=True) as entry:
                about = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(entry, about)
                # Not np.lib.format.write_array: its copy would keep all other threads waiting.
                entry.write(array.reshape(-1).view(np.uint8).data)
    file.truncate(file.seek(-SEAL_LENGTH, os.SEEK_END))
    file.seek(0)
    digest = _sha256(file)
    file.seek(0, os.SEEK_END)
    file.write(SEAL + digest.encode())
    file.flush()


def _sha256(file: IO[bytes]) -> str:
    """The rest of a file's digest; hashlib.file_digest is not in Python 3.10."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def read_archive(content: bytes) -> State:
    """The arrays of an archive, whatever its seal.

    Inflates nothing and allocates no more than the archive is long, whatever its entries say.
    Raises one of `MALFORMED`.
    """
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if sum(info.file_size for info in entries) > len(content):
            raise ValueError("its entries are longer than it")
        for info in entries:
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError("an entry is compressed")
            arrays[info.filename.removesuffix(".npy")] = _array(archive.read(info))
    return arrays


def _array(entry: bytes) -> npt.NDArray[Any]:
    stream = io.BytesIO(entry)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an entry has another version")
    shape, columns_first, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in KINDS:
        raise ValueError(f"an entry has type {dtype}")
    # The entry's own bytes, so many as there are: another shape is refused.
    flat = np.frombuffer(entry, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if columns_first else "C").copy()


def _content(path: Path) -> bytes:
    """All bytes of a file whose seal is right. Raises StorageError as `load_state` does."""
    try:
        if path.exists() and not path.is_file():
            raise DamagedModelError(f"{path} is not a file, so no saved model")
        content = path.read_bytes()
    except FileNotFoundError:
        raise DamagedModelError(f"there is no saved model {path}") from None
    except PermissionError as error:
        raise StorageError(
            f"may not read the model {path}: {error.strerror}; give this user the right to"
        ) from error
    except (OSError, MemoryError) as error:
        raise DamagedModelError(f"can't read the model {path}: {error!r}") from error
    digest = hashlib.sha256(memoryview(content)[:-SEAL_LENGTH]).hexdigest().encode()
    if content[-SEAL_LENGTH:] != SEAL + digest:
        raise DamagedModelError(
            f"{path} is damaged, or not a saved model: its checksum does not match"
        )
    return content


def _is_whole(path: Path) -> bool:
    """Return whether there is a file that is not damaged, as far as it may be read."""
    try:
        _content(path)
    except StorageError as error:
        return not isinstance(error, DamagedModelError)
    return True


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= QUOTED else text[:QUOTED] + "..."
