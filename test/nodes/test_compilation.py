"""Compilation of the numerical core, half of it in a process beside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from semiparam_dynamics.learner.nodes import compilation
from semiparam_dynamics.learner.nodes.compilation import compile_together

ASKED = """
import json
import os
import sys
from numba.core.dispatcher import Dispatcher
import numpy as np
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.learner.nodes import compilation
from semiparam_dynamics.learner.nodes.session import warm_up
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.samples.measurement import Measurement

add_overload, asked = Dispatcher.add_overload, []

def noted(self, result):
    name = f"{self.py_func.__module__}.{self.py_func.__name__}"
    asked.append(f"{name}{result.signature.args}")
    add_overload(self, result)

Dispatcher.add_overload = noted

def motion(seconds):
    speeds = np.array([1.0, 1.7, 2.3])
    for k in range(round(1000 * seconds)):
        q, dq = np.sin(1e-3 * k * speeds), speeds * np.cos(1e-3 * k * speeds)
        y = 10.0 * np.cos(q) + 2.0 * np.tanh(50.0 * dq) + 30.0 * (3_000 < k < 3_500)
        yield Measurement(10**9 + k * 10**6, q, dq, y)

def live(node, model):
    config = replace(node.learner, changes__settle=1.0, nystrom__window=1.0)
    learner = InverseDynamicsLearner(model, config)
    learner.predict_beside_learning(node.defer_learning)
    for k, measurement in enumerate(motion(4.0)):
        step = learner.predict(measurement, contacts=True)
        if step is not None:
            learner.detect_contact(step)
            learner.update(learner.admit(step))
        if k % 100 == 0:
            learner.publish()
    assert learner.contacts.total

def everything():
    compilation.compile_together = lambda residuals: None
    compilation.compile_all()

def node():
    warm_up(model, arm)

def each(*parts):
    \"""What each part asks for, one after the other in a process that has asked for nothing.\"""
    reader, writer = os.pipe()
    if not os.fork():
        found = []
        for part in parts:
            part()
            found.append(sorted(asked))
            asked.clear()
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.close(writer)
    return json.load(open(reader))

def beside(command, **_):
    raise SystemExit(command[-1])

arm, model = compilation.small_arm({})
compilation.subprocess.Popen = beside
try:
    compilation._compile_both(["nystrom"])
except SystemExit as called:
    program = str(called)
print(json.dumps([
    each(compilation._compile_filter_and_detectors),
    each(lambda: exec(program, {})),
    each(node, lambda: live(arm, model)),
    each(everything, lambda: evaluate(model, arm.learner, [list(motion(3.0))])),
]))
"""


def test_what_a_node_and_an_evaluation_call_is_compiled_before_in_two_halves() -> None:
    """By what is asked for, compiled or kept: compiling all anew would take a minute."""
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    package = "semiparam_dynamics"
    (filters,), (learners,), (begun, live), (everything, evaluated) = (
        [{name for name in names if name.startswith(package)} for names in found]
        for found in json.loads(done.stdout)
    )
    for name in ("dynamics.filtering.filter_row(", "robot.regressor.fill("):
        assert any(asked.startswith(f"{package}.{name}") for asked in filters), name
    assert not {name for name in filters if ".recursion." in name or "predictor" in name}
    assert begun and len(left := begun - filters - learners) <= 3, left
    assert not live  # messages would wait for it
    assert everything >= begun and not evaluated, evaluated


def test_of_two_processes_one_compiles_and_the_other_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    began, go, kept = Event(), Event(), []

    def compiling(residuals: list[str]) -> None:
        began.set()
        assert go.wait(60.0)
        kept.append(residuals)

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(compilation, "is_compiled", lambda: bool(kept))
    monkeypatch.setattr(compilation, "_compile_both", compiling)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(compile_together, ["nystrom"])
        assert began.wait(60.0)
        second = pool.submit(compile_together, ["nystrom"])
        assert not second.done()
        go.set()
        first.result(60.0), second.result(60.0)
    assert kept == [["nystrom"]]


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
