"""The demo's parameters."""

from __future__ import annotations

from semiparam_dynamics.nodes.config import ArmSimulatorNodeConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.simulation.urdf import ICUB_JOINTS, ICUB_SENSOR

LISTENERS = 2  # of the simulator's topics: the learner and the recorder


def learner_config(residual: str = "random_fourier", seed: int = 0) -> InverseDynamicsNodeConfig:
    """The learner's parameters for the simulated iCub arm, with the thesis' residual."""
    return replace(
        InverseDynamicsNodeConfig(),
        target="wrench",
        joints=ICUB_JOINTS,
        sensor_frame=ICUB_SENSOR,
        residual=residual,
        seed=seed,
        # There is time enough, and the bag then gives exactly the numbers seen live.
        defer_learning=False,
    )


def simulator_config(rate: float = 100.0, seed: int = 0) -> ArmSimulatorNodeConfig:
    """The simulator's parameters; it starts to move when it is seen by all."""
    return replace(ArmSimulatorNodeConfig(), rate=rate, seed=seed, wait_for_subscribers=LISTENERS)
