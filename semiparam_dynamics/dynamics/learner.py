"""One measurement in, one prediction out, one sample learned: what node and bag reader call."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.comparison import Comparison
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.samples.measurement import Measurement

if TYPE_CHECKING:
    from semiparam_dynamics.config import InverseDynamicsConfig

MODELS = ("rigid_body", "nonparametric", "semiparametric")
RECENT_SAMPLES = 1000.0  # over about how many samples the recent scores look back


@dataclass(frozen=True, slots=True)
class Step:
    """A sample and what was predicted of it before it was learned."""

    sample: Sample
    prediction: Prediction

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
        self.reset()

    def reset(self) -> None:
        """Forget everything learned."""
        self.filter = SampleFilter(self.model, self.config.filter)
        self.estimator = SemiparametricEstimator(self.model, self.config.estimator)
        self.scores = RunningScores(MODELS, self.model.n_axes).expect_stds()
        self.recent = self._recent_scores()

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
        self.config = config

    def observe(self, measurement: Measurement) -> Step | None:
        """Take in a measurement; predict the instant before it, unless the filters only start."""
        sample = self.filter.push(measurement)
        if sample is None:
            return None
        return Step(sample, self.estimator.predict(sample, alone=False))

    def only_scored(self, step: Step) -> Comparison:
        """What :meth:`compare` takes of a step that isn't learned."""
        spread = self.estimator.errors["y"].value.copy()
        return Comparison(step.sample, step.prediction, spread, 0.0, learn=False)

    def learn(self, step: Step) -> None:
        """Learn from a step and score it; may come later, or never. No prediction waits for it."""
        if step.y is not None:
            self.compare(self.begin_learning(step))

    def begin_learning(self, step: Step) -> Comparison:
        """Learn from a measured step what predictions need; :meth:`compare` does the rest."""
        return self.estimator.begin_update(step.sample, step.prediction)

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
        return self.filter.dropped + self.estimator.gate.dropped

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file. Raises StorageError."""
        self.estimator.save(path)

    def load(self, path: str | Path) -> None:
        """Go on from a saved file. Raises StorageError; the learner is then what it was."""
        self.estimator.load(path)
