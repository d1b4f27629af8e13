"""The nodes' own parameters, around those of the core that they run."""

from __future__ import annotations

import dataclasses

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.parameters import group, parameter
from semiparam_dynamics.simulation.config import SimulatorConfig


@dataclasses.dataclass(frozen=True)
class InverseDynamicsNodeConfig:
    """Parameters of the `inverse_dynamics` node."""

    autostart: bool = parameter(
        True, "configure and activate at the start, without a lifecycle manager"
    )
    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description"
    )
    model_file: str = parameter("", "file that ~/save writes and ~/load reads")
    autoload: bool = parameter(False, "load model_file, if there is one, when configured")
    autosave: bool = parameter(False, "save to model_file when deactivated and at the end")
    learning_queue: int = parameter(
        100, "samples that may wait to be learned while predictions go first", low=1, high=100000
    )
    defer_learning: bool = parameter(
        True,
        "predictions go first: learn only while no message waits; false: learn each sample before "
        "the next message, so that a bag gives the same numbers under any load",
    )
    learner: InverseDynamicsConfig = group(InverseDynamicsConfig, inline=True)


@dataclasses.dataclass(frozen=True)
class ArmSimulatorNodeConfig:
    """Parameters of the `arm_simulator` node."""

    urdf: str = parameter("", "file of the robot's URDF; empty: the iCub's right arm")
    real_time_factor: float = parameter(
        1.0, "simulated seconds in a second, as far as the machine keeps up", low=0.01, high=100.0
    )
    wait_for_subscribers: int = parameter(
        0, "the motion starts when this many subscribe to the readings", low=0, high=100
    )
    simulator: SimulatorConfig = group(SimulatorConfig, inline=True)
