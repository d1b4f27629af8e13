"""Forgetting only what newer rows replace: directional forgetting in square-root form.

Forgetting everything at one rate (exponential forgetting) loses what the rows of today do not
show: a robot that stands still forgets its inertia. Directional forgetting takes information away
only where new one came in (Kulhavy 1987, restricted exponential forgetting; Cao and Schwartz 2000;
Lai and Bernstein 2024, subspace of information forgetting). Here it is done for a block of rows at
a time, so that a memory means the same whether one direction is excited or all of them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from semiparam_dynamics.arrays import Array

LARGEST_SHARE = 0.25  # that may be forgotten at a time: above a half the bounds below would end
LEAK = 1e-10  # share of the information forgotten where nothing came in, against rounding


def retained(R: Array, before: Array, ridge: Array, share: float) -> Array:
    """Upper triangular C (D, D): C R is the factor of what is left after forgetting.

    R : (D, D) upper triangular, R'R = A is the information now.
    before : (D, D) upper triangular, the factor before the last rows; B = A - before'before is
        what they brought.
    ridge : (D,), diagonal of the part of A that is never forgotten; G = A - diag(ridge) is.
    share : of G that exponential forgetting would take away, 1 - exp(-time / memory).

    What is taken away is the harmonic mean of share G and of B, 2 ((share G)^-1 + B^-1)^-1. So
    where B = share G, as it is when a motion goes on and on, just as much is forgotten as comes
    in, and as exponential forgetting would; where B = 0 nothing is. It is at most 2 share G, so
    that C'C is between 1 - 2 share and 1, and what is left at least ridge + (1 - 2 share) G:
    positive definite by construction, since nothing is subtracted from R itself. This is one of
    the forgetting matrices for which Lai and Bernstein 2023 (generalized forgetting recursive
    least squares, theorem 1) prove the parameters' error stable. O(D^3).
    """
    n = len(R)
    # In coordinates where A is the identity nothing is small that matters.
    old = solve_triangular(R, before.T, trans="T", check_finite=False).T
    held = solve_triangular(R, np.diag(np.sqrt(ridge)), trans="T", check_finite=False).T
    new = np.eye(n) - old.T @ old
    fading = min(share, LARGEST_SHARE) * (np.eye(n) - held.T @ held)
    root = cholesky(new + fading + LEAK * np.eye(n), lower=True, check_finite=False)
    part = solve_triangular(root, fading, lower=True, check_finite=False)
    return np.asarray(cholesky(np.eye(n) - 2.0 * (fading - part.T @ part), check_finite=False))
