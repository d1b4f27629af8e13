"""Messages and measurements of rosbag2 recordings: folders, and bare .db3 or .mcap files."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics.base.extras import missing_extra

try:
    from rosbags.typesys import Stores, get_typestore
except ModuleNotFoundError as error:
    raise (missing_extra("reading bags", error) or error) from error

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.errors import BagError, SampleError
from semiparam_dynamics.samples.bag_files import (
    BagFile,
    decompress_message,
    one_line,
    open_recording,
)
from semiparam_dynamics.samples.joint_names import FIRST_MESSAGES, FIRST_SECONDS
from semiparam_dynamics.samples.joint_states import JOINT_STATE, READERS, check_encoding
from semiparam_dynamics.samples.measurement import Measurement, StreamConfig
from semiparam_dynamics.samples.storages import Channel
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
    """One topic of a bag: its message type, how many messages it has, and in which encoding."""

    type: str
    count: int
    encoding: str = "cdr"

    def gives(self, kind: str) -> bool:
        """True if its messages are of this type, or are read as such."""
        known = (self.type, self.encoding) in READERS
        return self.encoding == "cdr" and self.type == kind or (kind == JOINT_STATE and known)


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
    why_undecodable: what is wrong with the first of them; empty where there is none.
    share: of the time of the recording, how much has been read, from 0 to 1.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.topics: dict[str, Topic] = {}
        self.warnings: list[str] = []
        self.undecodable: Counter[str] = Counter()
        self.why_undecodable = ""
        self.share = 0.0
        self._files: list[BagFile] = []
        self._stack = ExitStack()
        self._store = get_typestore(Stores.ROS2_KILTED)

    def __enter__(self) -> BagReader:
        with ExitStack() as stack:
            self._files = open_recording(self.path, stack, self.warnings)
            self._stack = stack.pop_all()
        for channel in (c for file in self._files for c in file.storage.channels):
            if not _named(channel):
                self.warnings.append(f"{self.path}: a topic without a name or a type is left out")
                continue
            first = self.topics.setdefault(channel.topic, Topic(channel.type, 0, channel.encoding))
            if _is_of(channel, first):
                self.topics[channel.topic] = replace(first, count=first.count + channel.count)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Sentences on what could not be read, complete once the messages have been read."""
        broken = self.undecodable.total()
        told = f"{broken} messages can't be decoded: {self.why_undecodable}"
        return (*self.warnings, told) if broken else tuple(self.warnings)

    @property
    def duration(self) -> float:
        """Seconds between the first and the last message, by the time of recording."""
        begin, end = self._times
        return (end - begin) / SECOND

    @property
    def _times(self) -> tuple[int, int]:
        times = [(f.storage.begin, f.storage.end) for f in self._files if f.storage.count]
        return min((t[0] for t in times), default=0), max((t[1] for t in times), default=0)

    def messages(self, topics: Collection[str] = ()) -> Iterator[tuple[str, Any, int]]:
        """(topic, message, time of recording in ns) of `topics` (empty: all), in that time's order.

        Raises BagError for a topic that isn't there or has a type unknown here.
        """
        for name in topics:
            if name not in self.topics:
                raise BagError(f"{self.path} has no topic '{name}'; it has: {self._listed()}")
        decode = {name: self._decoder(name) for name in topics or self.topics}
        begin, end = self._times
        files = [self._raw(file, decode) for file in self._files]
        for stamp, topic, data in heapq.merge(*files, key=itemgetter(0)):
            try:
                message = decode[topic](decompress_message(data))
            except Exception as error:  # any byte may be wrong, so any error may come of it
                self.undecodable[topic] += 1
                own = isinstance(error, SampleError)
                told = one_line(error) if own else f"no {self.topics[topic].type}: {error!r}"
                self.why_undecodable = self.why_undecodable or told
                continue
            self.share = (stamp - begin) / max(end - begin, 1)
            yield topic, message, stamp

    def choose(self, kind: str, asked: str = "") -> str:
        """The topic `asked` for, or the only one of the type `kind`; else BagError says which.

        Of several topics of joint states the only one with efforts is taken: a gripper's beside an
        arm's has none; and then the only one of the type itself, where others tell the same. What a
        learner's node published is not measured, so that it is only taken if asked for.
        """
        if asked:
            name = asked if asked in self.topics else f"/{asked}"
            if name in self.topics and self.topics[name].gives(kind):
                return name
            found = "has no topic" if name not in self.topics else f"has no {kind} on"
            raise BagError(f"{self.path} {found} '{asked}'; it has: {self._listed()}")
        candidates = self.measured(kind)
        if kind == JOINT_STATE and len(candidates) > 1:
            candidates = list(filter(self._has_efforts, candidates)) or candidates
            plain = [name for name in candidates if self.topics[name].type == kind]
            candidates = plain or candidates
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            several = ", ".join(map(_printable, sorted(candidates)))
            how = f" with {OPTIONS[kind]}" if kind in OPTIONS else ""
            raise BagError(
                f"{self.path} has several topics of type {kind}, name one{how}: {several}"
            )
        others = ", ".join(f"{name} in {encoding}" for name, encoding in READERS)
        told = f"; joint states are read from {others}: record one" if kind == JOINT_STATE else ""
        raise BagError(f"{self.path} has no topic of type {kind}; it has: {self._listed()}{told}")

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
        names = [name for name, topic in self.topics.items() if topic.gives(kind)]
        return [name for name in names if not self._is_prediction(name)]

    def _has_efforts(self, name: str) -> bool:
        """True if one of the first joint states of a topic has an effort that is not 0.

        Not the very first: a driver may publish before its first reading.
        """
        before, warned = (self.undecodable.copy(), self.why_undecodable), len(self.warnings)
        first = itertools.islice(self.messages([name]), FIRST_MESSAGES)
        found = any(
            np.any(np.nan_to_num(np.asarray(message.effort, dtype=np.float64)))
            for _, message, _ in first
        )
        self.undecodable, self.why_undecodable = (
            before  # they are counted, and told, where the topic is read
        )
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

    def _decoder(self, name: str) -> Callable[[bytes | memoryview], Any]:
        topic = self.topics[name]
        if make := READERS.get((topic.type, topic.encoding)):
            return make()
        if topic.type not in self._store.fielddefs or topic.encoding != "cdr":
            raise BagError(
                f"topic '{_printable(name)}' of {self.path} has the unknown type "
                f"{_printable(topic.type)} in {_printable(topic.encoding)}"
            )
        return partial(self._deserialized, topic.type)

    def _deserialized(self, kind: str, data: bytes | memoryview) -> Any:
        check_encoding(data, (b"\0\0", b"\0\1"))  # rosbags would take others for these
        return self._store.deserialize_cdr(data, kind)

    def _raw(self, file: BagFile, topics: Collection[str]) -> Iterator[tuple[int, str, bytes]]:
        chosen = [
            channel
            for channel in file.storage.channels
            if _named(channel)
            and channel.topic in topics
            and _is_of(channel, self.topics[channel.topic])
        ]
        if not chosen:
            return
        try:
            for stamp, channel, data in file.storage.messages(chosen):
                yield stamp, channel.topic, data
        except Exception as error:  # the storages' libraries raise each their own
            self.warnings.append(f"{file.path} is read only in part: {one_line(error)}")
        self.warnings += (f"{file.path}: {told}" for told in file.storage.warnings)
        file.storage.warnings.clear()


def _named(channel: Channel) -> bool:
    """True if topic and type are texts: of a damaged database they may be missing."""
    return isinstance(channel.topic, str) and isinstance(channel.type, str)


def _is_of(channel: Channel, topic: Topic) -> bool:
    """False for another type on the same topic: the first one counts."""
    return (channel.type, channel.encoding) == (topic.type, topic.encoding)


def _printable(name: str) -> str:
    """A name of a bag, in which damage may have left anything."""
    return "".join(c if c.isprintable() else "?" for c in name)


class Recording:
    """The measurements of one bag, made just as a live node would make them: a stream.

    Each iteration reads the bag from its beginning, so that its length takes no memory. A topic
    that isn't named is the one that `BagReader.choose` takes. `checks` and the other arguments are
    those of `MeasurementStream`. An iteration raises BagError where the bag or a topic can't be
    read, or none of the joint states can be used.

    Attributes
    ----------
    measurements: in the order of their stamps, once `read_measurements` has read them.
    received, dropped, details, frames: as in `MeasurementStream`, of the last iteration.
    joint_states_topic, wrench_topic: the topics read; the second is empty for the effort target.
    warnings: sentences on what of the bag could not be read.
    messages: joint states that the bag has, once it is open.
    share: how much of the bag's time has been read, from 0 to 1.
    """

    def __init__(
        self,
        path: str | Path,
        joint_names: Sequence[str],
        target: str = "effort",
        config: StreamConfig | None = None,
        *,
        joint_states_topic: str = "",
        wrench_topic: str = "",
        **checks: Any,
    ) -> None:
        self.path = path
        self.measurements: list[Measurement] = []
        self._new_stream = partial(MeasurementStream, joint_names, target, config, **checks)
        self._asked = joint_states_topic, wrench_topic if target == "wrench" else None
        self.joint_states_topic, self.wrench_topic = joint_states_topic, wrench_topic
        self.warnings: list[str] = []
        self.share, self.messages = 0.0, 0
        self._follow(self._new_stream())

    def _follow(self, stream: MeasurementStream) -> None:
        self.received, self.dropped = stream.received, stream.dropped
        self.details, self.frames = stream.details, stream.frames

    def __iter__(self) -> Iterator[Measurement]:
        stream = self._new_stream()
        self._follow(stream)
        first: Measurement | None = None
        last = 0
        with BagReader(self.path) as bag:
            self.joint_states_topic = joints = bag.choose(JOINT_STATE, self._asked[0])
            wrench = "" if self._asked[1] is None else bag.choose(WRENCH, self._asked[1])
            self.wrench_topic, self.messages = wrench, bag.topics[joints].count
            for topic, message, _ in bag.messages([joints, wrench] if wrench else [joints]):
                self.share = bag.share
                for m in (stream.joint_state if topic == joints else stream.wrench)(message):
                    first, last = first or m, m.stamp
                    yield m
            for m in stream.flush():
                first, last = first or m, m.stamp
                yield m
            if bag.undecodable:
                stream.dropped["undecodable"] += bag.undecodable.total()
                stream.details.setdefault("undecodable", bag.why_undecodable)
            self.warnings = list(bag.warnings)
        self._check_some(first, last)

    def _check_some(self, first: Measurement | None, last: int) -> None:
        """Raise BagError where there was no measurement, or all had one stamp."""
        if first is None:
            why = "; ".join(f"{count} times {reason}" for reason, count in self.dropped.items())
            told = "".join(f" ({text})" for text in self.details.values() if text)
            raise BagError(
                f"no message on {self.joint_states_topic} of {self.path} can be used: "
                f"{why or 'it is empty'}{told}"
            )
        if last == first.stamp and self.dropped["repeated stamp"]:
            raise BagError(
                f"all {self.received['joint states']} messages on {self.joint_states_topic} of "
                f"{self.path} have one stamp, {last / SECOND:g} s, so that their motion is not "
                "known: stamp each message with the time of its reading (header.stamp = "
                "node.get_clock().now(); with use_sim_time something must publish /clock)"
            )


def read_measurements(
    path: str | Path,
    joint_names: Sequence[str],
    target: str = "effort",
    config: StreamConfig | None = None,
    **options: Any,
) -> Recording:
    """Read all of a bag's measurements, 1 kB each: `Recording` gives long ones one by one.

    The arguments, and what is raised, are those of `Recording`.
    """
    recording = Recording(path, joint_names, target, config, **options)
    recording.measurements = list(recording)
    return recording
