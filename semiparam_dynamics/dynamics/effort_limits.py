"""The effort limits in a URDF, where it has usable ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.urdf_tree import UrdfTree
from semiparam_dynamics.errors import RobotModelError


def effort_limits(tree: UrdfTree, joints: Sequence[str]) -> Array:
    """(n_joints,) N m (N of prismatic joints) of ``<limit effort="..."/>``.

    Infinite where there is none, or 0, which generators of URDFs write where they know nothing.
    Raises RobotModelError where one is no number.
    """
    limits = np.full(len(joints), np.inf)
    for k, name in enumerate(joints):
        element = tree.joints[name].element.find("limit")
        text = "" if element is None else element.get("effort", "")
        try:
            value = float(text or "0")
        except ValueError:
            raise RobotModelError(
                f"joint '{name}' of the URDF has an effort limit that is no number: '{text}'"
            ) from None
        if value > 0.0:
            limits[k] = value
    return limits
