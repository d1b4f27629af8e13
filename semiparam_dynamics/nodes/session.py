"""From messages to predictions, and to learning when there is time; without any ROS.

One sample's way through the node: `MeasurementStream` pairs and checks messages, the learner
filters and predicts, the caller publishes, and the step is learned: in a thread beside the messages
where the model can be asked meanwhile, else it waits in the backlog for a pause between them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner import Comparison, InverseDynamicsLearner, Step
from semiparam_dynamics.nodes.autosave import Autosave, Snapshot
from semiparam_dynamics.nodes.runtime import Backlog, Worker
from semiparam_dynamics.robot.model import RobotModel, message_checks
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
        # No prediction waits for the model that is compared, nor for learning if that can be.
        self._beside: Worker[Callable[[], None]] = Worker(
            lambda work: work(), config.learning_queue
        )
        self.learning = True
        self.reset()

    def reset(self) -> None:
        """Forget everything learned, and count anew.

        The file stays as it is until something is saved.
        """
        self._beside.clear()
        self.learner.reset()
        self._choose()
        self.autosave.mark_saved()
        self.stream = MeasurementStream(
            self.model.joint_names,
            self.model.config.target,
            self._config.learner.samples,
            **self._checks,
        )
        self.backlog.clear()
        self.backlog.dropped = self._beside.dropped = 0
        self.measured = self.predicted = self.deferred = self.not_learned = 0
        self.predict_us: deque[float] = deque(maxlen=TIMINGS)
        self.learn_us: deque[float] = deque(maxlen=TIMINGS)

    def configure(self, config: InverseDynamicsNodeConfig) -> None:
        """Go on with other values of the live parameters; no prediction changes by that alone.

        Raises ConfigurationError where that can't be, see the estimator's `check`.
        """
        self._beside.wait()
        self.learner.configure(config.learner)
        self.backlog.capacity = self._beside.capacity = config.learning_queue
        self.autosave.interval = config.save_interval
        self._config = config
        self._choose()

    def check(self, config: InverseDynamicsNodeConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` would."""
        self._beside.wait()
        self.learner.estimator.check(config.learner.estimator)

    def _choose(self) -> None:
        """Whether to learn beside the messages; nothing is being learned now."""
        self._apart = False

    @property
    def waiting(self) -> int:
        """Samples that wait to be learned."""
        return len(self.backlog) + (len(self._beside) if self._apart else 0)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is learned meanwhile: for who looks at the learner."""
        with self._beside.still():
            yield

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
            waited = len(self.backlog) > 0 or (self._apart and self._beside.busy)
            step = self.learner.observe(measurement)
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
        if self._apart:
            self._beside.put(partial(self._learn_apart, step))
            return
        self.backlog.add(step)
        if not self._config.defer_learning:
            self.backlog.do_all()

    def _learn_apart(self, step: Step) -> None:
        self.learner.compare(self._begin(step))
        self.autosave.step()

    def _learn(self, step: Step) -> None:
        rest = self._begin(step)
        if self._config.defer_learning:
            self._beside.put(partial(self.learner.compare, rest))
        else:
            self._beside.wait()
            self.learner.compare(rest)
        self.autosave.step()

    def _begin(self, step: Step) -> Comparison:
        """Learn what predictions need, if that is wanted."""
        if not self.learning:
            self.not_learned += 1
            return self.learner.only_scored(step)
        start = time.perf_counter()
        rest = self.learner.begin_learning(step)
        self.learn_us.append((time.perf_counter() - start) * 1e6)
        self.autosave.changed()
        return rest

    def _settle(self) -> bool:
        return False

    def complete(self) -> None:
        """Learn and compare all that still waits."""
        self.backlog.do_all()
        self._beside.wait()

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
        self._beside.wait()
        try:
            self.autosave.load(Path(path), self.learner.load)
        finally:  # where it fails, what was there before has been put back
            self._choose()
        self.backlog.clear()

    def finish(self) -> None:
        """Learn what still waits and save what isn't saved yet, if that is to happen by itself.

        Raises StorageError.
        """
        self.backlog.do_all()
        self._beside.close()
        self.autosave.finish()

    def save_if_due(self) -> None:
        """Have written by itself what was learned before a silence."""
        if not (self._apart and self._beside.busy):  # else that is what follows each sample
            self.autosave.step()

    def _snapshot(self) -> Snapshot:
        self._beside.wait()
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
        unlearned, unscored = self.backlog.dropped, self._beside.dropped
        if self._apart:
            unlearned, unscored = unlearned + unscored, 0
        dropped["learning could not keep up"] += unlearned
        dropped["comparison could not keep up, sample not scored"] += unscored
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
        step = learner.observe(measurement)
        if step is not None:
            learner.learn(step)
