"""Saved models: one file of arrays and a header, whole or not at all, and nothing executed.

A file is a sealed archive (sealed_archive.py) of the state's arrays and the header, JSON text as
bytes, with the format's version and the identity: the URDF's hash, the joints and the
configuration. Format 1 had a checksum of the arrays in its header instead of the seal, and is still
read.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.errors import DamagedModelError, StorageError
from semiparam_dynamics.sealed_archive import MALFORMED, read_archive, seal_holds, write_archive

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
