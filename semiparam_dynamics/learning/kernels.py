"""Positive-definite kernels, evaluated block by block.

A kernel is a function of two sets of rows: `kernel(X, C)` is the matrix K(x_i, c_j), (n, m).
`kernel.bind(C)` prepares the centres once, for many blocks of X. Rows may be scipy.sparse's, in
compressed form, for the kernels that are functions of inner products.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive,
    positive_count,
)
from semiparam_dynamics.learning.gaussian_blocks import GaussianBlocks, middle
from semiparam_dynamics.learning.sparse import (
    floats,
    in_format,
    is_sparse,
    sparse_gaussian,
    sparse_polynomial,
    squared_norms,
)
from semiparam_dynamics.learning.threads import for_each

Bound = Callable[[Array], Array]
CACHE_BYTES = 2**22  # a block's kernel stays in the processor's cache between the steps on it

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


class Gaussian(Kernel):
    """exp(-|x - x'|^2 / 2 sigma^2).

    Parameters
    ----------
    length_scale : the width sigma, in the inputs' unit; or one width for each input, (d,).
    """

    takes_sparse = True

    def __init__(self, length_scale: Any = 1.0) -> None:
        self.length_scale = length_scale

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`; of arrays, with products too, see :class:`GaussianBlocks`."""
        widths = _widths(self.length_scale, C.shape[1])
        return sparse_gaussian(C, widths) if is_sparse(C) else GaussianBlocks(C, widths)


class Laplacian(Kernel):
    """exp(-|x - x'|_1 / sigma), with the sum of absolute differences, as scikit-learn has it.

    With the Euclidean distance it is ``Matern(length_scale, nu=0.5)``.

    Parameters
    ----------
    length_scale : the width sigma, or one for each input, (d,).
    """

    def __init__(self, length_scale: Any = 1.0) -> None:
        self.length_scale = length_scale

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`."""
        return _of_distances(C, self.length_scale, "cityblock", lambda r: np.exp(-r, out=r))


class Matern(Kernel):
    """The Matern kernel of smoothness nu on Euclidean distances.

    Parameters
    ----------
    length_scale : the width, or one for each input, (d,).
    nu : 0.5 (exponential), 1.5 or 2.5: the closed forms.
    """

    def __init__(self, length_scale: Any = 1.0, nu: float = 1.5) -> None:
        self.length_scale = length_scale
        self.nu = nu

    def bind(self, C: Array) -> Bound:
        """See :class:`Kernel`. Squared distances come from products, except for nu = 0.5: there the
        root would amplify what cancels in them, while the others are smooth functions of them.
        """
        if self.nu not in (0.5, 1.5, 2.5):
            raise ConfigurationError(f"Matern's nu must be 0.5, 1.5 or 2.5, not {self.nu}.")
        if self.nu == 0.5:
            return _of_distances(C, self.length_scale, "euclidean", lambda r: np.exp(-r, out=r))
        distances = _squared_distances(C, self.length_scale, 2.0 * self.nu)

        def block(X: Array) -> Array:
            r = distances(X)
            np.sqrt(r, out=r)
            K = np.exp(-r)
            K *= 1.0 + r if self.nu == 1.5 else 1.0 + r * (1.0 + r / 3.0)
            return K.astype(C.dtype, copy=False)

        return block


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
            result: Array = np.power(K, int(self.degree), out=K)
            return result

        return block

    def diagonal(self, X: Array) -> Array:
        """See :class:`Kernel`."""
        # A search's parameters are NumPy's scalars, which would make double precision of single.
        scale, offset = float(self.scale), float(self.offset)
        diagonal: Array = (scale * squared_norms(X) + offset) ** int(self.degree)
        return diagonal


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


def evaluate_into(bound: Bound, X: Array, out: Array) -> None:
    """out = K(X, centres), (n, m), by all cores where there is enough work for them."""
    if out.nbytes <= CACHE_BYTES:
        out[:] = bound(X)
        return
    size = max(64, CACHE_BYTES // max(out[:1].nbytes, 1))

    def fill(i: int) -> None:
        if (
            isinstance(bound, GaussianBlocks)
            and bound.dtype == out.dtype
            and out.flags.c_contiguous
        ):
            bound.into(X[i : i + size], out[i : i + size])
        else:
            out[i : i + size] = bound(X[i : i + size])

    for_each(fill, range(0, X.shape[0], size))


def as_kernel(kernel: Any) -> Kernel:
    """The kernel that an estimator's parameter names; None is the Gaussian of width 1.

    Raises ConfigurationError for anything that is neither a kernel nor callable.
    """
    if kernel is None:
        return Gaussian()
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise ConfigurationError(
        f"kernel must be a kernel such as Gaussian(length_scale=1.0), or a function of two "
        f"matrices of rows, not {kernel!r}."
    )


def require_sparse_form(kernel: Kernel) -> None:
    """Raise ConfigurationError for a kernel that has no form for compressed rows."""
    if not kernel.takes_sparse:
        raise ConfigurationError(
            f"{type(kernel).__name__} has no form for sparse inputs: take Linear, Polynomial, "
            f"Gaussian or a function of two sparse matrices, or pass X.toarray()."
        )


def _squared_distances(C: Array, length_scale: Any, factor: float) -> Bound:
    """X -> factor * |x - c|^2 (k, m), of rows over widths, in float64.

    The origin is moved to the centres' median, so that little cancels: their mean would follow a
    single one that is far away.
    """
    widths = _widths_of_arrays(C, length_scale) / np.sqrt(factor)
    origin = middle(C).astype(float, copy=False)
    centers = (C - origin) / widths
    norms = np.einsum("ij,ij->i", centers, centers)
    transposed = np.ascontiguousarray(-2.0 * centers.T)

    def block(X: Array) -> Array:
        A = (X - origin) / widths
        D: Array = A @ transposed
        D += np.einsum("ij,ij->i", A, A)[:, None]
        D += norms
        return np.maximum(D, 0.0, out=D)

    return block


def _of_distances(
    C: Array, length_scale: Any, metric: str, function: Callable[[Array], Array]
) -> Bound:
    """X -> function(r) of the distances r (k, m) between rows over widths, which it may use up."""
    widths = _widths_of_arrays(C, length_scale)
    centers = C / widths
    return lambda X: function(cdist(X / widths, centers, metric)).astype(C.dtype, copy=False)


def _widths_of_arrays(C: Array, length_scale: Any) -> Array:
    if is_sparse(C):
        raise ConfigurationError("Distances like these have no form for sparse inputs.")
    return _widths(length_scale, C.shape[1])


def _widths(length_scale: Any, n_inputs: int) -> Array:
    needed = f"length_scale must be a number or one for each of the {n_inputs} inputs, not"
    try:
        widths = np.asarray(length_scale, dtype=float)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{needed} {length_scale!r}.") from None
    if widths.ndim > 1 or (widths.ndim == 1 and len(widths) != n_inputs):
        raise ConfigurationError(f"{needed} of shape {widths.shape}.")
    if not (np.isfinite(widths).all() and (widths > 0.0).all()):
        raise ConfigurationError(f"length_scale must be positive, not {length_scale}.")
    return np.broadcast_to(widths, (n_inputs,))
