"""The three protocols by which a model is judged, and the baseline that humbles it.

- sequential: predict a sample, score it, learn it. At 50 Hz and more this flatters everything.
- delayed: the nonparametric parts predict a whole block of 0.5 s before they learn any of it.
- frozen: nothing is learned. What the model is worth on motion it has never seen.

`persistence`, the rigid body's prediction plus the last residual learned, needs no model of the
residual at all: whoever does not beat it in a protocol has learned nothing there.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import Executor, Future

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.estimator import (
    BlockPrediction,
    SemiparametricEstimator,
    ask_block,
    beside,
    counted,
    learn_block,
    learn_nonparametric,
    learn_rigid_body,
    learns_in_blocks,
    predicted,
    record_block,
)
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import Prediction, Sample, SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.evaluation.scored_run import (
    Repeats,
    ScoredPredictions,
    Trace,
    WaitingSamples,
)
from semiparam_dynamics.learner import MODELS

# -------------------------------------------------------------------------------------------------
# The protocols that learn, sample by sample: for models that can't learn in blocks.


def learn_promptly(
    estimator: SemiparametricEstimator, samples: Sequence[Sample]
) -> BlockPrediction:
    """Predict a sample, learn it, and so on with the next."""
    predictions = []
    for sample in samples:
        predictions.append(estimator.predict(sample))
        estimator.update(sample, predictions[-1])
    return _arrays(predictions)


def learn_late(estimator: SemiparametricEstimator, samples: Sequence[Sample]) -> BlockPrediction:
    """Predict all samples before the nonparametric parts learn any of them."""
    predictions = []
    for sample in samples:
        predictions.append(estimator.predict(sample))
        estimator.update_rigid_body(sample, predictions[-1])
    for sample, prediction in zip(samples, predictions, strict=True):
        estimator.update_nonparametric(sample, prediction)
    return _arrays(predictions)


def _arrays(predictions: Sequence[Prediction]) -> BlockPrediction:
    return BlockPrediction(
        {name: np.array([getattr(p, name) for p in predictions]) for name in MODELS},
        {name: np.array([getattr(p, f"{name}_std") for p in predictions]) for name in MODELS},
    )


PROTOCOLS = ("sequential", "delayed", "frozen")
BLOCK = 0.5  # s
MOST = 512  # samples of a block where the protocol leaves it open


class ProtocolRun:
    """An estimator led through samples by one protocol, a block at a time, scored on the way.

    The numbers are those of one sample after the other, to rounding. Scores and the trace are up
    to date whenever they are looked at.
    """

    def __init__(
        self, estimator: SemiparametricEstimator, protocol: str, last_residual: Array | None = None
    ) -> None:
        self.estimator = estimator
        self.protocol = protocol
        n_axes = estimator.model.n_axes
        self.last_residual = np.zeros(n_axes) if last_residual is None else last_residual
        self._scored = ScoredPredictions(estimator.model, protocol)
        self._waiting = WaitingSamples()
        self._rest = False

    def step(self, sample: Sample, score: bool = True) -> None:
        """Take in a sample; once a block is together it is predicted, scored and learned."""
        if sample.y is None:
            return
        self._waiting.add(sample, score, self._rest)
        if self.protocol == "delayed":
            if self._waiting.seconds() >= BLOCK:
                self._advance(self.estimator)
                self._waiting.clear()
        elif len(self._waiting) >= MOST:
            self.settle()

    def settle(self) -> None:
        """Predict and score what still waits for it.

        A delayed block is not cut short by that: until it is complete, nothing of it is learned.
        """
        if not len(self._waiting):
            return
        if self.protocol == "delayed":
            estimator = self.estimator.copy()
            estimator.gate = copy.deepcopy(self.estimator.gate)
            self._advance(estimator)
            self._waiting.were_scored()
        else:
            self._advance(self.estimator)
            self._waiting.clear()

    def _advance(self, estimator: SemiparametricEstimator) -> None:
        """Lead `estimator` through all that waits."""
        block = self._waiting.block()
        if self.protocol == "frozen":
            prediction = ask_block(estimator, block)
        elif not learns_in_blocks(estimator):
            lead = learn_late if self.protocol == "delayed" else learn_promptly
            prediction = lead(estimator, self._waiting.samples)
        else:
            now, late = learn_block(estimator, block)
            if self.protocol == "sequential":
                prediction = counted(estimator, block, now)
            else:
                prediction = predicted(estimator, late)
                record_block(estimator, block, prediction.values)
        self.take(block, prediction, self._waiting, learned=estimator is self.estimator)

    def take(
        self,
        block: SampleBlock,
        prediction: BlockPrediction,
        waiting: WaitingSamples,
        *,
        learned: bool,
    ) -> None:
        """Score predictions of `waiting`, whose arrays are `block`; were they `learned`, too?"""
        left = block.y - prediction.values["rigid_body"]
        residuals = np.broadcast_to(self.last_residual, left.shape)
        if self.protocol == "sequential":
            residuals = np.concatenate((self.last_residual[None], left[:-1]))
        waiting.score(self._scored, block, prediction, residuals)
        if learned and self.protocol != "frozen":
            self.last_residual = left[-1].copy()

    @property
    def repeats(self) -> Repeats | None:
        """What tells repeated samples from new ones; None: they are not scored apart."""
        return self._scored.repeats

    @repeats.setter
    def repeats(self, repeats: Repeats | None) -> None:
        self._scored.repeats = repeats

    @property
    def scores(self) -> RunningScores:
        """The scores of all samples so far."""
        self.settle()
        return self._scored.scores

    @property
    def rest(self) -> RunningScores | None:
        """The scores since :meth:`score_rest`, None before it."""
        self.settle()
        return self._scored.rest

    @property
    def repeated(self) -> RunningScores:
        """The scores of the samples that `repeats` knows."""
        self.settle()
        return self._scored.repeated

    @property
    def new(self) -> RunningScores:
        """The scores of the others, if there is a `repeats`."""
        self.settle()
        return self._scored.new

    @property
    def trace(self) -> Trace:
        """Errors over time, and the last predictions."""
        self.settle()
        return self._scored.trace

    def score_rest(self) -> None:
        """From here on keep scores of the rest alone as well, in `rest`."""
        self._rest = True

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        self.settle()
        return self._scored.scores_apart()

    def branch(self, protocol: str) -> ProtocolRun:
        """A run by another protocol that goes on from a copy of what was learned here."""
        self.settle()
        return ProtocolRun(self.estimator.copy(), protocol, self.last_residual.copy())


# -------------------------------------------------------------------------------------------------
# The sequential and the delayed protocol in one pass over the samples.


class JoinedRuns:
    """A sequential run, and a delayed one that goes on from what it knows.

    After each block of the delayed protocol both have learned the same, so that one estimator
    learns for both, and the delayed run's has only errors of its own. Where the models don't learn
    in blocks (see `learns_in_blocks`) there are two, each on its own.

    worker : of one thread, does what the rigid body doesn't wait for: the nonparametric models and
        the scores of a block while the next one comes. The numbers are the same to the last bit.
    """

    def __init__(self, sequential: ProtocolRun, worker: Executor | None = None) -> None:
        self.sequential = sequential
        self._worker = worker
        self._working: Future[None] | None = None
        self.shared = learns_in_blocks(sequential.estimator)
        if self.shared:
            sequential.settle()
            late, last = beside(sequential.estimator), sequential.last_residual.copy()
            self.delayed = ProtocolRun(late, "delayed", last)
        else:
            self.delayed = sequential.branch("delayed")
        self._waiting = WaitingSamples()
        self._rest = False

    def step(self, sample: Sample) -> None:
        """Take in a sample, for both."""
        if not self.shared:
            self.sequential.step(sample)
            self.delayed.step(sample)
        elif sample.y is not None:
            self._waiting.add(sample, True, self._rest)
            if self._waiting.seconds() >= BLOCK:
                self._advance(whole=True)

    def score_rest(self) -> None:
        """See :meth:`ProtocolRun.score_rest`."""
        self._rest = True
        self.sequential.score_rest()
        self.delayed.score_rest()

    def finish(self) -> None:
        """After the last sample: the last block may be shorter, and is not learned by `delayed`."""
        if len(self._waiting):
            self._advance(whole=False)
        self._join()

    def branch(self, protocol: str) -> ProtocolRun:
        """A run that goes on from a copy of what the sequential one has learned here."""
        self._join()
        run = self.sequential.branch(protocol)
        if len(self._waiting):
            block = self._waiting.block()
            now, _ = learn_block(run.estimator, block)
            counted(run.estimator, block, now)
            run.last_residual = block.y[-1] - now.rigid.values[-1]
        return run

    def _advance(self, whole: bool) -> None:
        waiting, self._waiting = self._waiting, WaitingSamples()
        block = waiting.block()
        rigid = learn_rigid_body(self.sequential.estimator, block)
        self._join()
        if self._worker is None:
            self._learn(waiting, block, rigid, whole)
        else:
            self._working = self._worker.submit(self._learn, waiting, block, rigid, whole)

    def _join(self) -> None:
        """Wait until the last block is learned, and raise what went wrong with it."""
        if self._working is not None:
            self._working.result()
            self._working = None

    def _learn(
        self, waiting: WaitingSamples, block: SampleBlock, rigid: RigidBodyBlock, whole: bool
    ) -> None:
        sequential, delayed = self.sequential, self.delayed
        now, beforehand = learn_nonparametric(sequential.estimator, block, rigid)
        late = predicted(delayed.estimator, beforehand)
        if whole:
            record_block(delayed.estimator, block, late.values)
        prompt = counted(sequential.estimator, block, now)
        sequential.take(block, prompt, waiting, learned=True)
        delayed.take(block, late, waiting, learned=whole)
