"""Random motions within the limits: where the search starts, and what it is compared with."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.identification.excitation_problem import ExcitationProblem
from semiparam_dynamics.identification.limit_use import LimitUse, limit_use

_TRIES = 20
_SHRINKAGE = 0.9 ** np.arange(60)


def random_unknowns(problem: ExcitationProblem, rng: np.random.Generator) -> Array:
    """Unknowns of a random motion that makes use of the limits and keeps them.

    Harmonic k has amplitudes of some 1 / k, so that all are alike in velocity. Each joint is
    stretched until position or velocity meets its limit, then all together are made smaller until
    the efforts keep theirs. Raises ConfigurationError where gravity alone asks for more effort.
    """
    worst = ""
    for _ in range(_TRIES):
        k = np.arange(2, problem.harmonics + 1)
        decay = np.concatenate([[0.0], 1.0 / k, 1.0 / k])[:, None]
        x = decay * rng.standard_normal(problem.shape)
        x[0] = rng.uniform(-0.5, 0.5, problem.shape[1])
        x = _fit(problem, x)
        use = _use(problem, x)
        if use.kept:
            return x.ravel()
        worst = use.worst_effort
    raise ConfigurationError(
        f"no motion was found that keeps the effort limits, not even a small one: {worst};"
        " allow more with effort_scale, or narrow the joints' ranges"
    )


def _fit(problem: ExcitationProblem, x: Array) -> Array:
    """Unknowns (2 harmonics - 1, n_joints) of the same shape of motion, as large as limits allow.

    Where even a thousandth of it needs too much effort, that thousandth.
    """
    moving = x.copy()
    moving[0] = 0.0
    use = _use(problem, moving)
    stretch = np.minimum((1.0 - np.abs(x[0])) / use.position, 1.0 / use.velocity)
    largest = x[1:] * stretch * (1.0 - 1e-9)
    smallest = np.vstack([x[:1], 1e-3 * largest])
    if not _use(problem, smallest).kept:
        return smallest
    for factor in _SHRINKAGE:
        fitted = np.vstack([x[:1], factor * largest])
        if _use(problem, fitted).kept:
            return fitted
    return smallest


def _use(problem: ExcitationProblem, x: Array) -> LimitUse:
    return limit_use(problem.trajectory(x.ravel()), problem.limits, problem.effort_model)
