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
