"""Positive-definite kernels, evaluated block by block, and products with a Gaussian one.

A kernel is a function of two sets of rows: `kernel(X, C)` is the matrix K(x_i, c_j), (n, m).
`kernel.bind(C)` prepares the centres once, for many blocks of X. Rows may be scipy.sparse's, in
compressed form, for the kernels that are functions of inner products.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from scipy.spatial.distance import cdist, pdist
from sklearn.base import BaseEstimator, clone

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive,
    positive_count,
)
from semiparam_dynamics.base.jit import compiled, take_widest_vectors
from semiparam_dynamics.learning.recursion.vectors import LOG2_E, matern_of_squares, powers_of_two
from semiparam_dynamics.learning.sparse import sparse_gaussian, sparse_polynomial

# -------------------------------------------------------------------------------------------------
# The two formats of inputs (n, d): arrays, and compressed rows, csr_array or csr_matrix.


def is_sparse(X: Any) -> bool:
    """True for scipy.sparse's matrices and arrays, of any format."""
    return bool(issparse(X))


def as_inputs(X: Any, dtype: Any) -> Any:
    """X in `dtype`: an array, or, where it is sparse, compressed rows without duplicates."""
    if not is_sparse(X):
        return np.asarray(X, dtype=dtype)
    rows = X.tocsr()
    if rows.dtype != dtype:
        rows = rows.astype(dtype)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def floats(X: Any) -> Any:
    """X as it is in float32 or float64, and else in float64; anything but rows as an array."""
    X = X if is_sparse(X) else np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(float)


def in_format(X: Any, sparse: bool) -> Any:
    """X as compressed rows, or as an array; as it is where it is that already."""
    if sparse:
        return as_inputs(X if is_sparse(X) else csr_array(X), X.dtype)
    return X.toarray() if is_sparse(X) else X


def stacked(parts: Sequence[Any]) -> Any:
    """The rows of all parts, which are of one format, below each other."""
    if is_sparse(parts[0]):
        return vstack(parts, format="csr")
    return np.concatenate(parts)


def row_numbers(X: Any) -> int:
    """The numbers of memory that a row of X takes on average, rounded up."""
    if not is_sparse(X):
        return int(X.shape[1])
    index = X.indices.itemsize / X.dtype.itemsize
    return int(np.ceil(X.nnz * (1.0 + index) / max(X.shape[0], 1))) + 1


def squared_norms(X: Any) -> Array:
    """x'x of rows X (n, d), an array or compressed rows: (n,), in their dtype."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


# -------------------------------------------------------------------------------------------------
# Kernels.

Bound = Callable[[Array], Array]

# Values up to this one are zero: their inverses overflow, and they have lost digits.
NO_VALUE = float(np.finfo(float).tiny / np.finfo(float).eps)
NOT_FINITE = "The kernel has values that are not finite: scale the inputs."
# What a message says where a kernel's values may have lost their digits.
FAR_ROWS = (
    "Or some rows are so far from the others that the kernel between them is rounding: look for "
    "outliers, scale the inputs, or pass X in float64."
)


class Kernel(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the kernels; their parameters can be searched as `kernel__length_scale`.

    Attributes
    ----------
    takes_sparse : whether `bind` and what it returns take compressed rows of scipy.sparse, both.
    """

    takes_sparse: ClassVar[bool] = False

    def __call__(self, X: Array, C: Array | None = None) -> Array:
        """K(x_i, c_j), (n, m), for rows X (n, d) and C (m, d); without C, of X with itself.

        In the dtype of C; in float64 of lists and of arrays that are not of float32 or float64.
        """
        X = floats(X)
        C = X if C is None else floats(C)
        if is_sparse(X) or is_sparse(C):
            require_sparse_form(self)
            X, C = in_format(X, True), in_format(C, True)
        return self.bind(C)(X)

    @abstractmethod
    def bind(self, C: Array) -> Bound:
        """The function X (n, d) -> K(X, C) (n, m), in the dtype of C."""

    def diagonal(self, X: Array) -> Array:
        """K(x_i, x_i), (n,)."""
        return np.ones(X.shape[0], X.dtype)

    @property
    def needs_scale(self) -> bool:
        """True where a width is still to come from the data."""
        return isinstance(getattr(self, "length_scale", None), str)

    def scaled_to(self, X: Array, factor: float = 1.0) -> Kernel:
        """This kernel; in place of "scale" with `factor` times the scale of rows X (k, d).

        Raises ConfigurationError for another name than that.
        """
        return self


class Stationary(Kernel):
    """Base of the kernels of the differences between rows, over a width.

    Parameters
    ----------
    length_scale : the width, in the inputs' unit; or one for each input, (d,); or "scale": what
        `fit` finds in the data. That is the median distance between rows, as the kernel measures
        it, or, of an estimator with a penalty, the multiple of it
        (:data:`~.centers.WIDTH_FACTORS`) with the smallest leave-one-out error.
    """

    _metric: ClassVar[str] = "euclidean"

    def __init__(self, length_scale: Any = 1.0) -> None:
        self.length_scale = length_scale

    def scaled_to(self, X: Array, factor: float = 1.0) -> Kernel:
        """See :class:`Kernel`."""
        if not self.needs_scale:
            return self
        if self.length_scale != SCALE:
            _widths(self.length_scale, X.shape[1])  # raises
        width = factor * median_distance(X, self._metric)
        scaled: Kernel = clone(self).set_params(length_scale=width)
        return scaled


class Gaussian(Stationary):
    """exp(-|x - x'|^2 / 2 sigma^2).

    Parameters
    ----------
    length_scale : the width sigma: see :class:`Stationary`.
    """

    takes_sparse = True

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`; of arrays, with products too, see :class:`GaussianBlocks`."""
        widths = _widths(self.length_scale, C.shape[1])
        return sparse_gaussian(C, widths) if is_sparse(C) else GaussianBlocks(C, widths)


class Laplacian(Stationary):
    """exp(-|x - x'|_1 / sigma), with the sum of absolute differences, as scikit-learn has it.

    With the Euclidean distance it is ``Matern(length_scale, nu=0.5)``.

    Parameters
    ----------
    length_scale : the width sigma: see :class:`Stationary`.
    """

    _metric = "cityblock"

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`."""
        widths = _widths_of_arrays(C, self.length_scale)
        centers = C / widths

        def block(X: Array) -> Array:
            r = cdist(X / widths, centers, "cityblock")
            result: Array = np.exp(-r, out=r).astype(C.dtype, copy=False)
            return result

        return block


class Matern(Stationary):
    """The Matern kernel of smoothness nu on Euclidean distances.

    Parameters
    ----------
    length_scale : the width: see :class:`Stationary`.
    nu : 0.5 (exponential), 1.5 or 2.5: the closed forms.
    """

    def __init__(self, length_scale: Any = 1.0, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`; with products, too, as :class:`GaussianBlocks`."""
        if self.nu not in (0.5, 1.5, 2.5):
            raise ConfigurationError(f"Matern's nu must be 0.5, 1.5 or 2.5, not {self.nu}.")
        return GaussianBlocks(C, _widths_of_arrays(C, self.length_scale), order=int(2 * self.nu))


class Polynomial(Kernel):
    """(scale x'x + offset)^degree.

    Parameters
    ----------
    degree : a positive whole number.
    scale, offset : positive scale, and an offset that must not be negative.
    """

    takes_sparse = True

    def __init__(self, degree: int = 2, scale: float = 1.0, offset: float = 1.0) -> None:
        self.degree = degree
        self.scale = scale
        self.offset = offset

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`."""
        positive_count(self.degree, "degree")
        positive(self.scale, "scale")
        not_negative(self.offset, "offset")
        if is_sparse(C):
            return sparse_polynomial(C, int(self.degree), self.scale, self.offset)
        transposed = np.ascontiguousarray(C.T) * C.dtype.type(self.scale)

        def block(X: Array) -> Array:
            K = X @ transposed
            K += C.dtype.type(self.offset)
            return np.power(K, int(self.degree), out=K)

        return block

    def diagonal(self, X: Array) -> Array:
        """See :class:`Kernel`."""
        # A search's parameters are NumPy's scalars, which would make double precision of single.
        scale, offset = float(self.scale), float(self.offset)
        return (scale * squared_norms(X) + offset) ** int(self.degree)


class Linear(Kernel):
    """x'x + offset.

    Parameters
    ----------
    offset : a constant that must not be negative; 1 adds a bias.
    """

    takes_sparse = True

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`."""
        return Polynomial(1, 1.0, self.offset).bind(C)

    def diagonal(self, X: Array) -> Array:
        """See :class:`Kernel`."""
        return Polynomial(1, 1.0, self.offset).diagonal(X)


class CallableKernel(Kernel):
    """Any function of two sets of rows that returns the (n, m) matrix of a kernel.

    Compressed rows are passed on as they are, as scikit-learn's `cosine_similarity` takes them.
    """

    takes_sparse = True

    def __init__(self, function: Callable[[Array, Array], Array]) -> None:
        self.function = function

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`; raises LearningError for a wrong shape or a value not finite."""

        def block(X: Array) -> Array:
            K = np.asarray(in_format(self._matrix(X, C), False), dtype=C.dtype)
            n, m = X.shape[0], C.shape[0]
            if K.shape != (n, m):
                raise LearningError(
                    f"The kernel function returned {K.shape} for {n} rows and {m} "
                    f"centres; it must return the whole matrix, ({n}, {m})."
                )
            if not np.isfinite(K).all():
                raise LearningError("The kernel function returned a value that is not finite.")
            return K

        return block

    def diagonal(self, X: Array) -> Array:
        """K(x_i, x_i), from small square blocks."""
        parts = [np.diag(self(X[i : i + 32])) for i in range(0, X.shape[0], 32)]
        return np.concatenate(parts)

    def _matrix(self, X: Array, C: Array) -> Any:
        if not is_sparse(C):
            return self.function(X, C)
        try:
            return self.function(X, C)
        except (TypeError, ValueError) as problem:
            raise ConfigurationError(
                f"The kernel function can't take scipy.sparse's compressed rows: {problem} Pass "
                f"arrays, or a function that takes such rows."
            ) from problem


SCALE = "scale"  # a width that is found in the data
NAMED: dict[str, Callable[[], Kernel]] = {
    "gaussian": lambda: Gaussian(SCALE),
    "laplacian": lambda: Laplacian(SCALE),
    "matern": lambda: Matern(SCALE),
    "linear": Linear,
    "polynomial": Polynomial,
}


def as_kernel(kernel: Any) -> Kernel:
    """The kernel that an estimator's parameter stands for; None is "gaussian".

    Of a name's kernel the width is that of the data. Raises ConfigurationError for anything that
    is neither a kernel, nor a name, nor callable.
    """
    if isinstance(kernel, Kernel):
        return kernel
    named = NAMED.get("gaussian" if kernel is None else kernel) if _is_name(kernel) else None
    if named is not None:
        return named()
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise ConfigurationError(
        f"kernel must be a kernel such as Gaussian(length_scale=1.0), one of {', '.join(NAMED)}, "
        f"or a function of two matrices of rows, not {kernel!r}."
    )


def _is_name(kernel: Any) -> bool:
    return kernel is None or isinstance(kernel, str)


class HasKernel(BaseEstimator):  # type: ignore[misc]
    """Base of what has a parameter `kernel`, whose own parameters can be set in every form."""

    kernel: Any

    def _kernel_for(self, rows: Any) -> Kernel:
        """The kernel, of which the width may still be missing, for these rows."""
        return as_kernel(self.kernel)

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``kernel__length_scale`` of None or a name is that of its kernel."""
        kernel = params.get("kernel", self.kernel)
        if _is_name(kernel) and any(name.startswith("kernel__") for name in params):
            params["kernel"] = as_kernel(kernel)
        return super().set_params(**params)


SCALE_ROWS = 500  # at most, whose distances are looked at


def median_distance(X: Any, metric: str = "euclidean") -> float:
    """The median of the distances between rows X (k, d) that differ, in X's unit; 1 without any.

    Neither a column's offset nor a few rows far away have a part in it, however large they are.
    """
    some = X[:SCALE_ROWS].astype(float)
    if is_sparse(some):
        unit = float(np.abs(some.data).max(initial=0.0)) or 1.0
        some = some / unit
        norms = squared_norms(some)
        squares = norms + norms[:, None] - 2.0 * (some @ some.T).toarray()
        distances = np.sqrt(squares[np.triu_indices(len(norms), 1)].clip(0.0))
        distances[distances < np.sqrt(np.finfo(float).eps * norms.max(initial=0.0))] = 0.0
    else:
        moved = some - middle(some)
        sizes = np.abs(moved[moved != 0.0])
        unit = float(np.median(sizes)) if sizes.size else 1.0
        with np.errstate(over="ignore"):
            distances = pdist(np.clip(moved / unit, -FAR, FAR), metric)
    distances = distances[distances > 0.0]
    found = unit * float(np.median(distances)) if distances.size else 1.0
    return found if np.isfinite(found) and found > 0.0 else 1.0


FAR = 1e150  # whose square has a number


def require_sparse_form(kernel: Kernel) -> None:
    """Raise ConfigurationError for a kernel that has no form for compressed rows."""
    if not kernel.takes_sparse:
        raise ConfigurationError(
            f"{type(kernel).__name__} has no form for sparse inputs: take Linear, Polynomial, "
            f"Gaussian or a function of two sparse matrices, or pass X.toarray()."
        )


def _widths_of_arrays(C: Array, length_scale: Any) -> Array:
    if is_sparse(C):
        raise ConfigurationError("Distances like these have no form for sparse inputs.")
    return _widths(length_scale, C.shape[1])


def _widths(length_scale: Any, n_inputs: int) -> Array:
    needed = f"length_scale must be a number or one for each of the {n_inputs} inputs, not"
    if isinstance(length_scale, str) and length_scale == SCALE:
        raise ConfigurationError(
            f'length_scale="{SCALE}" is found by an estimator\'s fit: outside one pass a number.'
        )
    try:
        widths = np.asarray(length_scale, dtype=float)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{needed} {length_scale!r}.") from None
    if widths.ndim > 1 or (widths.ndim == 1 and len(widths) != n_inputs):
        raise ConfigurationError(f"{needed} of shape {widths.shape}.")
    if not (np.isfinite(widths).all() and (widths > 0.0).all()):
        raise ConfigurationError(f"length_scale must be positive, not {length_scale}.")
    return np.broadcast_to(widths, (n_inputs,))


# -------------------------------------------------------------------------------------------------
# A Gaussian or Matern kernel with its centres prepared: blocks of its matrix, and products with
# them. The products take no memory for the matrix: a part of its rows is in the processor's cache.

CACHED_BYTES = 2**21  # of those rows, for the second-level cache and what a core has of the third
FEWEST_CACHED_ROWS, MOST_CACHED_ROWS = 16, 256  # of a product of matrices: of fewer it is slower
MEDIAN_ROWS = 500  # at most, of which the centres' median is taken
RESTORED = 1e-7  # of a row's square: distances below it have lost half of their digits


class GaussianBlocks:
    """X -> K(X, C), with K(x, c) = exp(-|x - c|^2 / 2 sigma^2), in the dtype of C.

    -|x - c|^2 / 2 is the product of [x, -|x|^2/2, 1] and [c, 1, -|c|^2/2]. The origin is moved to
    the centres' median, so that little cancels: their mean would follow a single one that is far
    away, and leave the others no digits. Inputs are also multiplied by the root of log2(e), so that
    K is a power of two, which takes less time than one of e. Of Matern's kernels the same product
    is minus a squared distance. Its root amplifies what cancels in it: it is in double precision.

    Parameters
    ----------
    C : centres (m, d), float32 or float64.
    widths : sigma, one for each input, (d,).
    order : 2 nu of Matern's kernel, 1, 3 or 5; 0: the Gaussian one.

    Attributes
    ----------
    origin, scale : (d,), what is subtracted from inputs, and what they are then multiplied by.
    cached_rows : of the kernel, that a product has in memory at a time.

    Raises LearningError when inputs divided by the widths have squares that overflow.
    """

    def __init__(self, C: Array, widths: Array, order: int = 0) -> None:
        self.dtype, self._order = C.dtype, order
        self._inner: Any = np.dtype(float) if order else C.dtype
        self.scale = (1.0 / widths).astype(C.dtype)
        unit = np.sqrt(2.0 * order) * LOG2_E if order else np.sqrt(LOG2_E)
        self._scale = (unit / widths).astype(self._inner)
        self.origin = middle(C).astype(self._inner, copy=False)
        centers = self._with_norms(C)
        centers[:, -2:] = centers[:, [-1, -2]]
        self._centers = np.ascontiguousarray(centers.T)
        fitting = CACHED_BYTES // max(centers[:, :1].nbytes, 1)
        self.cached_rows = min(max(fitting // 4 * 4, FEWEST_CACHED_ROWS), MOST_CACHED_ROWS)

    def __call__(self, X: Array) -> Array:
        """K(X, C), (k, m), of rows X (k, d)."""
        K, none = np.empty((len(X), self._centers.shape[1]), self._inner), np.empty((0, 0))
        self._add_products(X, none, none, none, none, none, K)
        return K.astype(self.dtype, copy=False)

    def multiply(self, X: Array, B: Array) -> Array:
        """K(X, C) B for B (m, T): (k, T) in float64, as all sums."""
        out = np.zeros((len(X), B.shape[1]))
        none = np.empty((0, B.shape[1]))
        self._add_products(X, B.T, none, none, out, none[:, :0])
        return out

    def normal(self, X: Array, B: Array, Y: Array | None, weights: Array | None) -> Array:
        """K' W (K B - Y) with K = K(X, C), for B (m, T), Y (k, T) and W's diagonal, (k,) or, one
        for each column, (k, T); None: no Y, no weights. (m, T) in float64.
        """
        k, T = len(X), B.shape[1]
        out, S = np.zeros((T, len(B))), np.zeros((k, T))
        Y, w = np.zeros((k, T)) if Y is None else Y, weight_columns(weights, k, T)
        self._add_products(X, B.T, Y, w, S, out)
        return out.T

    def transposed(self, X: Array, S: Array) -> Array:
        """K(X, C)' S for S (k, T): (m, T) in float64."""
        none, out = np.empty((0, S.shape[1])), np.zeros((S.shape[1], self._centers.shape[1]))
        self._add_products(X, none[:, :0], none, none, S, out)
        return out.T

    def _add_products(
        self, X: Array, B: Array, Y: Array, w: Array, S: Array, out: Array, K: Array | None = None
    ) -> None:
        """See :func:`add_products`; K (k, m) becomes the whole kernel where it is given."""
        size = max(min(self.cached_rows, len(X)), 1)
        K = np.empty((size, self._centers.shape[1]), self._inner) if K is None else K
        X, B, Y, w, S = self._with_norms(X), in_rows(B), in_rows(Y), in_rows(w), in_rows(S)
        add_products(X, self._centers, K, size, B, Y, w, S, out, self._order)

    def _with_norms(self, X: Array) -> Array:
        """[x, -|x|^2 / 2, 1] of each row, moved and scaled."""
        result = np.empty((len(X), X.shape[1] + 2), self._inner)
        np.multiply(X - self.origin, self._scale, out=result[:, :-2])
        norms = result[:, -2]
        np.einsum("ij,ij->i", result[:, :-2], result[:, :-2], out=norms)
        if not np.isfinite(norms).all():
            raise LearningError(
                f"Inputs are so large relative to the kernel's length scale that their squares "
                f"overflow in {self._inner}: scale the inputs, or raise length_scale."
            )
        norms *= -0.5
        result[:, -1] = 1.0
        return result


def middle(C: Array) -> Array:
    """The median of each of C's columns, (d,), in its dtype; zeros where C has no rows.

    Of many rows some hundreds, evenly spaced, are enough: the median of all takes
    ten times as long as their mean, and SGM asks for it at each block of its draws.
    """
    if not len(C):
        return np.zeros(C.shape[1], C.dtype)
    return np.median(C[:: 1 + len(C) // MEDIAN_ROWS], axis=0).astype(C.dtype, copy=False)


def weight_columns(weights: Array | None, k: int, T: int) -> Array:
    """Weights (k,), (k, T) or, None, ones as (k, T) in float64, which may be a view."""
    if weights is None:
        return np.ones((k, T))
    each = weights[:, None] if weights.ndim == 1 else weights
    return np.broadcast_to(each.astype(float, copy=False), (k, T))


def in_rows(A: Array) -> Array:
    """A in float64, row by row."""
    return np.ascontiguousarray(A, dtype=float)


# -------------------------------------------------------------------------------------------------
# The compiled loops. Exponents of some rows come from one product of matrices; four rows of them at
# a time become the kernel, in their place, and are multiplied twice while they are in the cache.


@compiled
def add_products(
    X: Array,
    C: Array,
    K: Array,
    size: int,
    B: Array,
    Y: Array,
    w: Array,
    S: Array,
    out: Array,
    order: int,
) -> None:
    """:func:`add_rows` with the kernel of exponents X C, for X (k, p) and the centres C (p, m).

    `size` rows at a time, in the working memory K (size, m); or they stay there, in K (k, m).
    """
    for i in range(0, len(X), size):
        first = i if len(K) == len(X) else 0
        part = K[first : first + min(size, len(X) - i)]
        if part.size:  # BLAS takes no empty matrix
            np.dot(X[i : i + len(part)], C, part)
        for r in range(0, len(part), 4):
            rows = part[r : r + 4]
            _finish(rows, X, C, i + r, order)
            add_rows(rows, B, Y, w, S, out, i + r)


@compiled
def add_rows(K: Array, B: Array, Y: Array, w: Array, S: Array, out: Array, start: int) -> None:
    """S += K B, then S = w (S - Y) where there are w, then out += K' S; K (4, m) at most.

    K is rows from `start` on of all k. B and out are transposed, (T, m), or (0, 0) where their
    product isn't asked for. S (k, T); Y and w (k, T), or (0, T). K may be in single precision;
    all sums are in double: in them coefficients of opposite signs, many times larger than the
    function, cancel.
    """
    forward(K, B, S, start)
    if len(w):
        for r in range(start, start + len(K)):
            for t in range(S.shape[1]):
                S[r, t] = (S[r, t] - Y[r, t]) * w[r, t]
    backward(K, S, out, start)


@compiled
def _finish(K: Array, X: Array, C: Array, start: int, order: int) -> None:
    """The kernel (here, m) of some rows from `start` on, in place of their exponents."""
    if order == 0:
        powers_of_two(K.reshape(K.size))
        return
    d = X.shape[1] - 2
    for i in range(len(K) if order == 1 else 0):
        x = X[start + i]
        for j in range(K.shape[1]):
            # Of rows near a centre the digits cancelled: from the differences.
            if K[i, j] > RESTORED * x[d]:
                squares = 0.0
                for k in range(d):
                    squares += (x[k] - C[k, j]) ** 2
                K[i, j] = -0.5 * squares
    matern_of_squares(K.reshape(K.size), order)


@compiled
def forward(K: Array, B: Array, S: Array, start: int) -> None:
    """S += K B of the rows from `start`."""
    take_widest_vectors()
    for t in range(len(B)):
        b = B[t]
        if len(K) == 4:
            r0, r1, r2, r3 = K[0], K[1], K[2], K[3]
            s0 = s1 = s2 = s3 = 0.0
            for j in range(b.size):
                bj = b[j]
                s0 += r0[j] * bj
                s1 += r1[j] * bj
                s2 += r2[j] * bj
                s3 += r3[j] * bj
            S[start, t] += s0
            S[start + 1, t] += s1
            S[start + 2, t] += s2
            S[start + 3, t] += s3
        else:
            for r in range(len(K)):
                row, s0 = K[r], 0.0
                for j in range(b.size):
                    s0 += row[j] * b[j]
                S[start + r, t] += s0


@compiled
def backward(K: Array, S: Array, out: Array, start: int) -> None:
    """out += K' S of the rows from `start`."""
    take_widest_vectors()
    for t in range(len(out)):
        o = out[t]
        if len(K) == 4:
            r0, r1, r2, r3 = K[0], K[1], K[2], K[3]
            s0, s1, s2, s3 = S[start, t], S[start + 1, t], S[start + 2, t], S[start + 3, t]
            for j in range(o.size):
                o[j] += r0[j] * s0 + r1[j] * s1 + r2[j] * s2 + r3[j] * s3
        else:
            for r in range(len(K)):
                row, s0 = K[r], S[start + r, t]
                for j in range(o.size):
                    o[j] += row[j] * s0
