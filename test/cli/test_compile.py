"""`semiparam compile`: the core is compiled in a process that keeps it with the installation."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from semiparam_dynamics import jit
from semiparam_dynamics.cli.main import main


def test_says_where_it_was_kept_and_what_hinders_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = []

    def compiled(command: list[str], **_: object) -> SimpleNamespace:
        called.append(command)
        (jit.KEPT / "core.nbc").write_bytes(bytes(2_000_000))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", compiled)
    monkeypatch.setattr(jit, "KEPT", tmp_path / "compiled")
    assert main(["compile"]) == 0
    assert f"kept in {tmp_path / 'compiled'}: 2.0 MB" in capsys.readouterr().out
    (command,) = called
    compile(command[-1], "the command", "exec")

    (tmp_path / "file").touch()
    monkeypatch.setattr(jit, "KEPT", tmp_path / "file" / "compiled")
    assert main(["compile"]) == 2
    assert "run this as the user who installed" in capsys.readouterr().err
    assert len(called) == 1
