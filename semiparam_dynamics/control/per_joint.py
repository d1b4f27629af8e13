"""Parameters that are one number for all joints, or one for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError


def per_joint(name: str, values: Sequence[float], n_joints: int) -> Array:
    """(n_joints,) of the parameter `name`; ConfigurationError where `values` has another length."""
    if len(values) not in (1, n_joints):
        raise ConfigurationError(
            f"parameter '{name}' needs one number, or one for each of the {n_joints} joints, not "
            f"{len(values)}"
        )
    return np.broadcast_to(np.asarray(values, dtype=float), n_joints).copy()
