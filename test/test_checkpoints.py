"""Which saved model is gone on from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.errors import DamagedModelError, StorageError
from semiparam_dynamics.storage import any_saved, load_newest, load_state, previous_of, save_state

IDENTITY: dict[str, object] = {"urdf": "abc"}


class Model:
    def __init__(self) -> None:
        self.value = 0.0

    def load(self, path: Path) -> None:
        self.value = float(load_state(path, IDENTITY)["x"][0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    for value in (1.0, 2.0):
        save_state(path, IDENTITY, {"x": np.array([value])}, keep_previous=True)
    return path


def test_the_newest_is_taken(path: Path) -> None:
    model = Model()
    assert load_newest(path, model.load) == (path, "")
    assert model.value == 2.0


def test_where_it_is_damaged_the_one_before_is_taken_and_that_is_told(path: Path) -> None:
    model = Model()
    path.write_bytes(path.read_bytes()[:-100])
    loaded = load_newest(path, model.load)
    assert loaded.path == previous_of(path) and model.value == 1.0
    assert str(path) in loaded.problem and "damaged" in loaded.problem
    assert str(previous_of(path)) in loaded.problem


def test_between_two_renames_there_is_only_the_one_before(path: Path) -> None:
    model = Model()
    path.unlink()
    assert any_saved(path)
    assert load_newest(path, model.load) == (previous_of(path), "")
    assert model.value == 1.0
    previous_of(path).unlink()
    assert not any_saved(path)
    with pytest.raises(DamagedModelError, match="there is no saved model"):
        load_newest(path, model.load)


def test_both_damaged(path: Path) -> None:
    model = Model()
    path.write_bytes(b"")
    previous_of(path).write_bytes(b"")
    with pytest.raises(DamagedModelError, match="move both away"):
        load_newest(path, model.load)
    assert model.value == 0.0


def test_another_robots_file_does_not_bring_the_one_before(path: Path) -> None:
    model = Model()
    save_state(path, {"urdf": "xyz"}, {"x": np.array([3.0])}, keep_previous=True)
    with pytest.raises(StorageError, match="urdf is 'xyz' there, 'abc' here"):
        load_newest(path, model.load)
    assert model.value == 0.0
