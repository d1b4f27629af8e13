"""The choice of the learner's hyperparameters, stage after stage."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import replace, to_flat
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.rigid_body import MOTION_BLOCK
from semiparam_dynamics.dynamics.sample import Motion, Sample
from semiparam_dynamics.dynamics.scores import variances
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.offline.tuning.candidates import FoldScore, Outcome, Tuning, choose
from semiparam_dynamics.offline.tuning.choices import (
    ResidualChoice,
    with_cutoff,
    with_memory,
    with_ridge,
)
from semiparam_dynamics.offline.tuning.folds import (
    PreparedSplit,
    Recordings,
    Split,
    least_window,
    motion_splits,
    prepare,
    region_splits,
)
from semiparam_dynamics.offline.tuning.forecast import Stage, forecast
from semiparam_dynamics.offline.tuning.work import Task, Work, check_keep, pack_score, unpack_score
from semiparam_dynamics.robot.model import RobotModel


def tune(
    recordings: Recordings,
    urdf: str | Path,
    work: Work,
    *,
    keep: Sequence[str] = (),
    criterion: str = "delayed",
    stage: Stage = lambda title, left: lambda share: None,
) -> Tuning:
    """Choose `recordings.config`'s hyperparameters by motion that is held out.

    keep : parameters, or groups of them, that stay as they are.
    criterion : what is made small among the candidates that do no harm: the error where learning
        goes on (delayed), the error on motion never seen (frozen), or what has the largest
        marginal likelihood (evidence).
    stage : is told each stage's title and the seconds that are left to the end of all, and answers
        with what is told the share of the stage that is done.

    Raises BagError where the recordings don't suffice, ConfigurationError for unknown names.
    """
    started = time.perf_counter()
    config = recordings.config
    check_keep(keep, config)
    tuning = Tuning(config, config, [])
    task = Task(recordings, work, tuple(keep), criterion, lambda _: _unseen, tuning)
    ahead = forecast(task)
    task = dataclasses.replace(task, stage=lambda title: stage(title, ahead.left(title)))
    config = with_cutoff(task, config)
    motions = recordings.motions(config.filter.cutoff)
    tuning.splits = motion_splits(motions, recordings.names)
    splits = [*tuning.splits, *region_splits(Motion.join(motions), recordings.model.turning)]
    config = with_ridge(task, config, splits)
    config = with_memory(task, config, tuning.splits)
    residual = ResidualChoice(task, _folds(task, config, splits), to_flat(config))
    tuning.screened["configured"] = own = residual.screened(config.estimator)
    best, estimator = residual.choose(config.estimator)
    if choose([best], own, criterion) is own:
        best, estimator = own, config.estimator  # the residual stays as it was
    tuning.screened["tuned"] = best
    tuning.config = dataclasses.replace(config, estimator=estimator)
    before = dataclasses.replace(config, estimator=recordings.config.estimator)
    _confirm(task, urdf, recordings.model.locked, before)
    if best is not own and criterion == "delayed" and not _earned(tuning):
        tuning.refused = tuning.changed_from(
            dataclasses.replace(tuning.config, estimator=config.estimator)
        )
        tuning.screened["tuned"], tuning.config = own, config
        _confirm(task, urdf, recordings.model.locked, before)
    tuning.computed = work.computed
    tuning.seconds = time.perf_counter() - started
    return tuning


def _unseen(share: float) -> None:
    pass


def _earned(tuning: Tuning) -> bool:
    """Whether the learner itself, sample by sample, is better with what was chosen for it.

    It knows where to trust its residual, and its centres are used up in time, which the blocks that
    candidates are judged by don't show. What is configured goes where it does harm by that, too,
    unless it errs less than what was chosen: a few percent on one axis while learning is off are
    not worth a third of the error while it is on.
    """
    configured, tuned = tuning.confirmed["configured"], tuning.confirmed["tuned"]
    harmful = configured.harm > 0.0 and not configured.errs_less_than(tuned)
    return harmful or tuned.errs_less_than(configured)


def _folds(task: Task, config: InverseDynamicsConfig, splits: list[Split]) -> list[PreparedSplit]:
    progress = task.stage("rigid body on each fold")
    estimator = config.estimator
    window = getattr(estimator, estimator.residual).window
    folds = []
    for k, split in enumerate(splits):
        folds.append(prepare(task.recordings.model, split, estimator.rigid_body, window))
        progress((k + 1) / len(splits))
    return folds


def _confirm(
    task: Task, urdf: str | Path, locked: dict[str, float], before: InverseDynamicsConfig
) -> None:
    """Judge the configuration and the choice, both with the chosen filter."""
    tuning = task.tuning
    configs = {"configured": before, "tuned": tuning.config}
    tasks: list[Any] = []
    for config in configs.values():
        for split in tuning.splits:
            tasks.append(((urdf, locked, config, split), (split.name, to_flat(config))))
    scores: list[FoldScore] = task.work(
        confirm, tasks, pack_score, unpack_score, task.stage("the learner itself")
    )
    n = len(tuning.splits)
    for k, name in enumerate(configs):
        tuning.confirmed[name] = Outcome({}, tuple(scores[k * n : (k + 1) * n]))


# -------------------------------------------------------------------------------------------------
# A configuration judged by the learner itself, sample by sample, as `semiparam evaluate` does.


def confirm(
    urdf: str | Path, locked: dict[str, float], config: InverseDynamicsConfig, split: Split
) -> FoldScore:
    """Learn the training part sample by sample, then go on, delayed and frozen, on the rest."""
    model = RobotModel(urdf, config.robot, locked=locked)
    window = f"{config.estimator.residual}.window"
    seconds = least_window(getattr(config.estimator, config.estimator.residual).window, split.train)
    tried = replace(config.estimator, **{window: seconds})
    estimator = SemiparametricEstimator(model, tried)
    with threadpool_limits(limits=1):  # a sample's products are too small to be spread
        first = ProtocolRun(estimator, "sequential")
        for sample in _samples(split.train):
            first.step(sample, score=False)
        runs = {name: first.branch(name) for name in ("delayed", "frozen")}
        for sample in _samples(split.held_out):
            for run in runs.values():
                run.step(sample)
    varied = np.isfinite(variances(split.held_out.y))

    def errors(name: str, of: str) -> Array:
        # Of what never varies there are none, as in the blocks.
        return np.where(varied, runs[name].scores.nmse(of), 0.0)

    return FoldScore(
        fold=split.name,
        frozen=errors("frozen", "semiparametric"),
        rigid_frozen=errors("frozen", "rigid_body"),
        delayed=errors("delayed", "semiparametric"),
        rigid_delayed=errors("delayed", "rigid_body"),
        evidence=np.nan,
    )


def _samples(motion: Motion) -> Iterator[Sample]:
    for block in motion.blocks(MOTION_BLOCK):
        columns = (block.stamps.tolist(), block.q, block.dq, block.ddq, block.regressors, block.y)
        for parts, weight in zip(zip(*columns, strict=True), block.weights.tolist(), strict=True):
            yield dataclasses.replace(Sample(*parts), weight=weight)
