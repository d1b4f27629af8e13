"""`semiparam objects` needs the image network for pictures only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base import extras
from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.offline.cli.main import main


def test_only_pictures_need_the_image_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(command: str, *needed: str) -> None:
        raise MissingExtraError(f"{command} needs {' and '.join(needed)}")

    np.savez(tmp_path / "a.npz", X=np.zeros((4, 2)), y=[0, 0, 1, 1])
    monkeypatch.setattr(extras, "require", missing)
    assert main(["objects"]) == 2
    assert capsys.readouterr().err.endswith("semiparam objects needs ros and vision\n")
    assert main(["objects", str(tmp_path / "a.npz")]) == 2
    assert capsys.readouterr().err.endswith("semiparam objects needs ros\n")
