"""Inverse dynamics: from a URDF and measurements to predictions."""

from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.robot.model import RobotConfig, RobotModel

__all__ = [
    "EstimatorConfig",
    "FilterConfig",
    "Prediction",
    "RobotConfig",
    "RobotModel",
    "Sample",
    "SampleFilter",
    "SemiparametricEstimator",
]
