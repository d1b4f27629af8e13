"""The journal keeps what was worked out, for the same data only."""

from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.tuning.work import Journal, key_of


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


def test_a_journal_of_other_data_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "tuned.journal"
    Journal(path, {"bags": "abc"}).put("k", 1)
    assert Journal(path, {"bags": "xyz"}).get("k") is None
    path.write_text("no journal at all\n")
    assert len(Journal(path, {"bags": "xyz"})) == 0


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="journal"):
        Journal(tmp_path, {})


def test_keys_name_everything_they_are_made_of() -> None:
    assert key_of("f", {"a": 1, "b": 2.0}) == key_of("f", {"b": 2.0, "a": 1})
    assert key_of("f", {"a": 1}) != key_of("f", {"a": 2}) != key_of("g", {"a": 2})
