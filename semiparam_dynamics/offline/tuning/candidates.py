"""A candidate's errors on held-out motion, and the one rule by which candidates are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.parameters import Value, replace
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.dynamics.scores import variances
from semiparam_dynamics.offline.evaluation.protocols import MAX_BLOCK
from semiparam_dynamics.offline.evaluation.verdict import number_of_pieces
from semiparam_dynamics.offline.tuning.recordings import Fold
from semiparam_dynamics.robot.model import RobotModel

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
