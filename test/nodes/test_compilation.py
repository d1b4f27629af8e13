"""Compilation of the numerical core, half of it in a process beside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from semiparam_dynamics.changes.contact import _step
from semiparam_dynamics.dynamics.filtering import filter_row, filter_rows
from semiparam_dynamics.dynamics.predictor import _predict
from semiparam_dynamics.learner.nodes import compilation
from semiparam_dynamics.learner.nodes.compilation import compile_all, compile_together
from semiparam_dynamics.learning.recursion.features import nystrom_row
from semiparam_dynamics.learning.recursion.rotation import note_row
from semiparam_dynamics.robot.regressor import fill


def test_leads_the_learners_through_what_a_node_and_an_evaluation_call() -> None:
    compile_all()
    for function in (fill, filter_row, filter_rows, nystrom_row, _predict, note_row, _step):
        assert function.signatures, function.__name__


COLD = """
import json
import sys
import numba.core.dispatcher as dispatcher
from semiparam_dynamics.learner.nodes import compilation
from semiparam_dynamics.learner.nodes.session import warm_up

compile_core, compiled = dispatcher._FunctionCompiler._compile_core, []

def noted(compiler, *arguments):
    compiled.append(f"{compiler.py_func.__module__}.{compiler.py_func.__name__}")
    return compile_core(compiler, *arguments)

dispatcher._FunctionCompiler._compile_core = noted
compilation.compile_together(["nystrom"])
together, compiled[:] = compiled[:], []
node, model = compilation.small_arm({})
warm_up(model, node)
then, compiled[:] = compiled[:], []
if sys.argv[1] == "second":
    sys.exit(print(json.dumps([together, then, []])))

import numpy as np
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.samples.measurement import Measurement

config = replace(node.learner, changes__settle=1.0, nystrom__window=1.0)
learner = InverseDynamicsLearner(model, config)
learner.predict_beside_learning(node.defer_learning)
speeds = np.array([1.0, 1.7, 2.3])
for k in range(4_000):  # at 1 kHz
    q, dq = np.sin(1e-3 * k * speeds), speeds * np.cos(1e-3 * k * speeds)
    y = 10.0 * np.cos(q) + 2.0 * np.tanh(50.0 * dq) + 30.0 * (3_000 < k < 3_500)
    step = learner.predict(Measurement(10**9 + k * 10**6, q, dq, y), contacts=True)
    if step is not None:
        learner.detect_contact(step)
        learner.update(learner.admit(step))
    if k % 100 == 0:
        learner.publish()
assert learner.contacts.total
print(json.dumps([together, then, compiled]))
"""


def test_what_learns_is_compiled_beside_the_filter_and_once(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one core: nothing is compiled beside")

    def started(which: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", COLD, which],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )

    first = started("first")
    while first.poll() is None and not list(tmp_path.rglob("*._predict-*.nbc")):
        time.sleep(0.05)
    both = [first, started("second")]  # the second while the first has not kept all
    told = [json.loads(process.communicate(timeout=600)[0]) for process in both]
    here, later = (set(together) for together, _, _ in told)
    package = "semiparam_dynamics"
    assert {f"{package}.dynamics.filtering.filter_row", f"{package}.robot.regressor.fill"} <= here
    assert not {name for name in here if ".recursion." in name or "predictor" in name}
    assert not later  # the other one had it all
    for _, then, live in told:
        left = {name for name in then if name.startswith(package)}
        assert len(left) <= 3, left  # a learner's start finds nearly all
        assert not live  # messages would wait for it


@pytest.mark.parametrize(
    ("cores", "kept", "folder", "helps"),
    [
        ({0, 1}, False, "caches", True),
        ({0}, False, "caches", False),
        ({0, 1}, True, "caches", False),
        ({0, 1}, False, None, False),
    ],
)
def test_nothing_is_compiled_beside_where_it_would_not_help(
    cores: set[int],
    kept: bool,
    folder: str | None,
    helps: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[object] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores)
    monkeypatch.setattr(compilation, "is_compiled", lambda: kept)
    monkeypatch.setattr(compilation, "cache_of", lambda function: folder and tmp_path / folder)
    monkeypatch.setattr(compilation, "_compile_both", started.append)
    compile_together(["nystrom"])
    assert started == ([["nystrom"]] if helps else [])
