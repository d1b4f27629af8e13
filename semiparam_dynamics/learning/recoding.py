"""Recoding: what keeps a class of few examples from being ignored (thesis 7.5.2 and 7.6.3)."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array, Indices


def class_weights(counts: Array, alpha: float) -> Array:
    """The diagonal of Gamma^alpha, (T,): (k / gamma_t)^alpha, k = sum of the counts gamma (T,).

    alpha = 0 leaves scores as they are, 1 undoes the imbalance wholly. A class without examples
    has a score of zero whatever its weight, which is 1.
    """
    known = counts > 0.0
    weights: Array = np.where(known, counts.sum() / np.where(known, counts, 1.0), 1.0) ** alpha
    return weights


def choose_recoding(accuracy: Array, tolerance: float = 0.0) -> tuple[int, int]:
    """Which penalty and which exponent to use, from held-out accuracies (penalties, exponents).

    The rule of thesis 7.6.3: at each exponent the penalty with the best accuracy; of the
    exponents the largest whose accuracy is at least that of the first, which is 0. Exponents
    ascend. With a `tolerance` the accuracy may be lower by so much. Of equal penalties the last.
    """
    best = accuracy.max(axis=0)
    exponent = int(np.flatnonzero(best >= best[0] - tolerance - 1e-12)[-1])
    penalty = int(np.flatnonzero(accuracy[:, exponent] >= best[exponent])[-1])
    return penalty, exponent


def exponent_weights(counts: Array, alphas: Array) -> Array:
    """:func:`class_weights` for each exponent, (exponents, T); NaN for classes without examples.

    These can't win.
    """
    weights = np.array([class_weights(counts, alpha) for alpha in alphas])
    weights[:, counts <= 0.0] = np.nan
    return weights


def winners(scores: Array, weights: Array) -> Indices:
    """The winning class for each exponent, (n, exponents), from scores (n, T) without recoding.

    weights : (exponents, T), see :func:`exponent_weights`.
    """
    impossible = np.isnan(weights[0])
    found = np.empty((len(scores), len(weights)), dtype=np.intp)
    for j, weight in enumerate(weights):
        recoded = scores * weight
        if impossible.any():
            recoded[:, impossible] = -np.inf
        found[:, j] = recoded.argmax(axis=1)
    return found
