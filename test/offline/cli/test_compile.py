"""`semiparam compile`: the core is compiled in a process that keeps it with the installation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from semiparam_dynamics.base import jit
from semiparam_dynamics.offline.cli.main import main


def test_says_where_it_was_kept_and_what_hinders_it(tmp_path, monkeypatch, capsys) -> None:
    called = []
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    @contextmanager
    def compiled(command: list[str]) -> Iterator[SimpleNamespace]:
        called.append(command)
        (jit.KEPT / "core.nbc").write_bytes(bytes(2_000_000))
        states = iter((None, 0))

        def wait(seconds: float) -> None:
            raise subprocess.TimeoutExpired(command, seconds)

        yield SimpleNamespace(returncode=0, poll=lambda: next(states), wait=wait)

    monkeypatch.setattr(subprocess, "Popen", compiled)
    monkeypatch.setattr(jit, "KEPT", tmp_path / "compiled")
    assert main(["compile"]) == 0
    said = capsys.readouterr().out
    assert "  1 compiled\n" in said and f"kept in {tmp_path / 'compiled'}: 2.0 MB" in said
    (command,) = called
    compile(command[-1], "the command", "exec")

    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        assert main(["compile"]) == 2
    assert "unset it, or all is kept there" in capsys.readouterr().err

    (tmp_path / "file").touch()
    monkeypatch.setattr(jit, "KEPT", tmp_path / "file" / "compiled")
    assert main(["compile"]) == 2
    assert "run this as the user who installed" in capsys.readouterr().err
    assert len(called) == 1


def test_another_copy_in_the_folder_is_not_the_one_that_is_compiled(tmp_path: Path) -> None:
    """As in the clone that was installed from."""
    (tmp_path / "semiparam_dynamics").mkdir()
    (tmp_path / "semiparam_dynamics" / "__init__.py").write_text("raise SystemExit('the other')")
    program = jit.of_this_package("import semiparam_dynamics.base.jit as j; print(j.KEPT)")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, str(jit.KEPT)), done.stderr
