"""The linear system that FALKON solves, in the coordinates of the centres' features."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.centers import Centers
from semiparam_dynamics.learning.conjugate_gradient import Follow, Solution, conjugate_gradient
from semiparam_dynamics.learning.device_products import kernel_rows
from semiparam_dynamics.learning.kernels import Kernel
from semiparam_dynamics.learning.preconditioner import Preconditioner, mean_products
from semiparam_dynamics.learning.rows import Rows

PATIENCE = 50  # iterations without a smaller residual: rounding lets no more be gained


class FalkonSystem:
    """(Phi' W Phi / n + penalty I) w = Phi' W Y / n, for any number of penalties.

    Phi = K_nM L'^-1 are the rows' features (n, q), and the coefficients are L'^-1 w: the Nyström
    problem's H alpha = K_nM' W Y without the directions that rounding leaves undetermined.

    Parameters
    ----------
    rows, kernel, centers : the data, the kernel, and the chosen centres (M).
    memory_limit : bytes for kernel matrices; None: a quarter of what is free.
    sample : rows from which the preconditioner is made; None: from the centres.
    """

    def __init__(
        self,
        rows: Rows,
        kernel: Kernel,
        centers: Centers,
        memory_limit: int | None = None,
        sample: Centers | None = None,
    ) -> None:
        self.basis = NystromBasis(kernel, centers.points, dtype=rows.dtype)
        # A kernel that is zero on all centres keeps none: the first stands for the zero function.
        used = self.basis.kept if self.basis.n_features else np.zeros(1, dtype=np.intp)
        self.data = kernel_rows(rows, kernel, self.basis.centers[used], memory_limit)
        self.importance = _importance(rows, centers)
        self._moments = None
        if sample is not None and self.basis.n_features:
            self._moments = _sampled_moments(rows, self.basis, centers, sample)
        self._n = rows.total_weight
        self._targets = self.data.targets() if self.basis.n_features else None

    def preconditioner(self, penalty: float) -> Preconditioner:
        """That of one penalty; the one before should be gone by then, for it is as large."""
        return Preconditioner(self.basis, penalty, self.importance, self._moments)

    def solve(
        self,
        preconditioner: Preconditioner,
        penalty: float,
        max_iter: int,
        tolerance: float,
        follow: Follow | None = None,
    ) -> Solution:
        """Conjugate gradient on the unknowns beta = A w, to which `coefficients` belong."""
        B = preconditioner

        def product(beta: Array) -> Array:
            weights = B.to_features(beta)
            gradient = self.data.normal(B.to_coefficients(weights))
            gradient = B.from_coefficients(gradient) / self._n + penalty * weights
            return B.from_features(gradient)

        if self._targets is None:
            none = np.zeros((0, self.data.rows.n_outputs))
            return conjugate_gradient(product, none, max_iter=max_iter)
        b = B.from_features(B.from_coefficients(self._targets) / self._n)
        return conjugate_gradient(
            product,
            b,
            max_iter=max_iter,
            # A residual below the kernel's rounding is one of the recurrence only.
            tolerance=max(tolerance, float(np.finfo(self.data.rows.dtype).eps)),
            patience=PATIENCE,
            follow=follow,
        )

    def coefficients(self, preconditioner: Preconditioner, beta: Array) -> Array:
        """What multiplies the kernels at ``data.centers``, (q, T), for the solution beta (q, T)."""
        if self._targets is None:
            return np.zeros((1, beta.shape[1]))
        return preconditioner.to_coefficients(preconditioner.to_features(beta))


def _sampled_moments(rows: Rows, basis: NystromBasis, centers: Centers, sample: Centers) -> Array:
    """An estimate of Phi' W Phi / n, its upper half, (q, q): all centres, and other rows' sample.

    A row that is a centre has features unlike those of other rows, so each of the two kinds is
    weighted by how many of it there are. Centres that aren't rows don't count.
    """
    weights = rows.weights()
    w = np.ones(rows.n_samples) if weights is None else weights.astype(float)
    w /= rows.total_weight
    assert sample.indices is not None
    if centers.indices is None:
        share = w[sample.indices] * rows.n_samples / len(sample.indices)
        return mean_products(basis, share, sample.points.astype(float))
    own, first = np.unique(centers.indices, return_index=True)
    moments = mean_products(basis, w[own], centers.points[first].astype(float))
    other = ~np.isin(sample.indices, own)
    if other.any():
        share = w[sample.indices[other]] * (rows.n_samples - len(own)) / other.sum()
        moments += mean_products(basis, share, sample.points[other].astype(float))
    return moments


def _importance(rows: Rows, centers: Centers) -> Array | None:
    """D^2 (M,), the centres' weights in the mean over the rows; None: all 1.

    A row of weight w, drawn with probability p, stands for w / (n p) rows, with n the weights'
    sum. Centres that aren't rows count 1 each.
    """
    if centers.indices is None:
        return None
    weights = rows.weights()
    if weights is None and centers.probabilities is None:
        return None
    result = np.full(len(centers.indices), 1.0 / rows.total_weight)
    if weights is not None:
        result *= weights[centers.indices]
    if centers.probabilities is None:
        return result * rows.n_samples
    return result / centers.probabilities
