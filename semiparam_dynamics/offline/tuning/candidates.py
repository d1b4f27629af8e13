"""Candidates and their scores, the choice among them, and the findings of a tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import Value, to_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.folds import PreparedSplit, Split

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
    evidence: float

    @property
    def worst_mean(self) -> float:
        """Frozen, mean over the axes, times the rigid body's."""
        return _relative(float(self.frozen.mean()), float(self.rigid_frozen.mean()))

    @property
    def worst_axis(self) -> float:
        """Frozen, of the worst axis, times the rigid body's."""
        return float(np.max(self.frozen / np.maximum(self.rigid_frozen, 1e-300)))

    @property
    def late(self) -> float:
        """Delayed, mean over the axes."""
        assert self.delayed is not None
        return float(self.delayed.mean())

    @property
    def ratio(self) -> float:
        """Delayed, mean over the axes, times the rigid body's."""
        return _relative(self.late, float(self.rigid_delayed.mean()))


def _relative(error: float, rigid: float) -> float:
    """An error over the rigid body's; what never varies in a part has none, and counts as alike."""
    return error / rigid if rigid > 0.0 else 1.0


def score(
    fold: PreparedSplit, delayed: Array | None, frozen: Array, evidence: float = np.nan
) -> FoldScore:
    """The score of residuals (k, n_axes) predicted on what `fold` holds out."""
    rigid_delayed, rigid_frozen = fold.rigid_body_scores()
    late = None
    if delayed is not None:
        late = np.mean((fold.y - fold.rigid_body - delayed) ** 2, axis=0) / fold.variance
    error = fold.y - fold.frozen_rigid_body - frozen
    return FoldScore(
        fold.name,
        np.mean(error**2, axis=0) / fold.variance,
        rigid_frozen,
        late,
        rigid_delayed,
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

    def betters(self, other: Outcome) -> bool:
        """Whether it is better on every held-out motion while learning, and no worse frozen.

        On their mean by more than a trifle: many candidates are tried. Frozen, on every motion
        and every region.
        """
        pairs = list(zip(self.motions, other.motions, strict=True))
        return (
            self.delayed < (1.0 - TRIFLE) * other.delayed
            and all(mine.ratio < theirs.ratio for mine, theirs in pairs)
            and all(
                mine.worst_mean <= theirs.worst_mean + FROZEN_MARGIN
                for mine, theirs in zip(self.scores, other.scores, strict=True)
            )
        )

    def errs_less_than(self, other: Outcome) -> bool:
        """The same of the errors themselves, where the rigid bodies beside differ, too."""
        pairs = list(zip(self.motions, other.motions, strict=True))
        late = [mine.late / theirs.late for mine, theirs in pairs]
        return (
            float(np.mean(late)) < 1.0 - TRIFLE
            and max(late) < 1.0
            and all(
                mine.frozen.mean()
                <= theirs.frozen.mean() + FROZEN_MARGIN * theirs.rigid_frozen.mean()
                for mine, theirs in pairs
            )
        )


FROZEN_MARGIN = 0.01  # times the rigid body's error
TRIFLE = 0.03  # of the error

CRITERIA = {
    "delayed": lambda o: o.delayed,
    "frozen": lambda o: o.frozen,
    "evidence": lambda o: -o.evidence,
}


def choose(
    outcomes: Sequence[Outcome], own: Outcome | None = None, criterion: str = "delayed"
) -> Outcome:
    """The best by `criterion` of those that are safe and better `own`, the configured one.

    A gain on the average of a few motions that is a loss on one of them is no gain to count on:
    `own` stays unless another is better on all. If `own` isn't safe, the best safe one is taken;
    if none is safe, the one that does least harm.
    """
    safe = [o for o in outcomes if o.harm == 0.0]
    if not safe:
        return min(outcomes, key=lambda o: (round(o.harm, 4), CRITERIA[criterion](o)))
    if own is not None and own.harm == 0.0 and criterion == "delayed":
        safe = [own, *(o for o in safe if o.betters(own))]
    return min(safe, key=CRITERIA[criterion])


# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A stage: what was tried, and what was taken."""

    title: str
    outcomes: tuple[Outcome, ...]
    chosen: Outcome


@dataclass(frozen=True)
class Curve:
    """A parameter of the rigid body alone: held-out nmse for each value."""

    name: str
    errors: dict[float, float]
    chosen: float


@dataclass
class Tuning:
    """The findings of a tuning."""

    before: InverseDynamicsConfig
    config: InverseDynamicsConfig
    splits: list[Split]
    curves: list[Curve] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    screened: dict[str, Outcome] = field(default_factory=dict)  # "configured" and "tuned"
    confirmed: dict[str, Outcome] = field(default_factory=dict)  # the same, by the learner itself
    # What was chosen for the residual and taken back: parameters, and both values.
    refused: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # sentences on recordings with faults
    candidates: int = 0
    computed: int = 0  # results that weren't in the journal
    seconds: float = 0.0

    @property
    def changes(self) -> dict[str, tuple[Value, Value]]:
        """Parameters that differ from before: both values."""
        return self.changed_from(self.before)

    @property
    def extremes(self) -> dict[str, str]:
        """Of the changes those to the smallest or the largest value that was tried.

        Sizes are left out, whose largest is what predictions are to cost at most, and memories,
        whose largest is what the recordings can show.
        """
        tried: dict[str, set[float]] = {curve.name: set(curve.errors) for curve in self.curves}
        for step in self.steps:
            for outcome in step.outcomes:
                for name, value in outcome.settings.items():
                    tried.setdefault(name, set()).add(value)
        found: dict[str, str] = {}
        for name, (_, new) in self.changes.items():
            values = tried.get(name, set())
            if isinstance(new, float) and 0.0 not in values and len(values) > 2:
                ends = {min(values): "smallest", max(values): "largest"}
                found |= {name: ends[new]} if new in ends else {}
        return found

    def changed_from(self, config: InverseDynamicsConfig) -> dict[str, tuple[Value, Value]]:
        """Parameters of the choice that differ from `config`: both values."""
        old, new = to_flat(config), to_flat(self.config)
        return {name: (old[name], new[name]) for name in new if new[name] != old[name]}
