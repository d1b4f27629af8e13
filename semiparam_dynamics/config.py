"""The learner's whole configuration: every stage's group together."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.parameters import group, parameter
from semiparam_dynamics.robot.model import RobotConfig
from semiparam_dynamics.samples.stream_config import StreamConfig


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """The parameters of learning inverse dynamics, live and offline alike."""

    robot: RobotConfig = group(RobotConfig, inline=True)
    estimator: EstimatorConfig = group(EstimatorConfig, inline=True)
    comparison: bool = parameter(
        False,
        "also learn a nonparametric model, which no prediction needs, and score it beside the "
        "others; learning a sample then takes half as long again (an evaluation always does)",
        live=True,
    )
    filter: FilterConfig = group(FilterConfig)
    samples: StreamConfig = group(StreamConfig)
    changes: ChangesConfig = group(ChangesConfig)
