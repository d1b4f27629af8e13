"""Spectral filters: functions g of the eigenvalues of K/n that stand for their inverse.

With K/n = Q Sigma Q', every filter gives the coefficients alpha = (1/n) Q g(Sigma) Q' Y (thesis
chapter 3). What a filter leaves out, or stops short of, is its regularisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.checks import positive_penalty

# The parameter that each filter's path runs over; ordinary least squares has none.
PARAMETERS: dict[str, str | None] = {
    "tikhonov": "penalty",
    "cutoff": "penalty",
    "landweber": "max_iter",
    "nu": "max_iter",
    "ols": None,
}


def parameter_of(name: str) -> str | None:
    """What regularises the filter `name`; ConfigurationError if there is no such filter."""
    if name not in PARAMETERS:
        raise ConfigurationError(f"filter must be one of {', '.join(PARAMETERS)}, not {name!r}.")
    return PARAMETERS[name]


def filter_values(
    name: str, eigenvalues: Array, values: Sequence[Any], nu: float = 1.0
) -> list[Array]:
    """g(sigma), (n,), of the eigenvalues (n,) of K/n, for each value of the filter's parameter.

    `nu` is the order of the nu-method. Raises ConfigurationError for a value out of range.
    """
    if name in ("landweber", "nu"):
        counts = [iterations(value) for value in values]
        return (
            landweber(eigenvalues, counts)
            if name == "landweber"
            else nu_method(eigenvalues, counts, nu)
        )
    if name == "tikhonov":
        return [1.0 / (eigenvalues + positive_penalty(value)) for value in values]
    if name == "cutoff":
        return [_inverse(eigenvalues, eigenvalues >= positive_penalty(v)) for v in values]
    return [_inverse(eigenvalues, eigenvalues > 0.0) for _ in values]


def landweber(eigenvalues: Array, counts: Sequence[int]) -> list[Array]:
    """g_t = sum_{i<t} gamma (1 - gamma sigma)^i, gamma = 1 / max sigma, for each t of `counts`.

    That is gradient descent from zero, stopped after t steps, in its closed form
    (1 - (1 - gamma sigma)^t) / sigma.
    """
    step, scaled = _scaled(eigenvalues)
    positive = scaled > 0.0
    with np.errstate(divide="ignore"):  # log 0 = -inf: the first step removes that error
        logarithm = np.log1p(-scaled[positive])
    result = []
    for t in counts:
        g = np.full(len(eigenvalues), step * t)
        g[positive] = -np.expm1(t * logarithm) * step / scaled[positive]
        result.append(g)
    return result


def nu_method(eigenvalues: Array, counts: Sequence[int], nu: float = 1.0) -> list[Array]:
    """The nu-method's g_t for each t of `counts`: about the square root of Landweber's iterations.

    Brakhage's three-term recursion (Engl, Hanke, Neubauer 1996, section 6.3), on scalars.
    """
    if not (np.isfinite(nu) and nu > 0.0):
        raise ConfigurationError(f"nu must be a positive number, not {nu}.")
    step, scaled = _scaled(eigenvalues)
    g = before = np.zeros(len(eigenvalues))  # in units of the step
    found: dict[int, Array] = dict.fromkeys(counts, g)
    for k in range(1, max(counts, default=0) + 1):
        momentum, relaxation = 0.0, (4.0 * nu + 2.0) / (4.0 * nu + 1.0)
        if k > 1:
            momentum = (k - 1.0) * (2 * k - 3) * (2 * k + 2 * nu - 1)
            momentum /= (k + 2 * nu - 1) * (2 * k + 4 * nu - 1) * (2 * k + 2 * nu - 3)
            relaxation = 4.0 * (2 * k + 2 * nu - 1) * (k + nu - 1)
            relaxation /= (k + 2 * nu - 1) * (2 * k + 4 * nu - 1)
        g, before = g + momentum * (g - before) + relaxation * (1.0 - scaled * g), g
        if k in found:
            found[k] = g * step
    return [found[t] for t in counts]


def iterations(value: Any) -> int:
    """`value` as a number of iterations, or ConfigurationError if it isn't a whole one above 0."""
    if value < 1 or int(value) != value:
        raise ConfigurationError(f"max_iter must be a whole number above 0, not {value}.")
    return int(value)


def _scaled(eigenvalues: Array) -> tuple[float, Array]:
    """gamma = 1 / max sigma, and gamma sigma; with no eigenvalue above zero any step will do."""
    largest = float(eigenvalues.max())
    step = 1.0 / largest if largest > 0.0 else 1.0
    return step, np.minimum(eigenvalues * step, 1.0)


def _inverse(eigenvalues: Array, where: Any) -> Array:
    """1 / sigma where asked, zero elsewhere."""
    result = np.zeros(len(eigenvalues))
    np.divide(1.0, eigenvalues, out=result, where=where)
    return result
