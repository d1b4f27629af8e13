"""Messages and measurements of rosbag2 recordings: folders, and bare .db3 or .mcap files."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from semiparam_dynamics.base.extras import missing_extra

try:
    from rosbags.typesys import Stores, get_typestore
except ModuleNotFoundError as error:
    raise (missing_extra("reading bags", error) or error) from error

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.robot.urdf import Lock
from semiparam_dynamics.samples.bag_files import (
    BagFile,
    decompress_message,
    one_line,
    open_recording,
)
from semiparam_dynamics.samples.joint_names import FIRST_MESSAGES, FIRST_SECONDS
from semiparam_dynamics.samples.joint_states import JOINT_STATE, JointStateReader
from semiparam_dynamics.samples.measurement import Measurement, StreamConfig
from semiparam_dynamics.samples.stream import MeasurementStream

WRENCH = "geometry_msgs/msg/WrenchStamped"
STRING = "std_msgs/msg/String"
# Of joint states or wrenches, below the name of the node inverse_dynamics.
NODE_OUTPUTS = frozenset(
    "predicted rigid_body measured external external_fast external_wrench external_deviation "
    "contact_external".split()
)
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
            if not _named(connection):
                self.warnings.append(f"{self.path}: a topic without a name or a type is left out")
                continue
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
        return (max(reader.end_time for reader in readers) - 1 - first) / SECOND

    def messages(self, topics: Collection[str] = ()) -> Iterator[tuple[str, Any, int]]:
        """(topic, message, time of recording in ns) of `topics` (empty: all), in that time's order.

        Raises BagError for a topic that isn't there or has a type unknown here.
        """
        for name in topics or self.topics:
            if name not in self.topics:
                raise BagError(f"{self.path} has no topic '{name}'; it has: {self._listed()}")
            kind = self.topics[name].type
            if kind not in self._store.fielddefs:
                raise BagError(
                    f"topic '{_printable(name)}' of {self.path} has the unknown type "
                    f"{_printable(kind)}"
                )
        decode = {name: self._decoder(self.topics[name].type) for name in topics or self.topics}
        for stamp, topic, data in self._all_raw(topics):
            for message in self._decoded(decode[topic], topic, data):
                yield topic, message, stamp

    def _all_raw(self, topics: Collection[str]) -> Iterator[tuple[int, str, bytes | memoryview]]:
        return heapq.merge(*(self._raw(file, topics) for file in self._files), key=itemgetter(0))

    def _decoded(
        self, decode: Callable[[bytes | memoryview], Any], topic: str, data: bytes | memoryview
    ) -> tuple[()] | tuple[Any]:
        """The message, or none where its bytes are none, which is counted."""
        try:
            return (decode(decompress_message(data)),)
        except Exception:  # any byte may be wrong, so any error may come of it
            self.undecodable[topic] += 1
            return ()

    def choose(self, kind: str, asked: str = "") -> str:
        """The topic `asked` for, or the only one of the type `kind`; else BagError says which.

        Of several topics of joint states the only one with efforts is taken: a gripper's beside an
        arm's has none. What a learner's node published is not measured, so that it is only taken if
        asked for.
        """
        if asked:
            name = asked if asked in self.topics else f"/{asked}"
            if name in self.topics and self.topics[name].type == kind:
                return name
            found = "has no topic" if name not in self.topics else f"has no {kind} on"
            raise BagError(f"{self.path} {found} '{asked}'; it has: {self._listed()}")
        candidates = self.measured(kind)
        if kind == JOINT_STATE and len(candidates) > 1:
            candidates = list(filter(self._has_efforts, candidates)) or candidates
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            several = ", ".join(map(_printable, sorted(candidates)))
            how = f" with {OPTIONS[kind]}" if kind in OPTIONS else ""
            raise BagError(
                f"{self.path} has several topics of type {kind}, name one{how}: {several}"
            )
        raise BagError(f"{self.path} has no topic of type {kind}; it has: {self._listed()}")

    def first_joint_states(self, topic: str) -> list[Any]:
        """The messages that tell which joints are published, and where they stand.

        Those of the first `FIRST_SECONDS`, and `FIRST_MESSAGES` at least: a gripper's driver may be
        there before the arm's, and a torso's publish seldom.
        """
        found: list[Any] = []
        last = 0
        for _, message, at in self.messages([topic]):
            last = last or at + round(FIRST_SECONDS * SECOND)
            if len(found) >= FIRST_MESSAGES and at > last:
                break
            found.append(message)
        return found

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

    def measured(self, kind: str) -> list[str]:
        """The topics of a type that no learner's node published."""
        names = [name for name, topic in self.topics.items() if topic.type == kind]
        return [name for name in names if not self._is_prediction(name)]

    def _has_efforts(self, name: str) -> bool:
        """True if one of the first joint states of a topic has an effort that is not 0.

        Not the very first: a driver may publish before its first reading.
        """
        undecodable, warned = self.undecodable.copy(), len(self.warnings)
        first = itertools.islice(self.messages([name]), FIRST_MESSAGES)
        found = any(
            np.any(np.nan_to_num(np.asarray(message.effort, dtype=np.float64)))
            for _, message, _ in first
        )
        self.undecodable = undecodable  # they are counted, and told, where the topic is read
        del self.warnings[warned:]
        return found

    def _is_prediction(self, name: str) -> bool:
        """True if a topic is one of the node inverse_dynamics', whatever that was called."""
        node, _, last = name.rpartition("/")
        beside = {f"{node}/predicted", f"{node}/rigid_body"} <= self.topics.keys()
        return last in NODE_OUTPUTS and beside

    def _listed(self) -> str:
        named = sorted((name, topic.type) for name, topic in self.topics.items())
        listed = ", ".join(f"{_printable(name)} ({_printable(kind)})" for name, kind in named)
        return listed or "no topics at all"

    def _decoder(self, kind: str) -> Callable[[bytes | memoryview], Any]:
        if kind == JOINT_STATE:
            return JointStateReader()
        return lambda data: self._store.deserialize_cdr(data, kind)

    def _raw(
        self, file: BagFile, topics: Collection[str]
    ) -> Iterator[tuple[int, str, bytes | memoryview]]:
        connections = [
            connection
            for connection in file.reader.connections
            if _named(connection)
            and (not topics or connection.topic in topics)
            and connection.msgtype == self.topics[connection.topic].type
        ]
        if not connections:
            return
        try:
            for connection, stamp, data in file.reader.messages(connections):
                yield stamp, connection.topic, data
        except Exception as error:  # the storages' libraries raise each their own
            self.warnings.append(f"{file.path} is read only in part: {one_line(error)}")


def _named(connection: Any) -> bool:
    """True if topic and type are texts: of a damaged database they may be missing."""
    return isinstance(connection.topic, str) and isinstance(connection.msgtype, str)


def _printable(name: str) -> str:
    """A name of a bag, in which damage may have left anything."""
    return "".join(c if c.isprintable() else "?" for c in name)


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
    locks: Mapping[str, Lock] | None = None,
) -> Recording:
    """Read a bag's measurements just as a live node would make them.

    A topic that isn't named is the one that `BagReader.choose` takes. The other arguments are those
    of `MeasurementStream`. Raises BagError where the bag or a topic can't be read, or none of the
    joint states can be used.
    """
    stream = MeasurementStream(
        joint_names,
        target,
        config,
        wrench_frame=wrench_frame,
        effort_limits=effort_limits,
        locks=locks,
    )
    measurements: list[Measurement] = []
    with BagReader(path) as bag:
        joints = bag.choose(JOINT_STATE, joint_states_topic)
        wrench = bag.choose(WRENCH, wrench_topic) if target == "wrench" else ""
        for topic, message, _ in bag.messages([joints, wrench] if wrench else [joints]):
            measurements += (stream.joint_state if topic == joints else stream.wrench)(message)
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
