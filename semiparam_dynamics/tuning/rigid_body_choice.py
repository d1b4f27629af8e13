"""The filter's cut-off and the rigid body's ridge and memory, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig
from semiparam_dynamics.parameters import replace, to_flat
from semiparam_dynamics.tuning.candidates import Curve
from semiparam_dynamics.tuning.folds import Split, along, identified, motion_splits
from semiparam_dynamics.tuning.motion import Arm, Motion, Recordings, join
from semiparam_dynamics.tuning.task import Task
from semiparam_dynamics.tuning.work import Work, packed, unpacked

# -------------------------------------------------------------------------------------------------
# The choices that the rigid body makes alone: the filter's cut-off, its ridge and its memory.

CUTOFFS = (1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0, 80.0)  # Hz
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
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
        parameters[cutoff] = [
            identified(recordings.arm, s.train, rigid_body, [rigid_body.penalty])[0] for s in splits
        ]
        if cutoff == own:
            held_out = splits
        progress((k + 1) / len(cutoffs))
    errors = {}
    for cutoff, found in parameters.items():
        pairs = zip(held_out, found, strict=True)
        errors[cutoff] = [nmse(recordings.arm, s.held_out, pi) for s, pi in pairs]
    return errors


def penalty_errors(
    arm: Arm, split: Split, config: RigidBodyConfig, penalties: Sequence[float]
) -> dict[float, float]:
    """For each ridge on the rigid body, its nmse, frozen, on what the split holds out."""
    found = identified(arm, split.train, config, penalties)
    return {p: nmse(arm, split.held_out, pi) for p, pi in zip(penalties, found, strict=True)}


def memory_errors(
    arm: Arm, split: Split, config: RigidBodyConfig, memories: Sequence[float]
) -> dict[float, tuple[float, float]]:
    """For each memory, the rigid body's nmse on what is held out: going on learning, and frozen."""
    found = {}
    whole, k = join([split.train, split.held_out]), len(split.train)
    out = split.held_out
    variance = out.y.var(axis=0)
    scale = np.where(variance > 0.0, variance, np.inf)
    for memory in memories:
        before, trained, _ = along(arm, whole, k, replace(config, memory=memory))
        delayed = float(np.mean(np.mean((out.y - before[k:]) ** 2, axis=0) / scale))
        found[memory] = delayed, nmse(arm, out, trained)
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


def nmse(arm: Arm, motion: Motion, parameters: Array) -> float:
    """Mean over the axes of the mean squared error over the variance."""
    error = motion.y - arm.rigid_body(motion.entries, parameters)
    variance = motion.y.var(axis=0)
    return float(np.mean(np.mean(error**2, axis=0) / np.where(variance > 0.0, variance, np.inf)))


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
