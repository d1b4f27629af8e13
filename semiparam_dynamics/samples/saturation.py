"""Readings at a sensor's or a motor's limit, which say only that the true value is not below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError


def saturation_limits(
    given: Sequence[float], share: float, effort_limits: Array | None, n_axes: int
) -> list[float]:
    """The magnitude at and beyond which each axis' reading is saturated; empty: none ever is.

    Parameters
    ----------
    given: limits in the axes' units, N m or N: one for all, or one each; empty: none.
    share: of the URDF's `effort_limits` (n_joints,) that counts as well; 0: they don't.
    n_axes: how many axes a reading has.

    Raises ConfigurationError where `given` has another length.
    """
    limits = per_axis(given, n_axes, "samples.saturation")
    if share > 0.0 and effort_limits is not None:
        limits = np.minimum(limits, share * effort_limits)
    return [float(limit) for limit in limits] if np.isfinite(limits).any() else []


def per_axis(given: Sequence[float], n_axes: int, name: str) -> Array:
    """(n_axes,) one number for all axes or one for each; infinite where none is given.

    `name` is the parameter's, for the ConfigurationError on another length.
    """
    if not given:
        return np.full(n_axes, np.inf)
    if len(given) not in (1, n_axes):
        raise ConfigurationError(
            f"parameter '{name}' needs one number, or one for each of the {n_axes} axes, "
            f"not {len(given)}"
        )
    limits: Array = np.broadcast_to(np.asarray(given, dtype=np.float64), (n_axes,)).copy()
    return limits


def saturated_axis(reading: list[float], limits: list[float]) -> int:
    """Index of the first entry of `reading` (n_axes,) at or beyond its limit; -1: none."""
    for k, (value, limit) in enumerate(zip(reading, limits, strict=False)):
        if abs(value) >= limit:
            return k
    return -1
