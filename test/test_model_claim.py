"""One process at a time has a model's file, as long as it lives."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.storage import NOTE, ModelClaim, lock_of

HOLD = """
import sys
from semiparam_dynamics.storage import ModelClaim
assert ModelClaim(sys.argv[1], "the other").take() == ""
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_claim_is_refused_until_the_first_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "model.npz"
    first, second = ModelClaim(path, "/left/arm, process 7"), ModelClaim(path, "/right/arm")
    assert first.take() == "" and first.held
    assert first.take() == ""  # once more is no other
    with pytest.raises(StorageError, match="in use by /left/arm, process 7: give each node"):
        second.take()
    assert not second.held
    second.give_up()  # has nothing to give up
    with pytest.raises(StorageError, match="in use"):
        second.take()
    first.give_up()
    assert second.take() == ""
    with pytest.raises(StorageError, match="in use by /right/arm: "):
        first.take()
    assert ModelClaim(tmp_path / "deep" / "other.npz").take() == ""


def test_another_name_of_the_folder_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    claim = ModelClaim(tmp_path / "real" / "model.npz")
    assert claim.take() == ""
    with pytest.raises(StorageError, match="in use"):
        ModelClaim(tmp_path / "link" / "model.npz").take()


def test_a_killed_process_has_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(StorageError, match="in use by the other"):
            ModelClaim(path).take()
        process.send_signal(signal.SIGKILL)
    assert lock_of(path).exists()
    assert ModelClaim(path).take() == ""


def test_children_do_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    claim = ModelClaim(path)
    claim.take()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        claim.give_up()
        assert ModelClaim(path).take() == ""
        child.kill()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_it_is_said(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    claim, before = ModelClaim(tmp_path / "model.npz"), len(os.listdir("/proc/self/fd"))
    said = claim.take()
    assert os.strerror(code) in said and "no other node has this model_file" in said
    assert not claim.held and len(os.listdir("/proc/self/fd")) == before
    monkeypatch.undo()
    assert claim.take() == "" and claim.held


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = ModelClaim(tmp_path / "file" / "model.npz").take()
    assert "can't lock" in said and "model.npz.lock" in said


def test_nothing_but_a_file_of_its_own_is_opened(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("content")
    lock_of(tmp_path / "model.npz").symlink_to(precious)
    assert "can't lock" in ModelClaim(tmp_path / "model.npz").take()
    assert precious.read_text() == "content"


def test_a_hostile_note_is_quoted_in_part(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    claim = ModelClaim(path)
    claim.take()
    lock_of(path).write_bytes(b"\x1b[2J\n\xff" + b"x" * 10 * NOTE)
    with pytest.raises(StorageError) as caught:
        ModelClaim(path).take()
    assert str(caught.value).isprintable() and len(str(caught.value)) < NOTE + len(str(path)) + 100
