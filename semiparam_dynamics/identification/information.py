"""How well a motion tells the base parameters apart: a number of its regressor, and its gradient.

Swevers et al. 1997 (see fourier_trajectory.py) minimise -log det of the information matrix; the
condition number as a criterion is that of M. Gautier and W. Khalil, "Exciting trajectories for the
identification of base inertial parameters of robots", International Journal of Robotics Research
11(4), 1992.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.scales import expected_scales

OBJECTIVES = ("condition", "determinant")
# Of the Schatten norms that stand for the extreme singular values: smooth where those change
# places, and larger than the condition number by few per cent once the others are far away.
_NORM = 4.0
_SMALLEST = 1e-14  # of an eigenvalue relative to the largest: what rounding leaves of zero


@dataclass(frozen=True)
class Scaling:
    """Units in which outputs and parameters weigh alike, as the learner has them.

    weights: (n_axes, n_parameters) factors of a regressor's entries: one over the output's
        expected size and over the column's (dynamics/scales.py).
    """

    weights: Array

    @classmethod
    def of(cls, model: RobotModel) -> Scaling:
        """The expected scales of `model`."""
        scales = expected_scales(model)
        return cls(1.0 / (scales.output[:, None] * scales.column))


def information(regressors: Array, scaling: Scaling) -> Array:
    """(n_parameters, n_parameters) mean over n states of scaled Phi' Phi; (n, n_axes, P) given."""
    rows = (regressors * scaling.weights).reshape(-1, regressors.shape[2])
    matrix: Array = rows.T @ rows / len(regressors)
    return matrix


def condition_number(regressors: Array, scaling: Scaling) -> float:
    """The ratio of the extreme singular values of the stacked, scaled regressor."""
    rows = (regressors * scaling.weights).reshape(-1, regressors.shape[2])
    return float(np.linalg.cond(rows))


def criterion(regressors: Array, scaling: Scaling, objective: str) -> tuple[float, Array]:
    """What is minimised, and its gradient by the regressors (n, n_axes, n_parameters).

    condition: log of ||A||_8 ||A^+||_8, Schatten norms of the scaled regressor A, a smooth upper
    bound of the log of its condition number (up to a constant that vanishes with the norm's order).
    determinant: -1/2 log det of A' A, divided by the number of parameters.
    """
    eigenvalues, vectors = np.linalg.eigh(information(regressors, scaling))
    w = np.maximum(eigenvalues, _SMALLEST * eigenvalues[-1])
    if objective == "determinant":
        value = -0.5 * float(np.mean(np.log(w)))
        slope = -1.0 / (w * len(w))
    else:
        large, small = w / w[-1], w[0] / w
        sums = np.sum(large**_NORM), np.sum(small**_NORM)
        value = 0.5 * float(np.log(w[-1] / w[0]) + np.log(sums[0] * sums[1]) / _NORM)
        slope = (large**_NORM / sums[0] - small**_NORM / sums[1]) / w
    inner = (vectors * slope) @ vectors.T
    gradient: Array = (regressors * scaling.weights) @ inner * (scaling.weights / len(regressors))
    return value, gradient
