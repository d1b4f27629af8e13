"""Arrays in a zip archive as `numpy.savez` writes them, sealed, and read without trusting the file.

The seal is the archive's comment, its last 71 bytes: the SHA-256 of all before it, checked before
anything is made of them. `numpy.load` opens such a file too; it unpickles nothing either, but
inflates, and allocates what an entry's header asks for.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import tokenize
import zipfile
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

# What zipfile, numpy and json raise for bytes that are none of theirs.
MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    EOFError,
    RuntimeError,  # also of encrypted entries, and of JSON nested too deep
    MemoryError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
)
KINDS = "biufU"  # of the arrays' types: bool, integers, floats, text
ENCRYPTED = 1  # a flag of zip entries
MOMENT = (1980, 1, 1, 0, 0, 0)  # the same arrays make the same file
SEAL = b"sha256:"
SEAL_LENGTH = len(SEAL) + 64
BLOCK = 1 << 20  # bytes read at a time


def write_archive(file: IO[bytes], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write the arrays, uncompressed, and the seal; other threads may run meanwhile."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = bytes(SEAL_LENGTH)
        for name, value in arrays.items():
            array = np.asarray(value, order="C")
            info = zipfile.ZipInfo(f"{name}.npy", MOMENT)
            with archive.open(info, "w", force_zip64=True) as entry:
                about = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(entry, about)
                # Not tobytes(): a copy would keep all other threads waiting.
                entry.write(array.reshape(-1).view(np.uint8).data)
    file.flush()
    digest = _digest(file)
    file.seek(-SEAL_LENGTH, os.SEEK_END)
    file.write(SEAL + digest)
    file.flush()


def seal_holds(file: IO[bytes]) -> bool | None:
    """Whether the seal is right; None where there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - SEAL_LENGTH, 0))
    seal = file.read(SEAL_LENGTH)
    if len(seal) < SEAL_LENGTH or not seal.startswith(SEAL):
        return None
    return seal[len(SEAL) :] == _digest(file)


def read_archive(file: IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays, whatever the seal; allocates no more than the file is long.

    Raises one of `MALFORMED`, or OSError.
    """
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if sum(info.file_size for info in entries) > size:
            raise ValueError("its entries are longer than it")
        return {info.filename.removesuffix(".npy"): _read(archive, info) for info in entries}


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ENCRYPTED:
        raise ValueError("an entry is compressed")
    with cast(zipfile.ZipExtFile, archive.open(info)) as entry:
        if np.lib.format.read_magic(entry) != (1, 0):
            raise ValueError("an entry has another version")
        shape, columns_first, dtype = np.lib.format.read_array_header_1_0(entry)
        if dtype.hasobject or dtype.kind not in KINDS or not dtype.itemsize:
            raise ValueError(f"an entry has type {dtype}")
        left = info.file_size - entry.tell()
        if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != left:
            raise ValueError("an entry is not as long as it says")
        array = np.empty(shape[::-1] if columns_first else shape, dtype)
        target = array.reshape(-1).view(np.uint8)
        if entry.readinto(target.data) != left or entry.read(1):
            raise EOFError("an entry is cut short")
        return array.T if columns_first else array


def _digest(file: IO[bytes]) -> bytes:
    """SHA-256 of all but the seal's bytes, as hexadecimal text."""
    left = file.seek(0, os.SEEK_END) - SEAL_LENGTH
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0 and (block := file.read(min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest().encode()
