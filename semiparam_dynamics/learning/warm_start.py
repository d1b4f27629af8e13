"""From a model trained in batch to a recursion that goes on from it.

A batch model f(x) = phi(x)'W and a recursion with the same features differ only in what they
keep: the recursion also needs R with R'R = penalty I + sum phi phi' over the rows the model was
trained on. With it and U = R W it predicts what the model predicts, and each new row counts
against the old ones as if the recursion had learned them all (thesis 8.2.4). For a ridge model
of the same penalty this is exact; for one that was stopped early, W is the starting point and R
says how firmly it is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.base import kernel_sum
from semiparam_dynamics.learning.basis import NystromBasis
from semiparam_dynamics.learning.checks import positive_penalty
from semiparam_dynamics.learning.kernels import Kernel, as_kernel
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares

Transform = Callable[[Array], Array]
BLOCK = 2048  # rows, and at least four times the features, so that a block outweighs R


def recursion_from(
    transform: Transform, X: Array, weights: Array, penalty: float, capacity: int | None = None
) -> RecursiveLeastSquares:
    """A recursion that predicts transform(x) @ weights and has learned the rows X.

    transform : inputs (k, d) to features (k, D).
    X : (n, d), the inputs that the weights (D, T) were trained on.
    penalty : the plain ridge: a batch model's penalty times the n it was trained on.
    capacity : room for features that are added later.
    """
    core = RecursiveLeastSquares(len(weights), weights.shape[1], penalty, capacity=capacity)
    R = information_factor(transform, X, len(weights), penalty)
    core.restore({"R": R, "U": R @ weights, "refreshed": np.array(0)})
    return core


def information_factor(transform: Transform, X: Array, n_features: int, penalty: float) -> Array:
    """Upper triangular R (D, D) with R'R = penalty I + Z'Z, Z = transform(X); one pass, BLAS 3.

    By QR, block after block: the rounding of Z'Z would be squared.
    """
    R = math.sqrt(positive_penalty(penalty)) * np.eye(n_features)
    size = max(BLOCK, 4 * n_features)
    for start in range(0, len(X), size):
        Z = transform(X[start : start + size])
        R = np.asarray(np.linalg.qr(np.concatenate((R, Z)), mode="r"))
    result: Array = R * np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None]
    return result


def nystrom_start(model: Any, capacity: int | None = None) -> tuple[NystromBasis, Array]:
    """Orthonormal features of a fitted kernel model, and its weights (q, T) in them.

    model : anything with centers_ (m, d), coef_ (m,) or (m, T) and the parameter `kernel`.
    capacity : the centres at most. A model with more keeps those that the others explain least,
        and becomes its projection on their span, which agrees with it on them.

    Raises LearningError for a model that is no sum of kernels at centres.
    """
    check_is_fitted(model)
    if not (hasattr(model, "centers_") and hasattr(model, "coef_")):
        raise LearningError(
            f"{type(model).__name__} has no centres: it can't start Nyström features."
        )
    kernel = as_kernel(model.kernel)
    centers = np.asarray(model.centers_, dtype=float)
    coefficients = np.asarray(model.coef_, dtype=float).reshape(len(centers), -1)
    if capacity is None or len(centers) <= capacity:
        basis = NystromBasis(kernel, centers)
        return basis, basis.weights(coefficients)
    basis = NystromBasis(kernel, centers[least_explained(kernel, centers, capacity)])
    values = kernel_sum(basis.centers[basis.kept], kernel, centers, coefficients)
    return basis, solve_triangular(basis.factor, values, lower=True)


def least_explained(kernel: Kernel, points: Array, n: int) -> Indices:
    """The numbers (n,) of points (m, d), each the one that those before it explain least.

    The pivots of an incomplete Cholesky factorisation of K(points, points); O(m n^2).
    """
    rest = kernel.diagonal(points).astype(float)
    columns = np.zeros((n, len(points)))
    chosen = np.zeros(n, dtype=np.intp)
    for i in range(n):
        chosen[i] = j = int(np.argmax(rest))
        if rest[j] <= 0.0:
            return chosen[:i]
        column = kernel(points, points[j : j + 1])[:, 0]
        column = column - columns[:i, j] @ columns[:i]
        columns[i] = column / math.sqrt(rest[j])
        rest -= columns[i] ** 2
        rest[chosen[: i + 1]] = -math.inf
    return chosen


def fitted_rows(core: RecursiveLeastSquares, transform: Transform, X: Array) -> tuple[Array, Array]:
    """Outputs (n, T) at rows X (n, d) that were learned, and what each left out leaves, (n,).

    The second is 1 - h with h = z (R'R)^-1 z': an error divided by it is the error that a ridge
    model trained without that row would have made there.
    """
    size = max(BLOCK, core.n_features)
    W = core.weights()
    outputs = np.empty((len(X), core.n_outputs))
    left = np.empty(len(X))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        Z = np.ascontiguousarray(transform(X[rows]))
        outputs[rows] = Z @ W
        left[rows] = 1.0 - core.leverages(Z)
    return outputs, np.maximum(left, np.finfo(float).eps)


def fourier_start(model: Any) -> tuple[Array, Array]:
    """Frequencies (m, d), and weights (2 m, T) of their cosines and then their sines.

    model : a fitted RandomFeaturesKRLS. One with phases is a sum of such pairs as well,
        cos(w'x + b) = cos b cos w'x - sin b sin w'x, of twice as many features.

    Raises LearningError for a model that has no frequencies.
    """
    check_is_fitted(model)
    if not (hasattr(model, "frequencies_") and hasattr(model, "coef_")):
        raise LearningError(
            f"{type(model).__name__} has no frequencies: it can't start random Fourier features."
        )
    frequencies = np.asarray(model.frequencies_, dtype=float)
    coefficients = np.asarray(model.coef_, dtype=float)
    coefficients = coefficients.reshape(len(coefficients), -1)
    # Both kinds scale by sqrt(2 / number of functions), the pairs here by 1 / sqrt(frequencies).
    if model.offsets_ is None:
        return frequencies, np.concatenate((coefficients[::2], coefficients[1::2]))
    b = np.asarray(model.offsets_, dtype=float)[:, None]
    coefficients = math.sqrt(2.0) * coefficients
    return frequencies, np.concatenate((np.cos(b) * coefficients, -np.sin(b) * coefficients))
