"""The triangular factor that ridge regressions on the first 1, ..., q features share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError


@dataclass
class NestedFactor:
    """The triangular system R beta = U of all leading blocks.

    Attributes
    ----------
    R : (q, q), upper triangular.
    U : (q, T).
    """

    R: Array
    U: Array

    def weights(self, n_features: int | None = None) -> Array:
        """beta_t (t, T) of the first t = `n_features` features; None: of all.

        Raises LearningError if rounding leaves no answer.
        """
        t = len(self.R) if n_features is None else n_features
        if not t:
            return np.zeros((0, self.U.shape[1]))
        try:
            beta: Array = solve_triangular(self.R[:t, :t], self.U[:t], check_finite=False)
        except np.linalg.LinAlgError:
            beta = np.full((t, 1), np.nan)
        if not np.isfinite(beta).all():
            raise LearningError(
                "The system is singular to rounding and the penalty too small to help: "
                "raise the penalty."
            )
        return beta

    def append(self, cross: Array, own: Array, moments: Array) -> None:
        """Append k features A2: A'WA2 (q, k), A2'WA2 + r I (k, k) and A2'WY (k, T).

        Raises numpy's LinAlgError if the bordered system isn't positive definite to rounding.
        """
        above = solve_triangular(self.R, cross, trans=1) if len(self.R) else cross
        corner = cholesky_factor(np.asfortranarray(own - above.T @ above))
        below = solve_triangular(corner, moments - above.T @ self.U, trans=1)
        q, k = cross.shape
        R = np.zeros((q + k, q + k), order="F")
        R[:q, :q], R[:q, q:], R[q:, q:] = self.R, above, corner
        self.R, self.U = R, np.concatenate((self.U, below))


def cholesky_factor(A: Array) -> Array:
    """R, upper triangular, with R'R the matrix whose upper triangle is A's; A is used up.

    Raises numpy's LinAlgError if there is none.
    """
    if not len(A):
        return A
    R, failed = dpotrf(A, lower=0, clean=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    result: Array = R
    return result
