"""A split as the residual sees it: the rigid body identified, inputs standardised, blocks cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.standardizer import Standardizer
from semiparam_dynamics.evaluation.protocols import BLOCK
from semiparam_dynamics.tuning.batch_identification import identified
from semiparam_dynamics.tuning.motion import Arm, Motion, join
from semiparam_dynamics.tuning.splits import Split

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
