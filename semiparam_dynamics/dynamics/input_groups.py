"""The residual's inputs by groups: positions, velocities, accelerations, rigid-body prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.parameters import parameter

GROUPS = ("position", "velocity", "acceleration", "rigid_body")
# Local features leave the accelerations out: they would spread the centres.
RESIDUAL = {"nystrom": ("position", "velocity", "rigid_body"), "random_fourier": GROUPS}
ALONE = ("position", "velocity", "acceleration")


def width_parameter(what: str) -> Any:
    """Parameter of a group's own kernel width."""
    return parameter(
        1.0, f"kernel width along {what}, in multiples of length_scale", low=1e-3, high=1e3
    )


def group_sizes(groups: Sequence[str], n_joints: int, n_axes: int) -> list[int]:
    """Inputs in each group."""
    return [n_axes if group == "rigid_body" else n_joints for group in groups]


def input_widths(config: object, groups: Sequence[str], n_joints: int, n_axes: int) -> Array:
    """The relative kernel width of each input (d,), by `config`'s parameters GROUP_width."""
    widths = [float(getattr(config, f"{group}_width", 1.0)) for group in groups]
    return np.repeat(widths, group_sizes(groups, n_joints, n_axes))
