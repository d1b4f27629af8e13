"""Candidates: what is tried, and how each did on the folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.tuning.folds import Fold

Settings = Mapping[str, float]  # parameters' names to their values

MEAN_LIMIT = 1.0  # times the rigid body's, frozen on what is held out, mean over the axes
AXIS_LIMIT = 1.02  # the same of any axis


@dataclass(frozen=True)
class FoldScore:
    """A candidate on one fold; errors are nmse (n_axes,), `rigid` the rigid body's."""

    fold: str
    frozen: Array
    rigid_frozen: Array
    delayed: Array | None  # None for regions
    rigid_delayed: Array
    course: Array  # (blocks,): mean delayed nmse within each block of half a second
    evidence: float

    @property
    def worst_mean(self) -> float:
        """Frozen, mean over the axes, times the rigid body's."""
        return float(self.frozen.mean() / self.rigid_frozen.mean())

    @property
    def worst_axis(self) -> float:
        """Frozen, of the worst axis, times the rigid body's."""
        return float(np.max(self.frozen / np.maximum(self.rigid_frozen, 1e-300)))

    @property
    def ratio(self) -> float:
        """Delayed, mean over the axes, times the rigid body's."""
        assert self.delayed is not None
        return float(self.delayed.mean() / self.rigid_delayed.mean())


def score(fold: Fold, delayed: Array | None, frozen: Array, evidence: float = np.nan) -> FoldScore:
    """The score of residuals (k, n_axes) predicted on what `fold` holds out."""
    rigid_delayed, rigid_frozen = fold.rigid_body_scores()
    late, course = None, np.zeros(0)
    if delayed is not None:
        normalised = (fold.y - fold.rigid_body - delayed) ** 2 / fold.variance
        late = normalised.mean(axis=0)
        edges = fold.blocks[:-1] - fold.n_train
        sizes = np.diff(fold.blocks)
        course = np.add.reduceat(normalised.mean(axis=1), edges) / sizes
    error = fold.y - fold.frozen_rigid_body - frozen
    return FoldScore(
        fold.name,
        np.mean(error**2, axis=0) / fold.variance,
        rigid_frozen,
        late,
        rigid_delayed,
        course,
        evidence,
    )


@dataclass(frozen=True)
class Outcome:
    """A candidate's settings and its scores, motions first."""

    settings: Settings
    scores: tuple[FoldScore, ...]

    @property
    def motions(self) -> list[FoldScore]:
        """Scores where learning went on."""
        return [s for s in self.scores if s.delayed is not None]

    @property
    def delayed(self) -> float:
        """Mean over the motions of the delayed error, times the rigid body's."""
        return float(np.mean([s.ratio for s in self.motions]))

    @property
    def frozen(self) -> float:
        """The same, frozen."""
        return float(np.mean([s.worst_mean for s in self.motions]))

    @property
    def worst_mean(self) -> float:
        """The worst fold, region or motion, frozen, times the rigid body's."""
        return max(s.worst_mean for s in self.scores)

    @property
    def worst_axis(self) -> float:
        """The worst axis of any fold, frozen, times the rigid body's."""
        return max(s.worst_axis for s in self.scores)

    @property
    def evidence(self) -> float:
        """Mean over the motions of the log marginal likelihood, a sample and output."""
        return float(np.mean([s.evidence for s in self.motions]))

    @property
    def harm(self) -> float:
        """By how much it goes beyond what may be risked; 0 for a safe one."""
        return max(self.worst_mean - MEAN_LIMIT, self.worst_axis - AXIS_LIMIT, 0.0)

    def gain_over(self, other: Outcome) -> tuple[float, float]:
        """Mean and standard error, over blocks, of how much smaller the delayed error is.

        Relative to `other`'s. Blocks follow each other: five are taken together, as one.
        """
        mine, theirs = (np.concatenate([s.course for s in o.motions]) for o in (self, other))
        n = max(len(mine) // TOGETHER, 1)
        parts = [part.mean() for part in np.array_split(theirs - mine, n)]
        scale = max(float(theirs.mean()), 1e-300)
        error = float(np.std(parts, ddof=1) / np.sqrt(n)) if n > 1 else np.inf
        return float(np.mean(parts)) / scale, error / scale


TOGETHER = 5

CRITERIA = {
    "delayed": lambda o: o.delayed,
    "frozen": lambda o: o.frozen,
    "evidence": lambda o: -o.evidence,
}


def choose(outcomes: Sequence[Outcome], criterion: str = "delayed") -> Outcome:
    """The best by `criterion` of those that are safe; if none is, the one that does least harm."""
    safe = [o for o in outcomes if o.harm == 0.0]
    if not safe:
        return min(outcomes, key=lambda o: (round(o.harm, 4), CRITERIA[criterion](o)))
    return min(safe, key=CRITERIA[criterion])
