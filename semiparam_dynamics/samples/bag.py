"""Reading rosbag2 recordings: folders, and bare .db3 or .mcap files, compressed or not."""

from __future__ import annotations

import heapq
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any

import yaml  # type: ignore[import-untyped]
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.samples.joint_state_block import JointStateBlock
from semiparam_dynamics.samples.joint_state_decoder import JOINT_STATE as JOINT_STATE
from semiparam_dynamics.samples.joint_state_decoder import JointStateDecoder
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.salvage import salvage
from semiparam_dynamics.samples.stream import MeasurementStream
from semiparam_dynamics.samples.stream_config import StreamConfig

# -------------------------------------------------------------------------------------------------
# Zstandard, in which recorders compress bags: whole files, or message by message.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd  # comes with rosbags

SUFFIX = ".zstd"
MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 20
LARGEST = 1 << 28  # bytes of a message: far more than any joint state has


def decompress_file(path: Path, target: Path) -> str:
    """Write what a compressed file holds to `target`, as far as it can be read.

    Returns why it ends too early, as a sentence without its full stop; empty where it doesn't.
    """
    with path.open("rb") as file, zstd.open(file, "rb") as source, target.open("wb") as copy:
        try:
            while block := source.read1(BLOCK):
                copy.write(block)
        except (zstd.ZstdError, EOFError) as error:
            return str(error).rstrip(".") or "its compressed end is missing"
    return ""


def decompress_message(data: bytes | memoryview) -> bytes | memoryview:
    """A message's bytes, decompressed where they are compressed.

    No message begins as compressed data does: the first byte of its encapsulation header is 0.
    Raises ZstdError, EOFError or ValueError where the data are damaged, or would become longer
    than `LARGEST`.
    """
    if bytes(data[: len(MAGIC)]) != MAGIC:
        return data
    whole, left = bytearray(), bytes(data)
    while left:  # a frame after the other
        frame = zstd.ZstdDecompressor()
        # A few bytes may claim to be gigabytes: no more is made than is wanted.
        whole += frame.decompress(left, max_length=LARGEST - len(whole) + 1)
        if len(whole) > LARGEST:
            raise ValueError(f"a compressed message is longer than {LARGEST} bytes")
        if not frame.eof:
            raise EOFError("a compressed message is cut short")
        left = frame.unused_data
    return bytes(whole)


# -------------------------------------------------------------------------------------------------
# The files of a rosbag2 recording, opened with what repairs they need.
#
# Each file is opened by itself, whatever metadata.yaml says of it: so split bags may have lost a
# file, every version of the metadata is read, and one damaged file costs nothing of the others.

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


WRENCH = "geometry_msgs/msg/WrenchStamped"
STRING = "std_msgs/msg/String"
Decoder = Callable[[bytes | memoryview], Any]
LEAST, MOST = 16, 512  # messages that are read at once; fewer where they don't look alike
OPTIONS = {JOINT_STATE: "--joint-states", WRENCH: "--wrench"}  # of the command line


@dataclass(frozen=True)
class Topic:
    """One topic of a bag: its message type and how many messages it has."""

    type: str
    count: int


class BagReader:
    """A rosbag2 recording, open for reading; a context manager.

    A recording that broke off (no metadata.yaml, a truncated file) is read as far as it goes, and
    `warnings` says so.

    Raises BagError where there is no such file, or nothing in it can be read.

    Attributes
    ----------
    topics: name -> type and number of messages.
    warnings: sentences on what could not be read, complete once the messages have been read.
    undecodable: topic -> number of messages whose bytes are no message of its type.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.topics: dict[str, Topic] = {}
        self.warnings: list[str] = []
        self.undecodable: Counter[str] = Counter()
        self._files: list[BagFile] = []
        self._stack = ExitStack()
        self._store = get_typestore(Stores.ROS2_KILTED)

    def __enter__(self) -> BagReader:
        with ExitStack() as stack:
            self._files = open_recording(self.path, stack, self.warnings)
            self._stack = stack.pop_all()
        for connection in (c for file in self._files for c in file.reader.connections):
            name, kind, count = connection.topic, connection.msgtype, connection.msgcount
            before = self.topics.setdefault(name, Topic(kind, 0))
            if before.type == kind:  # else another type on the same topic: the first one counts
                self.topics[name] = Topic(kind, before.count + count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def duration(self) -> float:
        """Seconds between the first and the last message, by the time of recording."""
        readers = [file.reader for file in self._files if file.reader.message_count]
        if not readers:
            return 0.0
        first = min(reader.start_time for reader in readers)
        return (max(reader.end_time for reader in readers) - 1 - first) / 1e9

    def messages(self, topics: Collection[str] = ()) -> Iterator[tuple[str, Any, int]]:
        """(topic, message, time of recording in ns) of `topics` (empty: all), in that time's order.

        Raises BagError for a topic that isn't there or has a type unknown here.
        """
        decoders = {name: self._decoder(topic.type) for name, topic in self.topics.items()}
        for stamp, topic, data in self._merged(topics):
            message = self._decoded(topic, data, decoders[topic])
            if message is not None:
                yield topic, message, stamp

    def joint_states(self, topic: str) -> Iterator[JointStateBlock | Any]:
        """The joint states of `topic` in that order, those that look alike as blocks.

        Raises BagError as :meth:`messages` does.
        """
        decode = JointStateDecoder(self._store)
        raw = self._merged([topic])
        size = LEAST
        while batch := list(islice(raw, size)):
            left = [data for _, _, data in batch]
            while left:
                block = decode.alike(left)
                if block is not None:
                    yield block
                    size = min(2 * size, MOST) if len(block) == len(left) else LEAST
                    left = left[len(block) :]
                    continue
                message = self._decoded(topic, left.pop(0), decode)
                if message is not None:
                    yield message

    def _decoder(self, kind: str) -> Decoder:
        if kind == JOINT_STATE:
            return JointStateDecoder(self._store)
        return partial(self._store.deserialize_cdr, typename=kind)

    def _decoded(self, topic: str, data: bytes | memoryview, decode: Decoder) -> Any | None:
        """The message, None and counted where its bytes are none."""
        try:
            return decode(decompress_message(data))
        except Exception:  # any byte may be wrong, so any error may come of it
            self.undecodable[topic] += 1
            return None

    def _merged(self, topics: Collection[str]) -> Iterator[tuple[int, str, bytes | memoryview]]:
        """(time of recording, topic, bytes) of all files' messages, in that order."""
        for name in topics or self.topics:
            if name not in self.topics:
                raise BagError(f"{self.path} has no topic '{name}'; it has: {self._listed()}")
            if self.topics[name].type not in self._store.fielddefs:
                kind = self.topics[name].type
                raise BagError(f"topic '{name}' of {self.path} has the unknown type {kind}")
        streams = [self._raw(file, topics) for file in self._files]
        return heapq.merge(*streams, key=itemgetter(0))

    def choose(self, kind: str, asked: str = "") -> str:
        """The topic `asked` for, or the only one of the type `kind`; else BagError says which."""
        candidates = [name for name, topic in self.topics.items() if topic.type == kind]
        if asked:
            name = asked if asked in self.topics else f"/{asked}"
            if name in candidates:
                return name
            found = "has no topic" if name not in self.topics else f"has no {kind} on"
            raise BagError(f"{self.path} {found} '{asked}'; it has: {self._listed()}")
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            several = ", ".join(sorted(candidates))
            how = f" with {OPTIONS[kind]}" if kind in OPTIONS else ""
            raise BagError(
                f"{self.path} has several topics of type {kind}, name one{how}: {several}"
            )
        raise BagError(f"{self.path} has no topic of type {kind}; it has: {self._listed()}")

    def robot_description(self) -> str | None:
        """The URDF text recorded on a topic ``robot_description``, None where there is none."""
        topics = [
            name
            for name, topic in self.topics.items()
            if topic.type == STRING and name.rsplit("/", 1)[-1] == "robot_description"
        ]
        if not topics:
            return None
        texts = (str(message.data) for _, message, _ in self.messages(topics))
        return next((text for text in texts if text.strip()), None)

    def _listed(self) -> str:
        listed = ", ".join(f"{name} ({topic.type})" for name, topic in sorted(self.topics.items()))
        return listed or "no topics at all"

    def _raw(
        self, file: BagFile, topics: Collection[str]
    ) -> Iterator[tuple[int, str, bytes | memoryview]]:
        connections = [
            connection
            for connection in file.reader.connections
            if (not topics or connection.topic in topics)
            and connection.msgtype == self.topics[connection.topic].type
        ]
        if not connections:
            return
        try:
            for connection, stamp, data in file.reader.messages(connections):
                yield stamp, connection.topic, data
        except Exception as error:  # the storages' libraries raise each their own
            self.warnings.append(f"{file.path} is read only in part: {one_line(error)}")


@dataclass(frozen=True)
class Recording:
    """The measurements of one bag, and what became of its messages.

    Attributes
    ----------
    measurements: in the order of their stamps.
    received, dropped, details, frames: as in `MeasurementStream`.
    joint_states_topic, wrench_topic: the topics read; the second is empty for the effort target.
    warnings: sentences on what of the bag could not be read.
    """

    measurements: list[Measurement]
    received: Counter[str]
    dropped: Counter[str]
    details: dict[str, str]
    frames: set[str]
    joint_states_topic: str
    wrench_topic: str
    warnings: list[str]


def read_measurements(
    path: str | Path,
    joint_names: Sequence[str],
    target: str = "effort",
    config: StreamConfig | None = None,
    *,
    joint_states_topic: str = "",
    wrench_topic: str = "",
    wrench_frame: str | Sequence[str] = "",
    effort_limits: Array | None = None,
) -> Recording:
    """Read a bag's measurements just as a live node would make them.

    A topic that isn't named is the bag's only one of its type. The other arguments are those of
    `MeasurementStream`. Raises BagError where the bag or a topic can't be read, or none of the
    joint states can be used.
    """
    stream = MeasurementStream(
        joint_names, target, config, wrench_frame=wrench_frame, effort_limits=effort_limits
    )
    measurements: list[Measurement] = []
    with BagReader(path) as bag:
        joints = bag.choose(JOINT_STATE, joint_states_topic)
        wrench = bag.choose(WRENCH, wrench_topic) if target == "wrench" else ""
        if wrench:
            for topic, message, _ in bag.messages([joints, wrench]):
                measurements += (stream.joint_state if topic == joints else stream.wrench)(message)
        else:
            for one in bag.joint_states(joints):
                take = (
                    stream.joint_states if isinstance(one, JointStateBlock) else stream.joint_state
                )
                measurements += take(one)
        measurements += stream.flush()
        if bag.undecodable:
            stream.dropped["undecodable"] += bag.undecodable.total()
        warnings = list(bag.warnings)
    if not measurements:
        why = "; ".join(f"{count} times {reason}" for reason, count in stream.dropped.items())
        told = "".join(f" ({text})" for text in stream.details.values())
        raise BagError(
            f"no message on {joints} of {path} can be used: {why or 'it is empty'}{told}"
        )
    return Recording(
        measurements,
        stream.received,
        stream.dropped,
        stream.details,
        stream.frames,
        joints,
        wrench,
        warnings,
    )
