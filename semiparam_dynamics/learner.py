"""One measurement in, one prediction out, one sample learned: what node and bag reader call."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import (
    LIVE,
    BlockPrediction,
    SemiparametricEstimator,
)
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.errors import ConfigurationError, StorageError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.storage import load_state, save_state, sub_state

if TYPE_CHECKING:
    from semiparam_dynamics.changes.monitor import ChangeMonitor
    from semiparam_dynamics.config import InverseDynamicsConfig


MODELS = ("rigid_body", "nonparametric", "semiparametric")
KEPT_OUT = "during a change (changes.detect)"
RECENT_SAMPLES = 1000.0  # over about how many samples the recent scores look back


@dataclass(frozen=True, slots=True)
class Step:
    """A sample and what was predicted of it before it was learned."""

    sample: Sample
    prediction: Prediction
    learned: Prediction | None = None  # the model's own, where the other allows for a change

    @property
    def stamp(self) -> int:
        """Nanoseconds, of the message that the sample belongs to."""
        return self.sample.stamp

    @property
    def y(self) -> Array | None:
        """The measurement (n_axes,), filtered as the prediction; None where there is none."""
        return self.sample.y


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measured sample that the baseline has yet to predict, and perhaps to learn."""

    sample: Sample
    prediction: Prediction
    learn: bool


class InverseDynamicsLearner:
    """Filter and predict; score and learn when there is time."""

    def __init__(self, model: RobotModel, config: InverseDynamicsConfig) -> None:
        self.model = model
        self.config = config
        self.changes: ChangeMonitor | None = None
        self.reset()

    def reset(self) -> None:
        """Forget everything learned."""
        self.filter = SampleFilter(self.model, self.config.filter)
        self.estimator = SemiparametricEstimator(self.model, self.config.estimator)
        self.baseline = self._new_baseline(self.config)
        self.scores = RunningScores(MODELS, self.model.n_axes).expect_stds()
        self.recent = self._recent_scores()
        self._begin_changes()

    def _new_baseline(self, config: InverseDynamicsConfig) -> NonparametricBaseline | None:
        if not config.comparison:
            return None
        return NonparametricBaseline(self.model, config.estimator)

    def _begin_changes(self) -> None:
        before, self.changes = self.changes, None
        if not self.config.changes.detect:
            return
        # Only then: what the monitor needs imports this package.
        from semiparam_dynamics.changes.monitor import ChangeMonitor, DeferredSamples

        self.changes = ChangeMonitor(self.model, self.config.changes, self.config.filter)
        self._waiting = DeferredSamples(self.changes)
        if before is not None:
            self.changes.snapshots = before.snapshots

    def _recent_scores(self) -> RunningScores:
        keep = math.exp(-1.0 / RECENT_SAMPLES)
        return RunningScores(MODELS, self.model.n_axes, keep).expect_stds()

    def configure(self, config: InverseDynamicsConfig) -> None:
        """Go on with other values of the live parameters; see the estimator's `configure`.

        A model that is compared again has no recent scores from before; its scores over all
        samples stay unknown (NaN) until the next :meth:`reset`.
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

    def observe(self, measurement: Measurement) -> Step | None:
        """Take in a measurement; predict the instant before it, unless the filters only start."""
        sample = self.filter.push(measurement)
        if sample is None:
            return None
        prediction = self.estimator.predict(sample)
        if self.changes is None:
            return Step(sample, prediction)
        self.changes.watch(sample, prediction)
        changed = self.changes.correction.apply(prediction, sample.regressor)
        if changed is not prediction:
            within = self.estimator.bound(changed.semiparametric, prediction.semiparametric)
            changed = replace(changed, semiparametric=within)
        return Step(sample, changed, prediction)

    def only_scored(self, step: Step) -> Comparison:
        """The input of :meth:`compare` for a step that isn't learned."""
        return Comparison(step.sample, step.prediction, learn=False)

    def learn(self, step: Step) -> None:
        """Learn from a step and score it; may come later, or never. No prediction waits for it."""
        if step.y is not None:
            self.compare(self.begin_learning(step))

    def begin_learning(self, step: Step) -> Comparison:
        """Learn from a measured step; :meth:`compare` does the rest."""
        if self.changes is None or step.learned is None:
            self.estimator.update(step.sample, step.prediction)
            return Comparison(step.sample, step.prediction, learn=not self.estimator.gate.closed)
        learned = False
        for sample, prediction in self._waiting.admit(step.sample, step.learned):
            self.estimator.update(sample, prediction)
            if sample.stamp == step.stamp:
                learned = not self.estimator.gate.closed
        return Comparison(step.sample, step.prediction, learn=learned)

    def compare(self, rest: Comparison) -> None:
        """Have the baseline predict and learn, and score all models; in the steps' order."""
        sample, y = rest.sample, rest.sample.y
        if y is None:
            return
        values, stds = np.full((2, len(MODELS), len(y)), np.nan)
        told: list[object] = [rest.prediction, None, rest.prediction]
        if self.baseline is not None:
            told[1] = baseline = self.baseline.predict(sample)
            if rest.learn:
                self.baseline.update(sample, baseline)
        for k, (name, source) in enumerate(zip(MODELS, told, strict=True)):
            if source is not None:
                values[k], stds[k] = getattr(source, name), getattr(source, f"{name}_std")
        self.scores.add_arrays(y, values, stds)
        self.recent.add_arrays(y, values, stds)

    @property
    def dropped(self) -> Counter[str]:
        """Measurements that the filter left out and samples that the gate did, by reason."""
        dropped = self.filter.dropped + self.estimator.gate.dropped
        if self.changes is not None:
            dropped[KEPT_OUT] += self._waiting.dropped
        return +dropped

    def identity(self) -> dict[str, object]:
        """What a saved model must agree in to be loaded here."""
        return self.estimator.identity()

    def state(self) -> dict[str, Array]:
        """Everything learned, and what changed since, as named arrays."""
        state = self.estimator.state()
        if self.changes is not None:
            state |= {f"changes.{name}": value for name, value in self.changes.state().items()}
        return state

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file. Raises StorageError."""
        save_state(path, self.identity(), self.state())

    def load(self, path: str | Path) -> None:
        """Go on from a saved file. Raises StorageError; the learner is then what it was."""
        before = None if self.changes is None else self.changes.state()
        if self.changes is not None:
            state = load_state(path, self.identity(), ignore=LIVE)
            try:
                self.changes.restore(sub_state(state, "changes."))
            except (ValueError, LookupError, TypeError, ConfigurationError) as error:
                self.changes.restore(before or {})
                what = error if isinstance(error, ConfigurationError) else repr(error)
                raise StorageError(f"cannot resume from {path}: {what}") from None
        try:
            self.estimator.load(path)
        except StorageError:
            if self.changes is not None:
                self.changes.restore(before or {})
            raise


def learner_feedforward(
    learner: InverseDynamicsLearner, q: Array, dq: Array, ddq: Array
) -> BlockPrediction:
    """The estimator's `feedforward`, with noticed changes, such as a payload."""
    said = learner.estimator.feedforward(q, dq, ddq)
    if learner.changes is None or not learner.changes.correction.active:
        return said
    estimator = learner.estimator
    for k, state in enumerate(zip(q, dq, ddq, strict=True)):
        sample = estimator.sample(*state)
        known = estimator.predict(sample)
        changed = learner.changes.correction.apply(known, sample.regressor)
        for name in ("rigid_body", "semiparametric"):
            said.values[name][k] = estimator.bound.within(getattr(changed, name))
            said.stds[name][k] = getattr(changed, f"{name}_std")
    return said
