"""A normal estimate of what changed, refined block after block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.evidence import Sums


@dataclass(frozen=True, slots=True)
class Estimate:
    """theta ~ N(mean, covariance) in coordinates of `scale` (d,), as information."""

    information: Array  # (d, d) of theta / scale
    moment: Array  # (d,)
    scale: Array  # (d,)

    @classmethod
    def prior(cls, scale: Array, mean: Array | None = None) -> Estimate:
        """Independent, of standard deviations `scale` (d,) about `mean`."""
        d = len(scale)
        return cls(np.eye(d), np.zeros(d) if mean is None else mean / scale, scale)

    @classmethod
    def of(cls, mean: Array, covariance: Array, scale: Array) -> Estimate:
        """Of a known mean (d,) and covariance (d, d)."""
        scaled = covariance / np.outer(scale, scale)
        information = np.linalg.inv(scaled + 1e-12 * np.eye(len(scale)))
        information = 0.5 * (information + information.T)
        return cls(information, information @ (mean / scale), scale)

    def __add__(self, sums: Sums) -> Estimate:
        """With what more rows of these d columns say; `sums` are of them, not scaled."""
        scale = self.scale
        information = self.information + scale[:, None] * sums.information * scale
        return Estimate(information, self.moment + scale * sums.moment, scale)

    @property
    def mean(self) -> Array:
        """(d,), SI units."""
        mean: Array = self.scale * np.linalg.solve(self.information, self.moment)
        return mean

    @property
    def covariance(self) -> Array:
        """(d, d), SI units."""
        inverse = np.linalg.inv(self.information)
        covariance: Array = 0.5 * (inverse + inverse.T) * np.outer(self.scale, self.scale)
        return covariance

    @property
    def root(self) -> Array:
        """(d, d) of the covariance: root root'."""
        lower = np.linalg.cholesky(self.information)
        root: Array = self.scale[:, None] * np.asarray(np.linalg.inv(lower)).T
        return root
