"""Learning by itself: no robot, no ROS."""

from semiparam_dynamics.learning.features import RandomFourierFeatures
from semiparam_dynamics.learning.local_features import IncrementalNystromFeatures
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares

__all__ = ["IncrementalNystromFeatures", "RandomFourierFeatures", "RecursiveLeastSquares"]
