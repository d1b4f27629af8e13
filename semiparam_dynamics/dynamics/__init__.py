"""Inverse dynamics: from a URDF and measurements to predictions."""

from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.dynamics.robot import RobotConfig, RobotModel
from semiparam_dynamics.dynamics.sample import Prediction, Sample

__all__ = [
    "EstimatorConfig",
    "FilterConfig",
    "InverseDynamicsLearner",
    "Prediction",
    "RobotConfig",
    "RobotModel",
    "Sample",
    "SampleFilter",
    "SemiparametricEstimator",
    "Step",
]
