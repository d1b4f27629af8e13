"""The eigendecomposition of a kernel matrix, and the least-squares problem that it solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.memory import memory_budget, require
from semiparam_dynamics.learning.products import evaluate_into
from semiparam_dynamics.learning.rows import Rows


@dataclass(frozen=True)
class Problem:
    """What kernel least squares is solved from: the rows whose weight isn't zero.

    Weights w turn K into W^(1/2) K W^(1/2), and Y into W^(1/2) Y: the same problem as if each row
    were there w times.

    Attributes
    ----------
    X : (n, d), in the rows' precision.
    targets : W^(1/2) Y, (n, T), in float64.
    roots : W^(1/2), (n,); ones where there are no weights.
    total : the sum of the weights, which multiplies the penalty.
    """

    X: Array
    targets: Array
    roots: Array
    total: float

    @classmethod
    def of(cls, rows: Rows) -> Problem:
        """All of the rows, in memory."""
        blocks = list(rows.blocks(rows.n_samples))
        X = np.concatenate([block.X for block in blocks])
        Y = np.concatenate([block.Y for block in blocks]).astype(float)
        weights = rows.weights()
        if weights is None:
            return cls(X, Y, np.ones(len(X)), float(len(X)))
        some = weights > 0.0
        roots = np.sqrt(weights[some].astype(float))
        return cls(X[some], Y[some] * roots[:, None], roots, float(roots @ roots))

    def gram(self, kernel: Kernel, n_matrices: int, memory_limit: int | None) -> Array:
        """W^(1/2) K W^(1/2), (n, n) in float64.

        Raises LearningError where `n_matrices` of that size don't fit into the limit, and for
        values that are not finite.
        """
        n = len(self.X)
        needed = 8 * n_matrices * n * n
        require(memory_budget(memory_limit), needed, f"The kernel matrix of {n} rows")
        K = np.empty((n, n))
        evaluate_into(kernel.bind(self.X), self.X, K)
        K *= self.roots
        K *= self.roots[:, None]
        if not (np.isfinite(K.min()) and np.isfinite(K.max())):
            raise LearningError("The kernel has values that are not finite: scale the inputs.")
        return K

    def rounding(self, K: Array) -> float:
        """Eigenvalues of K up to this one are noise: of its entries, and of the algebra on it."""
        n = len(K)
        entries = 10.0 * np.sqrt(n) * np.finfo(self.X.dtype).eps * np.diag(K).max()
        return float(entries + n * np.finfo(float).eps * np.trace(K))


class Spectrum:
    """W^(1/2) K W^(1/2) / n = Q Sigma Q', with n the total weight.

    Attributes
    ----------
    problem : what it was made of.
    eigenvalues : (n,), ascending, at least zero.
    vectors : Q, (n, n).
    projected : Q' W^(1/2) Y, (n, T).
    rounding : eigenvalues up to this one are noise.
    """

    def __init__(self, problem: Problem, kernel: Kernel, memory_limit: int | None = None) -> None:
        """Time O(n^3), and memory for three matrices (n, n).

        Raises LearningError where that is too much, and for a kernel that isn't positive
        semidefinite on these rows.
        """
        self.problem = problem
        K = problem.gram(kernel, 3, memory_limit)
        noise = problem.rounding(K)
        values, self.vectors = eigh(K.T, driver="evd", overwrite_a=True, check_finite=False)
        if values[0] < -max(100.0 * noise, 1e-6 * values[-1]):
            raise LearningError(
                f"The kernel is not positive semidefinite: on these rows its eigenvalues lie "
                f"between {values[0]:.3g} and {values[-1]:.3g}."
            )
        self.rounding = noise / problem.total
        self.eigenvalues = np.maximum(values, 0.0) / problem.total
        self.projected: Array = self.vectors.T @ problem.targets

    def coefficients(self, g: Array) -> Array:
        """(n, T), of the kernels at the problem's rows, for filter values g (n,).

        A value above 1 / rounding belongs to an eigenvalue of which no digit is known. It is
        put at zero, as a pseudo-inverse does: such directions are not in the kernel's range.
        """
        kept = np.where(g * self.rounding > 1.0, 0.0, g) / self.problem.total
        alpha: Array = self.vectors @ (kept[:, None] * self.projected)
        alpha *= self.problem.roots[:, None]
        return alpha
