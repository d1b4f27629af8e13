"""A split as the residual sees it: the rigid body identified, inputs standardised, blocks cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.residual import Standardizer
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.evaluation.protocols import BLOCK
from semiparam_dynamics.tuning.motion import Arm, Motion, join

# -------------------------------------------------------------------------------------------------
# The rigid body's parameters after a motion, for several ridges, in one pass.


def identified(
    arm: Arm, motion: Motion, config: RigidBodyConfig, penalties: Sequence[float]
) -> list[Array]:
    """What `RigidBodyIdentifier` arrives at for each penalty, (n_parameters,) each.

    Its rows and weights summed up as normal equations: the same ridge solution, to rounding. A
    memory is left out of account: all samples count alike.
    """
    axis, column = arm.entries()
    p = len(arm.prior)
    # Each row is divided by its output's root mean square so far, begun with the expected one.
    begun = RigidBodyIdentifier.SCALE_SAMPLES
    square = begun * arm.scales.output**2 + np.cumsum(motion.y**2, axis=0)
    weight = np.sqrt((begun + np.arange(1, len(motion) + 1))[:, None] / square)
    gram, moments = np.zeros((p, p)), np.zeros(p)
    for a in range(arm.n_axes):
        own = column[axis == a]
        rows = motion.entries[:, axis == a] * weight[:, a : a + 1]
        gram[np.ix_(own, own)] += rows.T @ rows
        moments[own] += rows.T @ (motion.y[:, a] * weight[:, a])
    prior = arm.prior if config.prior == "urdf" else np.zeros(p)
    # In units of the columns' scales: their sizes differ by orders of magnitude.
    scale = 1.0 / arm.scales.column
    scaled = gram * np.outer(scale, scale)
    left = (moments - gram @ prior) * scale
    return [
        prior + scale * solve(scaled + penalty * np.eye(p), left, assume_a="pos")
        for penalty in penalties
    ]


# -------------------------------------------------------------------------------------------------
# What is held out: whole motions, and whole regions of the joints' positions.
#
# Held-out samples in between those that are learned flatter a kernel: motion repeats, and
# neighbours
# in time are neighbours in space. So two kinds of hold-out are made. *Motions*: whole recordings,
# or
# long parts of the only one, tell how well the learner will do. *Regions*: the samples at one end
# of the positions' principal directions, whatever the time, tell what it does where it has not
# been,
# even if all recordings show much the same motion. A kernel that is too wide betrays itself there.

PARTS = 3  # of a single recording
MOST_FOLDS = 5
DIRECTIONS = 3
REGION_SHARE = 0.35  # of the samples, at one end of a direction
LEAST_VARIANCE = 0.02  # of all the positions', for a direction to count
LEAST_SECONDS = 1.5  # of each part of a recording


@dataclass(frozen=True)
class Split:
    """What is learned and what is held out."""

    name: str
    kind: str  # motion or region
    train: Motion
    held_out: Motion


def motion_splits(motions: Sequence[Motion], names: Sequence[str]) -> list[Split]:
    """Each recording held out in turn, or each third of the only one, the others learned.

    More than five recordings are held out in five groups. Raises BagError where a single
    recording is too short for that.
    """
    if len(motions) == 1:
        whole = motions[0]
        if whole.seconds < PARTS * LEAST_SECONDS:
            raise BagError(
                f"the only recording shows {whole.seconds:.1f} s of motion: "
                f"tuning needs {PARTS * LEAST_SECONDS:.1f} s at least, or several recordings"
            )
        edges = np.linspace(0, len(whole), PARTS + 1).astype(int)
        groups = [[whole.take(slice(a, b))] for a, b in zip(edges[:-1], edges[1:], strict=True)]
        titles = [f"part {k + 1} of {PARTS}" for k in range(PARTS)]
    else:
        n = min(len(motions), MOST_FOLDS)
        groups = [list(motions[k::n]) for k in range(n)]
        titles = [" ".join(names[k::n]) for k in range(n)]
    return [
        Split(title, "motion", join([m for g in groups if g is not group for m in g]), join(group))
        for title, group in zip(titles, groups, strict=True)
    ]


def region_splits(motion: Motion) -> list[Split]:
    """Both ends of the positions' principal directions held out, two for each direction."""
    centred = motion.q - motion.q.mean(axis=0)
    deviation = motion.q.std(axis=0)
    scaled = centred / np.where(deviation > 1e-9, deviation, np.inf)
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
    share = sizes**2 / max(float(np.sum(sizes**2)), 1e-300)
    splits = []
    for k in np.flatnonzero(share[:DIRECTIONS] > LEAST_VARIANCE):
        along: Array = scaled @ directions[k]
        for end, place in (("far", along), ("near", -along)):
            out = place > np.quantile(place, 1.0 - REGION_SHARE)
            if 0 < out.sum() < len(out):
                name = f"{end} end of direction {k + 1}"
                splits.append(Split(name, "region", motion.take(~out), motion.take(out)))
    return splits


WINDOW_SHARE = 0.25


@dataclass(frozen=True)
class Fold:
    """n samples that are learned, then held out: those from number `n_train` on.

    Inputs are [q, dq, ddq, rigid-body prediction], standardised by the first seconds.
    """

    name: str
    kind: str
    n_joints: int
    n_train: int
    first: int  # samples before it were only looked at
    inputs: Array  # (n, 3 n_joints + n_axes), with the prediction made before each was learned
    frozen_inputs: Array  # (n - n_train, same), with the prediction after training
    left: Array  # (n, n_axes): what the rigid body, as identified in the end, leaves
    stale: Array  # (n, n_axes): what it left before each sample was learned
    y: Array  # (n - n_train, n_axes), held out
    rigid_body: Array  # the same, predicted while it goes on being identified
    frozen_rigid_body: Array  # the same, as identified from the training part
    blocks: Indices  # numbers at which the held-out part's blocks of half a second begin, and n

    @property
    def n_axes(self) -> int:
        """Outputs."""
        return int(self.y.shape[1])

    @property
    def variance(self) -> Array:
        """(n_axes,) of the held-out measurements, by which errors are normalised."""
        variance: Array = self.y.var(axis=0)
        return np.where(variance > 0.0, variance, np.inf)

    def rigid_body_scores(self) -> tuple[Array, Array]:
        """The rigid body's nmse (n_axes,) on what is held out: delayed, and frozen."""
        errors = (self.y - self.rigid_body, self.y - self.frozen_rigid_body)
        delayed, frozen = (np.mean(e**2, axis=0) / self.variance for e in errors)
        return delayed, frozen


def fold_of(arm: Arm, split: Split, config: RigidBodyConfig, window: float) -> Fold:
    """Identify the rigid body along a split as the node would, and lay out what it leaves."""
    whole = join([split.train, split.held_out])
    k = len(split.train)
    out = split.held_out
    if split.kind == "motion":
        before, trained, last = along(arm, whole, k, config)
        frozen = arm.rigid_body(out.entries, trained)
    else:  # nothing goes on being learned there
        last = identified(arm, split.train, config, [config.penalty])[0]
        before = arm.rigid_body(whole.entries, last)
        frozen = before[k:]
    inputs = np.column_stack((whole.q, whole.dq, whole.ddq, before))
    frozen_inputs = np.column_stack((out.q, out.dq, out.ddq, frozen))
    window = least_window(window, split.train)
    standardizer = Standardizer(np.ones(inputs.shape[1]), window)
    first = 0
    while first < k and not standardizer.ready:
        standardizer.observe(int(whole.stamps[first]), inputs[first])
        first += 1
    if not standardizer.ready:  # motion in pieces: all of it is looked at, and learned
        standardizer.fit(whole.stamps[:k], inputs[:k])
        first = 0
    return Fold(
        name=split.name,
        kind=split.kind,
        n_joints=arm.n_joints,
        n_train=k,
        first=first,
        inputs=standardizer.transform(inputs),
        frozen_inputs=standardizer.transform(frozen_inputs),
        left=whole.y - arm.rigid_body(whole.entries, last),
        stale=whole.y - before,
        y=out.y,
        rigid_body=before[k:],
        frozen_rigid_body=frozen,
        blocks=_blocks(whole.stamps, k),
    )


def least_window(window: float, motion: Motion) -> float:
    """The seconds to standardise by: of a short motion a quarter, so that most of it is learned."""
    return min(window, WINDOW_SHARE * motion.seconds)


def along(
    arm: Arm, motion: Motion, n_train: int, config: RigidBodyConfig
) -> tuple[Array, Array, Array]:
    """Predictions (n, n_axes) made before each sample was learned; parameters then and at last."""
    prior = arm.prior if config.prior == "urdf" else np.zeros_like(arm.prior)
    identifier = RigidBodyIdentifier(arm.scales.output, arm.scales.column, prior, config)
    before = np.empty_like(motion.y)
    trained = identifier.parameters
    for i, (entries, y) in enumerate(zip(motion.entries, motion.y, strict=True)):
        if i == n_train:
            trained = identifier.parameters.copy()
        Phi = arm.regressor(entries)
        before[i] = identifier.predict(Phi)
        identifier.update(Phi, y, int(motion.stamps[i]))
    return before, trained, identifier.parameters


def _blocks(stamps: Indices, start: int) -> Indices:
    """Where the delayed protocol learns: half a second after a block's first sample."""
    edges = [start]
    for i in range(start, len(stamps)):
        elapsed = (stamps[i] - stamps[edges[-1]]) * 1e-9 if edges[-1] < len(stamps) else 0.0
        if not 0.0 <= elapsed < BLOCK:
            edges.append(i + 1)
    if edges[-1] < len(stamps):
        edges.append(len(stamps))
    return np.array(edges, dtype=np.int64)
