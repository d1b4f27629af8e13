"""From messages to predictions, and to learning beside them; without any ROS."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock, Thread
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import TIMINGS, Array
from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.base.nodes.autosave import LearningSession, Snapshot
from semiparam_dynamics.base.nodes.learner_thread import LearnerThread
from semiparam_dynamics.base.parameters import one_or_each, parameters, replace
from semiparam_dynamics.base.storage import saved_header
from semiparam_dynamics.changes.external_wrench import ExternalWrench
from semiparam_dynamics.dynamics.effort_faults import FirstMotion
from semiparam_dynamics.dynamics.estimator import BlockPrediction
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import LOCKED, InverseDynamicsLearner, Step
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MeasurementStream

DELAYS = 100  # steps over which the delay's median is taken
BATCH_NS = 30_000_000  # ns of steps that go to the thread together
IDLE_UPDATE_NS = BATCH_NS  # without such steps after which one that is not learned is assessed
PAUSE_BETWEEN_PUBLISHING = 20.0  # times as long as it takes
WARM_UP = 15.0  # s of motion: the residual's standardizer looks at the first half
WARM_UP_STEP = 0.25  # s
STOPPED = "learning was stopped by an error"
TARE_NS = 1_000_000_000  # ns of standing still whose mean is taken off external wrenches
TARE_STEP_NS = 10_000_000  # ns at least between those
MAX_TARE_AGE = 2.0  # s, since when the last of those samples came at most
MIN_REST_SPEED = 1e-3  # rad/s or m/s, at least, that a joint that stands still may have
MAX_CREDIT = 0.5  # s of which a share may be spent at once
MAX_UNLEARNED = 0.1  # s after which a sample is learned whatever it takes
MAX_FIRST_COST = 0.02  # s of a core that the first sample is taken to cost at most: it may compile
COST_RATE = 0.2  # by which a sample's cost follows the last one's
# s between parts, of some milliseconds, of the first motion's comparison: messages and learning go
# first.
EXAMINATION_REST = 0.01
LEFT_OUT = "beyond the share of a core (learning_share)"


class Session(LearningSession[list[Step]]):
    """A robot's messages, predictions and learning. Call it from one thread at a time.

    Saving alone may be asked for in another, as a service of its own callback group does.

    For each message::

        for step in session.joint_state(message):
            publish(step)
            session.learn(step)

    With `defer_learning` samples are learned in a thread of their own, and predictions are made by
    a predictor of what was learned up to some milliseconds before; else each sample is learned by
    `learn` itself. What the thread owns is only to be read while it is :meth:`paused`. Where
    messages wait, `thread.held` may be set: a minimum is learned meanwhile.

    locked: where joints that are not learned stand, see `RobotModel`.
    Raises RobotModelError where the URDF doesn't serve, ConfigurationError where the frame of the
    external wrench is not there.
    """

    def __init__(
        self,
        urdf: str,
        config: InverseDynamicsNodeConfig,
        locked: Mapping[str, float] | None = None,
    ) -> None:
        self._config = config
        self.model = RobotModel(urdf, config.learner.robot, locked=locked)
        self.external = ExternalWrench(
            self.model, config.external_frame, config.external_axes, config.external_size
        )
        self._checks = message_checks(self.model)
        self.learner = InverseDynamicsLearner(self.model, config.learner)
        # Not when it is saved: that is in the learner's thread, and the model's working memory
        # belongs to the messages' thread. No live parameter is part of it.
        self._identity = self.learner.identity()
        warm_up(self.model, config)
        thread = LearnerThread(self._work, config.learning_queue, size=_size, idle=self._idle)
        super().__init__(config, thread)
        self.first_motion: FirstMotion | None = None
        if config.examine_start and self.model.config.target == "effort":
            given, count = config.learner.samples.effort_scale, self.model.n_joints
            scale = one_or_each("samples.effort_scale", given, count, "joints")
            self.first_motion = FirstMotion(self.model, scale)
        # Stamps of the last second at rest, with what was measured beyond the prediction.
        self._standing: deque[tuple[int, Array]] = deque()
        self._clock = time.monotonic
        self._stood_at = 0.0  # s by the clock, when the last of them came
        self._theta: Array | None = None  # of the changes that their predictions contain
        self._counted: Array | None = None  # of those that the autosave knows of
        self._budget = LearningBudget(config.learning_share)
        self._together: list[Step] = []  # to be learned and scored with those that follow
        self._turn = RLock()  # of who predicts, learns or pauses: a save may come in another thread
        self._stamp = 0  # of the last of them
        # The newest sample, where none is learned or scored; the thread takes it.
        self._unlearned: deque[Sample] = deque(maxlen=1)
        self._given_at = 0  # stamp of the last step that the thread was given in either way
        self.learner.predict_beside_learning(config.defer_learning, desired=config.feedforward)
        self._count_anew()

    def _forget(self) -> None:
        self._together = []
        self._unlearned.clear()
        self.learner.reset()
        self._count_anew()

    def _count_anew(self) -> None:
        self.stream = MeasurementStream(
            self.model.joint_names,
            self.model.config.target,
            self._config.learner.samples,
            **self._checks,
        )
        self._standing.clear()  # of what is forgotten now
        self._counted = self._present_theta()
        self.measured = self.predicted = self.deferred = 0
        self._not_learned: Counter[str] = Counter()
        self.predict_us: deque[float] = deque(maxlen=TIMINGS)
        self.learn_us: deque[float] = deque(maxlen=TIMINGS)
        self.delays: deque[float] = deque(maxlen=DELAYS)  # ms, see `_steps`
        self.last: Step | None = None
        self._unpublished = False
        self._publish_after = 0.0  # monotonic s

    def configure(self, config: InverseDynamicsNodeConfig) -> None:
        """Continue with other values of the live parameters; no prediction changes by that alone.

        Raises ConfigurationError where that can't be, see the learner's `check`.
        """
        with self.paused(drained=True):
            self.learner.configure(config.learner)
            self.learner.predict_beside_learning(config.defer_learning, desired=config.feedforward)
            self.thread.capacity = config.learning_queue
            self._budget.share = config.learning_share
            self.autosave.interval = config.save_interval
            self._config = config

    def check(self, config: InverseDynamicsNodeConfig) -> None:
        """Raise ConfigurationError where :meth:`configure` would."""
        with self.paused():
            self.learner.check(config.learner)

    # Messages.

    def joint_state(self, message: Any) -> Iterator[Step]:
        """Take a JointState; predict what it completes. Pass each step to :meth:`learn`."""
        return self._steps(self.stream.joint_state, message)

    def wrench(self, message: Any) -> Iterator[Step]:
        """The same for a WrenchStamped."""
        return self._steps(self.stream.wrench, message)

    def _steps(self, take: Callable[[Any], list[Measurement]], message: Any) -> Iterator[Step]:
        start = time.perf_counter()
        for measurement in take(message):
            self.measured += 1
            behind = self.thread.behind or self._unpublished
            with self._turn:
                step = self.learner.predict(measurement, contacts=True)
            if step is not None:
                self.predicted += 1
                # From the instant that is predicted to the newest joint state.
                self.delays.append((self.stream.newest - step.sample.stamp) * 1e-6)
                self.last = step
                self.deferred += behind
                self.predict_us.append((time.perf_counter() - start) * 1e6)
                yield step
            start = time.perf_counter()

    def _note_standing(self, step: Step) -> None:
        """Keep what is measured beyond the prediction while the robot stands still."""
        if step.sample.between or (step.y is None and not self._standing):
            return
        if np.abs(step.sample.dq).max() > max(
            self._config.learner.filter.rest_velocity, MIN_REST_SPEED
        ):
            self._standing.clear()  # also where it moves away unmeasured
            return
        self._forget_other_predictions()
        if step.y is None:
            return
        if self._standing and 0 <= step.stamp - self._standing[-1][0] < TARE_STEP_NS:
            return
        self._stood_at = self._clock()
        self._standing.append((step.stamp, step.y - step.prediction.semiparametric))
        while not 0 <= step.stamp - self._standing[0][0] <= TARE_NS:
            self._standing.popleft()

    def _forget_other_predictions(self) -> None:
        """Forget what was measured beyond predictions with other changes, such as a payload."""
        if (theta := self._present_theta()) is not self._theta:
            self._theta = theta
            self._standing.clear()

    def _present_theta(self) -> Array | None:
        """Those of the changes that predictions contain: each change makes another array."""
        monitor = self.learner.changes
        return None if monitor is None else monitor.correction.theta

    def note_changes(self) -> None:
        """Have the changes that were noticed saved, too, although nothing is learned of them."""
        if (theta := self._present_theta()) is not self._counted:
            self._counted = theta
            self.autosave.changed()

    def forget_standing(self) -> None:
        """Predictions are others from now on: what was measured beyond the last ones is past."""
        self._standing.clear()

    def tare(self) -> str:
        """Take the external wrench of now, which is that of nothing but an error, as zero.

        Returns what was taken off, as a sentence. Raises SampleError where it has not stood for
        half a second until now.
        """
        self._forget_other_predictions()
        standing = self._standing
        if standing and (age := self._clock() - self._stood_at) > MAX_TARE_AGE:
            raise SampleError(
                f"the last sample at rest is {age:.0f} s old: send measurements while the robot "
                "stands still, and call again"
            )
        if not standing or standing[-1][0] - standing[0][0] < TARE_NS // 2:
            raise SampleError("the robot has to stand still for half a second, measured, first")
        external = np.array([external for _, external in standing])
        measured = np.isfinite(external).any(axis=0)
        bias = np.zeros(self.model.n_axes)
        bias[measured] = np.nanmean(external[:, measured], axis=0)
        with self.paused():
            self.learner.external_bias = bias
            self.autosave.changed()
        each = zip(self.model.axes, bias.tolist(), strict=True)
        taken = ", ".join(f"{name} {value:.3g}" for name, value in each)
        return f"the mean of {len(standing)} samples is taken off: {taken}"

    def feedforward(self, q: Array, dq: Array, ddq: Array) -> BlockPrediction:
        """Efforts for desired states (k, n_joints), see the learner's `feedforward`."""
        with self._turn:
            return self.learner.feedforward(q, dq, ddq)

    def learn(self, step: Step) -> None:
        """Have a step learned and scored, in the thread or, without `defer_learning`, at once."""
        with self._turn:
            self._learn(step)

    def _learn(self, step: Step) -> None:
        self._note_standing(step)
        self.learner.detect_contact(step)
        learning = self._learning and not self.thread.problem
        # Those between the ones that are learned are not scored either.
        steps = [s for s in self.learner.admit(step, learning=learning) if not s.sample.between]
        if not self._learning:
            self._not_learned["learning switched off"] += len(steps)
        if self._config.defer_learning:
            self._assess_later(step, bool(steps) and not self.thread.problem)
        if self.thread.problem:
            self._not_learned[STOPPED] += len(steps)
        elif not self._config.defer_learning:
            self.thread.do(steps)
        else:
            full: list[list[Step]] = []
            for one in map(self._affordable, steps):
                self._together.append(one)
                step_time = one.stamp - self._stamp
                self._stamp = one.stamp
                if not 0 <= one.stamp - self._together[0].stamp < BATCH_NS - step_time:
                    full.append(self._together)
                    self._together = []
            if full:
                # Those that waited for a verdict together are no sign that learning is slow.
                self.thread.put(*full, room=len(steps) - 1)
            self.thread.give_turn()

    def _assess_later(self, step: Step, queued: bool) -> None:
        """Have the thread assess a step, seldom, where none is queued to be learned or scored.

        That is where nothing is measured, where a change is suspected and after an error. Else the
        deviations would stay those of the last step queued.
        """
        if not queued and 0 <= step.stamp - self._given_at < IDLE_UPDATE_NS:
            return
        self._given_at = step.stamp
        if queued:
            self._unlearned.clear()  # it is older
        else:
            self._put_together()
            self._unlearned.append(step.sample)
            self.thread.call_idle()

    def _affordable(self, step: Step) -> Step:
        """The step as it is to be learned within the budget, or only scored."""
        if step.target is None:
            return step
        if (weight := self._budget.weight(step.stamp, step.sample.weight)) == 0.0:
            self._not_learned[LEFT_OUT] += 1
            return dataclasses.replace(step, target=None)
        if weight == step.sample.weight:
            return step
        return dataclasses.replace(step, sample=dataclasses.replace(step.sample, weight=weight))

    def _put_together(self) -> None:
        # To wake the thread costs as much as learning two samples more: nothing is in the caches.
        if self._together:
            self.thread.put(self._together)
            self._together = []

    # In the thread.

    def _work(self, steps: list[Step]) -> None:
        self._update(steps)
        if self.first_motion is not None:
            self._note_first_motion(self.first_motion, steps)
        self.thread.wait_for_turn()
        self.note_changes()
        self.autosave.step()
        self._publish()

    def _note_first_motion(self, first: FirstMotion, steps: list[Step]) -> None:
        for step in steps:
            if first.take(step.sample):
                rest = partial(time.sleep, EXAMINATION_REST)
                Thread(target=first.examine, args=(rest,), name="first motion", daemon=True).start()

    def _update(self, steps: list[Step]) -> None:
        start = time.thread_time()
        self.learner.update(steps, self.thread.wait_for_turn)
        if learned := _learned_of(steps):
            each = (time.thread_time() - start) / learned
            self._budget.spent(each)
            self.learn_us.extend(learned * [1e6 * each])
            self.autosave.changed(learned)
            self._unpublished = self._config.defer_learning

    def _publish(self) -> float | None:
        """Let predictions know what was learned, or return in how many seconds it is time to."""
        start = time.monotonic()
        if not self._unpublished:
            return None
        if start < self._publish_after:
            return self._publish_after - start
        self.learner.publish()
        self._unpublished, now = False, time.monotonic()
        self._publish_after = now + PAUSE_BETWEEN_PUBLISHING * (now - start)
        return None

    def _assess_unlearned(self) -> None:
        try:
            sample = self._unlearned.pop()
        except IndexError:
            return
        self.learner.idle_update(sample)

    def _idle(self) -> float | None:
        self.note_changes()
        self.autosave.step()
        pause = self._publish()
        self._assess_unlearned()  # last: after an error in learning it may fail, too
        return pause

    def _copied(self) -> Snapshot:
        return self._identity, self.learner.parameters(), self.learner.state()

    # Learning as a whole.

    @contextmanager
    def paused(self, *, drained: bool = False) -> Iterator[None]:
        """The same, and nothing is predicted. Not to be called in the learner's own thread."""
        with self._turn:
            if drained:
                self._put_together()
            with self.thread.paused(drained=drained):
                yield

    def drain(self) -> None:
        """Wait until all is learned that waits, and predictions know of it."""
        with self.paused(drained=True):
            self._publish_after = 0.0
            self._publish()
            self._assess_unlearned()

    @property
    def learning(self) -> bool:
        """True if samples are learned. Setting it to true also continues after a `problem`."""
        return self._learning

    @learning.setter
    def learning(self, wanted: bool) -> None:
        ends, self._learning = self._learning and not wanted, wanted
        if wanted:
            self.thread.restart()
        if ends and not self.thread.problem:
            with self.paused(drained=True):
                self.learner.estimator.infer()
                self.learner.publish()

    # Files.

    def save(self, path: str | Path) -> None:
        """Save what was learned, with what still waits. Raises StorageError."""
        with self.paused(drained=True):
            self.note_changes()
            self.autosave.save(Path(path))

    def _resume(self, path: Path) -> None:
        self.learner.load(path)
        self._counted = self._present_theta()
        self.forget_standing()

    def differences(self) -> list[str]:
        """In which parameters the file that was loaded was learned under others, in words.

        Live parameters are meant to differ, and joints that are not learned may stand anywhere
        but where they matter. Raises DamagedModelError as loading does.
        """
        if self.autosave.loaded is None:
            return []
        (_, there), here = saved_header(self.autosave.loaded), self.learner.parameters()
        live = {
            entry.name for entry in parameters(InverseDynamicsConfig, internal=True) if entry.live
        }
        here = json.loads(json.dumps(here))
        told = [
            f"{name} {there[name]} (here {value})"
            for name, value in here.items()
            if name not in (*live, LOCKED) and there.get(name, value) != value
        ]
        before = there.get(LOCKED, {})
        for name, lock in self._checks["locks"].items():
            if not lock.holds(before.get(name, 0.0)):
                stood, stands = before.get(name, 0.0), lock.position
                told.append(f"another position of {name}, {stood:g} (here {stands:g})")
        return told

    def finish(self) -> Path | None:
        """Learn what still waits, too; see the base class."""
        with self._turn:
            self._put_together()
        return super().finish()

    def abandon(self) -> None:
        """End the threads; what was learned is given up."""
        self.thread.clear()
        self.thread.close()

    def save_if_due(self) -> None:
        """Save pending learning if no message has come for a while."""
        with self._turn:
            if self._config.defer_learning:
                self._put_together()
                self.thread.call_idle()
            else:
                self.autosave.step()

    # For diagnostics.

    def learned(self) -> str:
        """The amount of what was learned, in words."""
        return f"{self.learner.estimator.n_learned} samples"

    def dropped(self) -> Counter[str]:
        """Messages, measurements and updates that were left out, by reason; while paused."""
        dropped = Counter(self.stream.dropped) + Counter(self.learner.dropped) + self._not_learned
        dropped["learning could not keep up"] += self.thread.dropped
        return +dropped


def _learned_of(steps: list[Step]) -> int:
    """The number of steps that are to be learned."""
    return sum(step.target is not None for step in steps)


def _size(steps: list[Step]) -> int:
    return max(_learned_of(steps), 1)  # to be scored they wait, too


class LearningBudget:
    """Chooses the samples that are learned so that these take a share of a core at most.

    Time is that of the samples, so that a recording which is played faster is learned the same.

    Attributes
    ----------
    share: of a core; may be changed.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._cost = 0.0  # s of a core that one sample takes
        self._credit = 0.0  # s of a core
        self._last = self._learned = 0  # stamps, ns
        self._owed = 0.0  # weight of the samples left out since one was learned

    def weight(self, stamp: int, weight: float) -> float:
        """The weight with which a sample of such a weight is to be learned now; 0: not at all.

        One that is learned counts for those left out before it, up to an independent sample.
        """
        passed = (stamp - self._last) * 1e-9
        self._last = stamp
        if not 0.0 <= passed <= MAX_CREDIT:  # a pause, or the clock was set back
            passed, self._owed, self._learned = MAX_CREDIT, 0.0, 0
        self._credit = min(self._credit + self.share * passed, self.share * MAX_CREDIT)
        waited = (stamp - self._learned) * 1e-9
        self._owed += weight
        if self._credit < self._cost and waited < MAX_UNLEARNED and self.share < 1.0:
            return 0.0
        self._credit = max(self._credit - self._cost, 0.0)
        # Of weights that were learned one by one nothing is rounded.
        weight, self._owed = min(self._owed, max(weight, 1.0)), 0.0
        self._learned = stamp
        return weight

    def spent(self, seconds: float) -> None:
        """Note what learning one sample took of a core."""
        if self._cost == 0.0:
            self._cost = min(seconds, MAX_FIRST_COST)
        else:  # a single one, held up by others, must not stop learning
            self._cost += COST_RATE * (min(seconds, 10.0 * self._cost) - self._cost)


def warm_up(
    model: RobotModel, config: InverseDynamicsNodeConfig, *, filtered: bool = False
) -> None:
    """Lead a learner that is thrown away through a motion, so that everything is compiled.

    The motion is within the joints' limits, and learned whatever the filter is set to.
    filtered : leave the filter out; what it would make is made up.
    """
    learner = InverseDynamicsLearner(model, replace(config.learner, **_eager(config)))
    learner.predict_beside_learning(config.defer_learning)
    low, high = model.position_limits
    reach = np.minimum(0.2, 0.25 * (high - low))
    middle = np.clip(0.0, low + 2.0 * reach, high - 2.0 * reach)
    rng = np.random.default_rng(0)
    for k in range(round(WARM_UP / WARM_UP_STEP)):
        q, dq = rng.normal(size=(2, model.n_joints))
        y = rng.normal(size=model.n_axes)
        stamp = round(k * WARM_UP_STEP * 1e9)
        measurement = Measurement(stamp, middle + reach * q, 0.2 * dq, y)
        if filtered:
            regressor = rng.normal(size=(model.n_axes, model.n_parameters))
            sample = Sample(stamp, measurement.q, dq, np.zeros_like(dq), regressor, y)
            whole = dataclasses.replace(sample, fast=sample)
            step: Step | None = learner.predict_sample(whole, contacts=True)
        else:
            step = learner.predict(measurement, contacts=True)
        if step is not None:
            learner.detect_contact(step)
            learner.update(learner.admit(step))
            learner.publish()


def _eager(config: InverseDynamicsNodeConfig) -> dict[str, object]:
    """Parameters by which little motion is enough to get everything to work."""
    kind, kernel = config.learner.estimator.residual, config.learner.estimator.kernel
    return {
        "changes__settle": 1.0,
        "filter__max_gap": 2.0 * WARM_UP_STEP,
        "filter__rest_velocity": 0.0,
        f"{kind}__window": min(kernel.window, 0.5 * WARM_UP),
    }
