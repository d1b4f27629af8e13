"""A robot's first motion, looked at once for faults that the dynamics show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import numpy as np

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import Step
from semiparam_dynamics.offline.doctor.joint_log import JointLog
from semiparam_dynamics.offline.doctor.motion import save_motion
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

MOTION = 30.0  # s that are waited for
KEPT = 12_000  # measurements: the last minute at
STEP = SECOND // 200  # ns between two
# For libraries that would otherwise use all cores.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PATIENCE = 300.0  # s: an examination that takes longer is given up


class FirstMotion:
    """Keeps measurements until the robot has moved for a while, and has them examined once.

    The examination is a process of its own with the lowest priority, so that neither predictions
    nor learning wait for it. Nothing that goes wrong there is raised: `state` says it.

    Attributes
    ----------
    state: how far it is, in a few words.
    faults: of what was found a name and a sentence each, with what to write into the YAML.
    """

    def __init__(self, model: RobotModel, config: InverseDynamicsConfig) -> None:
        self._model, self._config = model, config
        self._stamps = np.zeros(KEPT, dtype=np.int64)
        self._q, self._y = (np.empty((KEPT, model.n_joints)) for _ in range(2))
        self._closed = False
        self._told = 0
        self.faults: list[tuple[str, str]] = []
        self._begin()

    def _begin(self) -> None:
        """Wait for motion, with none kept."""
        self._count = 0
        self._last = 0
        self._moved = 0.0  # s
        self._thread: Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._given_up = False
        self.state = f"after {MOTION:g} s of motion"

    def see(self, measurement: Measurement, step: Step) -> None:
        """Keep a measurement, with the step that it completed; examine all when they are enough."""
        ahead = measurement.stamp - self._last
        y = measurement.y
        if self._thread is not None or 0 <= ahead < STEP or y is None or np.isnan(y).any():
            return
        if ahead < 0:  # another time has begun
            self._count, self._moved = 0, 0.0
        row = self._count % KEPT
        self._stamps[row] = self._last = measurement.stamp
        self._q[row], self._y[row] = measurement.q, y
        self._count += 1
        config = self._config.filter
        if np.abs(step.sample.dq).max() > config.rest_velocity:
            self._moved += min(ahead / SECOND, config.max_gap)
        if self._moved >= MOTION:
            self._thread = Thread(target=self._examine, name="first motion", daemon=True)
            self._thread.start()

    def news(self) -> list[str]:
        """Sentences on the faults that were found since the last call."""
        new, self._told = self.faults[self._told :], len(self.faults)
        return [f"{kind}: {sentence}" for kind, sentence in new]

    def values(self) -> dict[str, str]:
        """The state and the faults, for diagnostics."""
        return {"first motion": self.state, **{f"first motion: {k}": s for k, s in self.faults}}

    def close(self) -> None:
        """Give up an examination that is under way: motion that comes later is examined instead."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join()
        self._closed = False
        if self._given_up:
            self._begin()

    def _examine(self) -> None:
        self.state = "being examined"
        try:
            self.faults, self.state = self._asked()
        except Exception as error:  # MemoryError, too: it is not worth more than a word
            self.state = f"not examined: {type(error).__name__}: {error}"

    def _asked(self) -> tuple[list[tuple[str, str]], str]:
        first = self._count % KEPT if self._count > KEPT else 0
        rows = np.roll(np.arange(min(self._count, KEPT)), -first)
        log = JointLog(
            self._model.joint_names, self._stamps[rows], self._q[rows], None, self._y[rows]
        )
        with TemporaryDirectory(prefix="first_motion") as folder:
            path = Path(folder) / "motion.npz"
            save_motion(path, log, self._model, self._config)
            command = [sys.executable, "-m", "semiparam_dynamics.offline.doctor.motion", str(path)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **dict.fromkeys(THREADS, "1")},
            )
            yield_processor(self._process.pid)
            if self._closed:
                self._process.kill()
            try:
                output, problem = self._process.communicate(timeout=PATIENCE)
            finally:
                self._process.kill()
        if self._process.returncode:
            self._given_up = self._closed
            last = problem.strip().splitlines()[-1:] or [f"exit code {self._process.returncode}"]
            return [], f"not examined: {last[0]}"
        found = json.loads(output)
        faults = [(fault["kind"], _sentence(fault, found["mends"])) for fault in found["faults"]]
        return faults, _count(len(faults))


def yield_processor(pid: int) -> None:
    """Have a process that has just begun run when no other wants the processor."""
    with suppress(OSError):  # it may have ended, or a sandbox forbids the policy
        if sys.platform == "linux":
            # The lowest priority alone does not do: Linux lets such a process end its turn of some
            # milliseconds, for which messages that come meanwhile wait.
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 19)


def _count(faults: int) -> str:
    return f"{faults or 'no'} fault{'s' * (faults > 1)}"


def _sentence(fault: dict[str, str], mends: dict[str, object]) -> str:
    mend = "; ".join(f"{name}: {mends[name]}" for name in fault["mends"] if name in mends)
    said = f"{fault['evidence']}. To do: {fault['advice']}"
    return f"{said}. In the YAML: {mend}" if mend else said
