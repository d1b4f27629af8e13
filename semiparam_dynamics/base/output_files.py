"""Files of results: tried before the work, written whole or not at all, the ones before kept."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from semiparam_dynamics.base.errors import StorageError, listing
from semiparam_dynamics.base.storage import previous_of

PROBE = bytes(4096)  # written and removed to see whether a folder takes files


@contextlib.contextmanager
def reserved(paths: Iterable[Path], *, overwrite: bool) -> Iterator[None]:
    """Try before long work, done in the context, whether its results can be written.

    The folders are made if need be; those that are still empty where the work fails are removed.
    Raises StorageError where a folder takes no files, and where one of the paths is there already,
    unless `overwrite`: whoever writes by :func:`write_files` then keeps the one before.
    """
    paths = list(paths)
    check_replaced(paths, overwrite=overwrite)
    made: list[Path] = []
    try:
        for folder in dict.fromkeys(path.parent for path in paths):
            made += _missing(folder)
            _make(folder)
        yield
    except BaseException:
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # something was written there meanwhile
                folder.rmdir()
        raise


def check_replaced(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Raise StorageError where some of the paths are there already, unless `overwrite`.

    And where that is not known, as of a name that is too long.
    """
    there = []
    for path in paths:
        try:
            there += [path] if path.exists() else []
        except OSError as error:
            raise StorageError(f"{path} can't be written: {error.strerror}") from error
    if there and not overwrite:
        raise StorageError(
            f"{_told(there)} already: name another place, or add --overwrite, which keeps the one "
            f"before as {previous_of(there[0]).name}"
        )


def _told(paths: list[Path]) -> str:
    """Name the paths by the folder that holds all of them, if there is one."""
    try:
        folder = Path(os.path.commonpath([path.parent for path in paths]))
    except ValueError:  # some are relative
        return f"{listing(list(map(str, paths)))} are there"
    return f"{folder} has {listing([str(path.relative_to(folder)) for path in paths])}"


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write files, text as UTF-8, whose folders are made if need be.

    All are written under temporary names and synced before the first is renamed, so that a full
    disk leaves what was there. A file that is replaced is kept, see
    :func:`semiparam_dynamics.base.storage.previous_of`. Raises StorageError.
    """
    parts = {path: path.parent / f".{path.name}.part" for path in contents}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with parts[path].open("wb") as file:
                file.write(_encoded(content))
                file.flush()
                os.fsync(file.fileno())
        for path, part in parts.items():
            if path.exists():
                os.replace(path, previous_of(path))
            os.replace(part, path)
    except OSError as error:
        raise StorageError(f"{path} can't be written: {error.strerror}") from error
    finally:
        for part in parts.values():
            with contextlib.suppress(OSError):  # a path through a file
                part.unlink(missing_ok=True)


def _encoded(content: str | bytes) -> bytes:
    # The name of a bag may hold bytes that are no UTF-8, which Python keeps as half a letter.
    return content.encode(errors="backslashreplace") if isinstance(content, str) else content


def _missing(folder: Path) -> list[Path]:
    """The folders that have to be made for it, the outermost first. Raises StorageError."""
    try:
        return [place for place in (folder, *folder.parents) if not place.exists()][::-1]
    except OSError as error:
        raise _refused(folder, error) from error


def _make(folder: Path) -> None:
    """Make a folder and try whether it takes files. Raises StorageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(PROBE)
            file.flush()
    except OSError as error:
        raise _refused(folder, error) from error


def _refused(folder: Path, error: OSError) -> StorageError:
    return StorageError(f"the results can't be written to {folder}: {error.strerror}")
