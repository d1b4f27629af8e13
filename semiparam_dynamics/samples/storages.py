"""The storage files of recordings as streams of messages: MCAP, and SQLite as rosbag2 has it.

An MCAP file may have any profile, and channels of any kind beside those of ROS 2: they are listed
as the file names them. What is in its index is read from there; without one, as where a recorder
was killed, the file is read once from its beginning, as far as it goes. (The library mcap makes an
object of each record, which takes five times as long as reading it: 11 us a message.)
"""

from __future__ import annotations

import sqlite3
import struct
import sys
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]  # both come with rosbags

if sys.version_info >= (3, 14):
    from compression import zstd as zstd  # bag_files takes it from here
else:
    from backports import zstd as zstd


@dataclass(frozen=True)
class Channel:
    """One topic of a storage file; in a damaged file, topic and type may be no texts."""

    id: int
    topic: str
    type: str
    encoding: str  # of the messages' bytes, such as cdr or protobuf
    count: int = 0


Recorded = tuple[int, Channel, bytes]  # a message, and before it when it was recorded, ns


class SqliteFile:
    """A storage file of rosbag2's plugin sqlite3, of any age, open for reading.

    Raises sqlite3.Error where the file is no whole database with topics and messages.

    Attributes
    ----------
    channels: the topics. count, begin, end: number of messages, and when the first and the last
        were recorded, ns. warnings: sentences on what is lost, complete after the last message.
    """

    def __init__(self, path: Path) -> None:
        self.warnings: list[str] = []
        # Immutable: in a folder without the right to write there is no place for a journal.
        self._file = sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)
        try:
            topics = self._file.execute("SELECT id, name, type, serialization_format FROM topics")
            counted = self._file.execute("SELECT topic_id, count(*) FROM messages GROUP BY 1")
            counts: dict[int, int] = dict(counted.fetchall())
            self.channels = [
                Channel(number, topic, kind, encoding, counts.get(number, 0))
                for number, topic, kind, encoding in topics.fetchall()
            ]
            times = self._file.execute("SELECT min(timestamp), max(timestamp) FROM messages")
            self.begin, self.end = (int(time or 0) for time in times.fetchone())
        except BaseException:
            self.close()
            raise
        self.count = sum(counts.values())

    def messages(self, chosen: Collection[Channel]) -> Iterator[Recorded]:
        """The messages of the chosen channels, in the order of their recording.

        Raises sqlite3.Error where the file is damaged.
        """
        by_id = {channel.id: channel for channel in chosen}
        places = ", ".join("?" * len(by_id))
        query = f"SELECT timestamp, topic_id, data FROM messages WHERE topic_id IN ({places})"  # nosec
        rows = self._file.execute(query + " ORDER BY timestamp", tuple(by_id))
        for stamp, number, data in rows:
            yield stamp, by_id[number], data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# -------------------------------------------------------------------------------------------------
# MCAP: a file of records, each with its opcode and length in front. Most are in chunks, which may
# be compressed, and at the end is an index of the chunks. Numbers are little-endian.

MCAP_MAGIC = b"\x89MCAP0\r\n"
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x02, 0x03, 0x04, 0x05, 0x06
CHUNK_INDEX, STATISTICS = 0x08, 0x0B
HEAD = struct.Struct("<BQ")  # opcode, length
MESSAGE_HEAD = struct.Struct("<BQHIQQ")  # and channel, number, times of recording and publishing
CHUNK_HEAD = struct.Struct("<QQQI")  # first and last time, bytes before compression, checksum
INDEX_HEAD = struct.Struct("<QQQQI")  # first and last time, place and length of the chunk, bytes
STATISTICS_HEAD = struct.Struct("<QHIIIIQQI")  # messages, ..., chunks, first and last time, bytes
LENGTH = struct.Struct("<I")
FOOTER_SIZE = HEAD.size + 20 + len(MCAP_MAGIC)  # bytes from the footer to the end of the file
READ_SIZE = 1 << 20  # bytes read at once, where nothing else says how many
MAX_UNPACKED = 1 << 28  # bytes, which a few may claim to be: far more than a chunk or message has


class Part(NamedTuple):
    """A part that is read at once: a chunk, or records that are in none."""

    begin: int  # when its first message was recorded, ns
    place: int  # in the file
    size: int  # bytes
    channels: Collection[int]


class McapFile:
    """An MCAP file, open for reading; the attributes are those of `SqliteFile`.

    Raises ValueError, struct.error or UnicodeDecodeError where nothing of it can be read.

    Attributes
    ----------
    problem: why the file has no end; empty where it has.
    """

    def __init__(self, path: Path) -> None:
        self.warnings: list[str] = []
        self.begin = self.end = 0
        self.problem = ""
        self._size = path.stat().st_size
        self._types = {0: "no schema"}
        self._found: dict[int, Channel] = {}
        self._parts: list[Part] = []
        self._file = path.open("rb")
        try:
            if self._file.read(len(MCAP_MAGIC)) != MCAP_MAGIC:
                raise ValueError("it does not begin as an MCAP file does")
            counts = None
            with suppress(struct.error, ValueError, LookupError):  # of a damaged index
                counts = self._read_index()
            if counts is None:
                counts = self._read_through()
        except BaseException:
            self.close()
            raise
        self.channels = [replace(c, count=counts[c.id]) for c in self._found.values()]
        self.count = counts.total()

    def messages(self, chosen: Collection[Channel]) -> Iterator[Recorded]:
        """The messages of the chosen channels, in the order of their recording.

        A chunk that is damaged is left out.
        """
        by_id = {channel.id: channel for channel in chosen}
        waiting: list[Recorded] = []
        for part in sorted(self._parts):
            if by_id.keys().isdisjoint(part.channels):
                continue
            # What was recorded before this part began is earlier than all that follows.
            ready = bisect_left(waiting, part.begin, key=itemgetter(0))
            yield from waiting[:ready]
            waiting = waiting[ready:]
            try:
                waiting += _messages(self._content(part.place, part.size), by_id)
            except Exception as error:  # each compression's library raises its own
                self.warnings.append(f"a chunk of {part.size} bytes is damaged: {error}")
            waiting.sort(key=itemgetter(0))
        yield from waiting

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_index(self) -> Counter[int] | None:
        """Number of messages of each channel by the index; None where it is missing or not whole.

        It is optional, and so is each of its parts.
        """
        end = self._read(self._size - FOOTER_SIZE, FOOTER_SIZE)
        if end[:1] != bytes([FOOTER]) or not end.endswith(MCAP_MAGIC):
            self.problem = "its end is missing"
            return None
        (place,) = struct.unpack_from("<Q", end, HEAD.size)
        counts, total, chunks = Counter[int](), -1, 0
        for opcode, at, size in self._records(place) if place else ():
            body = self._read(at, size)[HEAD.size :]
            self._describe(opcode, body)
            if opcode == CHUNK_INDEX:
                begin, _, at, size, length = INDEX_HEAD.unpack_from(body)
                there = struct.iter_unpack("<HQ", body[INDEX_HEAD.size :][:length])
                self._parts.append(Part(begin, at, size, {channel for channel, _ in there}))
            elif opcode == STATISTICS:
                total, *_, chunks, self.begin, self.end, length = STATISTICS_HEAD.unpack_from(body)
                counts.update(
                    dict(struct.iter_unpack("<HQ", body[STATISTICS_HEAD.size :][:length]))
                )
        whole = total == counts.total() and counts.keys() <= self._found.keys()
        return counts if whole and len(self._parts) == chunks and (chunks or not total) else None

    def _read_through(self) -> Counter[int]:
        """The same from all records of the file."""
        parts: list[tuple[bool, int, int]] = []  # outside of a chunk? place, size
        for opcode, place, size in self._records(len(MCAP_MAGIC)):
            loose = opcode != CHUNK
            if loose and parts and parts[-1][0] and parts[-1][2] < READ_SIZE:
                parts[-1] = True, parts[-1][1], parts[-1][2] + size
            else:
                parts.append((loose, place, size))
        self._parts, counts, times = [], Counter[int](), list[int]()
        for _, place, size in parts:
            there, stamps = Counter[int](), list[int]()
            try:
                for opcode, body in _inside(self._content(place, size)):
                    self._describe(opcode, body)
                    if opcode == MESSAGE:
                        channel, _, stamp = struct.unpack_from("<HIQ", body)
                        there[channel] += 1
                        stamps.append(stamp)
            except Exception as error:
                self.warnings.append(f"a chunk of {size} bytes is damaged: {error}")
            if stamps:
                self._parts.append(Part(min(stamps), place, size, set(there)))
                times += min(stamps), max(stamps)
                counts += there
        self.begin, self.end = min(times, default=0), max(times, default=0)
        return Counter({channel: n for channel, n in counts.items() if channel in self._found})

    def _records(self, place: int) -> Iterator[tuple[int, int, int]]:
        """Opcode, place and size of each record from `place` on, up to the footer."""
        while place + HEAD.size <= self._size:
            opcode, length = HEAD.unpack(self._read(place, HEAD.size))
            if opcode in (0, FOOTER):
                return
            yield opcode, place, HEAD.size + length
            place += HEAD.size + length

    def _read(self, place: int, size: int) -> bytes:
        """The bytes there, fewer where the file ends."""
        self._file.seek(max(place, 0))
        return self._file.read(min(size, self._size))

    def _describe(self, opcode: int, body: bytes) -> None:
        if opcode not in (SCHEMA, CHANNEL):
            return
        number, schema = struct.unpack_from("<HH", body)  # of a schema there is the one alone
        if opcode == SCHEMA:
            self._types[number] = _text(body, 2)[0]
        else:
            topic, at = _text(body, 4)
            encoding, _ = _text(body, at)
            self._found[number] = Channel(number, topic, self._types[schema], encoding)

    def _content(self, place: int, size: int) -> bytes:
        """The records there, of a chunk those in it."""
        block = self._read(place, size)
        if block[0] != CHUNK:
            return block
        _, _, size, checksum = CHUNK_HEAD.unpack_from(block, HEAD.size)
        compression, at = _text(block, HEAD.size + CHUNK_HEAD.size)
        (packed,) = struct.unpack_from("<Q", block, at)
        content = data = block[at + 8 :][:packed]
        # Of one that is cut short the decompressors give what there is.
        if compression == "zstd":
            content = zstd.ZstdDecompressor().decompress(data, max_length=MAX_UNPACKED)
        elif compression == "lz4":
            content = LZ4FrameDecompressor().decompress(data, max_length=MAX_UNPACKED)
        elif compression:
            raise ValueError(f"its compression, {compression[:40]!r}, is unknown")
        if len(data) == packed and (
            len(content) != size or (checksum and zlib.crc32(content) != checksum)
        ):
            raise ValueError("its content is not what its checksum says")
        return content


def _text(data: bytes, at: int) -> tuple[str, int]:
    """The text that is at `at` behind its length, and where it ends."""
    (length,) = LENGTH.unpack_from(data, at)
    end = at + LENGTH.size + length
    return data[at + LENGTH.size : end].decode(), end


def _inside(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Opcode and body of each whole record."""
    at = 0
    while at + HEAD.size <= len(content):
        opcode, length = HEAD.unpack_from(content, at)
        body = content[at + HEAD.size : (end := at + HEAD.size + length)]
        if end <= len(content):
            yield opcode, body
        at = end


def _messages(content: bytes, by_id: Mapping[int, Channel]) -> list[Recorded]:
    """The messages of these channels, in the order in which they are in `content`."""
    found: list[Recorded] = []
    at, size, head = 0, len(content), MESSAGE_HEAD.size
    while at + head <= size:  # a shorter record is no message
        opcode, length, number, _, stamp, _ = MESSAGE_HEAD.unpack_from(content, at)
        end = at + HEAD.size + length
        if opcode == MESSAGE and end <= size and (channel := by_id.get(number)) is not None:
            found.append((stamp, channel, content[at + head : end]))
        at = end
    return found
