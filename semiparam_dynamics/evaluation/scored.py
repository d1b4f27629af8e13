"""What is kept of a protocol's predictions: scores, of parts of the samples too, and a trace."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array, Mask
from semiparam_dynamics.dynamics.block_prediction import BlockPrediction
from semiparam_dynamics.dynamics.learner import MODELS
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.evaluation.leakage import Repeats
from semiparam_dynamics.evaluation.trace import Trace

ALL_MODELS = ("urdf", *MODELS, "persistence")
LEAST_PART = 0.05  # of the samples: fewer aren't scored apart


class ScoredPredictions:
    """Scores of a protocol's predictions as they come, in blocks.

    Attributes
    ----------
    scores : of all samples.
    rest : of those that were told to be part of it, None before the first.
    repeated, new : of the samples that `repeats` knows, and of the others, if there is one.
    trace : errors over time, and the last predictions.
    """

    def __init__(self, model: RobotModel, protocol: str) -> None:
        self.model = model
        self.protocol = protocol
        self.scores = RunningScores(ALL_MODELS, model.n_axes)
        self.rest: RunningScores | None = None
        self.repeats: Repeats | None = None
        self.repeated, self.new = (
            RunningScores(ALL_MODELS, model.n_axes, whole=self.scores) for _ in range(2)
        )
        self.trace = Trace(ALL_MODELS, model.n_axes)

    def add(
        self, block: SampleBlock, prediction: BlockPrediction, residuals: Array, rest: Mask
    ) -> None:
        """Score k predictions.

        residuals : (k, n_axes), of the rigid body, the last ones known before each sample.
        rest : (k,), which samples belong to the rest.
        """
        values = dict(prediction.values)
        values["urdf"] = block.regressors @ self.model.prior
        values["persistence"] = values["rigid_body"] + residuals
        y, stds = block.y, prediction.stds
        self.scores.add_rows(y, values, stds)
        parts: list[tuple[RunningScores, Mask]] = []
        if rest.any():
            if self.rest is None:
                self.rest = RunningScores(ALL_MODELS, self.model.n_axes)
            parts.append((self.rest, rest))
        if self.repeats is not None:
            repeated = self.repeats.among(np.concatenate((block.q, block.dq), axis=1))
            parts += [(self.repeated, repeated), (self.new, ~repeated)]
        for part, rows in parts:
            if rows.any():
                of = BlockPrediction(values, stds).rows(rows)
                part.add_rows(y[rows], of.values, of.stds)
        self.trace.add_rows(block.stamps, y, values, stds["semiparametric"])

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        parts = {"rest": self.rest}
        if min(self.repeated.samples, self.new.samples) > LEAST_PART * self.scores.samples:
            parts |= {"repeated": self.repeated, "new": self.new}
        return {f"{self.protocol}_{name}": s for name, s in parts.items() if s is not None}


class WaitingSamples:
    """Samples that will be predicted together, and how each of them is to be scored."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._scores: list[bool] = []
        self._rest: list[bool] = []

    def __len__(self) -> int:
        return len(self.samples)

    def add(self, sample: Sample, score: bool, rest: bool) -> None:
        """Take in a measured sample; is it scored, and as part of the rest, too?"""
        self.samples.append(sample)
        self._scores.append(score)
        self._rest.append(rest)

    def seconds(self) -> float:
        """From the first to the last; infinite where the clock jumped back."""
        seconds = (self.samples[-1].stamp - self.samples[0].stamp) * 1e-9
        return seconds if seconds >= 0.0 else np.inf

    def block(self) -> SampleBlock:
        """Their arrays."""
        return SampleBlock.of(self.samples)

    def clear(self) -> None:
        """None waits any longer."""
        self.samples.clear()
        self._scores.clear()
        self._rest.clear()

    def were_scored(self) -> None:
        """Those that wait now aren't scored once more."""
        self._scores = [False] * len(self._scores)

    def score(
        self,
        scored: ScoredPredictions,
        block: SampleBlock,
        prediction: BlockPrediction,
        residuals: Array,
    ) -> None:
        """Give `scored` those that are to be scored; see its `add`."""
        rows = np.array(self._scores)
        rest = np.array(self._rest)
        if not rows.any():
            return
        if not rows.all():
            block, prediction = block.rows(rows), prediction.rows(rows)
            residuals, rest = residuals[rows], rest[rows]
        scored.add(block, prediction, residuals, rest)
