"""Saved models: whole, checked, and only for the robot they belong to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.storage import load_state, save_state

IDENTITY: dict[str, object] = {"urdf": "abc", "joints": ("a", "b"), "width": 0.2}
STATE = {"R": np.triu(np.arange(9.0).reshape(3, 3)), "count": np.array([3], dtype=np.int64)}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "model.npz"
    save_state(path, IDENTITY, STATE)
    return path


def test_round_trip(saved: Path) -> None:
    state = load_state(saved, IDENTITY)
    assert set(state) == set(STATE)
    for name, array in STATE.items():
        assert state[name].dtype == array.dtype
        assert np.array_equal(state[name], array)
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


def test_another_identity_is_refused_with_what_differs(saved: Path) -> None:
    with pytest.raises(StorageError, match="urdf is 'abc' there, 'xyz' here"):
        load_state(saved, {**IDENTITY, "urdf": "xyz"})


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no saved model"):
        load_state(tmp_path / "none.npz", IDENTITY)


def test_every_flipped_byte_is_noticed_or_harmless(saved: Path) -> None:
    whole = saved.read_bytes()
    for i in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[i] ^= 0xFF
        saved.write_bytes(bytes(damaged))
        try:
            state = load_state(saved, IDENTITY)
        except StorageError:
            continue
        assert all(np.array_equal(state[name], STATE[name]) for name in STATE)


@pytest.mark.parametrize("length", [0, 1, 100, 500])
def test_truncated_files_are_refused(saved: Path, length: int) -> None:
    saved.write_bytes(saved.read_bytes()[:length])
    with pytest.raises(StorageError):
        load_state(saved, IDENTITY)


def test_a_failed_write_keeps_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(TypeError):
        save_state(saved, {"not": object()}, STATE)
    assert saved.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="can't write the model"):
        save_state(tmp_path / "file" / "model.npz", IDENTITY, STATE)
