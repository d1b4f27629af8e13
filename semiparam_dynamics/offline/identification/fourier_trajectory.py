"""Periodic joint motions as finite Fourier series, with analytic derivatives.

J. Swevers, C. Ganseman, D. Tukel, J. De Schutter, H. Van Brussel, "Optimal robot excitation and
identification", IEEE Transactions on Robotics and Automation 13(5), 1997, section III: one base
frequency for all joints, so that a period can be repeated and averaged, and no content above the
highest harmonic, so that filters leave the motion whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag, null_space

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError

Motion = tuple[Array, Array, Array]


@dataclass(frozen=True)
class FourierTrajectory:
    """q_i(t) = offset_i + sum_k sine_ki sin(k w t) + cosine_ki cos(k w t), w = 2 pi / period.

    coefficients: (2 N + 1, n_joints) offset, sines of k = 1 .. N, cosines of k = 1 .. N; rad or m.
    period: s.

    Raises ConfigurationError where the coefficients' number is even or the period not positive.
    """

    coefficients: Array
    period: float

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.coefficients.ndim != 2 or self.coefficients.shape[0] % 2 == 0:
            raise ConfigurationError(
                "a Fourier series has an odd number of coefficients for each joint: an offset, N"
                f" sines and N cosines; these are {self.coefficients.shape}"
            )
        if not self.period > 0.0:
            raise ConfigurationError(f"a period must be positive, not {self.period}")

    @property
    def harmonics(self) -> int:
        """N, the number of multiples of the base frequency."""
        return int(self.coefficients.shape[0] // 2)

    def __call__(self, t: npt.ArrayLike) -> Motion:
        """q, dq, ddq at times t (s), each (len(t), n_joints) in rad, rad/s, rad/s^2."""
        bases = series_basis(t, self.harmonics, self.period)
        q, dq, ddq = (basis @ self.coefficients for basis in bases)
        return q, dq, ddq


def series_basis(t: npt.ArrayLike, harmonics: int, period: float) -> Motion:
    """The series' terms and their first two derivatives by time, each (len(t), 2 N + 1)."""
    t = np.asarray(t, dtype=np.float64)
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    # Reduced to one period first: after hours of repeats the angle would lose digits.
    angle = np.remainder(t, period)[:, None] * w
    sine, cosine = np.sin(angle), np.cos(angle)
    one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
    return (
        np.hstack([one, sine, cosine]),
        np.hstack([zero, w * cosine, -w * sine]),
        np.hstack([zero, -(w**2) * sine, -(w**2) * cosine]),
    )


def resting_directions(harmonics: int) -> Array:
    """(2 N + 1, 2 N - 1) a basis of the coefficients with which a period starts and ends at rest.

    dq(0) = w sum_k k sine_k = 0 and ddq(0) = -w^2 sum_k k^2 cosine_k = 0. The first column is the
    offset; all columns are orthonormal. Raises ConfigurationError for fewer than two harmonics,
    of which no motion from rest can be made.
    """
    if harmonics < 2:
        raise ConfigurationError("a motion that starts at rest needs at least 2 harmonics")
    k = np.arange(1.0, harmonics + 1.0)
    directions: Array = block_diag([[1.0]], null_space(k[None]), null_space((k**2)[None]))
    return directions
