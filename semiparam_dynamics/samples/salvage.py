"""What can still be read of a recording that broke off: copied to a file that is whole again.

A recorder that is killed, or a full disk, leaves an .mcap without its end or an .db3 whose last
pages are missing. The messages before that are intact.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import BinaryIO

MAGIC = b"\x89MCAP0\r\n"
CHUNK, DATA_END, FOOTER = 0x06, 0x0F, 0x02  # MCAP record opcodes


def salvage(path: Path, folder: Path) -> Path:
    """Copy the readable part of the storage file `path` into `folder`; return the copy.

    Raises OSError, ValueError or sqlite3.Error where nothing of it can be read.
    """
    copy = folder / f"salvaged{path.suffix}"
    if path.suffix == ".mcap":
        _salvage_mcap(path, copy)
    else:
        _salvage_sqlite(path, copy)
    return copy


def _salvage_mcap(path: Path, copy: Path) -> None:
    """Keep the whole records and end the file as the MCAP specification has it, with no index."""
    size = path.stat().st_size
    with path.open("rb") as source, copy.open("wb") as target:
        if source.read(len(MAGIC)) != MAGIC:
            raise ValueError("no MCAP file")
        end = _whole_records(source, len(MAGIC), size)
        _copy(source, target, 0, end)
        # Without compression, a chunk's records are as good outside of the chunk as in it.
        inside = _inside_chunk(source, end)
        if inside is not None:
            _copy(source, target, inside, _whole_records(source, inside, size))
        target.write(struct.pack("<BQI", DATA_END, 4, 0))
        target.write(struct.pack("<BQQQI", FOOTER, 20, 0, 0, 0) + MAGIC)


def _whole_records(source: BinaryIO, start: int, size: int) -> int:
    """Where the last whole record of the data section ends, counted from `start` on."""
    end = start
    while True:
        source.seek(end)
        head = source.read(9)
        if len(head) < 9 or head[0] in (0, DATA_END, FOOTER):
            return end
        following = end + 9 + int(struct.unpack("<Q", head[1:])[0])
        if following > size:
            return end
        end = following


def _inside_chunk(source: BinaryIO, start: int) -> int | None:
    """Where the records of an uncompressed chunk begin, if there is one at `start`."""
    source.seek(start)
    # Opcode, length; first and last time, uncompressed size, checksum; compression, size.
    head = source.read(9 + 28 + 4 + 8)
    if len(head) < 49 or head[0] != CHUNK or head[37:41] != bytes(4):
        return None
    return start + len(head)


def _copy(source: BinaryIO, target: BinaryIO, start: int, end: int) -> None:
    source.seek(start)
    while start < end and (block := source.read(min(end - start, 1 << 20))):
        target.write(block)
        start += len(block)


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
