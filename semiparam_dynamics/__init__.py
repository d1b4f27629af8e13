"""Semiparametric learning of robot dynamics, sample by sample, over ROS 2."""

__version__ = "0.1.0"
