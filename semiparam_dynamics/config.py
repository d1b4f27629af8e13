"""The learner's whole configuration: every stage's group together."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.dynamics.filtering import FilterConfig
from semiparam_dynamics.parameters import group
from semiparam_dynamics.robot.model import RobotConfig
from semiparam_dynamics.samples.measurement import StreamConfig


@dataclass(frozen=True)
class InverseDynamicsConfig:
    """What the learner of inverse dynamics is told, live and offline alike."""

    robot: RobotConfig = group(RobotConfig, inline=True)
    estimator: EstimatorConfig = group(EstimatorConfig, inline=True)
    filter: FilterConfig = group(FilterConfig)
    samples: StreamConfig = group(StreamConfig)
    changes: ChangesConfig = group(ChangesConfig)
