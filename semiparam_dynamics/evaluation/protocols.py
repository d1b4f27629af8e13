"""The three protocols by which a model is judged, and the baseline that humbles it.

- sequential: predict a sample, score it, learn it. At 50 Hz and more this flatters everything.
- delayed: the nonparametric parts predict a whole block of 0.5 s before they learn any of it.
- frozen: nothing is learned. What the model is worth on motion it has never seen.

`persistence`, the rigid body's prediction plus the last residual learned, needs no model of the
residual at all: whoever does not beat it in a protocol has learned nothing there.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.learner import MODELS
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.evaluation.leakage import Repeats
from semiparam_dynamics.evaluation.trace import Trace

PROTOCOLS = ("sequential", "delayed", "frozen")
ALL_MODELS = ("urdf", *MODELS, "persistence")
BLOCK = 0.5  # s
LEAST_PART = 0.05  # of the samples: fewer aren't scored apart


class ProtocolRun:
    """An estimator led through samples by one protocol, scored on the way."""

    def __init__(
        self, estimator: SemiparametricEstimator, protocol: str, last_residual: Array | None = None
    ) -> None:
        self.estimator = estimator
        self.protocol = protocol
        n_axes = estimator.model.n_axes
        self.scores = RunningScores(ALL_MODELS, n_axes)
        self.rest: RunningScores | None = None
        self.repeats: Repeats | None = None
        self.repeated, self.new = (
            RunningScores(ALL_MODELS, n_axes, whole=self.scores) for _ in range(2)
        )
        self.trace = Trace(ALL_MODELS, n_axes)
        self.last_residual = np.zeros(n_axes) if last_residual is None else last_residual
        self._waiting: list[tuple[Sample, Prediction]] = []

    def step(self, sample: Sample, score: bool = True) -> None:
        """Predict a sample, score it if it was measured, and learn it as the protocol says."""
        prediction = self.estimator.predict(sample)
        if sample.y is None:
            return
        if score:
            self._score(sample, prediction)
        if self.protocol == "sequential":
            self.estimator.update(sample, prediction)
            self.last_residual = sample.y - prediction.rigid_body
        elif self.protocol == "delayed":
            self._delay(sample, prediction)

    def _delay(self, sample: Sample, prediction: Prediction) -> None:
        self.estimator.update_rigid_body(sample, prediction)
        self._waiting.append((sample, prediction))
        elapsed = (sample.stamp - self._waiting[0][0].stamp) * 1e-9
        if 0.0 <= elapsed < BLOCK:
            return
        for waiting in self._waiting:
            self.estimator.update_nonparametric(*waiting)
        last, predicted = self._waiting[-1]
        assert last.y is not None  # only measured samples wait
        self.last_residual = last.y - predicted.rigid_body
        self._waiting.clear()

    def _score(self, sample: Sample, p: Prediction) -> None:
        assert sample.y is not None  # checked by step
        predictions = {name: getattr(p, name) for name in MODELS}
        predictions["urdf"] = sample.regressor @ self.estimator.model.prior
        predictions["persistence"] = p.rigid_body + self.last_residual
        stds = {name: getattr(p, f"{name}_std") for name in MODELS}
        self.scores.add(sample.y, predictions, stds)
        if self.rest is not None:
            self.rest.add(sample.y, predictions, stds)
        if self.repeats is not None:
            part = self.repeated if self.repeats(sample) else self.new
            part.add(sample.y, predictions, stds)
        self.trace.add(sample.stamp, sample.y, predictions, p.semiparametric_std)

    def score_rest(self) -> None:
        """From here on keep scores of the rest alone as well, in `rest`."""
        self.rest = RunningScores(ALL_MODELS, self.estimator.model.n_axes)

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        parts = {"rest": self.rest}
        if min(self.repeated.samples, self.new.samples) > LEAST_PART * self.scores.samples:
            parts |= {"repeated": self.repeated, "new": self.new}
        return {f"{self.protocol}_{name}": s for name, s in parts.items() if s is not None}

    def branch(self, protocol: str) -> ProtocolRun:
        """A run by another protocol that goes on from a copy of what was learned here."""
        return ProtocolRun(self.estimator.copy(), protocol, self.last_residual.copy())
