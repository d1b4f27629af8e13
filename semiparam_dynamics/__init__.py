"""Semiparametric learning of robot dynamics, sample by sample, over ROS 2.

The names below are imported when they are first used, so that a program loads only its own part.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semiparam_dynamics.base.errors import (
        BagError,
        ConfigurationError,
        LearningError,
        RobotModelError,
        SampleError,
        SemiparamError,
        StorageError,
    )
    from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
    from semiparam_dynamics.dynamics.filtering import FilterConfig
    from semiparam_dynamics.dynamics.sample import Prediction, Sample
    from semiparam_dynamics.learner.config import InverseDynamicsConfig
    from semiparam_dynamics.learner.learner import InverseDynamicsLearner
    from semiparam_dynamics.offline.evaluation.bags import evaluate_bags
    from semiparam_dynamics.robot.model import RobotConfig, RobotModel
    from semiparam_dynamics.samples.bag import read_measurements
    from semiparam_dynamics.samples.measurement import Measurement

__version__ = "0.1.0"

_MODULES = {
    "base.errors": (
        "BagError",
        "ConfigurationError",
        "LearningError",
        "RobotModelError",
        "SampleError",
        "SemiparamError",
        "StorageError",
    ),
    "dynamics.estimator": ("EstimatorConfig", "SemiparametricEstimator"),
    "dynamics.filtering": ("FilterConfig",),
    "dynamics.sample": ("Prediction", "Sample"),
    "learner.config": ("InverseDynamicsConfig",),
    "learner.learner": ("InverseDynamicsLearner",),
    "offline.evaluation.bags": ("evaluate_bags",),
    "robot.model": ("RobotConfig", "RobotModel"),
    "samples.bag": ("read_measurements",),
    "samples.measurement": ("Measurement",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "BagError",
    "ConfigurationError",
    "EstimatorConfig",
    "FilterConfig",
    "InverseDynamicsConfig",
    "InverseDynamicsLearner",
    "LearningError",
    "Measurement",
    "Prediction",
    "RobotConfig",
    "RobotModel",
    "RobotModelError",
    "Sample",
    "SampleError",
    "SemiparamError",
    "SemiparametricEstimator",
    "StorageError",
    "evaluate_bags",
    "read_measurements",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
