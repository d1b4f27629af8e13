"""Saving in the background, to real files."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from semiparam_dynamics.base.errors import NothingToSaveError, StorageError
from semiparam_dynamics.base.nodes import autosave
from semiparam_dynamics.base.nodes.autosave import LONG, Autosave, Snapshot
from semiparam_dynamics.base.storage import load_state, previous_of

IDENTITY: dict[str, object] = {"kind": "test"}


class Model:
    def __init__(self, path: Path | None, interval: float = 0.0) -> None:
        self.value = np.zeros(1000)
        self.now = 100.0
        self.autosave = Autosave(path, self.snapshot, interval, lambda: self.now)

    def snapshot(self) -> Snapshot:
        return IDENTITY, {}, {"value": self.value.copy()}

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


def test_that_there_is_nothing_to_save_is_no_trouble_and_ends_none(tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    path, taught, trouble = tmp_path / "file" / "model.npz", False, ""

    def snapshot() -> Snapshot:
        if not taught:
            raise NothingToSaveError("nothing was taught yet")
        return IDENTITY, {}, {"value": np.zeros(3)}

    saving = Autosave(path, snapshot, 0.0)
    for _ in range(2):
        with pytest.raises(NothingToSaveError, match="nothing was taught yet"):
            saving.begin(path, lambda problem: None)
        assert saving.trouble() == trouble
        taught = True
        with pytest.raises(StorageError, match="can't write"):
            saving.save(path)
        taught, trouble = False, saving.trouble()


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
    model.autosave.mark_saved()
    model.autosave.step()
    model.autosave.finish()
    assert not path.exists()


def test_writes_at_the_interval_what_has_changed_and_nothing_else(tmp_path: Path):
    path = tmp_path / "model.npz"
    model = Model(path, interval=10.0)
    written = []
    for k in range(100):  # s
        model.now += 1.0
        if k % 2 and k < 41:
            model.change(float(k))
        model.autosave.step()
        model.autosave.wait()
        if path.exists() and (not written or written[-1][1] != saved(path)):
            written.append((k, saved(path)))
    # The first change, at 1, is at most 10 s old; then each 10 s; the last when it is as old.
    assert written == [(11, 11.0), (23, 23.0), (35, 35.0), (47, 39.0)]
    assert model.autosave.unsaved == 0
    model.change(1.0)
    model.autosave.interval = 0.0
    model.now += 100.0
    model.autosave.step()
    assert model.autosave.unsaved == 1


def test_a_write_begins_so_early_that_it_is_over_in_time(tmp_path: Path):
    model = Model(tmp_path / "model.npz", interval=10.0)
    model.autosave.write_s = 3.0
    model.change(1.0)
    model.now += 6.9
    model.autosave.step()
    assert not model.autosave.copy_s
    model.now += 0.2
    model.autosave.step()
    model.autosave.wait()
    assert model.autosave.unsaved == 0


def test_a_failed_write_is_tried_again_after_the_interval(tmp_path: Path):
    blocker = tmp_path / "file"
    blocker.write_text("no folder")
    model = Model(blocker / "model.npz", interval=10.0)
    model.change(1.0)
    for seconds, told in ((9.0, False), (1.0, True)):
        model.now += seconds
        model.autosave.step()
        model.autosave.wait()
        assert bool(model.autosave.problem) == told
    blocker.unlink()
    for seconds, unsaved in ((9.0, 1), (1.0, 0)):
        model.now += seconds
        model.autosave.step()
        model.autosave.wait()
        assert model.autosave.unsaved == unsaved
    assert not model.autosave.problem


@pytest.mark.parametrize("lacking", ["memory", "thread"])
def test_a_write_that_cannot_begin_is_a_problem_and_tried_again(
    tmp_path: Path, monkeypatch, lacking: str
):
    model = Model(tmp_path / "model.npz", interval=10.0)
    for value in (1.0, 2.0):  # after one that was written
        model.change(value)
        model.now += 10.0
        model.autosave.step()
        model.autosave.wait()
    model.change(3.0)
    model.now += 10.0

    def fails(*_: object) -> None:
        raise StorageError("no memory") if lacking == "memory" else RuntimeError("no thread")

    with monkeypatch.context() as broken:
        if lacking == "memory":
            broken.setattr(model.autosave, "_snapshot", fails)
        else:
            broken.setattr(autosave.Thread, "start", fails)
        model.autosave.step()
        assert f"no {lacking}" in model.autosave.trouble() and model.autosave.unsaved == 1
        for ask in (model.autosave.save, lambda path: model.autosave.begin(path, print)):
            with pytest.raises(StorageError, match=f"no {lacking}"):
                ask(tmp_path / "model.npz")
    model.now += 10.0
    model.autosave.step()
    model.autosave.wait()
    assert saved(tmp_path / "model.npz") == 3.0 and not model.autosave.trouble()


def test_a_save_that_was_asked_for_follows_the_one_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "model.npz"
    model, gate = Model(path), Event()
    write = autosave.save_state
    monkeypatch.setattr(autosave, "save_state", lambda *a, **b: gate.wait(10.0) and write(*a, **b))
    ended: list[str] = []
    for value in (1.0, 2.0):
        model.change(value)
        model.autosave.request()
        model.autosave.step()
    model.autosave.begin(path, ended.append)
    model.change(3.0)
    gate.set()
    model.autosave.wait()
    assert ended == [""] and saved(path) == 2.0 and model.autosave.unsaved == 1
    assert saved(previous_of(path)) == 1.0
    (tmp_path / "file").write_text("no folder")
    model.autosave.begin(tmp_path / "file" / "model.npz", ended.append)
    model.autosave.wait()
    assert "can't write the model" in ended[1] and model.autosave.problem == ended[1]


def test_a_second_save_is_refused_while_the_first_waits(tmp_path: Path):
    path, model = tmp_path / "model.npz", Model(tmp_path / "model.npz")
    gate, waited = Event(), []
    model.autosave.begin(path, lambda problem: waited.append(gate.wait(10.0)))
    with pytest.raises(StorageError, match="still being written"):
        model.autosave.begin(path, print)
    gate.set()
    model.autosave.wait()
    assert waited == [True]
    model.autosave.begin(path, lambda problem: None)
    model.autosave.wait()


@pytest.mark.parametrize(("interval", "patience"), [(30.0, 30.0), (0.0, LONG)])
def test_a_write_that_takes_longer_than_the_interval_is_told(
    interval: float, patience: float, tmp_path: Path
):
    path = tmp_path / "model.npz"
    model = Model(path, interval)
    disk = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(disk, fcntl.LOCK_EX)  # a write waits for it, as it would for a disk
    model.change(1.0)
    model.autosave.begin(path, lambda problem: None)
    model.now += patience
    assert model.autosave.trouble() == ""
    model.change(2.0)
    model.now += 1.0
    assert f"to the disk for {patience + 1.0:.0f} s" in model.autosave.trouble()
    os.close(disk)
    model.autosave.wait()
    assert model.autosave.trouble() == "" and saved(path) == 1.0


def test_goes_on_from_the_one_before_and_tells_until_a_whole_one_is_written(tmp_path: Path):
    path = tmp_path / "model.npz"
    model = Model(path)
    for value in (1.0, 2.0):
        model.change(value)
        model.autosave.finish()
    path.write_bytes(b"damaged")

    again = Model(path)
    again.autosave.load(path, lambda file: again.value.fill(saved(file)))
    assert again.value[0] == 1.0
    assert again.autosave.loaded == previous_of(path)
    assert again.autosave.values()["resumed from"] == str(previous_of(path))
    assert "damaged" in again.autosave.problem
    again.autosave.begin_anew()  # what was forgotten is not resumed from a file
    assert again.autosave.values()["resumed from"] == "" and again.autosave.loaded is None
    again.change(3.0)
    again.autosave.finish()
    assert not again.autosave.problem
    assert saved(path) == 3.0 and saved(previous_of(path)) == 1.0
