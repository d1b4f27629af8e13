"""`semiparam teach` runs three nodes on a source and keeps what was taught."""

from __future__ import annotations

import sys

from semiparam_dynamics.base import extras
from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.offline.cli.main import main


def test_only_a_camera_needs_opencv_before_anything_starts(tmp_path, monkeypatch, capsys) -> None:
    def missing(command: str, *needed: str) -> None:
        raise MissingExtraError(f"{command} needs {' and '.join(needed)}")

    monkeypatch.setattr(extras, "require", missing)
    for source, needed in (("/dev/video3", "ros and vision and camera"), ("x", "ros and vision")):
        assert main(["teach", source]) == 2
        assert capsys.readouterr().err.endswith(f"semiparam teach needs {needed}\n")
    assert main(["teach", "x", "--page-port", "70000"]) == 2
    assert "0 .. 65535" in capsys.readouterr().err


def test_a_source_that_is_not_there_starts_nothing(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(extras, "require", lambda *_: None)
    monkeypatch.setitem(sys.modules, "semiparam_dynamics.recognition.nodes.teaching", None)
    assert main(["teach", str(tmp_path / "no.mp4"), "--out", str(tmp_path / "out")]) == 2
    assert "no.mp4" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
