"""Saved models: whole, checked, and only for the robot they belong to."""

from __future__ import annotations

import fcntl
import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics import storage
from semiparam_dynamics.errors import DamagedModelError, StorageError
from semiparam_dynamics.storage import load_state, previous_of, save_state

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


def test_what_an_older_version_did_not_name_is_its_default(saved: Path) -> None:
    newer = {**IDENTITY, "kind": "local", "R": 3}
    state = load_state(saved, newer, defaults={"kind": "local", "R": 3, "other": 1})
    assert set(state) == set(STATE)
    with pytest.raises(StorageError, match="kind is 'local' there, 'global' here$"):
        load_state(saved, {**newer, "kind": "global"}, defaults={"kind": "local", "R": 3})
    with pytest.raises(StorageError, match="kind is None there, 'local' here$"):
        load_state(saved, newer, defaults={"R": 3})


def test_a_newer_format_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "FORMAT_VERSION", 7)
    save_state(saved, IDENTITY, STATE)
    monkeypatch.undo()
    with pytest.raises(StorageError, match="has format 7, newer than this version's 2") as caught:
        load_state(saved, IDENTITY)
    assert not isinstance(caught.value, DamagedModelError)  # no reason to take an older file


def test_numpy_opens_it(saved: Path) -> None:
    with np.load(saved, allow_pickle=False) as archive:
        assert json.loads(bytes(archive["header"]))["identity"]["joints"] == ["a", "b"]
        assert all(np.array_equal(archive[name], STATE[name]) for name in STATE)


def test_the_same_state_makes_the_same_file(saved: Path) -> None:
    before = saved.read_bytes()
    save_state(saved, IDENTITY, STATE)
    assert saved.read_bytes() == before


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.zeros((0, 4)),
        np.array(["mug", "brush"]),
        np.array([True]),
        np.float32(2.5),
        np.arange(8.0)[::2],
    ],
)
def test_arrays_of_every_kind_come_back_and_may_be_changed(tmp_path: Path, array) -> None:
    save_state(tmp_path / "x.npz", IDENTITY, {"x": np.asarray(array)})
    back = load_state(tmp_path / "x.npz", IDENTITY)["x"]
    assert back.dtype == np.asarray(array).dtype and back.shape == np.shape(array)
    assert np.array_equal(back, array)
    assert back.flags.writeable


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no saved model"):
        load_state(tmp_path / "none.npz", IDENTITY)


def test_a_failed_write_keeps_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(TypeError):
        save_state(saved, {"not": object()}, STATE)
    assert saved.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="can't write the model"):
        save_state(tmp_path / "file" / "model.npz", IDENTITY, STATE)


def test_the_one_before_is_kept_where_asked(saved: Path) -> None:
    first = saved.read_bytes()
    save_state(saved, IDENTITY, {"x": np.ones(1)}, keep_previous=True)
    second = saved.read_bytes()
    assert previous_of(saved).read_bytes() == first
    save_state(saved, IDENTITY, {"x": np.ones(2)}, keep_previous=True)
    assert previous_of(saved).read_bytes() == second
    assert sorted(path.name for path in saved.parent.iterdir()) == [
        "model.npz",
        "model.previous.npz",
    ]


def test_a_damaged_file_does_not_take_the_place_of_a_whole_one(saved: Path) -> None:
    first = saved.read_bytes()
    save_state(saved, IDENTITY, {"x": np.ones(1)}, keep_previous=True)
    saved.write_bytes(saved.read_bytes()[:-1])
    save_state(saved, IDENTITY, {"x": np.ones(2)}, keep_previous=True)
    assert previous_of(saved).read_bytes() == first
    assert len(load_state(saved, IDENTITY)["x"]) == 2


def test_what_a_killed_process_left_is_used_up(saved: Path) -> None:
    left = saved.with_name("model.npz.part")
    left.write_bytes(b"half")
    save_state(saved, IDENTITY, STATE)
    assert not left.exists()


def test_content_is_on_the_disk_before_it_gets_its_name_and_the_name_after(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(handle: int) -> None:
        fsync(handle)
        done.append(("fsync", Path(os.readlink(f"/proc/self/fd/{handle}")).name))

    def note_replace(source: Path, target: Path) -> None:
        replace(source, target)
        done.append((source.name, target.name))

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    save_state(saved, IDENTITY, STATE, keep_previous=True)
    assert done == [
        ("fsync", "model.npz.part"),
        ("model.npz", "model.previous.npz"),
        ("model.npz.part", "model.npz"),
        ("fsync", "deep"),
    ]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_disk_that_is_full_changes_nothing_and_is_told(saved: Path, share: float) -> None:
    before = saved.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * len(before)), limits[1]))
    try:
        with pytest.raises(StorageError, match="can't write the model to .*: File too large"):
            save_state(saved, IDENTITY, STATE, keep_previous=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, make) -> None:
    make(tmp_path / "model.npz")
    with pytest.raises(DamagedModelError, match="is not a file"):
        load_state(tmp_path / "model.npz", IDENTITY)


def test_two_processes_do_not_write_into_one_folder_at_once(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr(storage, "LOCK_WAIT", 0.05)
    other = os.open(saved.parent, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(StorageError, match="another process has been saving into"):
        save_state(saved, IDENTITY, {"x": np.ones(1)})
    assert saved.read_bytes() == before
    os.close(other)
    save_state(saved, IDENTITY, {"x": np.ones(1)})
    assert saved.read_bytes() != before
