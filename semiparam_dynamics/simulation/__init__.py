"""A simulated arm in MuJoCo, with what real arms do beyond rigid-body dynamics.

Needs the extra `sim` (mujoco, icub-models) once an :class:`ArmSimulator` is made, not for import.
Names are imported when they are first used: nodes that don't simulate know its configuration too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semiparam_dynamics.lazy_names import lazy_names

if TYPE_CHECKING:
    from semiparam_dynamics.simulation.arm import ArmSimulator, Reading
    from semiparam_dynamics.simulation.config import NO_EFFECTS, EffectsConfig, SimulatorConfig

_HOMES = {
    "NO_EFFECTS": "config",
    "ArmSimulator": "arm",
    "EffectsConfig": "config",
    "Reading": "arm",
    "SimulatorConfig": "config",
}
__all__ = ["NO_EFFECTS", "ArmSimulator", "EffectsConfig", "Reading", "SimulatorConfig"]
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
