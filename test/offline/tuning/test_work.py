"""The journal keeps what was worked out, for the same data only."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.offline.tuning.work import Journal, key_of


def test_what_was_put_is_there_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "tuned.journal"
    first = Journal(path, {"bags": "abc"})
    first.put("k", [1.5, None, "x"])
    assert Journal(path, {"bags": "abc"}).get("k") == [1.5, None, "x"]
    assert Journal(path, {"bags": "abc"}).get("other") is None


def test_a_line_cut_short_by_a_crash_is_left_out_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "tuned.journal"
    journal = Journal(path, {})
    journal.put("a", 1)
    journal.put("b", [1, 2, 3])
    path.write_text(path.read_text()[:-4])
    again = Journal(path, {})
    assert again.get("a") == 1 and again.get("b") is None
    again.put("b", 2)
    assert Journal(path, {}).get("b") == 2


def test_a_journal_of_other_data_is_kept_beside_and_another_begun(tmp_path: Path) -> None:
    path, previous = tmp_path / "tuned.journal", tmp_path / "tuned.previous.journal"
    Journal(path, {"bags": "abc"}).put("k", 1)
    before = path.read_bytes()
    other = Journal(path, {"bags": "xyz"})
    assert other.get("k") is None and previous.read_bytes() == before
    assert len(other.warnings) == 1 and "kept as tuned.previous.journal" in other.warnings[0]
    # It has no results yet: what was kept before it is worth more.
    third = Journal(path, {"bags": "third"})
    assert not third.warnings and previous.read_bytes() == before
    previous.rename(path)
    assert Journal(path, {"bags": "abc"}).get("k") == 1
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_journal_of_another_version_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "tuned.journal"
    path.write_text('{"semiparam tune": "0.0.1", "bags": "abc"}\n["k", 1]\n')
    assert Journal(path, {"bags": "abc"}).get("k") is None
    assert '"0.0.1"' in (tmp_path / "tuned.previous.journal").read_text()


@pytest.mark.parametrize("notes", [b"Monday: the arm is slow\n", b"7\n", b"\n\n", b"\xff\x00"])
def test_a_file_that_is_no_journal_is_refused_and_stays(tmp_path: Path, notes: bytes) -> None:
    path = tmp_path / "notes.journal"
    path.write_bytes(notes)
    with pytest.raises(StorageError, match=r"notes\.journal is no journal of semiparam tune"):
        Journal(path, {"bags": "abc"})
    assert path.read_bytes() == notes and list(tmp_path.iterdir()) == [path]


def test_an_empty_file_is_begun(tmp_path: Path) -> None:
    path = tmp_path / "tuned.journal"
    path.touch()
    Journal(path, {}).put("k", 1)
    assert Journal(path, {}).get("k") == 1


def test_where_the_new_journal_cannot_be_written_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tuned.journal"
    Journal(path, {}).put("k", 1)
    before = path.read_bytes()

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for identity in ({}, {"bags": "xyz"}):
        with pytest.raises(StorageError, match="No space left"):
            Journal(path, identity)
        assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real.journal", tmp_path / "link.journal"
    link.symlink_to(real)
    Journal(link, {}).put("k", 1)
    assert link.is_symlink() and Journal(real, {}).get("k") == 1


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="journal"):
        Journal(tmp_path, {})


def test_keys_name_everything_they_are_made_of() -> None:
    assert key_of("f", {"a": 1, "b": 2.0}) == key_of("f", {"b": 2.0, "a": 1})
    assert key_of("f", {"a": 1}) != key_of("f", {"a": 2}) != key_of("g", {"a": 2})
