"""The three protocols by which models are judged.

- sequential: predict a sample, score it, learn it. At 50 Hz and more this flatters every model.
- delayed: the nonparametric parts predict a whole block of 0.5 s before they learn any of it.
- frozen: nothing is learned; the scores on motion that was never learned.

Where what is learned depends on the samples before (`changes.detect`, `output.gate`, a residual
with a memory), the sequential protocol is led by an :class:`InverseDynamicsLearner`, one sample
after the other, and its numbers are those of a node that learns in turn. With `changes.detect` the
frozen one is, too: changes are noticed and corrected while nothing is learned. There is no delayed
one then: its errors are not the node's, and other changes would be noticed in them.

Beside the learned models stands `persistence`, the rigid body's prediction plus the last residual
measured. It needs no model of the residual: a residual model with larger errors than it has learned
nothing useful under that protocol.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.changes.config import ChangeEvent
from semiparam_dynamics.dynamics.baseline import BaselinePrediction, NonparametricBaseline
from semiparam_dynamics.dynamics.deviations import ErrorSpreads
from semiparam_dynamics.dynamics.estimator import BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import Prediction, Sample, SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.learner import MODELS, InverseDynamicsLearner, Step
from semiparam_dynamics.offline.evaluation.scored_run import Repeats, ScoredPredictions, Trace
from semiparam_dynamics.robot.model import expected_scales

PROTOCOLS = ("sequential", "delayed", "frozen")
BLOCK = 0.5  # s
MOST = 512  # samples of a block where the protocol leaves it open


class ProtocolRun:
    """An estimator led through samples by one protocol, a block at a time, and scored.

    baseline : predicts and learns beside it; None: its scores are NaN.
    last_residual : (n_axes,) of the rigid body, of the last sample learned.
    repeats : tells repeated samples from new ones; None: they are not scored apart.
    every_sample : whether it takes those `between` the ones that are learned, too.

    The numbers are those of one sample after the other, to rounding. Scores and the trace are up
    to date whenever they are looked at, which ends a delayed block, however short it is.
    """

    every_sample = False

    def __init__(
        self,
        estimator: SemiparametricEstimator,
        protocol: str,
        baseline: NonparametricBaseline | None = None,
        last_residual: Array | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        self.protocol, self.repeats = protocol, repeats
        self.models = Models(estimator, baseline)
        self.late = self.models.errors()  # of delayed predictions, where blocks are learned
        n_axes = estimator.model.n_axes
        self.last_residual = np.zeros(n_axes) if last_residual is None else last_residual
        self._scored = ScoredPredictions(estimator.model, protocol, repeats)
        self._waiting = WaitingBlock()
        self._rest = False

    @property
    def estimator(self) -> SemiparametricEstimator:
        """The estimator."""
        return self.models.estimator

    def step(self, sample: Sample, score: bool = True) -> None:
        """Take in a sample; once a block is together it is predicted, scored and learned."""
        if sample.y is None:
            return
        self._waiting.add(sample, score, self._rest)
        delayed = self.protocol == "delayed"
        if self._waiting.seconds() >= BLOCK if delayed else len(self._waiting) >= MOST:
            self.catch_up()

    def finish(self) -> None:
        """After the last sample."""
        self.catch_up()

    def catch_up(self) -> None:
        """Predict, score and learn all that waits."""
        if not len(self._waiting):
            return
        waiting, self._waiting = self._waiting, WaitingBlock()
        models, block = self.models, waiting.block()
        if self.protocol == "frozen":
            prediction = models.predict_block(block)
        elif not models.estimator.learns_in_blocks:
            delayed = self.protocol == "delayed"
            prediction = models.one_by_one(waiting.samples, delayed=delayed)
        elif self.protocol == "sequential":
            prediction, _ = models.update_block(block)
        else:
            _, prediction = models.update_block(block, late=self.late)
            record(self.late, block, prediction)
        self.take(block, prediction, waiting)

    def take(self, block: SampleBlock, prediction: BlockPrediction, waiting: WaitingBlock) -> None:
        """Score predictions of `waiting`, whose arrays are `block`."""
        known = self._residuals(block, prediction)
        residuals = np.broadcast_to(self.last_residual, block.y.shape)
        if self.protocol == "sequential":
            residuals = known[:-1]
        waiting.score(self._scored, block, prediction, residuals)
        if self.protocol != "frozen":
            self.last_residual = known[-1].copy()

    def _residuals(self, block: SampleBlock, prediction: BlockPrediction) -> Array:
        """The rigid body's last residual on each axis, (k + 1, n_axes): before and after each."""
        left = block.y - prediction.values["rigid_body"]
        known = np.concatenate((self.last_residual[None], left))
        for k in np.flatnonzero(np.isnan(left).any(axis=1)):
            known[k + 1] = np.where(np.isnan(known[k + 1]), known[k], known[k + 1])
        return known

    @property
    def scores(self) -> RunningScores:
        """The scores of all samples so far."""
        self.catch_up()
        return self._scored.scores

    @property
    def repeated(self) -> RunningScores:
        """The scores of the samples that `repeats` knows."""
        self.catch_up()
        return self._scored.repeated

    @property
    def new(self) -> RunningScores:
        """The scores of the others, if there is a `repeats`."""
        self.catch_up()
        return self._scored.new

    @property
    def trace(self) -> Trace:
        """Errors over time, and the last predictions."""
        self.catch_up()
        return self._scored.trace

    def score_rest(self) -> None:
        """From here on keep scores of the rest alone as well; see :meth:`scores_apart`."""
        self._rest = True

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        self.catch_up()
        return self._scored.scores_apart()

    @property
    def dropped(self) -> Counter[str]:
        """Samples that were not learned, by reason."""
        return Counter(self.estimator.gate.dropped)

    def branch(self, protocol: str, repeats: Repeats | None = None) -> ProtocolRun:
        """A run by another protocol that starts from a copy of what was learned here."""
        self.catch_up()
        models, last = self.models.copy(), self.last_residual.copy()
        return ProtocolRun(models.estimator, protocol, models.baseline, last, repeats)

    def in_turn(self) -> Callable[[Sample], object]:
        """A function that predicts and learns a sample as a node does, by a copy."""
        estimator = self.estimator.copy()
        return lambda sample: estimator.update(sample, estimator.predict(sample))


class LearnerRun(ProtocolRun):
    """A whole learner led through samples, each after the other, sequential or frozen.

    events : the changes that were noticed since it was last emptied, in order.
    """

    every_sample = True

    def __init__(
        self,
        learner: InverseDynamicsLearner,
        protocol: str,
        last_residual: Array | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        super().__init__(learner.estimator, protocol, learner.baseline, last_residual, repeats)
        self.learner = learner
        self.events: list[ChangeEvent] = []
        self._to_score: deque[tuple[bool, bool]] = deque()  # of the steps that wait
        self._told: list[tuple[Prediction, BaselinePrediction | None]] = []

    def step(self, sample: Sample, score: bool = True) -> None:
        """Predict a sample, and learn and score what is ready for it."""
        learner = self.learner
        before = 0 if learner.changes is None else learner.changes.counts.total()
        step = learner.predict_sample(sample)
        if sample.y is not None:
            self._to_score.append((score, self._rest))
        ready = learner.admit(step, learning=self.protocol != "frozen")
        if learner.changes is not None and (new := learner.changes.counts.total() - before):
            self.events += list(learner.changes.events)[-new:]
        self._learn(ready)

    def finish(self) -> None:
        """After the last sample: what still waits is scored."""
        self._learn(self.learner.give_up())

    def _learn(self, steps: list[Step]) -> None:
        frozen = self.protocol == "frozen"
        self._take(steps, [None] * len(steps) if frozen else self.learner.update(steps))

    def _take(self, steps: list[Step], beside: Sequence[BaselinePrediction | None]) -> None:
        for step, baseline in zip(steps, beside, strict=True):
            score, rest = self._to_score.popleft()
            if not step.sample.between:
                self._waiting.add(step.sample, score, rest)
                self._told.append((step.prediction, baseline))
        if len(self._waiting) >= MOST:
            self.catch_up()

    def catch_up(self) -> None:
        """Score what was predicted and, unless frozen, learned."""
        if not len(self._waiting):
            return
        waiting, self._waiting = self._waiting, WaitingBlock()
        told, self._told = self._told, []
        block, baseline = waiting.block(), self.models.baseline
        if self.protocol != "frozen" or baseline is None:
            prediction = _joined(told)
        else:
            known = baseline.predict_block(block) if baseline.n_learned else None
            prediction = _merged(_joined(told), known)
        self.take(block, prediction, waiting)

    @property
    def dropped(self) -> Counter[str]:
        """Samples that were not learned, by reason."""
        return self.learner.dropped

    def branch(self, protocol: str, repeats: Repeats | None = None) -> ProtocolRun:
        """A run by another protocol that starts from a copy of what was learned here."""
        if self.learner.changes is None:
            return super().branch(protocol, repeats)
        self.catch_up()
        return LearnerRun(self.learner.copy(), protocol, self.last_residual.copy(), repeats)

    def in_turn(self) -> Callable[[Sample], object]:
        """A function that predicts and learns a sample as a node does, by a copy."""
        learner = self.learner.copy()
        learner.baseline = None  # which a node has only where it is asked to compare
        return lambda sample: learner.update(learner.admit(learner.predict_sample(sample)))


MOST_AHEAD = 16  # blocks that wait for the worker: samples come in bursts, filtered together


class JoinedRuns:
    """A sequential run, and a delayed one that starts from what it knows, in one pass.

    After each block of the delayed protocol both have learned the same, so that one estimator
    learns for both, and the delayed run only has errors of its own. Where the estimator doesn't
    learn in blocks there are two, each on its own; where changes are noticed, `delayed` is None.

    worker : of one thread, does what the rigid body doesn't wait for: the nonparametric models and
        the scores of blocks while the next ones come. The numbers are the same to the last bit.
    """

    def __init__(self, sequential: ProtocolRun, worker: Executor | None = None) -> None:
        self.sequential = sequential
        self._worker = worker
        self._working: deque[Future[None]] = deque()
        noticing = isinstance(sequential, LearnerRun) and sequential.learner.changes is not None
        self.shared = sequential.estimator.learns_in_blocks and not noticing
        self.delayed: ProtocolRun | None = None
        if self.shared:
            sequential.catch_up()
            models, last = sequential.models, sequential.last_residual.copy()
            self.delayed = ProtocolRun(models.estimator, "delayed", models.baseline, last)
        elif not noticing:
            self.delayed = sequential.branch("delayed")
        self._waiting = WaitingBlock()
        self._rest = False

    def step(self, sample: Sample, score: bool = True) -> None:
        """Take in a sample, for both."""
        if not self.shared:
            self.sequential.step(sample, score)
            if self.delayed is not None and not sample.between:
                self.delayed.step(sample, score)
        elif sample.y is not None:
            self._waiting.add(sample, score, self._rest)
            if self._waiting.seconds() >= BLOCK:
                self._advance()

    def score_rest(self) -> None:
        """See :meth:`ProtocolRun.score_rest`."""
        self._rest = True
        self.sequential.score_rest()
        if self.delayed is not None:
            self.delayed.score_rest()

    def finish(self) -> None:
        """After the last sample: the last block may be shorter."""
        if len(self._waiting):
            self._advance()
        self._join()
        self.sequential.finish()

    def branch(self, protocol: str, repeats: Repeats | None = None) -> ProtocolRun:
        """A run that starts from a copy of what the sequential one has learned here."""
        self._join()
        run = self.sequential.branch(protocol, repeats)
        if len(self._waiting):
            block = self._waiting.block()
            in_turn, _ = run.models.update_block(block)
            run.last_residual = run._residuals(block, in_turn)[-1]
        return run

    def _advance(self) -> None:
        waiting, self._waiting = self._waiting, WaitingBlock()
        block = waiting.block()
        rigid = self.sequential.estimator.update_rigid_body_block(block)
        if self._worker is None:
            self._learn(waiting, block, rigid)
        else:
            self._working.append(self._worker.submit(self._learn, waiting, block, rigid))
            self._join(MOST_AHEAD)

    def _join(self, ahead: int = 0) -> None:
        """Wait until all blocks but `ahead` are learned, and raise what went wrong with one."""
        while len(self._working) > ahead:
            self._working.popleft().result()

    def _learn(self, waiting: WaitingBlock, block: SampleBlock, rigid: RigidBodyBlock) -> None:
        sequential, delayed = self.sequential, self.delayed
        assert delayed is not None
        in_turn, late = sequential.models.update_block(block, rigid, delayed.late)
        record(delayed.late, block, late)
        sequential.take(block, in_turn, waiting)
        delayed.take(block, late, waiting)


class Models:
    """An estimator and the nonparametric baseline beside it, if there is one."""

    def __init__(
        self, estimator: SemiparametricEstimator, baseline: NonparametricBaseline | None
    ) -> None:
        self.estimator = estimator
        self.baseline = baseline

    def copy(self) -> Models:
        """Others that know the same and learn on their own."""
        return Models(self.estimator.copy(), self.baseline and self.baseline.copy())

    def errors(self) -> ErrorSpreads:
        """A copy of the errors of all models."""
        estimator = self.estimator
        model, horizon = estimator.model, estimator.config.error_horizon
        errors = ErrorSpreads(MODELS, model.n_axes, horizon, expected_scales(model).output)
        empty = errors.state()
        baseline = {} if self.baseline is None else self.baseline.errors.state()
        errors.restore(empty | baseline | estimator.errors.state())
        return errors

    def predict_block(self, block: SampleBlock) -> BlockPrediction:
        """Predictions of k samples, of which nothing is learned."""
        baseline = self.baseline
        known = baseline is not None and baseline.n_learned > 0
        return _merged(
            self.estimator.predict_block(block),
            baseline.predict_block(block) if baseline is not None and known else None,
        )

    def update_block(
        self,
        block: SampleBlock,
        rigid: RigidBodyBlock | None = None,
        late: ErrorSpreads | None = None,
    ) -> tuple[BlockPrediction, BlockPrediction]:
        """Predictions in turn, and delayed; see the estimator's `update_block`."""
        in_turn, delayed = self.estimator.update_block(block, rigid=rigid, late=late)
        if self.baseline is None:
            return _merged(in_turn, None), _merged(delayed, None)
        now, before = self.baseline.update_block(block, late=late)
        return _merged(in_turn, now), _merged(delayed, before)

    def one_by_one(self, samples: Sequence[Sample], *, delayed: bool) -> BlockPrediction:
        """Predict and learn measured samples, for an estimator that doesn't learn in blocks.

        delayed : the nonparametric parts predict all of them before they learn any.
        """
        told: list[tuple[Prediction, BaselinePrediction | None]] = []
        waiting: list[tuple[Sample, Prediction, Array, BaselinePrediction | None]] = []
        for sample in samples:
            prediction = self.estimator.predict(sample)
            beside = None if self.baseline is None else self.baseline.predict(sample)
            told.append((prediction, beside))
            if self.estimator.refuses(sample, prediction):
                continue
            weights = self.estimator.update_rigid_body(sample)
            waiting.append((sample, prediction, weights, beside))
            if not delayed:
                self._update_residuals(*waiting.pop(), late=False)
        for each in waiting:
            self._update_residuals(*each, late=True)
        return _joined(told)

    def _update_residuals(
        self,
        sample: Sample,
        prediction: Prediction,
        weights: Array,
        beside: BaselinePrediction | None,
        *,
        late: bool,
    ) -> None:
        self.estimator.update_residual(sample, prediction, weights, late=late)
        if self.baseline is not None:
            self.baseline.update(sample, beside)


def record(errors: ErrorSpreads, block: SampleBlock, prediction: BlockPrediction) -> None:
    """Count a block as learned after these predictions."""
    left = {name: block.y - values for name, values in prediction.values.items()}
    for k in np.flatnonzero(block.informative):
        rows = ({name: of[k] for name, of in each.items()} for each in (left, prediction.stds))
        errors.record(int(block.stamps[k]), block.y[k], *rows)


def _merged(both: BlockPrediction, baseline: BlockPrediction | None) -> BlockPrediction:
    if baseline is None:
        nothing = np.full_like(both.values["rigid_body"], np.nan)
        return BlockPrediction(both.values | {"nonparametric": nothing}, both.stds)
    return BlockPrediction(both.values | baseline.values, both.stds | baseline.stds)


def _joined(told: Sequence[tuple[Prediction, BaselinePrediction | None]]) -> BlockPrediction:
    both = BlockPrediction(*_arrays([p for p, _ in told], ("rigid_body", "semiparametric")))
    if told[0][1] is None:
        return _merged(both, None)
    return _merged(both, BlockPrediction(*_arrays([b for _, b in told], ("nonparametric",))))


def _arrays(
    told: Sequence[object], names: Sequence[str]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Values and standard deviations (k, n_axes) of k predictions, by the models' names."""
    values = {name: np.array([getattr(p, name) for p in told]) for name in names}
    return values, {name: np.array([getattr(p, f"{name}_std") for p in told]) for name in names}


class WaitingBlock:
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

    def score(
        self,
        scored: ScoredPredictions,
        block: SampleBlock,
        prediction: BlockPrediction,
        residuals: Array,
    ) -> None:
        """Give `scored` those that are to be scored; see its `add`."""
        rows, rest = np.array(self._scores), np.array(self._rest)
        if not rows.any():
            return
        if not rows.all():
            block, prediction = block.rows(rows), prediction.rows(rows)
            residuals, rest = residuals[rows], rest[rows]
        scored.add(block, prediction, residuals, rest)
