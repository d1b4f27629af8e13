"""A simulated arm in MuJoCo, with what real arms do beyond rigid-body dynamics.

Needs the extra `sim` (mujoco, icub-models) once an :class:`ArmSimulator` is made, not for import.
"""

from semiparam_dynamics.simulation.arm import ArmSimulator, Reading
from semiparam_dynamics.simulation.config import NO_EFFECTS, EffectsConfig, SimulatorConfig

__all__ = ["NO_EFFECTS", "ArmSimulator", "EffectsConfig", "Reading", "SimulatorConfig"]
