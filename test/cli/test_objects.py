"""`semiparam objects`: mistakes are one line before anything is started."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.cli import options as extras
from semiparam_dynamics.cli.main import main
from semiparam_dynamics.errors import MissingExtraError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["missing"], "there is no folder or file"),
        (["."], "has no subfolder with pictures"),
        (["--classes", "0"], "parameter 'classes' must lie between 1 and 1000"),
        (["--rate", "0"], "parameter 'rate' must lie between"),
        (["--teach", "0"], "parameter 'frames_taught' must lie between"),
        (["--seed", "-1"], "parameter 'seed' must lie between"),
        (["--script", "missing.txt"], "missing.txt can't be read"),
        (["--script", "script.txt"], "line 2 of the script: there is no object 'mug'"),
        (["--classes", "1", "--script", "other.txt"], "there is no object 'one'"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.txt").write_text("teach zero 3\nteach mug 3\n")
    Path("other.txt").write_text("teach one 3\n")
    assert main(["objects", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert said in printed.err
    assert not Path("objects_out").exists()


def test_only_pictures_need_the_image_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(command: str) -> None:
        raise MissingExtraError(f"{command} needs it")

    np.savez(tmp_path / "a.npz", X=np.zeros((4, 2)), y=[0, 0, 1, 1])
    monkeypatch.setattr(extras, "require_vision", missing)
    monkeypatch.setattr(extras, "require_ros", lambda command: None)
    assert main(["objects"]) == 2
    assert "semiparam objects needs it" in capsys.readouterr().err
    monkeypatch.setattr(extras, "require_ros", missing)
    assert main(["objects", str(tmp_path / "a.npz")]) == 2
