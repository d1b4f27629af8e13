"""Compressed messages: whole ones, damaged ones, and those that would fill the memory."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.samples import bag as zstd
from semiparam_dynamics.samples.bag import decompress_message

DATA = b"\0\1\0\0" + bytes(range(200))


def test_plain_bytes_pass_and_frames_are_joined() -> None:
    assert decompress_message(DATA) is DATA
    assert decompress_message(zstd.zstd.compress(DATA)) == DATA
    assert decompress_message(memoryview(zstd.zstd.compress(DATA))) == DATA
    two = zstd.zstd.compress(DATA) + zstd.zstd.compress(b"more")
    assert decompress_message(two) == zstd.zstd.decompress(two) == DATA + b"more"


@given(st.integers(0, 60), st.binary(min_size=1, max_size=3))
def test_damaged_data_raise_what_a_reader_counts(at, wrong) -> None:
    data = zstd.zstd.compress(DATA)
    damaged = data[:at] + wrong + data[at + len(wrong) :]
    for one in (damaged, data[:at]):
        try:
            decompress_message(one)
        except (zstd.zstd.ZstdError, EOFError, ValueError):
            pass


def test_a_few_bytes_that_become_gigabytes_are_refused_before_they_do(monkeypatch) -> None:
    monkeypatch.setattr(zstd, "LARGEST", 1 << 20)
    exact = zstd.zstd.compress(bytes(1 << 20))
    assert len(decompress_message(exact)) == 1 << 20
    bomb = zstd.zstd.compress(bytes(1 << 27)) * 8  # a gigabyte in all
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="longer than 1048576 bytes"):
        decompress_message(bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
