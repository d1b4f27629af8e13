"""The storage files of a rosbag2 recording, opened with what decompression and repair they need.

Each file is opened by itself, whatever metadata.yaml says of it: so split bags may have lost a
file, every version of the metadata is read, and one damaged file costs nothing of the others.
Recorders compress bags with Zstandard: whole files, or message by message. A recorder that is
killed, or a full disk, leaves an .mcap without its end or an .db3 whose last pages are missing. The
messages before that are intact: those of a database are copied to one that is whole.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml  # type: ignore[import-untyped]

from semiparam_dynamics.base.config_files import read_small
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.samples.storages import MAX_UNPACKED, READ_SIZE, McapFile, SqliteFile, zstd

STORAGES = (".db3", ".mcap")
COMPRESSED = ".zstd"
LOGS = (".csv", ".npz")  # what `semiparam convert` reads
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_PARTS = 10_000  # of a split recording: a larger number in a file's name is something else


@dataclass(frozen=True)
class BagFile:
    """One storage file of a recording: where it lies, and the open file or what it was made of."""

    path: Path
    storage: McapFile | SqliteFile


def open_recording(path: Path, stack: ExitStack, warnings: list[str]) -> list[BagFile]:
    """Open a rosbag2 folder or a bare storage file, compressed or not; `stack` closes it again.

    What can't be read is put in `warnings`, as sentences; BagError where that is everything.
    """
    try:
        if not path.exists():
            raise BagError(f"there is no bag {path}")
        if path.suffix == ".bag":
            raise BagError(f"{path} is a ROS 1 bag; convert it first: rosbags-convert --src {path}")
        if Path(path, "meta", "info.json").is_file() or path.suffix in LOGS:
            bag = path.with_name(f"{path.stem}_bag").name
            how = shlex.join(["semiparam", "convert", str(path), bag])
            raise BagError(f"{path} is a log, not a bag; make one of it: {how} --urdf FILE_OR_NAME")
        if path.is_dir():
            return _open_folder(path, stack, warnings)
    except OSError as error:  # a folder that may not be entered
        raise BagError(f"{path} can't be read: {error.strerror}") from None
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
            inside = sorted(part.parent.name for part in path.glob("*/*") if _is_storage(part))
            inside = list(dict.fromkeys(inside))
            told = f"; bags are in it, name one: {listing(inside)}" if inside else ""
            raise BagError(
                f"{path} is no rosbag2 folder: it has no .db3 and no .mcap{told}"
            ) from None
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
    files = files or _uncompressed(sorted(there, key=_by_number))
    if not listed and (lost := _lost(files)):
        warnings.append(f"{path} lacks {listing(lost)}, between files of the same recording")
    opened, problems = [], []
    for file in files:
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
    if path.suffix == COMPRESSED:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="semiparam_bag_"))
        source = Path(folder) / path.stem
        try:
            problem = _decompress_file(path, source)
        except OSError as error:
            raise BagError(f"{path} can't be read: {one_line(error)}") from None
    try:
        storage: McapFile | SqliteFile
        if source.suffix == ".mcap":
            storage = McapFile(source)
            problem = problem or storage.problem
        else:
            storage, problem = _open_sqlite(source, problem, stack)
    except Exception as error:  # whatever is in its bytes
        raise BagError(f"{path} can't be read: {problem or one_line(error)}") from None
    stack.callback(storage.close)
    if problem:
        warnings.append(f"{path} was not ended ({problem}); {storage.count} messages could be read")
    return BagFile(path, storage)


def _open_sqlite(source: Path, problem: str, stack: ExitStack) -> tuple[SqliteFile, str]:
    """The database, or a copy of its rows where it has a `problem`, which is returned with it."""
    if _journal(source):
        problem = "a journal lies beside it"
    if not problem:
        try:
            return SqliteFile(source), ""
        except sqlite3.Error as error:
            problem = one_line(error)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semiparam_bag_")))
    copy = folder / "salvaged.db3"
    try:
        _salvage_sqlite(source, copy)
        return SqliteFile(copy), problem
    except (OSError, ValueError, sqlite3.Error):
        raise ValueError(problem) from None


def _listed(metadata: Path) -> list[str]:
    """The names of a recording's files in their order, from a metadata.yaml of any version.

    Raises OSError, ValueError, YAMLError, or RecursionError where it is nested too deep.
    """
    try:
        known = yaml.safe_load(read_small(metadata))
        paths = known["rosbag2_bagfile_information"]["relative_file_paths"]
        # Before version 4 the paths began with the folder's name.
        return [PurePosixPath(name).name for name in paths]
    except (KeyError, TypeError):
        raise ValueError("it names no files") from None


def _find(file: Path) -> Path | None:
    """A file that metadata.yaml names, or its other form: players decompress it beside itself."""
    plain = file.with_suffix("") if file.suffix == COMPRESSED else file
    compressed = plain.with_name(plain.name + COMPRESSED)
    return next((one for one in (plain, compressed) if one.is_file() and _is_storage(one)), None)


def _uncompressed(files: Iterable[Path]) -> list[Path]:
    """The files without those that lie there in both forms a second time."""
    found = (_find(file) for file in files)
    return list(dict.fromkeys(file for file in found if file is not None))


def _is_storage(path: Path) -> bool:
    return path.suffix in STORAGES or (
        path.suffix == COMPRESSED and Path(path.stem).suffix in STORAGES
    )


def _by_number(path: Path) -> list[tuple[int, str]]:
    """The order in which a split recording's files were written: bag_2 before bag_10."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"(\D+)(\d*)", path.name)]


def _lost(files: Iterable[Path]) -> list[str]:
    """Names of the files that a split recording without metadata lacks: they have numbers from 0.

    How many there were after the last one is not known.
    """
    matches = [re.fullmatch(r"(.*_)(\d+)((?:\.\w+)+)", file.name) for file in files]
    numbers = {(m[1], m[3], int(m[2])) for m in matches if m}
    last = {(before, after): number for before, after, number in sorted(numbers)}
    return [
        f"{before}{number}{after}"
        for (before, after), end in last.items()
        for number in range(min(end, MAX_PARTS))
        if (before, after, number) not in numbers
    ]


def _journal(path: Path) -> bool:
    """True if a killed recorder's last transactions lie beside an .db3, outside of it."""
    journal = path.with_name(path.name + "-wal")
    return path.suffix == ".db3" and journal.exists() and journal.stat().st_size > 0


def _decompress_file(path: Path, target: Path) -> str:
    """Write what a compressed file holds to `target`, as far as it can be read.

    Returns why it ends too early, as a sentence without its full stop; empty where it doesn't.
    """
    with path.open("rb") as file, zstd.open(file, "rb") as source, target.open("wb") as copy:
        try:
            while block := source.read1(READ_SIZE):
                copy.write(block)
        except (zstd.ZstdError, EOFError) as error:
            return str(error).rstrip(".") or "its compressed end is missing"
    return ""


def decompress_message(data: bytes | memoryview) -> bytes | memoryview:
    """A message's bytes, decompressed where they are compressed.

    No message begins as compressed data does: the first byte of its encapsulation header is 0.
    Raises ZstdError, EOFError or ValueError where the data are damaged, or would become longer
    than `MAX_UNPACKED`.
    """
    if bytes(data[: len(ZSTD_MAGIC)]) != ZSTD_MAGIC:
        return data
    whole, left = bytearray(), bytes(data)
    while left:  # a frame after the other
        frame = zstd.ZstdDecompressor()
        # A few bytes may claim to be gigabytes: no more is made than is wanted.
        whole += frame.decompress(left, max_length=MAX_UNPACKED - len(whole) + 1)
        if len(whole) > MAX_UNPACKED:
            raise ValueError(f"a compressed message is longer than {MAX_UNPACKED} bytes")
        if not frame.eof:
            raise EOFError("a compressed message is cut short")
        left = frame.unused_data
    return bytes(whole)


def _salvage_sqlite(path: Path, copy: Path) -> None:
    """Copy the tables row by row, as far as the pages are there."""
    damaged = copy.with_name("damaged.db3")
    shutil.copyfile(path, damaged)
    with damaged.open("r+b") as file:
        # Half a page would pass for a whole one with zeros in it.
        page = int.from_bytes(file.read(18)[16:], "big")
        page = 65536 if page == 1 else max(page, 512)
        file.truncate(path.stat().st_size // page * page)
    # The journal beside it holds the last transactions of a recorder that was killed.
    for suffix in ("-wal", "-journal"):
        if (journal := path.with_name(path.name + suffix)).exists():
            shutil.copyfile(journal, damaged.with_name(damaged.name + suffix))
    with closing(sqlite3.connect(damaged)) as source, closing(sqlite3.connect(copy)) as target:
        # Otherwise SQLite refuses every query on a file shorter than its header says.
        source.execute("PRAGMA writable_schema = ON")
        target.execute(
            "CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT, type TEXT,"
            " serialization_format TEXT, offered_qos_profiles TEXT)"
        )
        target.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,"
            " data BLOB)"
        )
        topics = source.execute("SELECT id, name, type, serialization_format, '' FROM topics")
        target.executemany("INSERT INTO topics VALUES (?, ?, ?, ?, ?)", topics.fetchall())
        rows = source.execute("SELECT id, topic_id, timestamp, data FROM messages NOT INDEXED")
        with suppress(sqlite3.DatabaseError):
            for row in rows:
                target.execute("INSERT OR IGNORE INTO messages VALUES (?, ?, ?, ?)", row)
        target.commit()
