"""The filter's cut-off and the rigid body's ridge and memory, one after the other."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.parameters import replace, to_flat
from semiparam_dynamics.tuning.result import Curve
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
from semiparam_dynamics.tuning.splits import Split
from semiparam_dynamics.tuning.task import Task
from semiparam_dynamics.tuning.work import Work, packed, unpacked


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
    chosen = keep_or_change(errors, own)
    means = {cutoff: float(np.mean(found)) for cutoff, found in errors.items()}
    task.tuning.curves.append(Curve("filter.cutoff", means, chosen))
    return replace(config, **{"filter.cutoff": chosen})


def with_ridge(
    task: Task, config: InverseDynamicsConfig, splits: list[Split]
) -> InverseDynamicsConfig:
    """`config` with the rigid body's best ridge, frozen, on all that is held out."""
    name = "rigid_body.penalty"
    if task.kept(name):
        return config
    progress = task.stage("rigid body's ridge")
    own = config.estimator.rigid_body
    penalties = sorted({own.penalty, *PENALTIES})
    tasks = [
        ((task.recordings.arm, split, own, penalties), (split.name, to_flat(config)))
        for split in splits
    ]
    found = task.work(penalty_errors, tasks, packed, unpacked, progress)
    errors = {p: [each[p] for each in found] for p in penalties}
    chosen = keep_or_change(errors, own.penalty)
    task.tuning.curves.append(
        Curve(name, {p: float(np.mean(e)) for p, e in errors.items()}, chosen)
    )
    return replace(config, **{name: chosen})


def with_memory(
    task: Task, config: InverseDynamicsConfig, splits: list[Split]
) -> InverseDynamicsConfig:
    """`config` with the rigid body's best memory on held-out motion, where that can be told."""
    name = "rigid_body.memory"
    if task.kept(name):
        return config
    own = config.estimator.rigid_body
    seconds = sum(split.held_out.seconds for split in splits)
    memories = memories_for(seconds, own.memory)
    if len(memories) < 2:
        return config
    tasks = [
        ((task.recordings.arm, split, own, memories), (split.name, to_flat(config)))
        for split in splits
    ]
    found = task.work(memory_errors, tasks, packed, unpacked, task.stage("rigid body's memory"))
    errors = {m: [each[m] for each in found] for m in memories}
    chosen = choose_memory(errors, own.memory)
    curve = {m: float(np.mean([late for late, _ in pairs])) for m, pairs in errors.items()}
    task.tuning.curves.append(Curve(name, curve, chosen))
    return replace(config, **{name: chosen})
