"""The choices, one after the other: filter and rigid body first, then the residual on top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import Value, replace, to_flat
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.dynamics.scores import variances
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.candidates import Curve, Outcome, Step, choose
from semiparam_dynamics.offline.tuning.folds import (
    PreparedSplit,
    Recordings,
    Split,
    identify_along,
    motion_splits,
)
from semiparam_dynamics.offline.tuning.screening import (
    Scores,
    screen_fourier,
    screen_joints,
    screen_nystrom,
)
from semiparam_dynamics.offline.tuning.work import (
    Task,
    Work,
    is_kept,
    pack_scores,
    packed,
    unpack_scores,
    unpacked,
)
from semiparam_dynamics.robot.model import RobotModel

# -------------------------------------------------------------------------------------------------
# The rigid body's own: the filter's cut-off, its ridge and its memory.

CUTOFFS = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 80.0)  # Hz
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
MEMORIES = (0.0, 30.0, 60.0, 120.0, 300.0)  # s; 0: for ever
LEAST_MEMORIES = 10.0  # in the recordings, for a memory to be tried
MARGIN = 0.02  # a value is left for another one only if that is better by this share
FILTERED_SECONDS = 60.0  # of each recording, to choose the cut-off by


def cutoffs_for(recordings: Recordings) -> list[float]:
    """The cut-offs worth a try at this rate, and the configured one."""
    own = recordings.config.filter.cutoff
    if own <= 0.0:  # the filter is off
        return [own]
    return sorted({own, *(c for c in CUTOFFS if c <= recordings.rate / 5.0)})


def cutoff_errors(
    recordings: Recordings,
    cutoffs: Sequence[float],
    progress: Callable[[float], None] = lambda share: None,
) -> dict[float, list[float]]:
    """For each cut-off, the nmse of the parameters identified with it, on each held-out motion.

    All are judged on the same signals, filtered as configured: errors of signals that are
    filtered more would look smaller whatever the parameters are worth.
    """
    own = recordings.config.filter.cutoff
    parameters: dict[float, list[Array]] = {}
    held_out: list[Split] = []
    for k, cutoff in enumerate(cutoffs):
        motions = recordings.motions(cutoff, FILTERED_SECONDS)
        splits = motion_splits(motions, recordings.names)
        rigid_body = recordings.config.estimator.rigid_body
        identifier = RigidBodyIdentifier.of(recordings.model, rigid_body)
        parameters[cutoff] = [
            identifier.ridge_path(s.train, [rigid_body.penalty])[0] for s in splits
        ]
        if cutoff == own:
            held_out = splits
        progress((k + 1) / len(cutoffs))
    errors = {}
    for cutoff, found in parameters.items():
        pairs = zip(held_out, found, strict=True)
        errors[cutoff] = [nmse(s.held_out, pi) for s, pi in pairs]
    return errors


def penalty_errors(
    model: RobotModel, split: Split, config: RigidBodyConfig, penalties: Sequence[float]
) -> dict[float, float]:
    """For each ridge on the rigid body, its nmse, frozen, on what the split holds out."""
    found = RigidBodyIdentifier.of(model, config).ridge_path(split.train, penalties)
    return {p: nmse(split.held_out, pi) for p, pi in zip(penalties, found, strict=True)}


def memory_errors(
    model: RobotModel, split: Split, config: RigidBodyConfig, memories: Sequence[float]
) -> dict[float, tuple[float, float]]:
    """The rigid body's nmse on what is held out, by memory: while learning goes on, frozen."""
    found = {}
    out, k = split.held_out, len(split.train)
    scale = variances(out.y)
    for memory in memories:
        before, trained, _ = identify_along(model, split, replace(config, memory=memory))
        delayed = float(np.mean(np.mean((out.y - before[k:]) ** 2, axis=0) / scale))
        found[memory] = delayed, nmse(out, trained)
    return found


def memories_for(seconds: float, own: float) -> list[float]:
    """The memories worth a try on so much motion, and the configured one.

    What forgetting loses shows only on recordings that are many memories long.
    """
    return sorted({own, *(m for m in MEMORIES if m <= seconds / LEAST_MEMORIES)})


def choose_memory(errors: dict[float, list[tuple[float, float]]], own: float) -> float:
    """`own` unless another is better on every held-out motion by MARGIN, and no worse frozen."""

    def betters(memory: float) -> bool:
        pairs = list(zip(errors[memory], errors[own], strict=True))
        return all(
            late < (1.0 - MARGIN) * own_late and frozen <= own_frozen
            for (late, frozen), (own_late, own_frozen) in pairs
        )

    good = [memory for memory in errors if betters(memory)]
    return min(good, key=lambda m: sum(late for late, _ in errors[m]), default=own)


def nmse(motion: Motion, parameters: Array) -> float:
    """Mean over the axes of the mean squared error over the variance."""
    error = motion.y - motion.rigid_body(parameters)
    return float(np.mean(np.mean(error**2, axis=0) / variances(motion.y)))


def keep_or_change(errors: dict[float, list[float]], own: float) -> float:
    """`own` unless another value is better on every held-out part, and by MARGIN on the mean.

    Then the nearest of those that are nearly as good as the best of them.
    """
    mean = {value: float(np.mean(found)) for value, found in errors.items()}
    better = [
        value
        for value, found in errors.items()
        if all(e < mine for e, mine in zip(found, errors[own], strict=True))
        and mean[value] < (1.0 - MARGIN) * mean[own]
    ]
    if not better:
        return own
    best = min(mean[value] for value in better)
    good = [value for value in better if mean[value] <= (1.0 + MARGIN) * best]
    return min(good, key=lambda value: abs(np.log(value / own)))


def with_cutoff(task: Task, config: InverseDynamicsConfig) -> InverseDynamicsConfig:
    """`config` with the cut-off that identifies the rigid body best on held-out motion."""
    cutoffs = cutoffs_for(task.recordings)
    own = config.filter.cutoff
    if task.kept("filter.cutoff") or len(cutoffs) < 2:
        return config
    progress = task.stage("filter's cut-off")
    job = ((task.recordings, cutoffs, progress), (cutoffs, to_flat(config)))
    local = Work(task.work.journal)  # shared measurements are not worth sending
    errors = local(cutoff_errors, [job], packed, unpacked)[0]
    return _with_choice(task, config, "filter.cutoff", errors, keep_or_change(errors, own))


def _with_choice(
    task: Task,
    config: InverseDynamicsConfig,
    name: str,
    errors: Mapping[float, Sequence[float]],
    chosen: float,
) -> InverseDynamicsConfig:
    """`config` with the value `chosen`; the curve of its mean errors is kept."""
    means = {value: float(np.mean(found)) for value, found in errors.items()}
    task.tuning.curves.append(Curve(name, means, chosen))
    return replace(config, **{name: chosen})


def _on_splits(
    task: Task,
    function: Callable[..., dict[float, Any]],
    config: InverseDynamicsConfig,
    splits: list[Split],
    values: Sequence[float],
    title: str,
) -> dict[float, list[Any]]:
    """By value, what `function` gives for each of the splits."""
    own = config.estimator.rigid_body
    tasks = [
        ((task.recordings.model, split, own, values), (split.name, to_flat(config)))
        for split in splits
    ]
    found = task.work(function, tasks, packed, unpacked, task.stage(title))
    return {value: [each[value] for each in found] for value in values}


def with_ridge(
    task: Task, config: InverseDynamicsConfig, splits: list[Split]
) -> InverseDynamicsConfig:
    """`config` with the rigid body's best ridge, frozen, on all that is held out."""
    name = "rigid_body.penalty"
    if task.kept(name):
        return config
    own = config.estimator.rigid_body.penalty
    penalties = sorted({own, *PENALTIES})
    errors = _on_splits(task, penalty_errors, config, splits, penalties, "rigid body's ridge")
    return _with_choice(task, config, name, errors, keep_or_change(errors, own))


def with_memory(
    task: Task, config: InverseDynamicsConfig, splits: list[Split]
) -> InverseDynamicsConfig:
    """`config` with the rigid body's best memory on held-out motion, where that can be told."""
    name = "rigid_body.memory"
    if task.kept(name):
        return config
    own = config.estimator.rigid_body.memory
    seconds = sum(split.held_out.seconds for split in splits)
    memories = memories_for(seconds, own)
    if len(memories) < 2:
        return config
    errors = _on_splits(task, memory_errors, config, splits, memories, "rigid body's memory")
    late = {memory: [delayed for delayed, _ in pairs] for memory, pairs in errors.items()}
    return _with_choice(task, config, name, late, choose_memory(errors, own))


# -------------------------------------------------------------------------------------------------
# The residual: what is tried, stage after stage; the configured value is always among it.


@dataclass(frozen=True)
class Grid:
    """A stage's candidates: every combination of `outer`, each with all penalties and sizes."""

    screen: Callable[..., Scores]  # judges them
    outer: Mapping[str, Sequence[float]]
    penalty: str  # the parameters that one pass gives all values of
    penalties: Sequence[float]
    size: str
    sizes: Sequence[int]

    def combinations(self) -> list[dict[str, float]]:
        """Settings of the outer parameters."""
        return [
            dict(zip(self.outer, values, strict=True)) for values in product(*self.outer.values())
        ]

    def restricted(self, config: EstimatorConfig, keep: Sequence[str]) -> Grid:
        """With only the configured value of parameters in `keep`, by name or by group."""

        def values(name: str, tried: Sequence[float]) -> list[float]:
            own = value_of(config, name)
            if is_kept(name, keep):
                return [own]
            return sorted({own, *tried})

        return Grid(
            self.screen,
            {name: values(name, tried) for name, tried in self.outer.items()},
            self.penalty,
            values(self.penalty, self.penalties),
            self.size,
            [int(v) for v in values(self.size, self.sizes)],
        )


def value_of(config: object, name: str) -> float:
    """A number among a configuration's parameters."""
    value = to_flat(config)[name]
    assert isinstance(value, (int, float))
    return value


SHARED = Grid(
    screen_nystrom,
    {
        "nystrom.length_scale": (0.1, 0.14, 0.2, 0.28, 0.4, 0.56),
        "nystrom.novelty": (0.3, 0.5),
    },
    "nystrom.penalty",
    (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "nystrom.max_centers",
    (100, 200, 500),
)
JOINTS = Grid(
    screen_joints,
    {},
    "nystrom.joint_penalty",
    (2.5, 5.0, 10.0, 20.0),
    "nystrom.joint_max_centers",
    (0, 50, 200),
)
FOURIER = Grid(
    screen_fourier,
    {"random_fourier.length_scale": (0.3, 0.5, 0.7, 1.0, 1.4, 2.0)},
    "random_fourier.penalty",
    (0.1, 0.5, 2.5, 12.5, 60.0),
    "random_fourier.n_features",
    (200, 500),
)


SIMPLER = 0.03  # a smaller or more regularised candidate may be worse by this share


@dataclass(frozen=True)
class ResidualChoice:
    """Chooses on folds; `about` is all that the folds themselves depend on."""

    task: Task
    folds: list[PreparedSplit]
    about: dict[str, Value]

    def choose(self, config: EstimatorConfig) -> tuple[Outcome, EstimatorConfig]:
        """The best of both kinds of features, and the configuration with it."""
        kinds = [config.residual] if self.task.kept("residual") else ["nystrom", "random_fourier"]
        window = getattr(config, config.residual).window
        best: list[tuple[Outcome, EstimatorConfig]] = []
        for kind in kinds:
            # One window for both kinds: the folds are standardized by it.
            tried = replace(config, residual=kind, **{f"{kind}.window": window})
            if kind == "nystrom":
                outcome, tried = self._grid("local features", SHARED, tried)
            else:
                outcome, tried = self._grid("random Fourier features", FOURIER, tried)
            if kind == "nystrom" and self.task.recordings.model.config.target == "effort":
                outcome, tried = self._grid("each joint's own level", JOINTS, tried)
            best.append((outcome, tried))
        chosen = choose([outcome for outcome, _ in best], None, self.task.criterion)
        return next((o, c) for o, c in best if o is chosen)

    def _grid(
        self, title: str, grid: Grid, config: EstimatorConfig
    ) -> tuple[Outcome, EstimatorConfig]:
        grid = grid.restricted(config, self.task.keep)
        combinations = grid.combinations()
        tasks = []
        for settings in combinations:
            tried = replace(config, **settings)
            for fold in self.folds:
                names = (fold.name, to_flat(tried), self.about, grid.penalties, grid.sizes)
                tasks.append(((fold, tried, grid.penalties, grid.sizes), names))
        stage = self.task.stage(title)
        found = self.task.work(grid.screen, tasks, pack_scores, unpack_scores, stage)
        outcomes = []
        for k, settings in enumerate(combinations):
            scores = found[k * len(self.folds) : (k + 1) * len(self.folds)]
            for penalty, size in scores[0]:
                both = {grid.penalty: penalty, grid.size: size}
                outcomes.append(
                    Outcome({**settings, **both}, tuple(s[penalty, size] for s in scores))
                )
        # The configured one, with the ridge and the size that it has now.
        named = [*grid.outer, grid.penalty, grid.size]
        mine = {name: value_of(config, name) for name in named}
        own = next(o for o in outcomes if o.settings == mine)
        chosen = choose(outcomes, own, self.task.criterion)
        if chosen is not own:
            chosen = _simplest(chosen, own, outcomes, grid, self.task.criterion)
        self.task.tuning.steps.append(Step(title, tuple(outcomes), chosen))
        self.task.tuning.candidates += len(outcomes)
        return chosen, replace(config, **chosen.settings)

    def screened(self, config: EstimatorConfig) -> Outcome:
        """A whole configuration, screened."""
        flat = to_flat(config)
        grid = FOURIER
        if config.residual == "nystrom":
            two_levels = self.task.recordings.model.config.target == "effort"
            grid = JOINTS if two_levels else SHARED
        key = (value_of(config, grid.penalty), int(value_of(config, grid.size)))
        tasks = [
            ((f, config, [key[0]], [key[1]]), (f.name, flat, self.about, [key[0]], [key[1]]))
            for f in self.folds
        ]
        found = self.task.work(grid.screen, tasks, pack_scores, unpack_scores)
        return Outcome({}, tuple(scores[key] for scores in found))


def _simplest(
    best: Outcome, own: Outcome, outcomes: Sequence[Outcome], grid: Grid, criterion: str
) -> Outcome:
    """Nearly as good as the best, with fewer features, or else with a larger ridge.

    By another criterion than the delayed error the best need not better `own`, see `choose`.
    """
    alike = [
        o
        for o in outcomes
        if all(o.settings[name] == best.settings[name] for name in grid.outer)
        and o.harm <= best.harm
        and o.delayed <= (1.0 + SIMPLER) * best.delayed
        and o.frozen <= (1.0 + SIMPLER) * best.frozen
        and (criterion != "delayed" or own.harm > 0.0 or o.betters(own))
    ]
    least = min(alike, key=lambda o: (o.settings[grid.size], -o.settings[grid.penalty]))
    if least.settings[grid.size] == 0:  # no features: their other settings mean nothing
        return Outcome({grid.size: 0}, least.scores)
    return least
