"""Nyström features of a Gaussian kernel whose centres are chosen while data come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.compiled import gaussian_row, solve_lower
from semiparam_dynamics.learning.triangular import solve_right

if TYPE_CHECKING:
    from semiparam_dynamics.learning.basis import NystromBasis


class IncrementalNystromFeatures:
    """Features phi(x) = L^-1 k(C, x), with L L' = k(C, C), and centres C added on the way.

    phi'phi' approximates the kernel (thesis 4.2: K_nm K_mm^-1 K_nm'), and |phi(x)|^2 tells how
    much of x the centres explain: 1 on them, 0 far away, where the features vanish and with
    them whatever was learned on them. A point of which less than `1 - novelty` is explained
    becomes a centre: one row appended to L, the earlier features unchanged. The same features
    as `NystromFeatures`, which chooses its centres in one go; :meth:`start` takes them over.
    """

    def __init__(self, n_inputs: int, length_scale: float, capacity: int, novelty: float) -> None:
        self.n_centers = 0
        self.capacity = capacity
        self.novelty = novelty
        self.length_scale = length_scale
        self.gamma = 0.5 / length_scale**2
        self._centers = np.zeros((capacity, n_inputs))
        self._factor = np.zeros((capacity, capacity))
        self.explained = 0.0

    @property
    def centers(self) -> Array:
        """The centres so far, (m, d)."""
        return self._centers[: self.n_centers]

    @property
    def factor(self) -> Array:
        """L of these centres, (m, m)."""
        return self._factor[: self.n_centers, : self.n_centers]

    def transform(self, x: Array) -> Array:
        """Features (m,) of one input (d,); `explained` is then |phi|^2."""
        m = self.n_centers
        kernel, phi = np.empty(m), np.empty(m)
        gaussian_row(self._centers, x, self.gamma, kernel, m)
        self.explained = solve_lower(self._factor, kernel, phi, m)
        return phi

    def grow(self, x: Array, phi: Array) -> bool:
        """Make x (d,), whose features are `phi` (m,), a centre if it is new enough."""
        m = self.n_centers
        rest = 1.0 - float(phi @ phi)
        if m == self.capacity or rest <= self.novelty:
            return False
        self._centers[m] = x
        self._factor[m, :m] = phi
        self._factor[m, m] = np.sqrt(rest)
        self.n_centers = m + 1
        return True

    def transform_rows(self, X: Array) -> Array:
        """:meth:`transform` of inputs (k, d): features (k, m)."""
        m = self.n_centers
        if not m:
            return np.zeros((len(X), 0))
        kernel = gaussian_block(self.centers, X, self.gamma)
        return solve_right(kernel, np.ascontiguousarray(self.factor.T))

    def grow_rows(self, X: Array) -> Array:
        """Features (k, m) of inputs (k, d), each of which in turn may become a centre.

        The same as :meth:`transform`, :meth:`grow` and, where it grew, :meth:`transform` again for
        each row; a row has zeros for the centres that came after it.
        """
        phi = self.transform_rows(X)
        rest = 1.0 - np.einsum("ij,ij->i", phi, phi)
        new, i = [phi], -1
        while self.n_centers < self.capacity:
            candidates = np.flatnonzero(rest[i + 1 :] > self.novelty)
            if not len(candidates):
                break
            i += 1 + int(candidates[0])
            m, root = self.n_centers, np.sqrt(rest[i])
            own = np.concatenate([part[i] for part in new])
            column = np.zeros((len(X), 1))
            later = column[i + 1 :, 0]
            later += gaussian_block(X[i : i + 1], X[i + 1 :], self.gamma)[:, 0]
            for part in new:
                later -= part[i + 1 :] @ part[i]
            later /= root
            column[i] = root
            self._centers[m] = X[i]
            self._factor[m, :m] = own
            self._factor[m, m] = root
            self.n_centers = m + 1
            rest[i + 1 :] -= later**2
            new.append(column)
        return phi if len(new) == 1 else np.concatenate(new, axis=1)

    def start(self, basis: NystromBasis) -> None:
        """Go on from features computed in batch, of the same kernel; at most `capacity`."""
        self.restore({"centers": basis.centers[basis.kept], "factor": basis.factor})

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        m = self.n_centers
        return {"centers": self._centers[:m].copy(), "factor": self._factor[:m, :m].copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        m = self.n_centers = len(state["centers"])
        self._centers[:m] = state["centers"]
        self._factor[:m, :m] = state["factor"]


def gaussian_block(centers: Array, X: Array, gamma: float) -> Array:
    """exp(-gamma |x - c|^2) of inputs X (k, d) and centres (m, d), (k, m)."""
    # Distances from products have rounding errors of their terms' size: so from the centres' mean.
    mean = centers.mean(axis=0)
    C, D = centers - mean, X - mean
    exponent = D @ (2.0 * gamma * C.T)
    exponent -= gamma * np.einsum("ij,ij->i", C, C)
    exponent -= gamma * np.einsum("ij,ij->i", D, D)[:, None]
    np.minimum(exponent, 0.0, out=exponent)
    kernel: Array = np.exp(exponent, out=exponent)
    return kernel
