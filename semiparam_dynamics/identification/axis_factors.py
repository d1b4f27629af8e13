"""All that samples say of linear parameters, in one small triangle for each axis.

For an axis with regressor rows Phi and measurements y, the factor F of [Phi y] = Q F gives the
squared error of any parameters, |Phi pi - y|^2 = |F [pi; -1]|^2: samples are seen once, and what
follows costs the same for a minute as for a day.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.errors import LearningError

_CHUNK = 512


class AxisFactors:
    """The factors of `n_axes` axes, fed by `add`.

    Attributes
    ----------
    n_samples: how many measured samples were added.

    """

    def __init__(self, n_axes: int, n_parameters: int) -> None:
        self._factors: Array = np.zeros((n_axes, n_parameters + 1, n_parameters + 1))
        self._sum = np.zeros(n_axes)
        self._rows: list[Array] = []
        self.n_samples = 0

    def add(self, sample: Sample) -> None:
        """Take a sample's regressor and measurement; one without a measurement is passed over."""
        if sample.y is None:
            return
        self._rows.append(np.column_stack((sample.regressor, sample.y)))
        self._sum += sample.y
        self.n_samples += 1
        if len(self._rows) == _CHUNK:
            self._reduce()

    def _reduce(self) -> None:
        if self._rows:
            new = np.stack(self._rows, axis=1)  # (n_axes, rows, n_parameters + 1)
            stacked = np.concatenate((self._factors, new), axis=1)
            self._factors = np.asarray(np.linalg.qr(stacked, mode="r"))
            self._rows.clear()

    @property
    def factors(self) -> Array:
        """(n_axes, n_parameters + 1, n_parameters + 1) upper-triangular, [Phi y] = Q F."""
        self._reduce()
        return self._factors

    def squared_error(self, parameters: Array) -> Array:
        """(n_axes,) mean of (y - Phi pi)^2 over the samples, for parameters (n_parameters,)."""
        left = self.factors @ np.append(parameters, -1.0)
        mean: Array = np.sum(left**2, axis=1) / self._count()
        return mean

    def root_mean_square(self) -> Array:
        """(n_axes,) of the measurements."""
        return np.sqrt(self.squared_error(np.zeros(self.factors.shape[2] - 1)))

    def nmse(self, parameters: Array) -> Array:
        """(n_axes,) squared error over the measurements' variance; nan where they don't vary."""
        variance = self.root_mean_square() ** 2 - (self._sum / self._count()) ** 2
        still = variance <= 1e-12 * self.root_mean_square() ** 2
        return np.where(
            still, np.nan, self.squared_error(parameters) / np.where(still, 1.0, variance)
        )

    def weighted(self, weights: Array) -> tuple[Array, Array, float]:
        """R, U and what no parameters explain: sum of w^2 |Phi pi - y|^2 = |R pi - U|^2 + rest.

        weights: (n_axes,) a factor of each axis' errors. R: (n_parameters, n_parameters) upper
        triangular; U: (n_parameters,).
        """
        stack = (self.factors * weights[:, None, None]).reshape(-1, self.factors.shape[2])
        F: Array = np.asarray(np.linalg.qr(stack, mode="r"))
        return F[:-1, :-1], F[:-1, -1], float(F[-1, -1] ** 2)

    def _count(self) -> int:
        if self.n_samples == 0:
            raise LearningError("there is no measured sample")
        return self.n_samples
