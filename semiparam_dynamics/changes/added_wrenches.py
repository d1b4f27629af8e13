"""How wide ellipsoids of external wrenches must be, by wrenches that are added to errors."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array

LIMIT = 12.591587243743977  # below which a chi-square variable of six degrees is with 95 %
# Of touched samples that may be missed: those that nothing touches nearly never are, so that of all
# it is 5 % where as many are touched as not.
MISSED = 0.1
RATE = 1.0  # 1/s, by which the logarithm of the factor follows what was missed
EVERY_S = 0.05  # between wrenches added: errors nearer to one another in time are the same
LONGEST_S = 0.1  # that one counts for
OVER_S = 0.25  # after a contact in which a low-pass may still bear it
WIDEST = math.log(5.0)  # of the factor's logarithm


def _drawn(count: int) -> Array:
    """(count, 6) of force and moment over what a large one is, each of 3 to 30 % of it.

    That is what wrenches are like whose size matters: none that is larger is hidden by errors.
    """
    rng = np.random.default_rng(0)
    shares = np.exp(rng.uniform(math.log(0.03), math.log(0.3), (count, 2)))
    drawn: Array = np.repeat(shares, 3, axis=1) * rng.standard_normal((count, 6))
    return drawn


ADDED = _drawn(512)


class AddedWrenches:
    """A factor on an ellipsoid's axes, by which it covers wrenches that were added.

    Where nothing touches the robot the errors are known, with their tails, their correlation over
    the joints and in time, whatever was predicted of them. A wrench that is added to them through
    the Jacobian is found as any other, and its ellipsoid covers it or does not: adaptive conformal
    inference (Gibbs and Candes 2021, Adaptive conformal inference under distribution shift,
    equation 2) on the logarithm of the factor. Only what was measured before is used.

    Attributes
    ----------
    factor : on standard deviations, from 1/5 to 5.
    """

    def __init__(self) -> None:
        self._logarithm = 0.0
        self._last = 0  # ns, stamp of the last one that was counted
        self._touched = 0  # ns, stamp of the last sample that may have been touched
        self._count = 0

    @property
    def factor(self) -> float:
        """On the standard deviations."""
        return math.exp(self._logarithm)

    def is_due(self, stamp: int, untouched: bool) -> bool:
        """Whether one is to be added at a stamp (ns); also where the clock went back."""
        if not untouched:
            self._touched = stamp
        if 0 <= stamp - self._touched < OVER_S * 1e9:
            return False
        return not 0 <= stamp - self._last < EVERY_S * 1e9

    def next(self) -> Array:
        """(6,) the next one, over what a large force or moment is."""
        self._count += 1
        wrench: Array = ADDED[self._count % len(ADDED)]
        return wrench

    def count(self, stamp: int, length: float) -> None:
        """Count one by the squared length of its error in the covariance that was told."""
        since = (stamp - self._last) * 1e-9
        step = EVERY_S if self._last == 0 else min(max(since, 0.0), LONGEST_S)
        self._last = stamp
        missed = float(length > LIMIT * self.factor**2)
        logarithm = self._logarithm + RATE * step * (missed - MISSED)
        self._logarithm = min(max(logarithm, -WIDEST), WIDEST)
