"""Learning the inverse dynamics of one robot from its measurements, one after the other."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.config import DEFER, EXCLUDE
from semiparam_dynamics.dynamics.baseline import BaselinePrediction, NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import LIVE, BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.errors import ConfigurationError, StorageError
from semiparam_dynamics.parameters import to_flat
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.storage import check_finite, load_state, save_state, sub_state

if TYPE_CHECKING:
    from semiparam_dynamics.changes.monitor import ChangeMonitor
    from semiparam_dynamics.config import InverseDynamicsConfig

MODELS = ("rigid_body", "nonparametric", "semiparametric")
KEPT_OUT = "during a change (changes.detect)"
LOCKED = "locked"  # where the joints that are not learned stand, beside a saved model's parameters
RECENT_SAMPLES = 1000.0  # that the recent scores follow, about
MAX_DEFERRED = 5000  # samples that wait for a verdict on a change; of more the oldest are learned


@dataclass(frozen=True, slots=True)
class Step:
    """A sample, its predictions, and the measurement that is to be learned of it."""

    sample: Sample
    prediction: Prediction  # as published: with the changes noticed, such as a payload
    unchanged: Prediction  # the learned model's own, without them
    target: Array | None  # (n_axes,) measurement without their effort; None: is not learned

    @property
    def stamp(self) -> int:
        """Nanoseconds, of the message that the sample belongs to."""
        return self.sample.stamp

    @property
    def y(self) -> Array | None:
        """The measurement (n_axes,), filtered as the prediction; None where there is none."""
        return self.sample.y


class InverseDynamicsLearner:
    """Predicts measurements, learns them and scores the predictions.

    Each measurement passes :meth:`predict`, each step :meth:`admit`, and what that returns
    :meth:`update`. Two threads may share this work:

    - the one that takes messages calls `predict`, `admit` and `feedforward`. It owns the filter,
      the monitor of changes and the samples that wait for its verdict, and the model that predicts;
    - the one that learns calls `update` and `publish`. It owns the estimator, the baseline and the
      scores. It may call `state`, too: what the monitor is part of it is locked.

    Any other method, and reading what a thread owns, needs that thread to be at rest.

    Attributes
    ----------
    estimator, baseline: what learns; the baseline is None unless the parameter `comparison` is set.
    scores, recent: of the published predictions, over all samples and over the last ones in motion:
        at rest efforts hardly change, and soon nothing would be left of motion.
    changes: the monitor of changes; None unless the parameter `changes.detect` is set.
    bounded: how many predictions were not the model's own values, and why.
    external_bias: (n_axes,) what measured minus predicted was where nothing touched the robot, N m
        or N: kept with what was learned, and taken off external wrenches.
    """

    def __init__(self, model: RobotModel, config: InverseDynamicsConfig) -> None:
        self.model = model
        self.config = config
        self.changes: ChangeMonitor | None = None
        self._changes_lock = Lock()
        self._published: PublishedModel | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything learned; payloads that were named stay."""
        self.filter = SampleFilter(self.model, self.config.filter)
        self.estimator = SemiparametricEstimator(self.model, self.config.estimator)
        self.baseline = self._new_baseline(self.config)
        self.scores = RunningScores(MODELS, self.model.n_axes).expect_stds()
        self.recent = self._recent_scores()
        self.bounded: Counter[str] = Counter()
        self.external_bias: Array = np.zeros(self.model.n_axes)
        self._deferred: deque[Step] = deque()
        self._kept_out = 0
        before, self.changes = self.changes, self._new_monitor()
        if before is not None and self.changes is not None:
            self.changes.snapshots = before.snapshots
        self.predict_beside_learning(self._published is not None)

    def _new_baseline(self, config: InverseDynamicsConfig) -> NonparametricBaseline | None:
        return NonparametricBaseline(self.model, config.estimator) if config.comparison else None

    def _recent_scores(self) -> RunningScores:
        keep = math.exp(-1.0 / RECENT_SAMPLES)
        return RunningScores(MODELS, self.model.n_axes, keep).expect_stds()

    def _new_monitor(self) -> ChangeMonitor | None:
        if not self.config.changes.detect:
            return None
        from semiparam_dynamics.changes.monitor import ChangeMonitor  # slow to import

        return ChangeMonitor(self.model, self.config.changes, self.config.filter)

    # Called for each message.

    def predict(self, measurement: Measurement) -> Step | None:
        """Take in a measurement; predict the instant before it, unless the filters only start."""
        sample = self.filter.push(measurement)
        return None if sample is None else self.predict_sample(sample)

    def predict_sample(self, sample: Sample) -> Step:
        """:meth:`predict` of a measurement that is filtered already, as those of a recording."""
        with self._predictor() as model:
            unchanged = prediction = model.predict(sample)
            if self.changes is not None:
                with self._changes_lock:
                    self.changes.watch(sample, unchanged)
                    prediction = self.changes.correction.apply(unchanged, sample.regressor)
            if prediction is not unchanged:
                within = model.bound(prediction.semiparametric, unchanged.semiparametric)
                prediction = dataclasses.replace(prediction, semiparametric=within)
        return Step(sample, prediction, unchanged, sample.y if sample.teaches else None)

    def admit(self, step: Step) -> list[Step]:
        """The measured steps that :meth:`update` is to take now, in order.

        Without `changes.detect` that is the step itself. With it a step waits for the monitor's
        verdict, which may be that it is not to be learned.
        """
        if step.y is None:
            return []
        if self.changes is None:
            return [step]
        self._deferred.append(step)
        admitted = []
        while self._deferred:
            verdict = self.changes.verdict(self._deferred[0].stamp)
            if verdict == DEFER and len(self._deferred) <= MAX_DEFERRED:
                break
            first = self._deferred.popleft()
            self._kept_out += verdict == EXCLUDE
            target = None if verdict == EXCLUDE else self._without_changes(first.sample)
            admitted.append(dataclasses.replace(first, target=target))
        return admitted

    def give_up(self) -> list[Step]:
        """The steps that still wait for a verdict when nothing follows: they are only scored."""
        waiting = [dataclasses.replace(step, target=None) for step in self._deferred]
        self._deferred.clear()
        return waiting

    def _without_changes(self, sample: Sample) -> Array | None:
        if sample.y is None or not sample.informative:
            return None
        if self.changes is None or not self.changes.correction.active:
            return sample.y
        return sample.y - self.changes.correction.effort(sample.regressor)

    def feedforward(self, q: Array, dq: Array, ddq: Array) -> BlockPrediction:
        """The estimator's `feedforward`, with the changes noticed, such as a payload.

        The states are taken as one motion that begins where the last measurement was.
        """
        stops = self.filter.stops_along(q)
        with self._predictor() as model:
            predicted = model.feedforward(q, dq, ddq, stops)
            if self.changes is None or not self.changes.correction.active:
                return predicted
            for k, state in enumerate(zip(q, dq, ddq, strict=True)):
                sample = model.sample(*state, stops=None if stops is None else stops[k])
                changed = self.changes.correction.apply(model.predict(sample), sample.regressor)
                for name in ("rigid_body", "semiparametric"):
                    predicted.values[name][k] = model.bound.within(getattr(changed, name))
                    predicted.stds[name][k] = getattr(changed, f"{name}_std")
        return predicted

    # Called where learning is done.

    def update(self, steps: Sequence[Step]) -> list[BaselinePrediction | None]:
        """Learn the steps that have a target, and score all of them, in order.

        One by one: a block of the estimator's is faster only from hundreds of samples on.

        Returns the baseline's prediction of each; None where there is no baseline.
        """
        baselines: list[BaselinePrediction | None] = []
        for step in steps:
            learned = False
            if step.target is not None:
                sample = step.sample
                if step.target is not sample.y:
                    sample = dataclasses.replace(sample, y=step.target)
                self.estimator.update(sample, step.unchanged)
                learned = not self.estimator.gate.closed
            baseline = None
            if self.baseline is not None:
                baseline = self.baseline.predict(step.sample)
                if learned:
                    self.baseline.update(step.sample, baseline)
            baselines.append(baseline)
        self._score(steps, baselines)
        return baselines

    def _score(self, steps: Sequence[Step], baselines: list[BaselinePrediction | None]) -> None:
        values, stds, measured, moving = [], [], [], []
        nothing = np.full(self.model.n_axes, np.nan)
        for step, baseline in zip(steps, baselines, strict=True):
            if step.y is None or step.sample.between:
                continue  # as in an evaluation
            p, b = step.prediction, (nothing, nothing)
            if baseline is not None:
                b = baseline.nonparametric, baseline.nonparametric_std
            measured.append(step.y)
            moving.append(step.sample.informative)
            values.append((p.rigid_body, b[0], p.semiparametric))
            stds.append((p.rigid_body_std, b[1], p.semiparametric_std))
        if measured:
            arrays = np.array(measured), np.array(values), np.array(stds)
            self.scores.add_arrays(*arrays)
            self.recent.add_arrays(*(array[moving] for array in arrays))

    def publish(self) -> None:
        """Let predictions know what was learned, where predictors make them."""
        if self._published is not None:
            self._published.write(self.estimator)

    # Called with both at rest.

    def predict_beside_learning(self, enabled: bool) -> None:
        """Have predictors of the estimator predict from now on, see :meth:`publish`, or itself."""
        self._published = None
        if enabled:
            self._published = PublishedModel(self.estimator, self.bounded)
        self.estimator.bound.counts = Counter() if enabled else self.bounded

    @contextmanager
    def _predictor(self) -> Iterator[SemiparametricEstimator]:
        if self._published is None:
            yield self.estimator
        else:
            with self._published.read() as model:
                yield model

    def configure(self, config: InverseDynamicsConfig) -> None:
        """Continue with other values of the live parameters; see the estimator's `configure`.

        A baseline that is begun has no scores from before; over all samples its scores stay
        unknown (NaN) until the next :meth:`reset`.
        """
        if self.baseline is not None:
            self.baseline.check(config.estimator)
        self.estimator.configure(config.estimator)
        if self.baseline is not None:
            self.baseline.configure(config.estimator)
        if config.comparison != self.config.comparison:
            self.recent = self._recent_scores()
            self.baseline = self._new_baseline(config)
        if self.changes is not None:
            self.changes.configure(config.changes)
        self.config = config
        self.predict_beside_learning(self._published is not None)

    @property
    def compared(self) -> tuple[str, ...]:
        """The models that are scored."""
        return tuple(name for name in MODELS if self.baseline is not None or name != MODELS[1])

    @property
    def dropped(self) -> Counter[str]:
        """Measurements that the filter left out and samples that were not learned, by reason."""
        dropped = self.filter.dropped + self.estimator.gate.dropped
        dropped[KEPT_OUT] += self._kept_out
        return +dropped

    def copy(self) -> InverseDynamicsLearner:
        """Another learner that knows the same, as one resumed from a file, and learns on its own.

        Its filter, its counts, its scores and its gate begin anew.
        """
        other = InverseDynamicsLearner(self.model, self.config)
        other.estimator.copy_from(self.estimator)
        if self.baseline is not None and other.baseline is not None:
            other.baseline.copy_from(self.baseline)
        if self.changes is not None and other.changes is not None:
            other.changes.restore(self.changes.state())
        other.external_bias = self.external_bias
        return other

    def identity(self) -> dict[str, object]:
        """The properties that a saved model must share to be loaded here."""
        return self.estimator.identity()

    def parameters(self) -> dict[str, object]:
        """All parameters, the joints that are learned, and where the others are locked.

        Kept beside what is saved.
        """
        joints = {"joints": self.model.joint_names, LOCKED: self.model.locked}
        return {**to_flat(self.config), **joints}

    def state(self) -> dict[str, Array]:
        """Everything learned, and what changed since, as named arrays."""
        state = self.estimator.state()
        if self.changes is not None:
            with self._changes_lock:
                changes = self.changes.state()
            state |= {f"changes.{name}": value for name, value in changes.items()}
        if self.external_bias.any():
            state["external.bias"] = self.external_bias.copy()
        return state

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file. Raises StorageError."""
        save_state(path, self.identity(), self.state(), parameters=self.parameters())

    def load(self, path: str | Path) -> None:
        """Resume from a saved file. Raises StorageError; the learner is then what it was."""
        state = load_state(path, self.identity(), ignore=LIVE)
        before = self.state()
        try:
            check_finite(state)
            self._restore(state)
        except (ConfigurationError, ValueError, LookupError, TypeError, AttributeError) as error:
            self._restore(before)
            why = error if isinstance(error, ConfigurationError) else repr(error)
            raise StorageError(f"cannot resume from {path}: {why}") from None
        self._deferred.clear()
        self.publish()

    def _restore(self, state: dict[str, Array]) -> None:
        if self.changes is not None:
            self.changes.restore(sub_state(state, "changes."))
        self.estimator.restore(state)
        self.estimator.configure(self.config.estimator)
        bias = state.get("external.bias", np.zeros(self.model.n_axes))
        if bias.shape != (self.model.n_axes,):
            raise ValueError("an external bias of another number of axes")
        self.external_bias = bias.copy()


class PublishedModel:
    """Two predictors of an estimator: one predicts, while the other takes what was learned.

    Reading never waits for writing: a lock that cannot be had at once is that of the one that has
    just been replaced. Writing waits for the end of a prediction by the older one.
    """

    def __init__(self, estimator: SemiparametricEstimator, bounded: Counter[str]) -> None:
        self._predictors = [(estimator.predictor(), Lock()) for _ in range(2)]
        for predictor, _ in self._predictors:
            predictor.bound.counts = bounded
        self._newest = 0

    @contextmanager
    def read(self) -> Iterator[SemiparametricEstimator]:
        """The newest one, which is not written to meanwhile; for one thread at a time."""
        predictor, lock = self._predictors[self._newest]
        while not lock.acquire(blocking=False):
            predictor, lock = self._predictors[self._newest]
        try:
            yield predictor
        finally:
            lock.release()

    def write(self, estimator: SemiparametricEstimator) -> None:
        """Take what `estimator` knows; later predictions are by that."""
        older = 1 - self._newest
        predictor, lock = self._predictors[older]
        with lock:
            predictor.follow(estimator)
        self._newest = older
