"""Zstandard, in which recorders compress bags: whole files, or message by message."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd  # comes with rosbags

SUFFIX = ".zstd"
MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 20


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
    Raises ZstdError, a ValueError or an OSError where the data are damaged.
    """
    if bytes(data[: len(MAGIC)]) != MAGIC:
        return data
    whole: bytes = zstd.decompress(data)
    return whole
