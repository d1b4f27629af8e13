"""The choice of the learner's hyperparameters, stage after stage."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.parameters import Value, replace, to_flat
from semiparam_dynamics.tuning import screening
from semiparam_dynamics.tuning.candidates import FoldScore, Outcome, choose
from semiparam_dynamics.tuning.confirmation import confirm
from semiparam_dynamics.tuning.folds import Fold, fold_of
from semiparam_dynamics.tuning.grids import (
    FOURIER,
    GROUP_WIDTHS,
    JOINTS,
    SHARED,
    SIZES,
    Grid,
    group_grid,
    value_of,
)
from semiparam_dynamics.tuning.motion import join
from semiparam_dynamics.tuning.recordings import Recordings
from semiparam_dynamics.tuning.rigid_body_stages import (
    PENALTIES,
    choose_memory,
    cutoff_errors,
    cutoffs_for,
    keep_or_change,
    memories_for,
    memory_errors,
    penalty_errors,
)
from semiparam_dynamics.tuning.splits import Split, motion_splits, region_splits
from semiparam_dynamics.tuning.work import (
    Work,
    pack_score,
    pack_scores,
    unpack_score,
    unpack_scores,
)

SIMPLER = 0.03  # a smaller or more regularised candidate may be worse by this share
SCREENS = {
    "nystrom": screening.screen_nystrom,
    "joints": screening.screen_joints,
    "fourier": screening.screen_fourier,
}


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
    """What tuning found."""

    before: InverseDynamicsConfig
    config: InverseDynamicsConfig
    splits: list[Split]
    curves: list[Curve] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    screened: dict[str, Outcome] = field(default_factory=dict)  # "configured" and "tuned"
    confirmed: dict[str, Outcome] = field(default_factory=dict)  # the same, by the learner itself
    candidates: int = 0
    computed: int = 0  # results that weren't in the journal
    seconds: float = 0.0

    @property
    def changes(self) -> dict[str, tuple[Value, Value]]:
        """Parameters that differ from before: both values."""
        old, new = to_flat(self.before), to_flat(self.config)
        return {name: (old[name], new[name]) for name in new if new[name] != old[name]}


def tune(
    recordings: Recordings,
    urdf: str | Path,
    work: Work,
    *,
    keep: Sequence[str] = (),
    criterion: str = "delayed",
    stage: Callable[[str], Callable[[float], None]] = lambda title: lambda share: None,
) -> Tuning:
    """Choose `recordings.config`'s hyperparameters by motion that is held out.

    keep : parameters, or groups of them, that stay as they are.
    criterion : what is made small among the candidates that do no harm: the error where learning
        goes on (delayed), the error on motion never seen (frozen), or what has the largest
        marginal likelihood (evidence).
    stage : is told each stage's title, and answers with what is told the share of it done.

    Raises BagError where the recordings don't suffice, ConfigurationError for unknown names.
    """
    started = time.perf_counter()
    config = recordings.config
    _check(keep, config)
    tuning = Tuning(config, config, [])
    work_on = _Stages(recordings, work, tuple(keep), criterion, stage, tuning)
    config = work_on.cutoff(config)
    motions = recordings.motions(config.filter.cutoff)
    tuning.splits = motion_splits(motions, recordings.names)
    regions = region_splits(join(motions))
    config = work_on.rigid_body(config, [*tuning.splits, *regions])
    config = work_on.memory(config, tuning.splits)
    folds = work_on.folds(config, [*tuning.splits, *regions])
    tuning.screened["configured"] = own = work_on.single(folds, config.estimator)
    best, estimator = work_on.residual(folds, config.estimator)
    if choose([best], own, criterion) is own:
        best, estimator = own, config.estimator  # the residual stays as it was
    tuning.screened["tuned"] = best
    tuning.config = dataclasses.replace(config, estimator=estimator)
    work_on.confirm(urdf, dataclasses.replace(config, estimator=recordings.config.estimator))
    tuning.computed = work.computed
    tuning.seconds = time.perf_counter() - started
    return tuning


def _check(keep: Sequence[str], config: InverseDynamicsConfig) -> None:
    names = to_flat(config)
    for name in keep:
        if name not in names and not any(n.startswith(f"{name}.") for n in names):
            raise ConfigurationError(f"--keep {name}: there is no such parameter or group of them")


@dataclass
class _Stages:
    recordings: Recordings
    work: Work
    keep: tuple[str, ...]
    criterion: str
    stage: Callable[[str], Callable[[float], None]]
    tuning: Tuning

    def kept(self, name: str) -> bool:
        return any(name == k or name.startswith(f"{k}.") for k in self.keep)

    def cutoff(self, config: InverseDynamicsConfig) -> InverseDynamicsConfig:
        cutoffs = cutoffs_for(self.recordings)
        own = config.filter.cutoff
        if self.kept("filter.cutoff") or len(cutoffs) < 2:
            return config
        progress = self.stage("filter's cut-off")
        task = ((self.recordings, cutoffs, progress), (cutoffs, to_flat(config)))
        local = Work(self.work.journal)  # shared measurements are not worth sending
        errors = local(cutoff_errors, [task], _listed, _lists)[0]
        chosen = keep_or_change(errors, own)
        means = {cutoff: _mean(found) for cutoff, found in errors.items()}
        self.tuning.curves.append(Curve("filter.cutoff", means, chosen))
        return replace(config, **{"filter.cutoff": chosen})

    def rigid_body(
        self, config: InverseDynamicsConfig, splits: list[Split]
    ) -> InverseDynamicsConfig:
        name = "rigid_body.penalty"
        if self.kept(name):
            return config
        progress = self.stage("rigid body's ridge")
        own = config.estimator.rigid_body
        penalties = sorted({own.penalty, *PENALTIES})
        tasks = [
            ((self.recordings.arm, [split], own, penalties), (split.name, to_flat(config)))
            for split in splits
        ]
        found = self.work(penalty_errors, tasks, _pairs, _mapping, progress)
        errors = {p: [each[p] for each in found] for p in penalties}
        chosen = keep_or_change(errors, own.penalty)
        self.tuning.curves.append(Curve(name, {p: _mean(e) for p, e in errors.items()}, chosen))
        return replace(config, **{name: chosen})

    def memory(self, config: InverseDynamicsConfig, splits: list[Split]) -> InverseDynamicsConfig:
        name = "rigid_body.memory"
        if self.kept(name):
            return config
        own = config.estimator.rigid_body
        seconds = sum(split.held_out.seconds for split in splits)
        memories = memories_for(seconds, own.memory)
        if len(memories) < 2:
            return config
        tasks = [
            ((self.recordings.arm, split, own, memories), (split.name, to_flat(config)))
            for split in splits
        ]
        found = self.work(
            memory_errors, tasks, _triples, _mapping_of_pairs, self.stage("rigid body's memory")
        )
        errors = {m: [each[m] for each in found] for m in memories}
        chosen = choose_memory(errors, own.memory)
        curve = {m: _mean(late for late, _ in pairs) for m, pairs in errors.items()}
        self.tuning.curves.append(Curve(name, curve, chosen))
        return replace(config, **{name: chosen})

    def folds(self, config: InverseDynamicsConfig, splits: list[Split]) -> list[Fold]:
        progress = self.stage("rigid body on each fold")
        estimator = config.estimator
        window = getattr(estimator, estimator.residual).window
        folds = []
        for k, split in enumerate(splits):
            folds.append(fold_of(self.recordings.arm, split, estimator.rigid_body, window))
            progress((k + 1) / len(splits))
        self._about = to_flat(config)
        return folds

    def residual(
        self, folds: list[Fold], config: EstimatorConfig
    ) -> tuple[Outcome, EstimatorConfig]:
        kinds = [config.residual] if self.kept("residual") else ["nystrom", "random_fourier"]
        best: list[tuple[Outcome, EstimatorConfig]] = []
        for kind in kinds:
            tried = replace(config, residual=kind)
            if kind == "nystrom":
                outcome, tried = self.grid("local features", SHARED, folds, tried)
            else:
                outcome, tried = self.grid("random Fourier features", FOURIER, folds, tried)
            outcome, tried = self.groups(kind, outcome, folds, tried)
            if kind == "nystrom" and self.recordings.arm.target == "effort":
                outcome, tried = self.grid("each joint's own level", JOINTS, folds, tried)
            best.append((outcome, tried))
        chosen = choose([outcome for outcome, _ in best], None, self.criterion)
        return next((o, c) for o, c in best if o is chosen)

    def groups(
        self, kind: str, best: Outcome, folds: list[Fold], config: EstimatorConfig
    ) -> tuple[Outcome, EstimatorConfig]:
        for group in GROUP_WIDTHS[kind]:
            name = f"{kind}.{group}"
            if self.kept(name):
                continue
            title = f"own width: {group.removesuffix('_width').replace('_', ' ')}"
            outcome, tried = self.grid(title, group_grid(config, name), folds, config)
            best, config = outcome, tried
        return best, config

    def grid(
        self, title: str, grid: Grid, folds: list[Fold], config: EstimatorConfig
    ) -> tuple[Outcome, EstimatorConfig]:
        grid = grid.restricted(config, self.keep)
        combinations = grid.combinations()
        function = SCREENS[grid.stage]
        tasks = []
        for settings in combinations:
            tried = replace(config, **settings)
            for fold in folds:
                names = (fold.name, to_flat(tried), self._about, grid.penalties, grid.sizes)
                tasks.append(((fold, tried, grid.penalties, grid.sizes), names))
        found = self.work(function, tasks, pack_scores, unpack_scores, self.stage(title))
        outcomes = []
        for k, settings in enumerate(combinations):
            scores = found[k * len(folds) : (k + 1) * len(folds)]
            for penalty, size in scores[0]:
                both = {grid.penalty: penalty, grid.size: size}
                outcomes.append(
                    Outcome({**settings, **both}, tuple(s[penalty, size] for s in scores))
                )
        # The configured one, with the ridge and the size that it has now.
        named = [*grid.outer, grid.penalty, grid.size]
        mine = {name: value_of(config, name) for name in named}
        own = next(o for o in outcomes if o.settings == mine)
        chosen = choose(outcomes, own, self.criterion)
        if chosen is not own:
            chosen = _simplest(chosen, own, outcomes, grid)
        self.tuning.steps.append(Step(title, tuple(outcomes), chosen))
        self.tuning.candidates += grid.count
        return chosen, replace(config, **chosen.settings)

    def single(self, folds: list[Fold], config: EstimatorConfig) -> Outcome:
        """A whole configuration, screened."""
        flat = to_flat(config)
        two_levels = config.residual == "nystrom" and self.recordings.arm.target == "effort"
        stage = "joints" if two_levels else config.residual.removeprefix("random_")
        group = "nystrom.joint_" if two_levels else f"{config.residual}."
        size = f"{group}{'max_centers' if two_levels else SIZES[config.residual]}"
        penalty = value_of(config, f"{group}penalty")
        key = (penalty, int(value_of(config, size)))
        tasks = [
            ((f, config, [key[0]], [key[1]]), (f.name, flat, self._about, [key[0]], [key[1]]))
            for f in folds
        ]
        found = self.work(SCREENS[stage], tasks, pack_scores, unpack_scores)
        return Outcome({}, tuple(scores[key] for scores in found))

    def confirm(self, urdf: str | Path, before: InverseDynamicsConfig) -> None:
        """Judge the configuration and the choice, both with the chosen filter."""
        tuning = self.tuning
        configs = {"configured": before, "tuned": tuning.config}
        tasks: list[Any] = []
        for config in configs.values():
            for split in tuning.splits:
                tasks.append(((urdf, config, split), (split.name, to_flat(config))))
        scores: list[FoldScore] = self.work(
            confirm, tasks, pack_score, unpack_score, self.stage("the learner itself")
        )
        n = len(tuning.splits)
        for k, name in enumerate(configs):
            tuning.confirmed[name] = Outcome({}, tuple(scores[k * n : (k + 1) * n]))


def _simplest(best: Outcome, own: Outcome, outcomes: Sequence[Outcome], grid: Grid) -> Outcome:
    """Nearly as good as the best, with fewer features, or else with a larger ridge."""
    alike = [
        o
        for o in outcomes
        if all(o.settings[name] == best.settings[name] for name in grid.outer)
        and o.harm <= best.harm
        and o.delayed <= (1.0 + SIMPLER) * best.delayed
        and o.frozen <= (1.0 + SIMPLER) * best.frozen
        and (own.harm > 0.0 or o.betters(own))
    ]
    least = min(alike, key=lambda o: (o.settings[grid.size], -o.settings[grid.penalty]))
    if least.settings[grid.size] == 0:  # no features: their other settings mean nothing
        return Outcome({grid.size: 0}, least.scores)
    return least


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _triples(errors: dict[float, tuple[float, float]]) -> list[list[float]]:
    return [[value, *pair] for value, pair in errors.items()]


def _mapping_of_pairs(triples: list[list[float]]) -> dict[float, tuple[float, float]]:
    return {float(value): (float(a), float(b)) for value, a, b in triples}


def _listed(errors: dict[float, list[float]]) -> list[list[float]]:
    return [[value, *found] for value, found in errors.items()]


def _lists(rows: list[list[float]]) -> dict[float, list[float]]:
    return {float(value): [float(e) for e in found] for value, *found in rows}


def _pairs(errors: dict[float, float]) -> list[list[float]]:
    return [[value, error] for value, error in errors.items()]


def _mapping(pairs: list[list[float]]) -> dict[float, float]:
    return {float(value): float(error) for value, error in pairs}
