"""Candidates' scores on a split: a residual's first level, its second, and random Fourier features.

A level is learned for all penalties and numbers of features at once. The features of a split's
samples are made once. Their second moments over the training part then give the estimator of every
penalty and every number of features (Nyström's path, thesis algorithm 1): what a learner frozen
after training predicts. From the same factor the recursion goes through what is held out, in the
blocks of the delayed protocol.

Screening differs from the learner in two things. The rigid body's parameters, by which the residual
is defined, are those at the end of the split all along. And fewer centres than the most are the
first of these: by itself a learner spares centres once half are used, and has others. Both move
scores by a few hundredths; the candidates chosen are confirmed by the learner itself.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.jit import subnormals_as_zero
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.residual import (
    GROUPS,
    GROWING_BLOCK,
    group_sizes,
    input_widths,
    kernel_width,
)
from semiparam_dynamics.learning.recursion.blocks import innovations, solve_right, update_block
from semiparam_dynamics.learning.recursion.features import (
    IncrementalNystromFeatures,
    draw_frequencies,
    fourier_features,
)
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.learning.ridge import NestedRidge
from semiparam_dynamics.offline.tuning.candidates import FoldScore, score
from semiparam_dynamics.offline.tuning.folds import PreparedSplit

Scores = dict[tuple[float, int], FoldScore]  # by penalty and number of features


@subnormals_as_zero
def screen_nystrom(
    fold: PreparedSplit, config: EstimatorConfig, penalties: Sequence[float], sizes: Sequence[int]
) -> Scores:
    """The first level of `nystrom` with `config`'s widths, for every penalty and size."""
    level = _first_level(fold, config, max(sizes))
    unit = [1.0 / fold.share] * len(sizes)
    fits = level_path(level, fold.left, fold.first, fold.blocks, penalties, sizes, unit)
    return _scored(fold, fits)


@subnormals_as_zero
def screen_fourier(
    fold: PreparedSplit, config: EstimatorConfig, penalties: Sequence[float], sizes: Sequence[int]
) -> Scores:
    """The residual `random_fourier`; the sizes are even numbers of features."""
    inputs, frozen = _inputs(fold, config, "random_fourier")
    width = config.random_fourier.length_scale
    level = fourier_rows(inputs, frozen, max(sizes), width, config.seed)
    unit = [t / 2 / fold.share for t in sizes]
    fits = level_path(level, fold.stale, fold.first, fold.blocks, penalties, sizes, unit)
    return _scored(fold, fits)


def _scored(fold: PreparedSplit, fits: Mapping[tuple[float, int], LevelFit]) -> Scores:
    return {key: score(fold, fit.delayed, fit.frozen, fit.evidence) for key, fit in fits.items()}


@subnormals_as_zero
def screen_joints(
    fold: PreparedSplit, config: EstimatorConfig, penalties: Sequence[float], sizes: Sequence[int]
) -> Scores:
    """The second level over the first one of `config`; size 0 is none at all.

    Each joint's learns what the first level left of each sample just before it learned it.
    """
    local = config.nystrom
    level = _first_level(fold, config, local.max_centers)
    ridge, size = key = local.penalty / fold.share, local.max_centers
    path = level_path(level, fold.left, fold.first, fold.blocks, [ridge], [size])
    shared = path[key]
    errors = one_step_errors(level, fold.left, fold.first, *key)
    inputs, frozen_inputs = _inputs(fold, config, "nystrom")
    n_joints, n_axes = fold.n_joints, fold.n_axes
    positions = n_joints + len(fold.turning)
    most = max(sizes)
    fits: list[dict[tuple[float, int], LevelFit]] = []
    for j in range(n_axes if most else 0):
        columns = [j, positions + j, positions + n_joints + j]
        columns += (n_joints + np.flatnonzero(fold.turning == j)).tolist()  # its cosine
        level = nystrom_rows(
            inputs[:, columns],
            frozen_inputs[:, columns],
            fold.first,
            local.joint_length_scale,
            most,
            local.novelty,
        )
        used = [size for size in sizes if size]
        own, unit = errors[:, j : j + 1], [1.0 / fold.share] * len(used)
        fits.append(level_path(level, own, fold.first, fold.blocks, penalties, used, unit))
    scores: Scores = {}
    for penalty in penalties:
        for size in sizes:
            second = [fit[penalty, size] for fit in fits] if size else []
            delayed, frozen = shared.delayed, shared.frozen
            if second:
                frozen = frozen + np.column_stack([fit.frozen for fit in second])
            later = [fit.delayed for fit in second if fit.delayed is not None]
            if delayed is not None and later:
                delayed = delayed + np.column_stack(later)
            scores[penalty, size] = score(fold, delayed, frozen, shared.evidence)
    return scores


def _first_level(fold: PreparedSplit, config: EstimatorConfig, size: int) -> LevelRows:
    inputs, frozen = _inputs(fold, config, "nystrom")
    local = config.nystrom
    return nystrom_rows(inputs, frozen, fold.first, local.length_scale, size, local.novelty)


def _inputs(fold: PreparedSplit, config: EstimatorConfig, kind: str) -> tuple[Array, Array]:
    """The inputs of a kind of residual, (n, d) and (k, d), each over its group's width."""
    sizes = fold.n_joints, fold.n_axes, len(fold.turning)
    own = getattr(config, kind)
    used = np.repeat([g in own.INPUTS for g in GROUPS], group_sizes(GROUPS, *sizes))
    widths = input_widths(own, own.INPUTS, *sizes)
    return fold.inputs[:, used] / widths, fold.frozen_inputs[:, used] / widths


# -------------------------------------------------------------------------------------------------
# One level on one split.


@dataclass(frozen=True)
class LevelRows:
    """Features of a fold's samples, (n, m), and of the held-out ones when frozen, (k, m)."""

    rows: Array
    frozen: Array


@dataclass(frozen=True)
class LevelFit:
    """Predictions of held-out samples by one penalty and number of features, (k, T) each."""

    delayed: Array | None  # None where nothing goes on being learned
    frozen: Array
    evidence: float  # log marginal likelihood of the training part, a sample and output


def nystrom_rows(
    inputs: Array,
    frozen_inputs: Array,
    first: int,
    length_scale: float,
    max_centers: int,
    novelty: float,
) -> LevelRows:
    """Local features that grow along the samples; `length_scale` in units of sqrt(d / 2)."""
    n, d = inputs.shape
    width = kernel_width(length_scale, d)
    features = IncrementalNystromFeatures(d, width, max_centers, novelty, sparing=True)
    n_train = n - len(frozen_inputs)
    parts = [(i, min(i + GROWING_BLOCK, n_train)) for i in range(first, n_train, GROWING_BLOCK)]
    grown = [(a, features.grow_rows(inputs[a:b])) for a, b in parts]
    trained = features.transform_rows(frozen_inputs)
    parts = [(i, min(i + GROWING_BLOCK, n)) for i in range(n_train, n, GROWING_BLOCK)]
    grown += [(a, features.grow_rows(inputs[a:b])) for a, b in parts]
    rows, frozen = (np.zeros((k, features.n_centers)) for k in (n, len(frozen_inputs)))
    for start, phi in grown:
        rows[start : start + len(phi), : phi.shape[1]] = phi
    frozen[:, : trained.shape[1]] = trained
    return LevelRows(rows, frozen)


def fourier_rows(
    inputs: Array, frozen_inputs: Array, n_features: int, length_scale: float, seed: int
) -> LevelRows:
    """Random Fourier features, cosine and sine in turn, so that the first t are a smaller draw."""
    half, d = n_features // 2, inputs.shape[1]
    frequencies = draw_frequencies(half, d, kernel_width(length_scale, d), seed)
    order = np.arange(2 * half).reshape(2, half).T.ravel()
    rows, frozen = (
        fourier_features(X, frequencies)[:, order] * math.sqrt(half)
        for X in (inputs, frozen_inputs)
    )
    return LevelRows(rows, frozen)


def level_path(
    level: LevelRows,
    targets: Array,
    first: int,
    blocks: Indices | None,
    penalties: Sequence[float],
    sizes: Sequence[int],
    unit: Sequence[float] | None = None,
) -> dict[tuple[float, int], LevelFit]:
    """Learn `targets` (n, T) from sample `first` on, for every penalty and number of features.

    blocks : where the held-out part's blocks begin, and n; None: it is only predicted, frozen.
    unit : what a row's squared length counts, for each of `sizes`: the penalty of t features is
        multiplied by it. None: 1. Of rows that weigh `share` of an independent one, 1 / share.

    Random features of t functions are the rows over sqrt(t / 2): a ridge r on them is a ridge
    r t / 2 on the rows, and their nested sums serve all t.
    """
    n_train = len(level.rows) - len(level.frozen)
    rows, learned = level.rows[first:n_train], targets[first:n_train]
    m = level.rows.shape[1]
    system = NestedRidge(m, targets.shape[1])
    system.add(rows, learned)
    square = np.sum(learned**2, axis=0)
    fits = {}
    units = [1.0] * len(sizes) if unit is None else list(unit)
    pairs = [(p, t, p * u) for p in penalties for t, u in zip(sizes, units, strict=True)]
    for penalty, t, ridge in pairs:
        factor, q = system.factor(ridge), min(t, m)
        frozen = level.frozen[:, :q] @ factor.weights(q)
        evidence = _evidence(factor.R, factor.U, q, ridge, square, len(rows))
        fits[penalty, t] = LevelFit(None, frozen, evidence)
    if blocks is None:
        return fits
    held_rows, held = level.rows[n_train:], targets[n_train:]
    for u in dict.fromkeys(units):
        same = [t for t, own in zip(sizes, units, strict=True) if own == u]
        ridges = [p * u for p in penalties]
        on = system if len(set(units)) == 1 else copy.deepcopy(system)
        q = [min(t, m) for t in same]
        errors = delayed_errors(on, held_rows, held, blocks - n_train, ridges, q)
        for penalty, ridge in zip(penalties, ridges, strict=True):
            for t in same:
                delayed = held - errors[ridge, min(t, m)]
                fits[penalty, t] = replace(fits[penalty, t], delayed=delayed)
    return fits


def _evidence(R: Array, U: Array, q: int, ridge: float, square: Array, n: int) -> float:
    """Of ridge regression as a Gaussian process whose noise is as large as suits it best.

    -1/2 [n log(2 pi e s^2) + log det(A) - q log(ridge)], s^2 = (y'y - |U|^2) / n, a sample.
    """
    if n == 0:
        return math.nan
    noise = np.maximum(square - np.sum(U[:q] ** 2, axis=0), 1e-12 * square + 1e-300) / n
    determinant = 2.0 * float(np.log(np.abs(np.diag(R)[:q])).sum()) - q * math.log(ridge)
    fit = float(np.mean(np.log(2.0 * math.pi * math.e * noise)))
    return -0.5 * (fit + determinant / n)


LEAST_ROWS, MOST_ROWS = 128, 256  # taken at once: as many as features, within these bounds


def delayed_errors(
    system: NestedRidge,
    Z: Array,
    Y: Array,
    edges: Indices,
    ridges: Sequence[float],
    sizes: Sequence[int],
) -> dict[tuple[float, int], Array]:
    """Errors (n, T) of continuing from `system`, each before any row of its block was learned.

    Z : feature rows (n, q), with outputs Y (n, T). edges : where the blocks begin, from 0, and n.
    ridges : plain ridges on the weights. sizes : leading features; each pair is one model.

    The recursion's innovations (see `recursion.blocks`) of many rows at once, from one factor for
    each ridge. The system has learned the rows afterwards. Features that no row has shown yet
    (columns of zeros so far) predict nothing, so that one system serves features that are added on
    the way.
    """
    found = {(ridge, size): np.empty_like(Y) for ridge in ridges for size in sizes}
    for start, end in _chunks(edges, min(max(system.n_features, LEAST_ROWS), MOST_ROWS)):
        inner = edges[(edges >= start) & (edges <= end)]
        z, y = Z[start:end], Y[start:end]
        for ridge in ridges:
            factor = system.factor(ridge)
            W = solve_right(z, factor.R)
            for size in sizes:
                known = W[:, :size]
                L, whitened = innovations(known, y - known @ factor.U[:size])
                for a, b in zip(inner[:-1], inner[1:], strict=True):
                    own = slice(a - start, b - start)
                    found[ridge, size][a:b] = L[own, own] @ whitened[own]
        system.add(z, y)
    return found


def _chunks(edges: Indices, rows: int) -> list[tuple[int, int]]:
    """Whole blocks taken together, of about as many rows; a longer block stays whole."""
    chunks, start = [], 0
    for previous, edge in zip(edges[:-1], edges[1:], strict=True):
        if edge - start > rows and previous > start:
            chunks.append((start, int(previous)))
            start = int(previous)
    if edges[-1] > start:
        chunks.append((start, int(edges[-1])))
    return chunks


def one_step_errors(
    level: LevelRows, targets: Array, first: int, penalty: float, n_features: int
) -> Array:
    """Errors (n, T) on each row before it alone was learned; zeros before `first`."""
    rows = level.rows[first:, :n_features]
    q, n_outputs = rows.shape[1], targets.shape[1]
    core = RecursiveLeastSquares(q, n_outputs, penalty)
    errors = np.zeros_like(targets)
    learned = update_block(core, rows, targets[first:], most=max(q, GROWING_BLOCK))
    errors[first:] = learned.errors
    return errors
