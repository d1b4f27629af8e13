"""From messages to predictions, and to learning when there is time; without any ROS.

One sample's way through the node: `MeasurementStream` pairs and checks messages, the learner
filters and predicts, the caller publishes, and the step waits in the backlog to be learned.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.comparison import Comparison
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.dynamics.message_checks import message_checks
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.nodes.autosave import Autosave, Snapshot
from semiparam_dynamics.nodes.backlog import Backlog
from semiparam_dynamics.nodes.config import InverseDynamicsNodeConfig
from semiparam_dynamics.nodes.worker import Worker
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MeasurementStream

TIMINGS = 2000  # steps over which the percentiles are taken
WARM_UP = 15.0  # s of motion: the residual's standardiser looks at the first 10
WARM_UP_STEPS = 200


class Session:
    """What the node does with one robot. Raises RobotModelError where the URDF doesn't serve."""

    def __init__(self, urdf: str, config: InverseDynamicsNodeConfig) -> None:
        self._config = config
        self.model = RobotModel(urdf, config.learner.robot)
        self._checks = message_checks(self.model)
        self.learner = InverseDynamicsLearner(self.model, config.learner)
        warm_up(self.model, config)
        path = Path(config.model_file).expanduser().absolute() if config.model_file else None
        self.autosave = Autosave(
            path if config.autosave else None, self._snapshot, config.save_interval
        )
        self.backlog: Backlog[Step] = Backlog(
            self._learn, config.learning_queue, spare=self._settle
        )
        # Half of the work of many features: no prediction waits for the model that is compared.
        self._comparisons: Worker[Comparison] = Worker(
            lambda rest: self.learner.compare(rest), config.learning_queue
        )
        self.learning = True
        self.reset()

    def reset(self) -> None:
        """Forget everything learned, and count anew.

        The file stays as it is until something is saved.
        """
        self._comparisons.clear()
        self.learner.reset()
        self.autosave.agree()
        self.stream = MeasurementStream(
            self.model.joint_names,
            self.model.config.target,
            self._config.learner.samples,
            **self._checks,
        )
        self.backlog.clear()
        self.backlog.dropped = self._comparisons.dropped = 0
        self.measured = self.predicted = self.deferred = self.not_learned = 0
        self.predict_us: deque[float] = deque(maxlen=TIMINGS)
        self.learn_us: deque[float] = deque(maxlen=TIMINGS)

    def configure(self, config: InverseDynamicsNodeConfig) -> None:
        """Go on with other values of the live parameters; no prediction changes by that alone.

        Raises ConfigurationError where that can't be, see the estimator's `check`.
        """
        self._comparisons.wait()
        self.learner.configure(config.learner)
        self.backlog.capacity = self._comparisons.capacity = config.learning_queue
        self.autosave.interval = config.save_interval
        self._config = config

    def check(self, config: InverseDynamicsNodeConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` would."""
        self._comparisons.wait()
        self.learner.estimator.check(config.learner.estimator)

    def joint_state(self, message: Any) -> Iterator[Step]:
        """Take a JointState; yield what can be predicted now. Publish each step at once."""
        start = time.perf_counter()
        return self._steps(self.stream.joint_state(message), start)

    def wrench(self, message: Any) -> Iterator[Step]:
        """The same for a WrenchStamped."""
        start = time.perf_counter()
        return self._steps(self.stream.wrench(message), start)

    def _steps(self, measurements: list[Measurement], start: float) -> Iterator[Step]:
        self.backlog.interrupted()
        for k, measurement in enumerate(measurements):
            if k > 0:
                start = time.perf_counter()
                # Several at once came with one message: each is learned before the next, as
                # offline, unless learning is behind anyway.
                if len(self.backlog) == 1:
                    self.backlog.do_one()
            self.measured += 1
            waited = len(self.backlog) > 0
            step = self.learner.observe(measurement, promptly=self._config.defer_learning)
            if step is None:
                continue
            self.predicted += 1
            self.deferred += waited
            self.predict_us.append((time.perf_counter() - start) * 1e6)
            yield step
            self._schedule(step)

    def _schedule(self, step: Step) -> None:
        if step.y is None:
            return
        self.backlog.add(step)
        if not self._config.defer_learning:
            self.backlog.do_all()

    def _learn(self, step: Step) -> None:
        if not self.learning:
            self.not_learned += 1
            self._compare(self.learner.only_scored(step))
            return
        start = time.perf_counter()
        rest = self.learner.begin_learning(step)
        self.learn_us.append((time.perf_counter() - start) * 1e6)
        self._compare(rest)
        self.autosave.changed()
        self.autosave.step()

    def _compare(self, rest: Comparison) -> None:
        if self._config.defer_learning:
            self._comparisons.put(rest)
        else:
            self._comparisons.wait()
            self.learner.compare(rest)

    def _settle(self) -> bool:
        self.learner.estimator.settle()
        return False

    def complete(self) -> None:
        """Learn and compare all that still waits."""
        self.backlog.do_all()
        self._comparisons.wait()

    def save(self, path: str | Path) -> None:
        """Save what was learned, with what still waits. Raises StorageError."""
        self.complete()
        self.autosave.save(Path(path))

    def begin_save(self, path: Path, done: Callable[[str], None]) -> None:
        """The same in a thread; see `Autosave.begin`."""
        self.complete()
        self.autosave.begin(path, done)

    def load(self, path: str | Path) -> None:
        """Go on from a file, or from the one before it where it is damaged.

        Raises StorageError; the learner is then what it was.
        """
        self._comparisons.wait()
        self.autosave.load(Path(path), self.learner.load)
        self.backlog.clear()

    def finish(self) -> None:
        """Learn what still waits and save what isn't saved yet, if that is to happen by itself.

        Raises StorageError.
        """
        self.backlog.do_all()
        self._comparisons.close()
        self.autosave.finish()

    def _snapshot(self) -> Snapshot:
        self._comparisons.wait()
        return self.learner.identity(), self.learner.state()

    def learned(self) -> str:
        """How much was learned, in words."""
        return f"{self.learner.estimator.n_learned} samples"

    def within_bounds(self, values: Array) -> Array:
        """Values (n_axes,) to be published, within the bound on predictions."""
        return self.learner.estimator.bound.within(values)

    def bounded(self) -> Counter[str]:
        """How many predictions were not what the model said, and why."""
        return self.learner.estimator.bound.counts

    def dropped(self) -> Counter[str]:
        """What was left out and why: messages, measurements and updates."""
        dropped = Counter(self.stream.dropped) + Counter(self.learner.dropped)
        dropped["learning could not keep up"] += self.backlog.dropped
        dropped["comparison could not keep up, sample not scored"] += self._comparisons.dropped
        dropped["learning switched off"] += self.not_learned
        return +dropped


def warm_up(model: RobotModel, config: InverseDynamicsNodeConfig) -> None:
    """Lead a learner that is thrown away through a motion, so that everything is compiled."""
    learner = InverseDynamicsLearner(model, config.learner)
    step_time = 0.5 * config.learner.filter.max_gap
    rng = np.random.default_rng(0)
    for k in range(min(round(WARM_UP / step_time), WARM_UP_STEPS)):
        q, y = rng.normal(size=model.n_joints), rng.normal(size=model.n_axes)
        measurement = Measurement(round(k * step_time * 1e9), q, 0.1 * q, y)
        step = learner.observe(measurement, promptly=config.defer_learning)
        if step is not None:
            learner.learn(step)
