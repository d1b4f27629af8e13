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
from semiparam_dynamics.dynamics.block_prediction import (
    RigidBodyGuess,
    predict_block,
    rigid_body_guesses,
)
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.learner import MODELS
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.evaluation.leakage import Repeats
from semiparam_dynamics.evaluation.trace import Trace

PROTOCOLS = ("sequential", "delayed", "frozen")
ALL_MODELS = ("urdf", *MODELS, "persistence")
BLOCK = 0.5  # s
MOST = 512  # samples that wait to be scored, or with nothing learned to be predicted
LEAST_PART = 0.05  # of the samples: fewer aren't scored apart


class ProtocolRun:
    """An estimator led through samples by one protocol, scored on the way."""

    def __init__(
        self, estimator: SemiparametricEstimator, protocol: str, last_residual: Array | None = None
    ) -> None:
        self.estimator = estimator
        self.protocol = protocol
        n_axes = estimator.model.n_axes
        self._scores = RunningScores(ALL_MODELS, n_axes)
        self._rest: RunningScores | None = None
        self.repeats: Repeats | None = None
        self._repeated, self._new = (
            RunningScores(ALL_MODELS, n_axes, whole=self._scores) for _ in range(2)
        )
        self._trace = Trace(ALL_MODELS, n_axes)
        self.last_residual = np.zeros(n_axes) if last_residual is None else last_residual
        self._unscored: list[tuple[Sample, Prediction, Array]] = []  # and the residual before it
        self._unpredicted: list[tuple[Sample, RigidBodyGuess | None, bool]] = []
        self._unlearned: list[tuple[Sample, Prediction]] = []
        self._block_start: int | None = None

    def step(self, sample: Sample, score: bool = True) -> None:
        """Predict a sample, score it if it was measured, and learn it as the protocol says.

        What no learning waits for is left until a block is together; see :meth:`settle`.
        """
        if sample.y is None:
            return
        if self.protocol == "frozen":
            self._unpredicted.append((sample, None, score))
        elif self.protocol == "delayed":
            self._delay(sample, score)
        else:
            prediction = self.estimator.predict(sample)
            if score:
                self._unscored.append((sample, prediction, self.last_residual))
            self.estimator.update(sample, prediction)
            self.last_residual = sample.y - prediction.rigid_body
        if max(len(self._unscored), len(self._unpredicted)) >= MOST:
            self.settle()

    def _delay(self, sample: Sample, score: bool) -> None:
        body = self.estimator.rigid_body
        assert sample.y is not None  # checked by step
        if self.estimator.config.output.gate > 0.0:
            # Whether the rigid body learns a sample then depends on the whole prediction of it.
            prediction = self.estimator.predict(sample)
            self.estimator.update_rigid_body(sample, prediction)
            self._unlearned.append((sample, prediction))
            if score:
                self._unscored.append((sample, prediction, self.last_residual))
        else:
            value, leverage = body.predict(sample.regressor), body.leverage(sample.regressor)
            guess = RigidBodyGuess(value, leverage, body.parameters)
            self._unpredicted.append((sample, guess, score))
            body.update(sample.regressor, sample.y, sample.stamp)
        if self._block_start is None:
            self._block_start = sample.stamp
        if 0.0 <= (sample.stamp - self._block_start) * 1e-9 < BLOCK:
            return
        self._predict()
        for waiting in self._unlearned:
            self.estimator.update_nonparametric(*waiting)
        last, predicted = self._unlearned[-1]
        assert last.y is not None  # only measured samples wait
        self.last_residual = last.y - predicted.rigid_body
        self._unlearned.clear()
        self._block_start = None

    def _predict(self) -> None:
        """Predict what waits for it, before anything is learned that would change it."""
        if not self._unpredicted:
            return
        samples = [sample for sample, _, _ in self._unpredicted]
        known = [guess for _, guess, _ in self._unpredicted if guess is not None]
        rigid = known or rigid_body_guesses(self.estimator, samples)
        predictions = predict_block(self.estimator, samples, rigid)
        for (sample, _, score), prediction in zip(self._unpredicted, predictions, strict=True):
            if score:
                self._unscored.append((sample, prediction, self.last_residual))
        if self.protocol == "delayed":
            self._unlearned.extend(zip(samples, predictions, strict=True))
        self._unpredicted.clear()

    def settle(self) -> None:
        """Predict and score what still waits for it; the scores and the trace do so themselves."""
        self._predict()
        if not self._unscored:
            return
        samples, guesses, residuals = zip(*self._unscored, strict=True)
        self._unscored.clear()
        y = np.array([sample.y for sample in samples])
        predictions = {name: np.array([getattr(p, name) for p in guesses]) for name in MODELS}
        stds = {name: np.array([getattr(p, f"{name}_std") for p in guesses]) for name in MODELS}
        regressors = np.array([sample.regressor for sample in samples])
        predictions["urdf"] = regressors @ self.estimator.model.prior
        predictions["persistence"] = predictions["rigid_body"] + np.array(residuals)
        self._scores.add_rows(y, predictions, stds)
        if self._rest is not None:
            self._rest.add_rows(y, predictions, stds)
        if self.repeats is not None:
            repeated = self.repeats.among(samples)
            for part, rows in ((self._repeated, repeated), (self._new, ~repeated)):
                if rows.any():
                    chosen = ({k: v[rows] for k, v in a.items()} for a in (predictions, stds))
                    part.add_rows(y[rows], *chosen)
        stamps = np.array([sample.stamp for sample in samples], dtype=np.intp)
        self._trace.add_rows(stamps, y, predictions, stds["semiparametric"])

    @property
    def scores(self) -> RunningScores:
        """The scores of all samples so far."""
        self.settle()
        return self._scores

    @property
    def rest(self) -> RunningScores | None:
        """The scores since :meth:`score_rest`, None before it."""
        self.settle()
        return self._rest

    @property
    def repeated(self) -> RunningScores:
        """The scores of the samples that `repeats` knows."""
        self.settle()
        return self._repeated

    @property
    def new(self) -> RunningScores:
        """The scores of the others, if there is a `repeats`."""
        self.settle()
        return self._new

    @property
    def trace(self) -> Trace:
        """Errors over time, and the last predictions."""
        self.settle()
        return self._trace

    def score_rest(self) -> None:
        """From here on keep scores of the rest alone as well, in `rest`."""
        self.settle()
        self._rest = RunningScores(ALL_MODELS, self.estimator.model.n_axes)

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        parts = {"rest": self.rest}
        if min(self.repeated.samples, self.new.samples) > LEAST_PART * self.scores.samples:
            parts |= {"repeated": self.repeated, "new": self.new}
        return {f"{self.protocol}_{name}": s for name, s in parts.items() if s is not None}

    def branch(self, protocol: str) -> ProtocolRun:
        """A run by another protocol that goes on from a copy of what was learned here."""
        return ProtocolRun(self.estimator.copy(), protocol, self.last_residual.copy())
