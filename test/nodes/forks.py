"""Nodes, and programs' texts, as forks of one process in which everything is imported and compiled.

A fork answers after 0.2 s, where `python -m` needs 5 s of a core. Both run the node's `main` with
the same arguments and environment, in a session of its own, and end as processes do.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from semiparam_dynamics.base.nodes.executables import module_of
from semiparam_dynamics.base.nodes.processes import EXECUTABLES, NodeProcess

ROOT = Path(__file__).resolve().parents[2]
NODES = "inverse_dynamics object_recognition arm_simulator computed_torque".split()
NODES += "trajectory_efforts payload_bridge live_page".split()
NODES += "image_source objects_page".split()
REPORT_PERIOD = 0.2  # s: who waits for diagnostics waits a fifth as long
POLL = 0.01  # s
LIMIT = 120.0  # s: only reached when something is broken


def once_for_each_kind(warm_up: Callable[..., None]) -> Callable[..., None]:
    """The function that leads a new session through a motion, where this has not compiled yet."""
    done = set()

    def once(model: Any, config: Any) -> None:
        learner = config.learner
        kind = (learner.estimator.residual, learner.changes.detect, model.config.target)
        kind += (config.defer_learning,)
        if kind not in done:
            done.add(kind)
            warm_up(model, config)

    return once


class Server:
    """The process that is forked; it is asked in lines of JSON and ends with its input."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        # Threads, of BLAS say, don't survive a fork.
        environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def ask(self, **order: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


server = cache(Server)


class Fork:
    """What `NodeProcess` uses of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], log: str) -> None:
        place = {"log": log, "folder": os.getcwd(), "environment": dict(os.environ)}
        self.pid: int = server().ask(do="start", command=command, **place)
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = server().ask(do="poll", pid=self.pid)
        return self._code

    def wait(self, timeout: float = np.inf) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a fork", timeout)
            time.sleep(POLL)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def run_program(log: Path, program: str, *words: object) -> tuple[int, str]:
    """The exit code of a program's text with these arguments, and all that it printed."""
    fork = Fork([sys.executable, "-c", program, *map(str, words)], str(log))
    return fork.wait(LIMIT), log.read_text()


class ForkedNode(NodeProcess):
    """A `NodeProcess` that has nothing to import."""

    def _begin(self, command: Sequence[str], output: BinaryIO) -> Any:
        return Fork(command, output.name)


def serve() -> None:
    """Answer orders until there are no more; a fork runs its node and ends.

    Those that are left then are killed: tests that were ended by a signal have stopped none, and
    the next ones might come upon them in their domain.
    """
    warm_up()
    running: set[int] = set()
    for line in sys.stdin:
        order = json.loads(line)
        answer: int | None
        if order["do"] == "poll":
            pid, status = os.waitpid(order["pid"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
            running -= {pid}
        elif not (answer := os.fork()):
            _, how, what, *arguments = order["command"]
            if what == EXECUTABLES:  # which imports the node's module
                what = module_of(arguments.pop(0))
            become(order["log"], order["folder"], order["environment"])
            sys.argv = [what if how == "-m" else how, *arguments]
            run(how, what)
        else:
            running.add(answer)
        print(json.dumps(answer), flush=True)
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def run(how: str, what: str) -> NoReturn:
    """Run a node's `main`, or a text, and end, without taking down what others have imported."""
    code: Any = 1
    try:
        code = importlib.import_module(what).main() if how == "-m" else exec(what, {})
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def warm_up() -> None:
    """Import all nodes, and call the compiled code once: it is read from its cache then."""
    from semiparam_dynamics.base.nodes import managed
    from semiparam_dynamics.base.nodes.messages import joint_state_message
    from semiparam_dynamics.base.parameters import replace
    from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
    from semiparam_dynamics.learner.nodes import session as sessions

    managed.REPORT_PERIOD = REPORT_PERIOD
    sessions.warm_up = once_for_each_kind(sessions.warm_up)
    for name in NODES:
        try:
            importlib.import_module(module_of(name))
        except ImportError:  # an extra that is not installed: its tests are skipped
            continue
    urdf = str(ROOT / "test" / "data" / "small_arm.urdf")
    for kind in ({}, {"residual": "random_fourier"}, {"changes__detect": True}):
        config = replace(InverseDynamicsNodeConfig(), defer_learning=False, **kind)
        session = sessions.Session(urdf, config)
        sessions.warm_up(session.model, replace(config, defer_learning=True))
        names = session.model.joint_names
        for k in range(60):
            q = np.sin(0.02 * k * np.arange(1, len(names) + 1))
            message = joint_state_message(10**9 + 10**7 * k, names, q, q, q)
            for step in session.joint_state(message):
                session.learn(step)
    # Both take a third of a second: the library of a message's kind, and a log's first line, for
    # which the files of all modules are looked up.
    for name in [name for name in sys.modules if name.endswith((".msg", ".srv"))]:
        for kind in vars(sys.modules[name]).values():
            if hasattr(kind, "__import_type_support__"):
                kind.__import_type_support__()
    inspect.getmodule(inspect.currentframe())
    gc.collect()
    gc.freeze()


def become(log: str, folder: str, environment: dict[str, str]) -> None:
    """Take on all that a new process is given."""
    os.setsid()
    os.chdir(folder)
    before, now = (
        [path for path in one.get("PYTHONPATH", "").split(os.pathsep) if path]
        for one in (os.environ, environment)
    )
    others = [path for path in sys.path if path not in {*before, *now} - {str(ROOT)}]
    sys.path[:] = [others[0], *now, *others[1:]]
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, targets in ((os.open(os.devnull, os.O_RDONLY), (0,)), (output, (1, 2))):
        for target in targets:
            os.dup2(source, target)
        os.close(source)


if __name__ == "__main__":
    serve()
