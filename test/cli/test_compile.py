"""`semiparam compile`: the core is compiled in a process that keeps it with the installation."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from semiparam_dynamics import jit
from semiparam_dynamics.changes.error_sizes import _count
from semiparam_dynamics.cli.compile import compile_all
from semiparam_dynamics.cli.main import main
from semiparam_dynamics.dynamics.predictor import _predict
from semiparam_dynamics.recursion.features import nystrom_row
from semiparam_dynamics.recursion.rotation import update_rows
from semiparam_dynamics.robot.regressor import fill


def test_leads_the_learners_through_what_a_node_and_an_evaluation_call() -> None:
    compile_all()
    for function in (fill, nystrom_row, _predict, update_rows, _count):
        assert function.signatures, function.__name__


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
