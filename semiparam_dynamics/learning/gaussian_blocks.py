"""A Gaussian kernel with its centres prepared: blocks of its matrix, and products with them.

The products need less time than the matrix would, and no memory for it: each entry is used while
it is in the processor's cache, and never written to memory.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.base.jit import compiled, take_widest_vectors
from semiparam_dynamics.learning.recursion.vectors import LOG2_E, powers_of_two

TILE = 256  # columns: OpenBLAS multiplies tiles of this size without copying them first
WHOLE = 16  # columns: a multiple of what a processor's vector holds in either precision
ROWS = 32  # at most, whose kernels are kept until they have been used twice
MEDIAN_ROWS = 500  # at most, that tell the centres' median
NEAR_BYTES = 2**20  # memory of those rows: a core's second-level cache


class GaussianBlocks:
    """X -> K(X, C), with K(x, c) = exp(-|x - c|^2 / 2 sigma^2), in the dtype of C.

    -|x - c|^2 / 2 is the product of [x, -|x|^2/2, 1] and [c, 1, -|c|^2/2]. The origin is moved to
    the centres' median, so that little cancels: their mean would follow a single one that is far
    away, and leave the others no digits. Inputs are also multiplied by the root of log2(e), so that
    K is a power of two, which takes less time than one of e.

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
        self._scale = (np.sqrt(LOG2_E) / widths).astype(C.dtype)
        self.origin = middle(C)
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
        evaluate(self._with_norms(X), self._tiles, self._kernels(X, 1)[0], K)

    def multiply(self, X: Array, B: Array) -> Array:
        """K(X, C) B for B (m, T): (k, T) in float64, as all sums."""
        out = np.empty((len(X), B.shape[1]))
        product(self._with_norms(X), self._tiles, self._in_tiles(B), self._kernels(X, 1), out)
        return out

    def normal(self, X: Array, B: Array, Y: Array | None, weights: Array | None) -> Array:
        """K' W (K B - Y) with K = K(X, C), for B (m, T), Y (k, T) and W's diagonal, (k,) or, one
        for each column, (k, T); None: no Y, no weights. (m, T) in float64.
        """
        k, T = len(X), B.shape[1]
        n_tiles = len(self._tiles)
        out = np.zeros((T, n_tiles, self._width))
        add_normal_product(
            self._with_norms(X),
            self._tiles,
            self._in_tiles(B),
            np.zeros((k, T)) if Y is None else _rows(Y),
            _rows(weight_columns(weights, k, T)),
            self._kernels(X, n_tiles),
            np.empty((k, T)),
            out,
        )
        return self._of_centers(out)

    def transposed(self, X: Array, S: Array) -> Array:
        """K(X, C)' S for S (k, T): (m, T) in float64."""
        out = np.zeros((S.shape[1], len(self._tiles), self._width))
        K = self._kernels(X, 1)
        add_transposed_product(self._with_norms(X), self._tiles, _rows(S), K, out)
        return self._of_centers(out)

    def _kernels(self, X: Array, n_tiles: int) -> Array:
        """Working memory of so many tiles' kernels, (n_tiles, R, w)."""
        rows = min(self._rows, max(len(X), 1))
        return np.empty((n_tiles, rows, self._width), self.dtype)

    def _in_tiles(self, B: Array) -> Array:
        """B (m, T) as (T, n_tiles, w); zero for the columns that no centre has."""
        padded = np.zeros((B.shape[1], len(self._tiles), self._width))
        padded.reshape(B.shape[1], -1)[:, : self._m] = B.T
        return padded

    def _of_centers(self, tiles: Array) -> Array:
        """The reverse: (T, n_tiles, w) as (m, T)."""
        return tiles.reshape(len(tiles), -1)[:, : self._m].T

    def _with_norms(self, X: Array) -> Array:
        """[x, -|x|^2 / 2, 1] of each row, moved and scaled."""
        result = np.empty((len(X), X.shape[1] + 2), self.dtype)
        np.multiply(X - self.origin, self._scale, out=result[:, :-2])
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


def middle(C: Array) -> Array:
    """The median of each of C's columns, (d,), in its dtype; zeros where C has no rows.

    Of many rows some hundreds, evenly spaced, tell where the middle is: the median of all takes
    ten times as long as their mean, and SGM asks for it at each block of its draws.
    """
    if not len(C):
        return np.zeros(C.shape[1], C.dtype)
    result: Array = np.median(C[:: 1 + len(C) // MEDIAN_ROWS], axis=0).astype(C.dtype, copy=False)
    return result


def weight_columns(weights: Array | None, k: int, T: int) -> Array:
    """Weights (k,), (k, T) or, None, ones as (k, T) in float64, which may be a view."""
    if weights is None:
        return np.ones((k, T))
    each = weights[:, None] if weights.ndim == 1 else weights
    return np.broadcast_to(each.astype(float, copy=False), (k, T))


def _rows(A: Array) -> Array:
    return np.ascontiguousarray(A, dtype=float)


# -------------------------------------------------------------------------------------------------
# The compiled loops. A tile of exponents comes from one matrix product, small enough that it needs
# no copy of its factors and its result stays in the first-level cache; there it becomes powers of
# two in its place, and is multiplied. Only `R` rows of the kernel are kept, in the second-level
# cache, until their sums are known, tile after tile: each is one piece of memory for the powers.


@compiled
def evaluate(X: Array, C: Array, E: Array, K: Array) -> None:
    """K = 2^(X C), (k, m), for X (k, p) and the centres C in tiles (m / w, p, w).

    E (R, w) is working memory. The last tile may be wider than what is left of m.
    """
    for i in range(0, len(X), len(E)):
        here = min(len(E), len(X) - i)
        for t in range(len(C)):
            _kernel(X, C[t], E, i, here)
            first = t * E.shape[1]
            last = min(first + E.shape[1], K.shape[1])
            for r in range(here):
                K[i + r, first:last] = E[r, : last - first]


@compiled
def product(X: Array, C: Array, B: Array, K: Array, out: Array) -> None:
    """out = 2^(X C) B, (k, T), for B transposed and in tiles (T, m / w, w); K (1, R, w) is
    overwritten.
    """
    out[:] = 0.0
    R = K.shape[1]
    for i in range(0, len(X), R):
        here = min(R, len(X) - i)
        for tile in range(len(C)):
            _kernel(X, C[tile], K[0], i, here)
            _forward(K[0], B, out, i, here, tile)


@compiled
def add_normal_product(
    X: Array, C: Array, B: Array, Y: Array, w: Array, K: Array, S: Array, out: Array
) -> None:
    """out += K' (w (K B - Y)), (T, m / w, w), with K = 2^(X C), B as out, Y and w (k, T).

    K (m / w, R, w) and S (k, T) are working memory.
    """
    S[:] = 0.0
    R = K.shape[1]
    for i in range(0, len(X), R):
        here = min(R, len(X) - i)
        for tile in range(len(C)):
            _kernel(X, C[tile], K[tile], i, here)
            _forward(K[tile], B, S, i, here, tile)
        for r in range(i, i + here):
            for t in range(S.shape[1]):
                S[r, t] = (S[r, t] - Y[r, t]) * w[r, t]
        for tile in range(len(C)):
            _backward(K[tile], S, i, here, tile, out)


@compiled
def add_transposed_product(X: Array, C: Array, S: Array, K: Array, out: Array) -> None:
    """out += K' S, (T, m / w, w), with K = 2^(X C), for S (k, T); K (1, R, w) is working memory
    for one tile.
    """
    R = K.shape[1]
    for i in range(0, len(X), R):
        here = min(R, len(X) - i)
        for tile in range(len(C)):
            _kernel(X, C[tile], K[0], i, here)
            _backward(K[0], S, i, here, tile, out)


@compiled
def _kernel(X: Array, C: Array, K: Array, start: int, here: int) -> None:
    """K = 2^(X C) of the rows from `start` and one tile C (p, w): (here, w) of K (R, w)."""
    part = K[:here]
    np.dot(X[start : start + here], C, part)
    flat = part.reshape(part.size)
    powers_of_two(flat, flat)


@compiled
def _forward(K: Array, B: Array, S: Array, start: int, here: int, tile: int) -> None:
    """S += K B of the rows from `start`, with one tile of K."""
    take_widest_vectors()
    for t in range(len(B)):
        b = B[t, tile]
        for r in range(0, here - 3, 4):
            r0, r1, r2, r3 = K[r], K[r + 1], K[r + 2], K[r + 3]
            s0 = s1 = s2 = s3 = 0.0
            for j in range(b.size):
                bj = b[j]
                s0 += r0[j] * bj
                s1 += r1[j] * bj
                s2 += r2[j] * bj
                s3 += r3[j] * bj
            S[start + r, t] += s0
            S[start + r + 1, t] += s1
            S[start + r + 2, t] += s2
            S[start + r + 3, t] += s3
        for r in range(here - here % 4, here):
            row = K[r]
            s0 = 0.0
            for j in range(b.size):
                s0 += row[j] * b[j]
            S[start + r, t] += s0


@compiled
def _backward(K: Array, S: Array, start: int, here: int, tile: int, out: Array) -> None:
    """out += K' S of the rows from `start`, with one tile of K."""
    take_widest_vectors()
    for t in range(len(out)):
        o = out[t, tile]
        for r in range(0, here - 3, 4):
            r0, r1, r2, r3 = K[r], K[r + 1], K[r + 2], K[r + 3]
            s0, s1 = S[start + r, t], S[start + r + 1, t]
            s2, s3 = S[start + r + 2, t], S[start + r + 3, t]
            for j in range(o.size):
                o[j] += r0[j] * s0 + r1[j] * s1 + r2[j] * s2 + r3[j] * s3
        for r in range(here - here % 4, here):
            row, s0 = K[r], S[start + r, t]
            for j in range(o.size):
                o[j] += row[j] * s0
