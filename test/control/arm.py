"""A small arm with hard gains and effects, quick to simulate; for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import ControlConfig
from semiparam_dynamics.control.plan import Approach, Plan, trajectory_of
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.arm import ArmSimulator

DATA = Path(__file__).resolve().parents[1] / "data"
SEVEN = str(DATA / "seven_joint_arm.urdf")
JOINTS = tuple(f"joint{i}" for i in range(1, 5))  # the others locked: heavy enough to be quick
ROTORS = 0.1
EFFECTS = {
    "effects.friction_coulomb": 1.0,
    "effects.friction_stribeck": 0.5,
    "effects.friction_viscous": 1.0,
    "effects.rotor_inertia": ROTORS,
    "effects.compliance": 1e-4,
    "effects.hardening_torque": 30.0,
    "effects.hysteresis": 3e-4,
    "effects.noise_effort": 0.1,
    "effects.noise_position": 2e-5,
    "effects.noise_velocity": 1e-3,
}
SIMULATOR = {"joints": JOINTS, "rate": 500.0, "motion": "exciting", **EFFECTS}
LEARNER = {
    "learner.filter.max_rate": 50.0,
    "learner.nystrom.max_centers": 50,
    "learner.nystrom.wide_max_centers": 10,
}


def controller(model: RobotModel, **values: Any) -> ComputedTorque:
    """Of an arm; `values` with ``__`` for the dot."""
    changes = {name.replace("__", "."): value for name, value in values.items()}
    return ComputedTorque(model, from_flat(ControlConfig, changes))


def plan_of(arm: ArmSimulator, model: RobotModel) -> Plan:
    """The simulator's own motion, from where the arm stands."""
    config = arm.config
    motion = trajectory_of(arm.urdf, arm.joint_names, config.motion, config.seed)
    approach = Approach(arm.advance().q_motor, motion, 1.0)
    return Plan(model, approach, arm.period, 10, arm.period, 10 * arm.period)
