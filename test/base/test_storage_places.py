"""A model replaces no pipe, socket, folder, link or other model, and a lock no linked file."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.base.storage import (
    ModelLock,
    lock_of,
    part_of,
    previous_of,
    save_state,
    set_aside,
)


def save(path: Path) -> None:
    save_state(path, {}, {"x": np.ones(3)}, keep_previous=True)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as here:
        here.bind(os.path.relpath(path))  # its name is short


KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "a pipe"),
    "socket": (make_socket, "a socket"),
    "folder": (Path.mkdir, "a folder"),
}


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    return {e.name: (e.stat().st_ino, stat.S_IFMT(e.stat().st_mode)) for e in os.scandir(folder)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [Path, previous_of, part_of])
@pytest.mark.parametrize("use", [save, set_aside, lambda path: ModelLock(path).take()])
def test_what_is_no_file_is_refused_before_anything_is_touched(
    tmp_path: Path, monkeypatch, kind: str, place, use
) -> None:
    monkeypatch.chdir(tmp_path)
    model = tmp_path / "model.npz"
    if place is not Path:
        save(model)
    make, named = KINDS[kind]
    make(place(model))
    before = seen(tmp_path)
    with pytest.raises(StorageError, match=f"is {named}, no file.*name another file"):
        use(model)
    assert seen(tmp_path) == before


def test_through_a_link_it_is_the_same(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "model.npz").symlink_to(tmp_path / "pipe")
    with pytest.raises(StorageError, match="is a pipe"):
        save(tmp_path / "model.npz")
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "model.npz").is_symlink()


def test_no_model_has_the_name_of_another_ones_backup(tmp_path: Path) -> None:
    model = tmp_path / "model.npz"
    for use in (save, lambda path: ModelLock(path).take()):
        with pytest.raises(StorageError, match=r"backup, of model\.npz.*copy it"):
            use(previous_of(model))
    assert not os.listdir(tmp_path)


def test_a_lock_changes_no_content_of_a_file_that_is_linked_there(tmp_path: Path) -> None:
    other, model = tmp_path / "other", tmp_path / "model.npz"
    other.write_text("content")
    os.link(other, lock_of(model))
    lock = ModelLock(model)
    assert lock.take() == "" and other.read_text() == "content"
    with pytest.raises(StorageError, match="in use"):
        ModelLock(model).take()


def test_a_pipe_in_place_of_the_lock_is_no_lock(tmp_path: Path) -> None:
    model = tmp_path / "model.npz"
    os.mkfifo(lock_of(model))
    assert "can't lock" in ModelLock(model).take() and "no file" in ModelLock(model).take()
