"""The files of a rosbag2 recording, opened with what repairs they need."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from rosbags.rosbag2 import Reader

from semiparam_dynamics.errors import BagError
from semiparam_dynamics.samples.salvage import salvage

STORAGES = (".db3", ".mcap")


def open_recording(path: Path, stack: ExitStack, warnings: list[str]) -> list[Reader]:
    """Open a rosbag2 folder or a bare storage file; `stack` closes it again.

    What can't be read is put in `warnings`, as sentences; BagError where that is everything.
    """
    if not path.exists():
        raise BagError(f"there is no bag {path}")
    if path.suffix == ".bag":
        raise BagError(f"{path} is a ROS 1 bag; convert it first: rosbags-convert --src {path}")
    if path.is_dir():
        return _open_folder(path, stack, warnings)
    if path.suffix not in STORAGES:
        raise BagError(f"{path} is no bag: it must be a rosbag2 folder, a .db3 or an .mcap")
    return [_open_file(path, stack, warnings)]


def one_line(error: Exception) -> str:
    """An exception's message on one line, without the full stop."""
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")


def _open_folder(path: Path, stack: ExitStack, warnings: list[str]) -> list[Reader]:
    files = sorted(file for file in path.iterdir() if file.suffix in STORAGES)
    try:
        if not any(_journal(file) for file in files):
            return [stack.enter_context(Reader(path))]
    except Exception as error:  # the storages' libraries raise each their own
        if not files:
            raise BagError(f"{path} is no rosbag2 folder: {one_line(error)}") from None
        if (path / "metadata.yaml").exists():
            warnings.append(f"{path}: {one_line(error)}; its files are read one by one")
        else:
            warnings.append(f"{path} has no metadata.yaml: the recording was not ended")
    readers, problems = [], []
    for file in files:
        try:
            readers.append(_open_file(file, stack, warnings))
        except BagError as error:
            problems.append(str(error))
    if not readers:
        raise BagError("; ".join(problems))
    warnings.extend(problems)
    return readers


def _open_file(path: Path, stack: ExitStack, warnings: list[str]) -> Reader:
    problem = "a journal lies beside it"
    try:
        if not _journal(path):
            return stack.enter_context(Reader(path))
    except Exception as error:
        problem = one_line(error)
    with suppress(Exception):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="semiparam_bag_"))
        reader = stack.enter_context(Reader(salvage(path, Path(folder))))
        count = reader.message_count
        warnings.append(f"{path} was not ended ({problem}); {count} messages could be read")
        return reader
    raise BagError(f"{path} can't be read: {problem}")


def _journal(path: Path) -> bool:
    """Whether a killed recorder's last transactions lie beside an .db3, outside of it."""
    journal = path.with_name(path.name + "-wal")
    return path.suffix == ".db3" and journal.exists() and journal.stat().st_size > 0
