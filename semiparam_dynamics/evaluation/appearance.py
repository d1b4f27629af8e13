"""Names, colours and units, the same in every plot and table of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from semiparam_dynamics.dynamics.robot import RobotModel

INK = "#1f2328"
FAINT = "#6e7781"


@dataclass(frozen=True)
class ModelLook:
    """How one model is called and drawn."""

    name: str
    color: str
    width: float  # points
    dashes: tuple[float, ...] = ()  # points on and off; none: solid. Colour alone fails in print.


# Green, red and blue are those of the thesis' figure 8.4.
LOOKS = {
    "urdf": ModelLook("URDF", "#9a6700", 1.0, (1.5, 1.5)),
    "rigid_body": ModelLook("Rigid body", "#2a8f3c", 1.3),
    "nonparametric": ModelLook("Nonparametric", "#d1342b", 1.1, (5.0, 1.5)),
    "semiparametric": ModelLook("Semiparametric", "#1f5fc4", 1.6),
    "persistence": ModelLook("Persistence", "#8c959f", 0.9, (2.5, 1.5)),
}
MEASURED = ModelLook("Measured", INK, 0.8)

PROTOCOL_TITLES = {
    "sequential": "Sequential",
    "delayed": "Delayed",
    "frozen": "Frozen",
    "sequential_rest": "Sequential, on the frozen part only",
    "delayed_rest": "Delayed, on the frozen part only",
    "frozen_repeated": "Frozen, states learned before",
    "frozen_new": "Frozen, new states",
}
PROTOCOL_MEANINGS = {
    "sequential": "each sample is predicted, scored, then learned",
    "delayed": "blocks of 0.5 s are predicted before the nonparametric parts learn any of them",
    "frozen": "nothing is learned while it is scored",
    "sequential_rest": "the samples that frozen was scored on, so that the two compare",
    "delayed_rest": "the samples that frozen was scored on, so that the two compare",
    "frozen_repeated": "of these samples those as near to a learned one as motion goes in 50 ms",
    "frozen_new": "the other frozen samples",
}


@dataclass(frozen=True)
class AxisGroup:
    """Outputs of one unit, whose errors may be averaged."""

    name: str
    unit: str
    axes: tuple[int, ...]


def axis_groups(model: RobotModel) -> list[AxisGroup]:
    """Force and torque of a wrench; or all joints' efforts."""
    if model.config.target == "wrench":
        return [AxisGroup("Force", "N", (0, 1, 2)), AxisGroup("Torque", "N m", (3, 4, 5))]
    return [AxisGroup("Joint effort", "N m", tuple(range(model.n_axes)))]


def axis_units(model: RobotModel) -> list[str]:
    """The unit of each output."""
    units = {axis: group.unit for group in axis_groups(model) for axis in group.axes}
    return [units[axis] for axis in range(model.n_axes)]


def shorten(name: str, length: int) -> str:
    """`name`, its middle cut out where it is longer than `length`."""
    if len(name) <= length:
        return name
    head = (length - 1) // 2
    return f"{name[:head]}…{name[len(name) - (length - 1 - head) :]}"


def listing(names: Sequence[str], most: int = 8) -> str:
    """The names as words: a, b and c."""
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most else [*names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def number(value: float, digits: int = 3) -> str:
    """A decimal number to as many significant digits; a dash where there is none."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    if value == 0.0:
        return "0"
    text = f"{value:#.{digits}g}".rstrip(".")
    if "e+" in text and abs(value) < 1e6:
        text = f"{value:.0f}"
    return text.replace("-", "−")
