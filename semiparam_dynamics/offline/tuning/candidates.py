"""Motion that is held out, candidates' errors on it, and the one rule by which they are compared.

Samples between those that are learned would flatter a kernel. So whole recordings are held out in
turn, or long parts of the only one, each with all that repeats it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.errors import BagError, listing
from semiparam_dynamics.base.parameters import Value, replace
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE, Motion
from semiparam_dynamics.dynamics.scores import variances
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import MIN_MOTION_S
from semiparam_dynamics.offline.evaluation.protocols import DELAYED_BLOCK_S, MAX_BLOCK, Repeats
from semiparam_dynamics.offline.evaluation.verdict import number_of_pieces
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.samples.measurement import Measurement

RECORDING_PARTS = 3  # of a single recording, each held out in turn
PART_NAME = f"part {{}} of {RECORDING_PARTS}"
MAX_FOLDS = 5  # more recordings are held out in as many groups
# Samples kept while searching, in multiples of the cut-off: 2 a period are independent behind the
# low-pass, and the rest repeat them.
SEARCH_RATE = 3.0


@dataclass(frozen=True)
class Fold:
    """Motion that is learned, and motion that is held out, one for each recording of it.

    Errors of signals that are filtered more are smaller whatever the model is worth: all cut-offs
    are judged on the same ones.
    """

    name: str
    train: tuple[Motion, ...]
    scored: tuple[Motion, ...]  # held out, as the configuration to begin with filters it
    learned: tuple[Motion, ...]  # the same motion as a candidate filters it

    @property
    def seconds(self) -> float:
        """Duration of the held-out motion."""
        return sum(motion.seconds for motion in self.scored)


class Recordings:
    """Measurements of one robot, a sequence for each bag, and its configuration to begin with.

    Raises BagError where a recording has no measurement.
    """

    def __init__(
        self,
        model: RobotModel,
        config: InverseDynamicsConfig,
        names: Sequence[str],
        measurements: Sequence[Sequence[Measurement]],
    ) -> None:
        if not measurements or not all(measurements):
            empty = [name for name, of in zip(names, measurements, strict=False) if not of]
            raise BagError(f"nothing to tune on: no measurements in {listing(empty or ['no bag'])}")
        self.model, self.config, self.names = model, config, _numbered(names)
        self._measurements = measurements
        self._motions: dict[float, list[Motion]] = {}

    def folds(self, cutoff: float, *, thinned: bool) -> list[Fold]:
        """Each recording held out in turn, or each third of the only one, and the others learned.

        More than `MAX_FOLDS` recordings are held out in as many groups.
        cutoff : Hz, of the low-pass before what is learned. thinned : to `SEARCH_RATE`.
        Raises BagError where there is nothing to learn in one, or the only one is too short.
        """
        scored = self._parts(self.config.filter.cutoff, thinned)
        learned = scored
        if cutoff != self.config.filter.cutoff:
            learned = self._parts(cutoff, thinned)
        folds = []
        for number in range(self.n_folds):
            held_out = range(number, len(scored), self.n_folds)
            train = tuple(m for k, m in enumerate(learned) if k not in held_out)
            parts = (tuple(of[k] for k in held_out) for of in (scored, learned))
            folds.append(Fold(" ".join(self._part_names[k] for k in held_out), train, *parts))
        return folds

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return min(len(self._part_names), MAX_FOLDS)

    @property
    def _part_names(self) -> Sequence[str]:
        only = len(self.names) == 1
        return [PART_NAME.format(k + 1) for k in range(RECORDING_PARTS)] if only else self.names

    def _parts(self, cutoff: float, thinned: bool) -> list[Motion]:
        """The recordings' motion, that of the only one in `RECORDING_PARTS`; see `parts_of`."""
        motions = self._filtered(cutoff)
        if len(motions) == 1:
            whole = motions[0]
            if whole.seconds < RECORDING_PARTS * MIN_MOTION_S:
                raise BagError(
                    f"the only recording shows {whole.seconds:.1f} s of motion: tuning needs "
                    f"{RECORDING_PARTS * MIN_MOTION_S:.1f} s at least, or several recordings"
                )
            part = parts_of(whole, self.model.turning)
            motions = [whole.take(part == k) for k in range(RECORDING_PARTS)]
        return [thin(motion, SEARCH_RATE * cutoff) for motion in motions] if thinned else motions

    def _filtered(self, cutoff: float) -> list[Motion]:
        if cutoff not in self._motions:
            config = replace(self.config.filter, cutoff=cutoff)
            active = expected_scales(self.model).active
            motions = []
            for name, recording in zip(self.names, self._measurements, strict=True):
                samples = SampleFilter(self.model, config).filter_recording(recording)
                motions.append(Motion.of(samples, active))
                if len(motions[-1]) < 2:
                    raise BagError(f"nothing to tune on in {name}: {NOTHING_WHOLE}")
            own = self.config.filter.cutoff
            # Only what candidates are judged on, and the last that was asked for.
            self._motions = {c: m for c, m in self._motions.items() if c == own} | {cutoff: motions}
        return self._motions[cutoff]

    @property
    def rate(self) -> float:
        """Messages a second, of the fastest recording."""
        gaps = [np.median(np.diff([m.stamp for m in r])) for r in self._measurements if len(r) > 1]
        return 1e9 / max(float(min(gaps)), 1.0) if gaps else 1.0

    def fingerprint(self) -> str:
        """A digest that changes when a measurement does."""
        digest = hashlib.sha256()
        for recording in self._measurements:
            for m in recording:
                digest.update(np.int64(m.stamp).tobytes())
                for array in (m.q, m.dq, m.y):
                    digest.update(b"-" if array is None else np.asarray(array).tobytes())
        return digest.hexdigest()[:24]


def parts_of(motion: Motion, turning: Mask) -> Indices:
    """(n,) the third of the motion that each sample is in, or that it repeats.

    They are thirds of the motion that is new: no state of half a second before, or longer ago, is
    as near as motion goes in 50 ms. turning : (n_joints,) which joints turn without end.
    """
    states = np.concatenate((motion.q, motion.dq), axis=1)
    repeats = Repeats.of(states, motion.stamps, np.append(turning, np.zeros_like(turning)))
    first = np.arange(len(motion)) if repeats is None else repeats.first(states)
    new = motion.stamps - motion.stamps[first] < DELAYED_BLOCK_S * 1e9
    parts: Indices = RECORDING_PARTS * (np.cumsum(new) - 1) // new.sum()
    for row in np.flatnonzero(~new):
        parts[row] = parts[first[row]]
    return parts


def thin(motion: Motion, rate: float) -> Motion:
    """Every k-th sample, so that at least `rate` a second are left, each counting for k."""
    if rate <= 0.0 or len(motion) < 2:
        return motion
    period = float(np.median(np.diff(motion.stamps))) * 1e-9
    k = max(int(1.0 / (rate * max(period, 1e-9)) + 1e-6), 1)
    kept = motion.take(slice(None, None, k))
    return dataclasses.replace(kept, weights=np.minimum(k * kept.weights, 1.0))


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, numbered where bags of several folders have one name."""
    return tuple(
        f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )


# -------------------------------------------------------------------------------------------------
# Candidates, and the one rule by which they are compared


CRITERIA = ("delayed", "frozen")
WINDOW_SHARE = 0.25  # of a short training motion, to standardize the residual's inputs by
SIGNIFICANCE = 0.01  # of the one-sided paired test; small, as many candidates are tried
AXIS_LIMIT = 1.02  # times the rigid body's frozen error, that the worst axis may have
FROZEN_MARGIN = 0.01  # of the rigid body's error: no difference between frozen errors


@dataclass(frozen=True)
class FoldScore:
    """Errors on a fold's held-out motion: squares over the axis' variance, means over the axes.

    Axes whose measurement never varies have no error.
    """

    fold: str
    delayed: tuple[float, ...]  # of each piece (`number_of_pieces`), while learning continues
    frozen: tuple[float, ...]  # the same, with learning switched off
    rigid_delayed: float  # of the rigid body alone, mean over all pieces
    rigid_frozen: float
    worst_axis: float  # frozen, of the worst axis, times the rigid body's

    def error(self, protocol: str) -> float:
        """Mean over the pieces."""
        return float(np.mean(getattr(self, protocol)))

    def ratio(self, protocol: str) -> float:
        """The same, times the rigid body's error under that protocol."""
        rigid = self.rigid_delayed if protocol == "delayed" else self.rigid_frozen
        return self.error(protocol) / rigid if rigid > 0.0 else 1.0

    @property
    def harm(self) -> float:
        """By how much it errs more than the rigid body where nothing is learned any more."""
        return max(self.ratio("frozen") - 1.0, self.worst_axis - AXIS_LIMIT, 0.0)


@dataclass(frozen=True)
class Candidate:
    """Settings, and their scores on the folds; on the first of them where it was given up."""

    settings: Mapping[str, Value]
    scores: tuple[FoldScore, ...]

    def ratio(self, protocol: str) -> float:
        """Mean over the folds of the error, times the rigid body's."""
        return float(np.mean([score.ratio(protocol) for score in self.scores]))

    def relative(self, own: Candidate, criterion: str) -> float:
        """The error times that of `own`, mean over the folds that both have."""
        pairs = zip(self.scores, own.scores, strict=False)
        return float(np.mean([_relative(mine, other, criterion) for mine, other in pairs]))

    def value(self, own: Candidate, criterion: str) -> float:
        """The objective of a search: the relative error, of no rival at least 1."""
        relative = self.relative(own, criterion)
        return relative if self.rivals(own, criterion) else max(relative, 1.0)

    @property
    def harm(self) -> float:
        """The largest of any fold."""
        return max(score.harm for score in self.scores)

    def rivals(self, own: Candidate, criterion: str) -> bool:
        """True where it may be chosen by the folds so far: better on each, and no harm added.

        A gain on the average of a few motions that is a loss on one of them is no gain to count on.
        With the criterion `delayed` the frozen error must not grow either.
        """
        return all(
            _relative(mine, other, criterion) < 1.0
            and mine.harm <= other.harm + 1e-9
            and mine.error("frozen") <= other.error("frozen") + FROZEN_MARGIN * other.rigid_frozen
            for mine, other in zip(self.scores, own.scores, strict=False)
        )

    def betters(self, own: Candidate, criterion: str) -> bool:
        """True where it should replace `own`: a rival on every fold, by more than chance.

        A one-sided paired t-test on the logarithms of the errors of all pieces of motion.
        """
        if len(self.scores) < len(own.scores) or not self.rivals(own, criterion):
            return False
        mine, other = (
            np.concatenate([getattr(score, criterion) for score in each.scores])
            for each in (self, own)
        )
        compared = (mine > 0.0) & (other > 0.0)  # nothing varies in the other pieces
        gains = np.log(other[compared]) - np.log(mine[compared])
        if (n := len(gains)) < 2:
            return False
        least = stdtrit(n - 1, 1.0 - SIGNIFICANCE) * gains.std(ddof=1) / np.sqrt(n)
        return bool(gains.mean() > least)


def _relative(mine: FoldScore, own: FoldScore, criterion: str) -> float:
    error = own.error(criterion)
    return mine.error(criterion) / error if error > 0.0 else 1.0


def choose(own: Candidate, tried: Sequence[Candidate], criterion: str) -> Candidate:
    """`own`, or the best of those that better it."""
    better = [candidate for candidate in tried if candidate.betters(own, criterion)]
    return min(better, key=lambda each: each.relative(own, criterion), default=own)


def unpacked(entry: Mapping[str, Any]) -> FoldScore:
    """The score that JSON holds as `asdict` gives it."""
    pieces = {name: tuple(entry[name]) for name in CRITERIA}
    return FoldScore(**{**entry, **pieces})


# -------------------------------------------------------------------------------------------------


def evaluate(model: RobotModel, config: EstimatorConfig, fold: Fold, delay: float) -> FoldScore:
    """Learn a fold's training part, then predict what it holds out, frozen and delayed.

    delay : s, of a block of held-out motion that is predicted before any of it is learned.
    """
    with threadpool_limits(limits=1):  # candidates fill the cores
        estimator = SemiparametricEstimator(model, _with_window(config, fold))
        for motion in fold.train:
            for block in motion.blocks(MAX_BLOCK):
                estimator.update_block(block)
        y = np.concatenate([motion.y for motion in fold.scored])
        frozen = [_predict(estimator, motion) for motion in fold.scored]
        delayed = [
            _delayed(estimator, scored, learned, delay)
            for scored, learned in zip(fold.scored, fold.learned, strict=True)
        ]
    variance = variances(y)
    varied = np.isfinite(variance)
    (still, rigid_still), (late, rigid_late) = (
        (y - np.concatenate(predicted, axis=1))[..., varied] ** 2 / variance[varied]
        for predicted in (frozen, delayed)
    )
    pieces = _pieces(fold.scored)
    axes, rigid_axes = still.mean(axis=0), rigid_still.mean(axis=0)
    return FoldScore(
        fold=fold.name,
        delayed=_means(late, pieces),
        frozen=_means(still, pieces),
        rigid_delayed=float(np.mean(_means(rigid_late, pieces))),
        rigid_frozen=float(np.mean(_means(rigid_still, pieces))),
        worst_axis=float(np.max(axes / np.maximum(rigid_axes, 1e-300), initial=0.0)),
    )


def _with_window(config: EstimatorConfig, fold: Fold) -> EstimatorConfig:
    """Standardize the inputs of a short motion by a quarter of it: most of it is learned."""
    seconds = WINDOW_SHARE * sum(motion.seconds for motion in fold.train)
    window = min(config.kernel.window, seconds)
    return replace(config, **{f"{config.residual}.window": window})


def _predict(estimator: SemiparametricEstimator, motion: Motion) -> Array:
    """(2, n, n_axes) of the semiparametric model and of the rigid body."""
    parts = [estimator.predict_block(block).values for block in motion.blocks(MAX_BLOCK)]
    both = [[part[of] for part in parts] for of in ("semiparametric", "rigid_body")]
    return np.array([np.concatenate(of) for of in both])


def _delayed(
    estimator: SemiparametricEstimator, scored: Motion, learned: Motion, delay: float
) -> Array:
    """Predict each block of `scored`, then learn the same time of `learned`; see `_predict`."""
    origin = int(scored.stamps[0])
    numbers, later = (_spans(motion.stamps, origin, delay) for motion in (scored, learned))
    parts = []
    for number in np.unique(numbers):
        parts.append(_predict(estimator, scored.take(numbers == number)))
        if (rows := later == number).any():
            for block in learned.take(rows).blocks(MAX_BLOCK):
                estimator.update_block(block)
    return np.concatenate(parts, axis=1)


def _spans(stamps: Indices, origin: int, seconds: float) -> Indices:
    """The number of the span of time that each stamp is in; clocks set back add to the last one."""
    numbers = np.floor((stamps - origin) * 1e-9 / seconds).astype(np.int64)
    return np.asarray(np.maximum.accumulate(numbers))


def _pieces(motions: Sequence[Motion]) -> Indices:
    """The number of the piece of motion that each sample is in, of all motions."""
    numbers: list[Indices] = []
    first, seconds = 0, max(sum(motion.seconds for motion in motions), 1.0)
    length = (seconds + 1e-6) / number_of_pieces(seconds)  # the last sample is in the last one
    for motion in motions:
        spans = _spans(motion.stamps, int(motion.stamps[0]), length)
        _, own = np.unique(spans, return_inverse=True)
        numbers.append(first + own)
        first += int(own.max()) + 1
    return np.concatenate(numbers)


def _means(squares: Array, pieces: Indices) -> tuple[float, ...]:
    """Of each piece, over its samples and all axes."""
    of_sample = squares.mean(axis=1) if squares.shape[1] else np.zeros(len(squares))
    means = np.bincount(pieces, of_sample) / np.bincount(pieces)
    return tuple(means.tolist())
