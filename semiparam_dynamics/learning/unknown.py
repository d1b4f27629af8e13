"""Telling inputs of no class that was taught, from held-out examples alone.

How familiar an input is follows from the classes' scores. What an input of an unknown class looks
like can't be known; but each held-out example is one if its own class is left out, where a class
is as unlike the others as a new one will be. The familiarity of held-out examples with and without
their class gives a limit for a share of false accepts, and a probability.

For a discriminant familiarity is the relative Mahalanobis distance (J. Ren et al.: A simple fix to
Mahalanobis distance for improving near-OOD detection, 2021, section 3), x'A^-1 x less the squared
distance from the nearest mean, both in units of the covariance within classes: of two inputs as far
from all means, the one in a direction in which classes differ is the less familiar. Without
class c the first term is that of A less the class' mean (Sherman and Morrison), larger by s_c^2 /
E_cc in the notation of :mod:`semiparam_dynamics.learning.discriminant`. For least squares it is
the largest score.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from semiparam_dynamics.base.arrays import Array

STEPS = 30  # of Newton's method at most


class Acceptance:
    """Which familiarity tells known from unknown.

    Parameters
    ----------
    familiar, strange : (k,) familiarity of held-out examples with their own class, and without.
    """

    def __init__(self, familiar: Array, strange: Array) -> None:
        self._strange = np.sort(strange)
        self._centre = float(np.median(np.concatenate((familiar, strange))))
        spread = float(np.std(familiar) + np.std(strange)) / 2.0
        self._unit = spread or 1.0
        self._slope, self._offset = _platt(self._scaled(familiar), self._scaled(strange))

    def limit(self, false_accepts: float) -> float:
        """The familiarity that at most this share, below 1, of unknown examples exceeds.

        The value of one of them: of the largest, where the share is less than one of them is.
        """
        k = int(np.ceil(len(self._strange) * (1.0 - false_accepts) - 1e-9))
        return float(self._strange[k - 1])

    def probability(self, familiarity: Array) -> Array:
        """That inputs (n,) are of a class taught, if every second input is.

        J. Platt: Probabilistic outputs for support vector machines, 1999.
        """
        found: Array = expit(self._slope * self._scaled(familiarity) + self._offset)
        return found

    def _scaled(self, values: Array) -> Array:
        scaled: Array = (np.asarray(values) - self._centre) / self._unit
        return scaled


def _platt(familiar: Array, strange: Array) -> tuple[float, float]:
    """Slope and offset of the logistic function that fits best, Platt's targets keeping it finite.

    The slope is at least zero: more familiar is never less known.
    """
    values = np.concatenate((familiar, strange))
    k = len(familiar)
    high = (k + 1.0) / (k + 2.0)
    targets = np.where(np.arange(len(values)) < k, high, 1.0 - high)
    design = np.column_stack((values, np.ones(len(values))))
    found = np.zeros(2)
    for _ in range(STEPS):
        p = expit(design @ found)
        gradient = design.T @ (targets - p) - np.array([1e-6 * found[0], 0.0])
        hessian = (design * (p * (1.0 - p))[:, None]).T @ design + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        found += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    return (float(found[0]), float(found[1])) if found[0] > 0.0 else (0.0, 0.0)
