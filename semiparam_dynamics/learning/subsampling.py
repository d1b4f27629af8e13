"""How many centres, and which penalty, before seeing any validation error."""

from __future__ import annotations

import math

from semiparam_dynamics.errors import ConfigurationError


def subsampling_size(
    n: int, smoothness: float = 0.5, approximation: float = 0.5
) -> tuple[float, int]:
    """(penalty, n_centers) for n rows, that keep the learning rate of the method on all rows.

    For targets f = C^s g with the kernel's covariance operator C and `smoothness` s, and centres
    whose span has ||C^(1/2) (I - P_m)|| = O(m^-beta) with beta = `approximation`:
    penalty = n^(-1 / (2 (s + 1))) and m = n^(1 / (2 beta (2 s + 1))) (Kriukova, Pereverzyev,
    Tkachenko 2017, theorem 2), at most n. Values of 1/2 for both are safe, and give n^(-1/3) and
    sqrt(n). The kernel's values are taken to be of order one.

    Raises ConfigurationError for arguments that aren't positive.
    """
    if n < 1 or not (
        smoothness > 0.0 < approximation and math.isfinite(smoothness + approximation)
    ):
        raise ConfigurationError("n, smoothness and approximation must be positive.")
    penalty = float(n) ** (-1.0 / (2.0 * (smoothness + 1.0)))
    exponent = 1.0 / (2.0 * approximation * (2.0 * smoothness + 1.0))
    # Without the margin, rounding would make 2 out of 4^(1/2) + 1e-16.
    n_centers = math.ceil(float(n) ** min(exponent, 1.0) * (1.0 - 1e-12))
    return penalty, min(max(n_centers, 1), n)
