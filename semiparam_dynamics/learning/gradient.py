"""The gradient of least squares in Nyström features, by the cheaper of two ways."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.memory import memory_budget, require
from semiparam_dynamics.learning.products import KernelRows
from semiparam_dynamics.learning.rows import Block, Rows

SLOW = 20.0  # how much faster products of matrices are, by operation, than matrix times vector
LANCZOS = 30  # iterations, about, for the largest eigenvalue


class Gradient:
    """A'W(A beta - Y) / sum w with A = K_nm S, for beta (q, T).

    Attributes
    ----------
    basis : its features are the rows of A.
    centers : (q, d), those that brought a feature.
    step : the step size of the descent that uses this.
    rest : bytes of the memory limit that are left for validation: an eighth at least.
    """

    step: float

    def __init__(
        self,
        rows: Rows,
        basis: NystromBasis,
        n_products: int,
        early: bool,
        solver: str,
        memory_limit: int | None,
    ) -> None:
        """`n_products` gradients will be asked for; with `early`, at most so many.

        `solver` is "direct", "gram" or "auto", as in :class:`NYTRO`. Raises LearningError where
        the Gram matrix was asked for and doesn't fit into the memory limit.
        """
        self.basis = basis
        self.centers = basis.centers[basis.kept].astype(rows.dtype)
        self._rows = rows
        self._factor = np.asfortranarray(basis.factor)  # as LAPACK wants it
        n, q, T = rows.n_samples, basis.n_features, rows.n_outputs
        gram_bytes = 8 * 2 * q * q
        budget = memory_budget(memory_limit)
        # Features and their products, 3 n q^2, against K times a few columns, twice.
        pays_off = math.ceil(3.0 * q / (4.0 * max(SLOW, T)))
        if solver == "direct" or (solver == "auto" and gram_bytes > budget // 2):
            self._until = n_products + LANCZOS
        elif solver == "gram" or (not early and n_products > pays_off):
            require(budget, gram_bytes, f"The Gram matrix of {q} features")
            self._until = 0
        else:
            self._until = pays_off if early else n_products + LANCZOS
        keep = self._until > 0
        kept_limit = budget - gram_bytes if budget > 2 * gram_bytes else budget
        self._data = KernelRows(rows, basis.kernel, self.centers, kept_limit, keep)
        kept = n * q * rows.dtype.itemsize if self._data.fits else 0
        self.rest = max(budget - gram_bytes - kept, budget // 8)
        self._products = 0
        self._gram: Array | None = None
        self._targets = np.empty((q, T))

    def __call__(self, beta: Array) -> Array:
        """The gradient at beta (q, T)."""
        gram = self._gram_if_due()
        if gram is not None:
            result: Array = gram @ beta - self._targets
            return result
        gradient = self._data.gradient(self.coefficients(beta))
        return self._to_features(gradient) / self._rows.total_weight

    def coefficients(self, beta: Array) -> Array:
        """S beta: the coefficients (q, T) of the kernels at `centers`."""
        alpha: Array = solve_triangular(self._factor, beta, lower=True, trans=1, check_finite=False)
        return alpha

    def largest_eigenvalue(self) -> float:
        """Of A'WA / sum w, by Lanczos' iteration from a fixed start."""
        q = self.basis.n_features

        def multiply(v: Array) -> Array:
            gram = self._gram_if_due()
            if gram is not None:
                product: Array = gram @ v
                return product
            normal = self._data.normal(self.coefficients(v.reshape(q, 1)))
            product = self._to_features(normal[:, :1])[:, 0]
            return product / self._rows.total_weight

        if q == 1:
            return float(multiply(np.ones(1))[0])
        operator = LinearOperator((q, q), matvec=multiply, dtype=float)
        start = np.random.RandomState(0).standard_normal(q)
        # Gradient descent converges for any step below two over this: few digits will do.
        found = eigsh(operator, k=1, v0=start, tol=1e-6, return_eigenvectors=False)
        return float(found[0])

    def _gram_if_due(self) -> Array | None:
        if self._gram is None and self._products >= self._until:
            self._make_gram()
        self._products += 1
        return self._gram

    def _make_gram(self) -> None:
        """A'WA and A'WY over the sum of the weights, in one pass over the data."""
        q = self.basis.n_features
        total = np.zeros((q, q + self._rows.n_outputs))

        def of_block(K: Array, block: Block) -> Array:
            A = self.basis.from_kernel(K.copy()).astype(float)
            weighted = A if block.weights is None else A * block.weights[:, None]
            sums: Array = weighted.T @ np.hstack((A, block.Y))
            return sums

        for part in self._data.blocks(of_block):
            total += part
        total /= self._rows.total_weight
        if not np.isfinite(total).all():
            raise LearningError("The kernel has values that are not finite.")
        self._gram, self._targets = total[:, :q].copy(), total[:, q:].copy()

    def _to_features(self, gradient: Array) -> Array:
        """S' times the gradient (q, T) with respect to the kernels' coefficients."""
        solved: Array = solve_triangular(self._factor, gradient, lower=True, check_finite=False)
        return solved
