"""The estimator's parameters, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.dynamics.fourier_residual import RandomFourierConfig
from semiparam_dynamics.dynamics.nystrom_residual import NystromConfig
from semiparam_dynamics.dynamics.output_bound import OutputConfig
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig
from semiparam_dynamics.dynamics.robot import RobotConfig
from semiparam_dynamics.dynamics.trust import TrustConfig
from semiparam_dynamics.parameters import group, parameter, parameters, to_flat


@dataclass(frozen=True)
class EstimatorConfig:
    """The estimator's stages."""

    residual: str = parameter(
        "nystrom",
        "the nonparametric part: local Nyström features, safe off its data, or the thesis' "
        "random Fourier features",
        choices=("nystrom", "random_fourier"),
    )
    seed: int = parameter(0, "seed of the random features", low=0, high=2**31 - 1)
    comparison: bool = parameter(
        True,
        "also learn the nonparametric model alone, which no prediction needs, to compare with; "
        "without it a sample is learned in two thirds of the time",
        live=True,
    )
    error_horizon: float = parameter(
        20.0,
        "the standard deviations follow the errors of about the last seconds",
        unit="s",
        low=0.1,
        high=1e5,
        live=True,
    )
    rigid_body: RigidBodyConfig = group(RigidBodyConfig)
    nystrom: NystromConfig = group(NystromConfig)
    random_fourier: RandomFourierConfig = group(RandomFourierConfig)
    trust: TrustConfig = group(TrustConfig)
    output: OutputConfig = group(OutputConfig)


# What may be changed at any time; a saved model is loaded whatever these were.
LIVE = frozenset(entry.name for entry in parameters(EstimatorConfig) if entry.live)
# What a saved model's parameters are that its version did not have yet.
DEFAULTS = to_flat(EstimatorConfig()) | {
    f"robot.{name}": value for name, value in to_flat(RobotConfig()).items()
}
