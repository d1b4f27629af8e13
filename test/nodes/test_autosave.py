"""Saving in the background, to real files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.nodes.autosave import Autosave, Snapshot
from semiparam_dynamics.storage import load_state

IDENTITY: dict[str, object] = {"kind": "test"}


class Model:
    def __init__(self, path: Path | None) -> None:
        self.value = np.zeros(1000)
        self.autosave = Autosave(path, self.snapshot)

    def snapshot(self) -> Snapshot:
        return IDENTITY, {"value": self.value.copy()}

    def change(self, value: float) -> None:
        self.value[:] = value
        self.autosave.changed()


def saved(path: Path) -> float:
    return float(load_state(path, IDENTITY)["value"][0])


def test_writes_what_the_model_was_when_asked_and_only_then(tmp_path: Path):
    path = tmp_path / "model.npz"
    model = Model(path)
    model.autosave.request()
    model.autosave.step()
    assert not path.exists()  # nothing has changed
    model.change(1.0)
    model.autosave.step()
    model.autosave.wait()
    assert not path.exists()  # nobody has asked
    model.autosave.request()
    model.autosave.step()
    model.change(2.0)
    model.autosave.wait()
    assert saved(path) == 1.0 and model.autosave.unsaved == 1
    model.autosave.finish()
    assert saved(path) == 2.0 and model.autosave.unsaved == 0


def test_without_a_file_nothing_is_written_but_where_one_is_named(tmp_path: Path):
    model = Model(None)
    model.change(1.0)
    model.autosave.request()
    model.autosave.step()
    model.autosave.finish()
    assert model.autosave.unsaved == 1 and not list(tmp_path.iterdir())
    model.autosave.save(tmp_path / "model.npz")
    assert saved(tmp_path / "model.npz") == 1.0 and model.autosave.unsaved == 0


def test_a_write_that_fails_says_so_and_leaves_the_change_unsaved(tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    model = Model(tmp_path / "file" / "model.npz")
    model.change(1.0)
    model.autosave.request()
    model.autosave.step()
    model.autosave.wait()
    assert "can't write the model" in model.autosave.problem and model.autosave.unsaved == 1
    with pytest.raises(StorageError):
        model.autosave.finish()


def test_what_agrees_with_the_file_is_not_written(tmp_path: Path):
    path = tmp_path / "model.npz"
    model = Model(path)
    model.change(1.0)
    model.autosave.request()
    model.autosave.agree()
    model.autosave.step()
    model.autosave.finish()
    assert not path.exists()
