"""The three protocols by which models are judged, and the run that leads a learner through one.

- sequential: predict a sample, score it, learn it. At 50 Hz and more this flatters every model.
- delayed: the nonparametric parts predict a whole block of 0.5 s before they learn any of it.
- frozen: nothing is learned; the scores on motion that was never learned.

With `changes.detect` a run takes every sample as a node does, a frozen one, too. No run is delayed
then: its errors are not the node's, and other changes would be detected in them.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from semiparam_dynamics.base.arrays import TURN, Array, Indices, Mask
from semiparam_dynamics.changes.config import ESTIMATING, ChangeEvent, PayloadStatus
from semiparam_dynamics.changes.hypotheses import PAYLOAD
from semiparam_dynamics.changes.monitor import ChangeMonitor
from semiparam_dynamics.dynamics.baseline import BaselinePrediction, joined
from semiparam_dynamics.dynamics.consistent import urdf_parameters
from semiparam_dynamics.dynamics.deviations import ErrorSpreads
from semiparam_dynamics.dynamics.effort_faults import Finding, FirstMotion
from semiparam_dynamics.dynamics.estimator import BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import NEW_STATE, Prediction, Sample, SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.learner import MODELS, InverseDynamicsLearner, Step
from semiparam_dynamics.robot.model import RobotModel

IDENTIFIED = ("plain_rigid_body", "batch")  # once, by what was learned before the frozen part
ALL_MODELS = ("urdf", *IDENTIFIED, *MODELS, "persistence")

# Where a motion repeats, the test part has states that were learned, a little shifted, and a model
# that only remembers does well on them. So they are scored apart from the others.
STATE_SPACING = 0.01  # s between the states that are kept
# More of them are thinned to every second one. It is 3 h of motion until states are further apart
# than motion goes in `REPEATED_WITHIN`.
MAX_LEARNED_STATES = 1 << 18
REST_RANGE = 1e-3  # rad or m, and per second
REPEATED_WITHIN = 0.05  # s: a repeated state is nearer to a learned one than motion goes in it


class LearnedStates:
    """Joint states (q, dq) that were learned: a hundred a second, `MAX_LEARNED_STATES` at most.

    turning : (n_joints,) which joints turn without end: a turn further they are where they were.
    """

    def __init__(self, turning: Mask) -> None:
        self._turning: Mask = np.concatenate((turning, np.zeros_like(turning)))
        self._states, self._stamps = array("d"), array("q")
        self._spacing = STATE_SPACING * 1e9

    def add(self, sample: Sample) -> None:
        """Take in a sample that is learned."""
        if self._stamps and 0 <= sample.stamp - self._stamps[-1] < self._spacing:
            return
        self._stamps.append(sample.stamp)
        self._states.frombytes(np.concatenate((sample.q, sample.dq)).tobytes())
        if len(self._stamps) == MAX_LEARNED_STATES:
            self._stamps, self._spacing = self._stamps[::2], 2.0 * self._spacing
            self._states = array("d", self._rows()[::2].tobytes())

    def _rows(self) -> Array:
        return np.frombuffer(self._states).reshape(-1, len(self._turning))

    def repeats(self) -> Repeats | None:
        """A test of whether a state is among them; None if the arm never moved."""
        return Repeats.of(self._rows().copy(), np.array(self._stamps), self._turning)


def _differences(states: Array, others: Array, turning: Mask) -> Array:
    """Differences, (k, d) or (d,) each; of `turning` entries the shorter way round."""
    ways: Array = states - others
    ways[..., turning] = np.remainder(ways[..., turning] + np.pi, TURN) - np.pi
    return ways


class Repeats:
    """A test of whether a state is as near to a learned one as motion takes it in 50 ms.

    Distances are Euclidean over positions and velocities, each in units of its standard deviation
    while learning. Those of `turning` entries are modulo a turn.
    """

    def __init__(
        self, states: Array, moving: Mask, deviation: Array, radius: float, turning: Mask
    ) -> None:
        self._moving, self._deviation = moving, deviation[moving]
        self._still, self._turning = states[0, ~moving], turning
        # A period for each entry, 0 for none.
        self._periods = np.where(turning[moving], TURN / self._deviation, 0.0)
        periods = self._periods if self._periods.any() else None
        self._tree = cKDTree(self._scaled(states), boxsize=periods)
        self.radius = radius

    @classmethod
    def of(cls, states: Array, stamps: Indices, turning: Mask) -> Repeats | None:
        """The test of learned states (n, 2 n_joints); stamps (n,) ns. None if nothing moved.

        turning : (2 n_joints,) which entries are modulo a turn.
        """
        if len(stamps) < 2:
            return None
        means = np.arctan2(np.sin(states).mean(axis=0), np.cos(states).mean(axis=0))
        around = np.where(turning, means, 0.0)
        deviation = _differences(states, around, turning).std(axis=0)
        moving = deviation > 1e-9 * max(float(np.abs(states).max()), 1e-9)
        if not moving.any():
            return None
        # Pairs of states so far apart in time; not across recordings, whose stamps may jump.
        usual_gap = max(float(np.median(np.diff(stamps))) * 1e-9, 1e-6)
        ahead = np.arange(len(stamps)) + max(round(REPEATED_WITHIN / usual_gap), 1)
        pairs = np.flatnonzero(ahead < len(stamps))
        gaps = (stamps[ahead[pairs]] - stamps[pairs]) * 1e-9
        pairs = pairs[(gaps > 0.0) & (gaps < 2.0 * REPEATED_WITHIN)]
        if not len(pairs):
            return None
        ways = _differences(states[ahead[pairs]], states[pairs], turning)
        steps = np.linalg.norm(ways[:, moving] / deviation[moving], axis=1)
        return cls(states, moving, deviation, float(np.median(steps)), turning)

    def first(self, states: Array) -> Indices:
        """(k,) of learned states, the number of the first one that each repeats, or its own."""
        scaled = self._scaled(states)
        return np.array([min(self._tree.query_ball_point(x, self.radius)) for x in scaled])

    def __call__(self, states: Array) -> Mask:
        """Mask (k,) of the states (q, dq), (k, 2 n_joints), that repeat one that was learned."""
        # A joint at rest while learning makes a state new by moving at all.
        still = ~self._moving
        ways = _differences(states[:, still], self._still, self._turning[still])
        moved = np.any(np.abs(ways) > REST_RANGE, axis=1)
        scaled = self._scaled(states)
        distance, _ = self._tree.query(scaled, distance_upper_bound=self.radius)
        return np.asarray(np.isfinite(distance) & ~moved)

    def _scaled(self, states: Array) -> Array:
        """The moving entries over their deviations, within their periods."""
        scaled: Array = states[:, self._moving] / self._deviation
        around = self._periods > 0.0
        wrapped = np.remainder(scaled[:, around], self._periods[around])
        # A remainder of almost a period may be rounded to one.
        scaled[:, around] = np.where(wrapped < self._periods[around], wrapped, 0.0)
        return scaled


MAX_WINDOWS = 400  # at most; windows double in length when they are used up
MAX_TRACE_POINTS = 4000  # last samples kept whole


class Trace:
    """Mean squared errors in windows over the whole run, and the last samples as they were."""

    def __init__(self, models: Iterable[str], n_axes: int) -> None:
        self.models = tuple(models)
        self.window = 0.5  # s, of motion
        self._n_axes = n_axes
        self._squares = np.zeros((MAX_WINDOWS, len(self.models), n_axes))
        self._counts = np.zeros((MAX_WINDOWS, n_axes))
        self._elapsed = 0.0
        self._last: int | None = None
        self._points: list[tuple[float, Array, Array, Array]] = []

    def add(self, stamps: Indices, y: Array, predictions: Mapping[str, Array], std: Array) -> None:
        """Take in scored samples: stamps (k,), the others (k, n_axes).

        std is the semiparametric model's.
        """
        last = stamps[0] if self._last is None else self._last
        # Between two bags time passes, but no motion.
        steps = np.diff(stamps, prepend=last) * 1e-9
        steps = np.where((0.0 < steps) & (steps < 1.0), steps, 0.0)
        elapsed = np.cumsum(np.concatenate(([self._elapsed], steps)))[1:]
        self._last, self._elapsed = int(stamps[-1]), float(elapsed[-1])
        values = np.stack([predictions[name] for name in self.models], axis=1)
        while int(self._elapsed / self.window) >= MAX_WINDOWS:
            self._double()
        index = (elapsed / self.window).astype(np.intp)
        # Time increases: samples of one window follow each other.
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        measured = ~np.isnan(y)
        squares = np.where(measured[:, None], (y[:, None] - values) ** 2, 0.0)
        self._squares[index[starts]] += np.add.reduceat(squares, starts, axis=0)
        self._counts[index[starts]] += np.add.reduceat(measured.astype(np.float64), starts, axis=0)
        if len(self._points) >= 2 * MAX_TRACE_POINTS:
            del self._points[:MAX_TRACE_POINTS]
        self._points.extend(zip(elapsed.tolist(), y, values, std, strict=True))

    def rmse(self) -> tuple[Array, Array, Mask]:
        """Window centres (k,) in s, RMSE (k, models, n_axes), and what was measured (k, n_axes).

        The RMSE is NaN where an axis was not measured.
        """
        used = np.flatnonzero(self._counts.any(axis=1))
        with np.errstate(invalid="ignore"):
            mean = self._squares[used] / self._counts[used, None]
        centres: Array = (used.astype(np.float64) + 0.5) * self.window
        return centres, np.sqrt(mean), self._counts[used] > 0.0

    def pieces(self, count: int, last: float) -> tuple[Array, Array]:
        """Sums of squares (count, models, n_axes) and counts (count, n_axes) in pieces.

        They fill the `last` seconds of motion, and have a window each at least.
        """
        end = int(self._elapsed / self.window) + 1
        windows = min(max(int(last / self.window), 1), end)
        count = min(count, windows)
        starts = end - windows + np.arange(count) * windows // count
        pieces: list[Array] = [
            np.add.reduceat(sums[:end], starts, axis=0) for sums in (self._squares, self._counts)
        ]
        return pieces[0], pieces[1]

    @property
    def seconds(self) -> float:
        """Of motion, until the last sample."""
        return self._elapsed

    def points(self) -> tuple[Array, Array, Array, Array]:
        """The last samples: time (k,) s, y (k, n_axes), predictions (k, models, n_axes), std."""
        last = self._points[-MAX_TRACE_POINTS:]
        if not last:
            none = np.zeros((0, self._n_axes))
            return np.zeros(0), none, np.zeros((0, len(self.models), self._n_axes)), none
        time, y, values, std = zip(*last, strict=True)
        return np.array(time), np.array(y), np.array(values), np.array(std)

    def _double(self) -> None:
        half = MAX_WINDOWS // 2
        for sums in (self._squares, self._counts):
            sums[:half] = sums[0::2] + sums[1::2]
            sums[half:] = 0.0
        self.window *= 2.0


MIN_PART = 0.05  # of the samples: fewer aren't scored apart


class ScoredPredictions:
    """Scores of a protocol's predictions as they come, in blocks.

    scores : of all samples.
    rest : of those that were told to be part of it, None before the first.
    repeated, new : of the samples that `repeats` knows, and of the others, if there is one.
    identified : (n_parameters,) of each of the models `IDENTIFIED`, once these are known.
    novel : (n_axes,) in how many samples the state of a joint was new to its models.
    trace : errors over time, and the last predictions.
    """

    def __init__(self, model: RobotModel, protocol: str, repeats: Repeats | None = None) -> None:
        self.model, self.protocol, self.repeats = model, protocol, repeats
        self._urdf = urdf_parameters(model)
        self.scores = RunningScores(ALL_MODELS, model.n_axes)
        self.rest: RunningScores | None = None
        self.repeated, self.new = (
            RunningScores(ALL_MODELS, model.n_axes, whole=self.scores) for _ in range(2)
        )
        self.trace = Trace(ALL_MODELS, model.n_axes)
        self.identified: Mapping[str, Array] = {}
        self.novel: Array = np.zeros(model.n_axes)

    def add(
        self, block: SampleBlock, prediction: BlockPrediction, residuals: Array, rest: Mask
    ) -> None:
        """Score k predictions.

        residuals : (k, n_axes), of the rigid body, the last ones known before each sample.
        rest : (k,), which samples belong to the rest.
        """
        values = dict(prediction.values)
        values["urdf"] = block.regressors @ self._urdf
        for name in IDENTIFIED:
            values[name] = np.full_like(values["urdf"], np.nan)
            if name in self.identified:
                values[name] = block.regressors @ self.identified[name]
        values["persistence"] = values["rigid_body"] + residuals
        y, stds = block.y, prediction.stds
        self.scores.add(y, values, stds)
        if prediction.novelty is not None:
            self.novel += (prediction.novelty > NEW_STATE).sum(axis=0)
        parts: list[tuple[RunningScores, Mask]] = []
        if rest.any():
            if self.rest is None:
                self.rest = RunningScores(ALL_MODELS, self.model.n_axes)
            parts.append((self.rest, rest))
        if self.repeats is not None:
            repeated = self.repeats(np.concatenate((block.q, block.dq), axis=1))
            parts += [(self.repeated, repeated), (self.new, ~repeated)]
        for part, rows in parts:
            if rows.any():
                of = BlockPrediction(values, stds).rows(rows)
                part.add(y[rows], of.values, of.stds)
        self.trace.add(block.stamps, y, values, stds["semiparametric"])

    def repeats_share(self) -> float:
        """Share of the samples whose state was learned before; 0 where that isn't known."""
        return self.repeated.samples / max(self.scores.samples, 1)

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        parts = {"rest": self.rest}
        if min(self.repeated.samples, self.new.samples) > MIN_PART * self.scores.samples:
            parts |= {"repeated": self.repeated, "new": self.new}
        return {f"{self.protocol}_{name}": s for name, s in parts.items() if s is not None}


# -------------------------------------------------------------------------------------------------
# The runs that the scores are of


PROTOCOLS = ("sequential", "delayed", "frozen")
DELAYED_BLOCK_S = 0.5  # s that the delayed protocol predicts before it learns
MAX_BLOCK = 512  # samples worked on at once: more are no faster
MAX_AHEAD = 16  # blocks that wait for the worker: samples come in bursts, filtered together

# Predictions of one sample: the estimator's and, if there is one that learns, the baseline's.
Predicted = tuple[Prediction, BaselinePrediction | None]


class Waiting(NamedTuple):
    """A measured sample that is yet to be scored."""

    sample: Sample
    score: bool
    rest: bool  # whether as part of the rest, too
    predicted: Predicted | None = None  # where samples are taken in turn


class ProtocolRun:
    """A learner led through samples by one protocol, a block at a time, and scored.

    Scores and the trace include every sample whenever they are read, which ends a delayed block,
    however short it is. A learning run's numbers are those of one sample after the other.

    learner : the scores of the baseline are NaN where it has none.
    last_residual : (n_axes,) of the rigid body, of the last sample learned.
    repeats : separates repeated samples from new ones; None: they are not scored apart.
    """

    def __init__(
        self,
        learner: InverseDynamicsLearner,
        protocol: str,
        last_residual: Array | None = None,
        repeats: Repeats | None = None,
    ) -> None:
        self.learner, self.protocol, self.repeats = learner, protocol, repeats
        self.every_sample = learner.changes is not None  # also those between the learned ones
        self.events: list[ChangeEvent] = []  # since it was last emptied
        self.payloads: dict[int, PayloadStatus] = {}  # as estimated in the end, by events' stamps
        self.delayed: ProtocolRun | None = None  # led with this sequential one
        model, n_axes = learner.model, learner.model.n_axes
        examined = protocol == "sequential" and model.config.target == "effort"
        self._first_motion = FirstMotion(model, np.ones(n_axes)) if examined else None
        self.last_residual = np.zeros(n_axes) if last_residual is None else last_residual
        self._scored = ScoredPredictions(learner.model, protocol, repeats)
        self._rest = False
        self._waiting: list[Waiting] = []
        self._admitting: deque[tuple[bool, bool]] = deque()  # of samples whose steps are held back
        self._lagging = LaggingModels(learner) if protocol == "delayed" else None
        self._worker: Executor | None = None
        self._working: deque[Future[None]] = deque()

    @property
    def estimator(self) -> SemiparametricEstimator:
        """The learner's estimator."""
        return self.learner.estimator

    @cached_property
    def faults(self) -> dict[str, Finding] | None:
        """The findings on the first motion's efforts, as a node has them, by their sentences.

        Of what was taken by now; None where that is asked of sequential runs of efforts alone.
        """
        if self._first_motion is None:
            return None
        self._first_motion.examine()
        return dict(zip(self._first_motion.news(), self._first_motion.findings, strict=True))

    def add_delayed(self, worker: Executor | None = None) -> None:
        """From here on lead a delayed run, too, unless changes are detected.

        After each block both have learned the same, so that one learner serves both.
        worker : of one thread, learns and scores blocks while the next ones come.
        """
        self.catch_up()
        if not self.every_sample:
            self.delayed = ProtocolRun(self.learner, "delayed", self.last_residual.copy())
            self._worker = worker

    def step(self, sample: Sample, score: bool = True) -> None:
        """Take in a sample; once a block is together it is predicted, scored and learned."""
        if self.every_sample:
            self._step_in_turn(sample, score)
        elif sample.y is not None and not sample.between:
            self._wait(Waiting(sample, score, self._rest))

    def _wait(self, sample: Waiting) -> None:
        if self._first_motion is not None:
            self._first_motion.take(sample.sample)
        self._waiting.append(sample)
        whole = len(self._waiting) >= MAX_BLOCK
        if self.protocol == "delayed" or self.delayed is not None:
            seconds = (sample.sample.stamp - self._waiting[0].sample.stamp) * 1e-9
            whole = not 0.0 <= seconds < DELAYED_BLOCK_S  # the clock may have jumped back
        if whole:
            self._advance()

    def _step_in_turn(self, sample: Sample, score: bool) -> None:
        learner, changes = self.learner, self.learner.changes
        assert changes is not None  # else blocks give the same
        before, weighing = changes.counts.total(), changes.status.phase == ESTIMATING
        step = learner.predict_sample(sample)
        if sample.y is not None:
            self._admitting.append((score, self._rest))
        ready = learner.admit(step, learning=self.protocol != "frozen")
        if new := changes.counts.total() - before:
            self.events += list(changes.events)[-new:]
        if weighing:
            self._weigh(changes)
        self._learn_steps(ready)

    def _weigh(self, changes: ChangeMonitor, *, ends: bool = False) -> None:
        """Keep the payload that was being estimated, if that is over."""
        if ends or changes.status.phase != ESTIMATING:
            found = [event for event in changes.events if event.cause == PAYLOAD]
            if found and (payload := changes.payload) is not None:
                self.payloads[found[-1].stamp] = payload

    def _learn_steps(self, steps: list[Step]) -> None:
        frozen = self.protocol == "frozen"
        baselines = [None] * len(steps) if frozen else self.learner.update(steps)
        for step, baseline in zip(steps, baselines, strict=True):
            score, rest = self._admitting.popleft()
            if not step.sample.between:
                predicted = step.prediction, baseline
                self._wait(Waiting(step.sample, score, rest, predicted))

    def finish(self) -> None:
        """After the last sample: score what still waits, too."""
        if (changes := self.learner.changes) is not None:
            self._learn_steps(self.learner.give_up())
            self._weigh(changes, ends=True)
        self.catch_up()

    def catch_up(self) -> None:
        """Predict, score and learn all that waits."""
        if self._waiting:
            self._advance()
        self._join()

    def _advance(self) -> None:
        """Predict what waits by the protocol, learn it unless frozen, and score it."""
        waiting, self._waiting = self._waiting, []
        predicted = [each.predicted for each in waiting if each.predicted is not None]
        samples = [each.sample for each in waiting]
        block = SampleBlock.of(samples)
        chosen = np.array([(each.score, each.rest) for each in waiting])
        if self._worker is not None:
            self._working.append(self._worker.submit(self._learn_block, block, chosen))
            self._join(MAX_AHEAD)
        elif self.protocol == "frozen":
            both = _joined(predicted) if predicted else self.estimator.predict_block(block)
            baseline = self.learner.baseline
            known = baseline is not None and baseline.n_learned > 0
            alone = baseline.predict_block(block) if baseline is not None and known else None
            self.take(block, _merged(both, alone), chosen)
        elif predicted:
            self.take(block, _joined(predicted), chosen)
        else:
            self._learn_block(block, chosen)

    def _learn_block(self, block: SampleBlock, chosen: Mask) -> None:
        """Learn a block, and score it for this run and for a delayed one that shares it."""
        late = self if self.protocol == "delayed" else self.delayed
        lagging = None if late is None else late._lagging
        if lagging is not None:
            lagging.follow(self.learner)
        in_turn, rigid = _update_block(self.learner, block)
        if late is not None and lagging is not None:
            late.take(block, lagging.predict(block, rigid), chosen)
        if late is not self:
            self.take(block, in_turn, chosen)

    def _join(self, ahead: int = 0) -> None:
        """Wait until all blocks but `ahead` are learned, and raise what went wrong with one."""
        while len(self._working) > ahead:
            self._working.popleft().result()

    def take(self, block: SampleBlock, prediction: BlockPrediction, chosen: Mask) -> None:
        """Score the predictions of a block; chosen: (k, 2), which are scored and of the rest."""
        known = self._residuals(block, prediction)
        residuals = np.broadcast_to(self.last_residual, block.y.shape)
        if self.protocol == "sequential":
            residuals = known[:-1]
        if self.protocol != "frozen":
            self.last_residual = known[-1].copy()
        scored, rest = chosen.T
        if not scored.all():
            block, prediction = block.rows(scored), prediction.rows(scored)
            residuals, rest = residuals[scored], rest[scored]
        if len(block):
            self._scored.add(block, prediction, residuals, rest)

    def _residuals(self, block: SampleBlock, prediction: BlockPrediction) -> Array:
        """The rigid body's last residual on each axis, (k + 1, n_axes): before and after each."""
        left = block.y - prediction.values["rigid_body"]
        known = np.concatenate((self.last_residual[None], left))
        for k in np.flatnonzero(np.isnan(left).any(axis=1)):
            known[k + 1] = np.where(np.isnan(known[k + 1]), known[k], known[k + 1])
        return known

    @property
    def scored(self) -> ScoredPredictions:
        """The scores of all samples so far and of parts of them, and their trace."""
        self.catch_up()
        return self._scored

    @property
    def scores(self) -> RunningScores:
        """The scores of all samples so far."""
        return self.scored.scores

    @property
    def trace(self) -> Trace:
        """Errors over time, and the last predictions."""
        return self.scored.trace

    def score_rest(self) -> None:
        """From here on keep scores of the rest alone as well."""
        self._rest = True
        if self.delayed is not None:
            self.delayed.score_rest()

    def score_identified(self, identified: Mapping[str, Array]) -> None:
        """From here on score rigid bodies of these parameters, too; see `ScoredPredictions`."""
        self._scored.identified = identified
        if self.delayed is not None:
            self.delayed.score_identified(identified)

    def branch(self, protocol: str, repeats: Repeats | None = None) -> ProtocolRun:
        """A run by another protocol that starts from a copy of what was learned here.

        A block that is shared with a delayed run is not ended by it.
        """
        if self.delayed is not None:
            self._join()
        else:
            self.catch_up()
        run = ProtocolRun(self.learner.copy(), protocol, self.last_residual.copy(), repeats)
        if self._waiting:
            block = SampleBlock.of([each.sample for each in self._waiting])
            in_turn, _ = _update_block(run.learner, block)
            run.last_residual = run._residuals(block, in_turn)[-1]
        return run

    def in_turn(self) -> Callable[[Sample], object]:
        """A function that predicts and learns a sample as a node does, by a copy."""
        learner = self.learner.copy()
        learner.baseline = None  # which a node has only where it is asked to compare
        return lambda sample: learner.update(learner.admit(learner.predict_sample(sample)))


class LaggingModels:
    """A learner's models whose nonparametric parts have learned no sample of the present block.

    Their errors, which their deviations follow, are of their own predictions.
    """

    def __init__(self, learner: InverseDynamicsLearner) -> None:
        self._estimator = learner.estimator.copy()
        self._baseline = None if learner.baseline is None else learner.baseline.copy()

    def follow(self, learner: InverseDynamicsLearner) -> None:
        """Know what a learner's nonparametric parts know."""
        self._estimator.residual.copy_from(learner.estimator.residual)
        if self._baseline is not None and learner.baseline is not None:
            self._baseline.kernel_model.copy_from(learner.baseline.kernel_model)

    def predict(self, block: SampleBlock, rigid: RigidBodyBlock) -> BlockPrediction:
        """Predict a block of which a rigid body that learns has predicted `rigid`."""
        both = self._estimator.predict_block(block, rigid)
        _record(self._estimator.errors, block, both)
        alone = None
        if self._baseline is not None:
            alone = self._baseline.predict_block(block)
            _record(self._baseline.errors, block, alone)
        return _merged(both, alone)


def _update_block(
    learner: InverseDynamicsLearner, block: SampleBlock
) -> tuple[BlockPrediction, RigidBodyBlock]:
    """Predictions of all models in turn, and what the rigid body predicted."""
    both, rigid = learner.estimator.update_block(block)
    alone = None if learner.baseline is None else learner.baseline.update_block(block)
    return _merged(both, alone), rigid


def _record(errors: ErrorSpreads, block: SampleBlock, prediction: BlockPrediction) -> None:
    """Count a block as learned after these predictions."""
    left = {name: block.y - values for name, values in prediction.values.items()}
    for k in np.flatnonzero(block.informative):
        rows = ({name: of[k] for name, of in each.items()} for each in (left, prediction.stds))
        errors.record(int(block.stamps[k]), block.y[k], *rows)


def _merged(both: BlockPrediction, baseline: BlockPrediction | None) -> BlockPrediction:
    if baseline is None:
        nothing = np.full_like(both.values["rigid_body"], np.nan)
        return dataclasses.replace(both, values={"nonparametric": nothing} | both.values)
    values, stds = both.values | baseline.values, both.stds | baseline.stds
    return dataclasses.replace(both, values=values, stds=stds)


def _joined(predicted: Sequence[Predicted]) -> BlockPrediction:
    """The arrays (k, n_axes) of k predictions."""
    alone = [baseline for _, baseline in predicted if baseline is not None]
    both = BlockPrediction.of([both for both, _ in predicted])
    return _merged(both, joined(alone) if alone else None)
