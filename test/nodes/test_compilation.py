"""Compilation of the numerical core, half of it in a process beside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from semiparam_dynamics.changes.error_sizes import _count
from semiparam_dynamics.dynamics.filtering import filter_row, filter_rows
from semiparam_dynamics.dynamics.predictor import _predict
from semiparam_dynamics.nodes import compilation
from semiparam_dynamics.nodes.compilation import compile_all, compile_together
from semiparam_dynamics.recursion.features import nystrom_row
from semiparam_dynamics.recursion.rotation import update_rows
from semiparam_dynamics.robot.regressor import fill


def test_leads_the_learners_through_what_a_node_and_an_evaluation_call() -> None:
    compile_all()
    for function in (fill, filter_row, filter_rows, nystrom_row, _predict, update_rows, _count):
        assert function.signatures, function.__name__


COLD = """
import numba.core.dispatcher as dispatcher
from semiparam_dynamics.nodes import compilation
from semiparam_dynamics.nodes.session import warm_up

compile_core, compiled = dispatcher._FunctionCompiler._compile_core, []

def noted(compiler, *arguments):
    compiled.append(f"{compiler.py_func.__module__}.{compiler.py_func.__name__}")
    return compile_core(compiler, *arguments)

dispatcher._FunctionCompiler._compile_core = noted
compilation.compile_together(["nystrom"])
together, compiled[:] = compiled[:], []
node, model = compilation.small_arm({})
warm_up(model, node)
print(*together, "then", *compiled)
"""


def test_what_learns_is_compiled_beside_the_filter(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one core: nothing is compiled beside")
    told = subprocess.run(
        [sys.executable, "-c", COLD],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    ).stdout
    here, then = (set(part.split()) for part in told.split("then"))
    package = "semiparam_dynamics"
    assert {f"{package}.dynamics.filtering.filter_row", f"{package}.robot.regressor.fill"} <= here
    # Of what both processes compile each is the same.
    assert not {name for name in here if ".recursion." in name or "predictor" in name}
    # A session finds nearly all of it.
    left = {name for name in then if name.startswith(package)}
    assert len(left) <= 3, left


@pytest.mark.parametrize(
    ("cores", "kept", "folder"),
    [({0}, False, "caches"), ({0, 1}, True, "caches"), ({0, 1}, False, None)],
)
def test_nothing_is_compiled_beside_where_it_would_not_help(
    cores: set[int], kept: bool, folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores)
    monkeypatch.setattr(compilation, "is_kept", lambda function: kept)
    monkeypatch.setattr(
        compilation, "_predict", SimpleNamespace(stats=SimpleNamespace(cache_path=folder))
    )
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(a))
    compile_together(["nystrom"])
    assert not started
