"""One measurement in, one prediction out, one sample learned: what node and bag reader call."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.estimator import (
    DEFAULTS,
    LIVE,
    BlockGuesses,
    BlockPrediction,
    Comparison,
    SemiparametricEstimator,
    predicted,
)
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.residual import part
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.errors import ConfigurationError, StorageError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.storage import load_state, save_state

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
        self.scores = RunningScores(MODELS, self.model.n_axes).expect_stds()
        self.recent = self._recent_scores()
        self._begin_changes()

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
        self.estimator.configure(config.estimator)
        if config.estimator.comparison != self.config.estimator.comparison:
            self.recent = self._recent_scores()
        if self.changes is not None:
            self.changes.configure(config.changes)
        self.config = config

    def observe(self, measurement: Measurement, *, promptly: bool = False) -> Step | None:
        """Take in a measurement; predict the instant before it, unless the filters only start.

        promptly : standard deviations may be left out (NaN), to be put in when it is learned.
        """
        sample = self.filter.push(measurement)
        if sample is None:
            return None
        if self.changes is None:
            if promptly:
                return Step(sample, self.estimator.predict_promptly(sample))
            return Step(sample, self.estimator.predict(sample, alone=False))
        prediction = self.estimator.predict(sample, alone=False)
        self.changes.watch(sample, prediction)
        changed = self.changes.correction.apply(prediction, sample.regressor)
        if changed is not prediction:
            within = self.estimator.bound(changed.semiparametric, prediction.semiparametric)
            changed = replace(changed, semiparametric=within)
        return Step(sample, changed, prediction)

    def only_scored(self, step: Step) -> Comparison:
        """What :meth:`compare` takes of a step that isn't learned."""
        spread = self.estimator.errors["y"].value.copy()
        prediction = self.estimator.assess(step.sample, step.prediction)
        return Comparison(step.sample, prediction, spread, 0.0, learn=False)

    def learn(self, step: Step) -> None:
        """Learn from a step and score it; may come later, or never. No prediction waits for it."""
        if step.y is not None:
            self.compare(self.begin_learning(step))

    def begin_learning(self, step: Step) -> Comparison:
        """Learn from a measured step what predictions need; :meth:`compare` does the rest."""
        if self.changes is None or step.learned is None:
            return self.estimator.begin_update(step.sample, step.prediction)
        rest = self.only_scored(step)
        for sample, prediction in self._waiting.admit(step.sample, step.learned):
            done = self.estimator.begin_update(sample, prediction)
            if sample.stamp == step.stamp:
                rest = replace(done, sample=step.sample, prediction=step.prediction)
        return rest

    def compare(self, rest: Comparison) -> None:
        """Have the nonparametric model alone predict and learn, and score all three models.

        In the steps' order; it may run in another thread than all else.
        """
        prediction, y = self.estimator.finish_update(rest), rest.sample.y
        if y is not None:
            values = np.array([getattr(prediction, name) for name in MODELS])
            stds = np.array([getattr(prediction, f"{name}_std") for name in MODELS])
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
            state = load_state(path, self.identity(), ignore=LIVE, defaults=DEFAULTS)
            try:
                self.changes.restore(part(state, "changes."))
            except (ValueError, LookupError, TypeError, ConfigurationError) as error:
                self.changes.restore(before or {})
                what = error if isinstance(error, ConfigurationError) else repr(error)
                raise StorageError(f"{path} can't be gone on from: {what}") from None
        try:
            self.estimator.load(path)
        except StorageError:
            if self.changes is not None:
                self.changes.restore(before or {})
            raise


# -------------------------------------------------------------------------------------------------
# What the models say of states that a controller wants to bring about; nothing is learned.
#
# No filter is passed: what is learned from filtered signals holds for unfiltered ones, too, see
# :mod:`semiparam_dynamics.dynamics.filtering`.


def feedforward(
    estimator: SemiparametricEstimator, q: Array, dq: Array, ddq: Array
) -> BlockPrediction:
    """Values and standard deviations (k, n_axes) of `rigid_body` and `semiparametric`.

    q, dq, ddq: (k, n_joints), rad, rad/s and rad/s^2. The nonparametric model alone isn't asked:
    it is NaN. All values are finite and within the estimator's bound. No learned number changes,
    and a sample that was predicted and waits to be learned is learned as if nothing had been asked.
    """
    rigid = estimator.rigid_body.ask_block(estimator.model.regressors(q, dq, ddq))
    states = (q, dq) if estimator.config.residual == "nystrom" else (q, dq, ddq)
    inputs = np.concatenate((*states, rigid.values), axis=1)
    residual = estimator.residual.ask_block(inputs, rigid.parameters)
    residual = residual.weighed(estimator.trust.weight)
    said = predicted(estimator, BlockGuesses(rigid, residual, None))
    within = [estimator.bound.within(row) for row in said.values["rigid_body"]]
    said.values["rigid_body"] = np.array(within).reshape(rigid.values.shape)
    return said


def learner_feedforward(
    learner: InverseDynamicsLearner, q: Array, dq: Array, ddq: Array
) -> BlockPrediction:
    """:func:`feedforward` with what the learner noticed of changes, such as a payload."""
    said = feedforward(learner.estimator, q, dq, ddq)
    if learner.changes is None or not learner.changes.correction.active:
        return said
    estimator = learner.estimator
    for k, state in enumerate(zip(q, dq, ddq, strict=True)):
        sample = estimator.sample(*state)
        known = estimator.predict(sample, alone=False)
        changed = learner.changes.correction.apply(known, sample.regressor)
        for name in ("rigid_body", "semiparametric"):
            said.values[name][k] = estimator.bound.within(getattr(changed, name))
            said.stds[name][k] = getattr(changed, f"{name}_std")
    return said
