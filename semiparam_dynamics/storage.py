"""Saved models: one file of arrays and a header, whole or not at all, and nothing executed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.errors import StorageError

FORMAT_VERSION = 1
HEADER = "header"
State = dict[str, npt.NDArray[Any]]


def save_state(path: str | Path, identity: dict[str, object], state: State) -> None:
    """Write `state` with the `identity` of what it belongs to.

    The file is written beside its place, synced and renamed, so that a crash leaves either the
    old one or the new one. Raises StorageError where the system refuses.
    """
    path = Path(path)
    header = {
        "format": FORMAT_VERSION,
        "identity": _plain(identity),
        "checksum": _checksum(state),
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **{HEADER: text, **state})  # type: ignore[arg-type]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"can't write the model to {path}: {error.strerror}") from error


def load_state(
    path: str | Path, identity: dict[str, object], *, ignore: Collection[str] = ()
) -> State:
    """Read what :func:`save_state` wrote for the same `identity`; entries to `ignore` may differ.

    Raises StorageError with what is wrong: no such file, damaged, of a newer version, or which
    entries of the identity differ.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            state: State = {name: archive[name] for name in archive.files}
        header = json.loads(bytes(state.pop(HEADER)))
        version, saved, checksum = header["format"], header["identity"], header["checksum"]
    except FileNotFoundError:
        raise StorageError(f"there is no saved model {path}") from None
    except OSError as error:
        raise StorageError(f"can't read the model {path}: {error}") from error
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} is not a saved model, or is damaged ({error})") from None
    if version > FORMAT_VERSION:
        raise StorageError(
            f"{path} has format {version}, newer than this version's {FORMAT_VERSION}: "
            "update semiparam_dynamics"
        )
    if checksum != _checksum(state):
        raise StorageError(f"{path} is damaged: its checksum does not match")
    expected = _plain(identity)
    named = {*saved, *expected}.difference(ignore)
    differing = sorted(k for k in named if saved.get(k) != expected.get(k))
    if differing:
        what = ", ".join(
            f"{k} is {saved.get(k)!r} there, {expected.get(k)!r} here" for k in differing
        )
        raise StorageError(f"{path} belongs to another robot or configuration: {what}")
    return state


def _plain(identity: dict[str, object]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(identity))
    return plain


def _checksum(state: State) -> str:
    digest = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
