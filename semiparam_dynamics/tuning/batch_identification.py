"""The rigid body's parameters after a motion, for several ridges, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.tuning.motion import Arm, Motion


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
