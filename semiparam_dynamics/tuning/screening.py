"""Candidates' scores on a fold: a residual's first level, its second, and random Fourier features.

Screening differs from the learner in one thing: the rigid body's parameters, by which the residual
is defined, are those at the end of the fold all along. That moves scores by a few hundredths; the
candidates chosen are confirmed by the learner itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.input_groups import (
    GROUPS,
    RESIDUAL,
    group_sizes,
    input_widths,
)
from semiparam_dynamics.tuning.candidates import FoldScore, score
from semiparam_dynamics.tuning.folds import Fold
from semiparam_dynamics.tuning.levels import (
    LevelFit,
    LevelRows,
    fourier_rows,
    level_path,
    nystrom_rows,
    one_step_errors,
)

Scores = dict[tuple[float, int], FoldScore]


def screen_nystrom(
    fold: Fold, config: EstimatorConfig, penalties: Sequence[float], sizes: Sequence[int]
) -> Scores:
    """The first level of `nystrom` with `config`'s widths, for every penalty and size."""
    level = _first_level(fold, config, max(sizes))
    blocks = fold.blocks if fold.kind == "motion" else None
    fits = level_path(level, fold.left, fold.first, blocks, penalties, sizes)
    return {key: score(fold, fit.delayed, fit.frozen, fit.evidence) for key, fit in fits.items()}


def screen_fourier(
    fold: Fold, config: EstimatorConfig, penalties: Sequence[float], sizes: Sequence[int]
) -> Scores:
    """The residual `random_fourier`; the sizes are even numbers of features."""
    inputs, frozen = _inputs(fold, config, "random_fourier")
    width = config.random_fourier.length_scale
    level = fourier_rows(inputs, frozen, max(sizes), width, config.seed)
    blocks = fold.blocks if fold.kind == "motion" else None
    unit = [t / 2 for t in sizes]
    fits = level_path(level, fold.stale, fold.first, blocks, penalties, sizes, unit)
    return {key: score(fold, fit.delayed, fit.frozen, fit.evidence) for key, fit in fits.items()}


def screen_joints(
    fold: Fold, config: EstimatorConfig, penalties: Sequence[float], sizes: Sequence[int]
) -> Scores:
    """The second level over the first one of `config`; size 0 is none at all.

    Each joint's learns what the first level left of each sample just before it learned it.
    """
    local = config.nystrom
    shared, errors, delayed = _first_level_errors(fold, config)
    inputs, frozen_inputs = _inputs(fold, config, "nystrom")
    n_joints, n_axes = fold.n_joints, fold.n_axes
    blocks = fold.blocks if fold.kind == "motion" else None
    most = max(sizes)
    fits: list[dict[tuple[float, int], LevelFit]] = []
    for j in range(n_axes if most else 0):
        columns = [j, n_joints + j, 2 * n_joints + j]
        level = nystrom_rows(
            inputs[:, columns],
            frozen_inputs[:, columns],
            fold.first,
            local.joint_length_scale * np.sqrt(2.0),  # in units of sqrt(3) there
            most,
            local.novelty,
        )
        used = [size for size in sizes if size]
        fits.append(level_path(level, errors[:, j : j + 1], fold.first, blocks, penalties, used))
    scores: Scores = {}
    for penalty in penalties:
        for size in sizes:
            second = [fit[penalty, size] for fit in fits] if size else []
            later = delayed
            if later is not None and second:
                own = [fit.delayed for fit in second if fit.delayed is not None]
                later = later + np.column_stack(own)
            frozen = shared.frozen
            if second:
                frozen = frozen + np.column_stack([fit.frozen for fit in second])
            scores[penalty, size] = score(fold, later, frozen, shared.evidence)
    return scores


def _first_level_errors(
    fold: Fold, config: EstimatorConfig
) -> tuple[LevelFit, Array, Array | None]:
    local = config.nystrom
    level = _first_level(fold, config, local.max_centers)
    key = local.penalty, local.max_centers
    motion = fold.kind == "motion"
    blocks = fold.blocks if motion else None
    fit = level_path(level, fold.left, fold.first, blocks, [key[0]], [key[1]])[key]
    errors = one_step_errors(level, fold.left, fold.first, local.penalty, local.max_centers)
    return fit, errors, fit.delayed


def _first_level(fold: Fold, config: EstimatorConfig, size: int) -> LevelRows:
    inputs, frozen = _inputs(fold, config, "nystrom")
    local = config.nystrom
    return nystrom_rows(inputs, frozen, fold.first, local.length_scale, size, local.novelty)


def _inputs(fold: Fold, config: EstimatorConfig, kind: str) -> tuple[Array, Array]:
    """The inputs of a kind of residual, (n, d) and (k, d), each over its group's width."""
    n, axes = fold.n_joints, fold.n_axes
    used = np.repeat([g in RESIDUAL[kind] for g in GROUPS], group_sizes(GROUPS, n, axes))
    widths = input_widths(getattr(config, kind), RESIDUAL[kind], n, axes)
    return fold.inputs[:, used] / widths, fold.frozen_inputs[:, used] / widths
