"""A Gaussian kernel with its centres prepared: blocks of its matrix, and products with them.

The products need less time than the matrix would, and no memory for it: each entry is used while
it is in the processor's cache, and never written to memory.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning import compiled_gaussian
from semiparam_dynamics.learning.exponential import WHOLE

TILE = 256  # columns: OpenBLAS multiplies tiles of this size without copying them first
ROWS = 32  # at most, whose kernels are kept until they have been used twice
NEAR_BYTES = 2**20  # what they take then: a core's second-level cache


class GaussianBlocks:
    """X -> K(X, C), with K(x, c) = exp(-|x - c|^2 / 2 sigma^2), in the dtype of C.

    -|x - c|^2 / 2 is the product of [x, -|x|^2/2, 1] and [c, 1, -|c|^2/2]. The origin is moved to
    the centres' mean, so that little cancels.

    Parameters
    ----------
    C : centres (m, d), float32 or float64.
    widths : sigma, one for each input, (d,).

    Attributes
    ----------
    origin, scale : (d,), what is subtracted from inputs, and what they are then multiplied by.

    Raises LearningError when inputs divided by the widths have squares that overflow.
    """

    def __init__(self, C: Array, widths: Array) -> None:
        m = len(C)
        self.dtype = C.dtype
        self.scale = (1.0 / widths).astype(C.dtype)
        self.origin = C.mean(axis=0) if m else np.zeros(C.shape[1], C.dtype)
        centers = self._with_norms(C)
        centers[:, -2:] = centers[:, [-1, -2]]
        # Tiles of equal width, a multiple of the vectors', whose last columns may be empty.
        self._m, n_tiles = m, max(1, -(-m // TILE))
        self._width = max(WHOLE, WHOLE * -(-m // (WHOLE * n_tiles)))
        padded = np.zeros((n_tiles * self._width, centers.shape[1]), C.dtype)
        padded[:m] = centers
        tiles = padded.reshape(n_tiles, self._width, -1).transpose(0, 2, 1)
        self._tiles = np.ascontiguousarray(tiles)
        near = NEAR_BYTES // (8 * max(m, 1) * C.itemsize)
        self._rows = min(ROWS, max(8, 8 * near))

    def __call__(self, X: Array) -> Array:
        """K(X, C), (k, m), of rows X (k, d)."""
        K = np.empty((len(X), self._m), self.dtype)
        self.into(X, K)
        return K

    def into(self, X: Array, K: Array) -> None:
        """The same into K (k, m), which is contiguous."""
        compiled_gaussian.evaluate(self._with_norms(X), self._tiles, self._exponents(X), K)

    def multiply(self, X: Array, B: Array) -> Array:
        """K(X, C) B for B (m, T): (k, T) in float64, as all sums."""
        out = np.empty((len(X), B.shape[1]))
        E, K = self._working(X)
        compiled_gaussian.product(self._with_norms(X), self._tiles, _rows(B.T), E, K, out)
        return out

    def normal(self, X: Array, B: Array, Y: Array | None, weights: Array | None) -> Array:
        """K' W (K B - Y) with K = K(X, C), for B (m, T), Y (k, T) and W's diagonal (k,); None: no
        Y, no weights. (m, T) in float64.
        """
        k, T = len(X), B.shape[1]
        out = np.zeros((T, self._m))
        E, K = self._working(X)
        compiled_gaussian.add_normal_product(
            self._with_norms(X),
            self._tiles,
            _rows(B.T),
            np.zeros((k, T)) if Y is None else _rows(Y),
            np.ones(k) if weights is None else _rows(weights),
            E,
            K,
            np.empty((k, T)),
            out,
        )
        return out.T

    def transposed(self, X: Array, S: Array) -> Array:
        """K(X, C)' S for S (k, T): (m, T) in float64."""
        out = np.zeros((S.shape[1], self._m))
        E, K = self._working(X)
        compiled_gaussian.add_transposed_product(
            self._with_norms(X), self._tiles, _rows(S), E, K, out
        )
        return out.T

    def _working(self, X: Array) -> tuple[Array, Array]:
        E = self._exponents(X)
        return E, np.empty((len(E), self._m), self.dtype)

    def _exponents(self, X: Array) -> Array:
        return np.empty((min(self._rows, max(len(X), 1)), self._width), self.dtype)

    def _with_norms(self, X: Array) -> Array:
        """[x, -|x|^2 / 2, 1] of each row, moved and scaled."""
        result = np.empty((len(X), X.shape[1] + 2), self.dtype)
        np.multiply(X - self.origin, self.scale, out=result[:, :-2])
        norms = result[:, -2]
        np.einsum("ij,ij->i", result[:, :-2], result[:, :-2], out=norms)
        if not np.isfinite(norms).all():
            raise LearningError(
                f"Inputs are so large beside the kernel's length scale that their squares "
                f"overflow in {self.dtype}: scale the inputs, or raise length_scale."
            )
        norms *= -0.5
        result[:, -1] = 1.0
        return result


def _rows(A: Array) -> Array:
    return np.ascontiguousarray(A, dtype=float)
