"""The files of a rosbag2 recording, opened with what repairs they need.

Each file is opened by itself, whatever metadata.yaml says of it: so split bags may have lost a
file, every version of the metadata is read, and one damaged file costs nothing of the others.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml  # type: ignore[import-untyped]
from rosbags.rosbag2 import Reader

from semiparam_dynamics.errors import BagError
from semiparam_dynamics.samples.salvage import salvage
from semiparam_dynamics.samples.zstd import SUFFIX, decompress_file

STORAGES = (".db3", ".mcap")


@dataclass(frozen=True)
class BagFile:
    """One storage file of a recording: where it lies, and the open reader of it or of a repair."""

    path: Path
    reader: Reader


def open_recording(path: Path, stack: ExitStack, warnings: list[str]) -> list[BagFile]:
    """Open a rosbag2 folder or a bare storage file, compressed or not; `stack` closes it again.

    What can't be read is put in `warnings`, as sentences; BagError where that is everything.
    """
    if not path.exists():
        raise BagError(f"there is no bag {path}")
    if path.suffix == ".bag":
        raise BagError(f"{path} is a ROS 1 bag; convert it first: rosbags-convert --src {path}")
    if path.is_dir():
        return _open_folder(path, stack, warnings)
    if not _is_storage(path):
        raise BagError(f"{path} is no bag: it must be a rosbag2 folder, a .db3 or an .mcap")
    return [_open_file(path, stack, warnings)]


def one_line(error: Exception) -> str:
    """An exception's message on one line, without the full stop."""
    return (" ".join(str(error).split()) or type(error).__name__).rstrip(".")


def _open_folder(path: Path, stack: ExitStack, warnings: list[str]) -> list[BagFile]:
    there = [file for file in path.iterdir() if _is_storage(file)]
    try:
        listed = _listed(path / "metadata.yaml")
    except FileNotFoundError:
        if not there:
            raise BagError(f"{path} is no rosbag2 folder: it has no .db3 and no .mcap") from None
        warnings.append(f"{path} has no metadata.yaml: the recording was not ended")
        listed = []
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        if not there:
            raise BagError(f"{path} is no rosbag2 folder: {one_line(error)}") from None
        warnings.append(f"{path / 'metadata.yaml'} can't be read: {one_line(error)}")
        listed = []
    files = [file for name in listed if (file := _find(path / name)) is not None]
    if missing := [name for name in listed if _find(path / name) is None]:
        warnings.append(f"{path} lacks {', '.join(missing)}, which its metadata.yaml names")
    opened, problems = [], []
    for file in files or _uncompressed(sorted(there, key=_by_number)):
        try:
            opened.append(_open_file(file, stack, warnings))
        except BagError as error:
            problems.append(str(error))
    if not opened:
        raise BagError("; ".join(problems) or f"{path} has none of its files")
    warnings.extend(problems)
    return opened


def _open_file(path: Path, stack: ExitStack, warnings: list[str]) -> BagFile:
    source, problem = path, ""
    if path.suffix == SUFFIX:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="semiparam_bag_"))
        source = Path(folder) / path.stem
        try:
            problem = decompress_file(path, source)
        except OSError as error:
            raise BagError(f"{path} can't be read: {one_line(error)}") from None
    if _journal(source):
        problem = "a journal lies beside it"
    try:
        if not problem:
            return BagFile(path, stack.enter_context(Reader(source)))
    except Exception as error:  # the storages' libraries raise each their own
        problem = one_line(error)
    with suppress(Exception):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="semiparam_bag_"))
        reader = stack.enter_context(Reader(salvage(source, Path(folder))))
        count = reader.message_count
        warnings.append(f"{path} was not ended ({problem}); {count} messages could be read")
        return BagFile(path, reader)
    raise BagError(f"{path} can't be read: {problem}")


def _listed(metadata: Path) -> list[str]:
    """The names of a recording's files in their order, from a metadata.yaml of any version.

    Raises OSError, ValueError, YAMLError, or RecursionError where it is nested too deep.
    """
    try:
        known = yaml.safe_load(metadata.read_text(encoding="utf-8"))
        paths = known["rosbag2_bagfile_information"]["relative_file_paths"]
        # Before version 4 the paths began with the folder's name.
        return [PurePosixPath(name).name for name in paths]
    except (KeyError, TypeError):
        raise ValueError("it names no files") from None


def _find(file: Path) -> Path | None:
    """A file that metadata.yaml names, or its other form: players decompress it beside itself."""
    plain = file.with_suffix("") if file.suffix == SUFFIX else file
    compressed = plain.with_name(plain.name + SUFFIX)
    return next((one for one in (plain, compressed) if one.is_file() and _is_storage(one)), None)


def _uncompressed(files: Iterable[Path]) -> list[Path]:
    """The files without those that lie there in both forms a second time."""
    found = (_find(file) for file in files)
    return list(dict.fromkeys(file for file in found if file is not None))


def _is_storage(path: Path) -> bool:
    return path.suffix in STORAGES or (path.suffix == SUFFIX and Path(path.stem).suffix in STORAGES)


def _by_number(path: Path) -> list[tuple[int, str]]:
    """The order in which a split recording's files were written: bag_2 before bag_10."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D+)(\d*)", path.name)]


def _journal(path: Path) -> bool:
    """Whether a killed recorder's last transactions lie beside an .db3, outside of it."""
    journal = path.with_name(path.name + "-wal")
    return path.suffix == ".db3" and journal.exists() and journal.stat().st_size > 0
