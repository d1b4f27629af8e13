"""Data, direct solutions to compare estimators with, and the memory that a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh

from semiparam_dynamics.base.arrays import Array


def waves(n: int = 60, seed: int = 0, d: int = 3) -> tuple[Any, Any, Any]:
    """Normal inputs (n, d), two outputs of them with noise, and 20 more inputs."""
    rng = np.random.default_rng(seed)
    X, X_new = rng.standard_normal((n, d)), rng.standard_normal((20, d))
    Y = np.column_stack([np.sin((t + 1) * X[:, 0]) + 0.1 * X[:, -1] for t in range(2)])
    return X, Y + 0.1 * rng.standard_normal(Y.shape), X_new


def cube(n: int = 200, d: int = 3, T: int = 0, seed: int = 0) -> tuple[Any, Any, Any]:
    """Inputs (n, d) in a cube, one output or T outputs of them, and 60 more inputs."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, (n, d))
    y = np.sin(3.0 * X.sum(axis=1)) + 0.1 * draw.standard_normal(n)
    if T:
        y = np.stack([y * (t + 1) + X[:, 0] * t for t in range(T)], axis=1)
    return X, y, draw.uniform(-1, 1, (60, d))


def direct(kernel: Any, centers: Array, penalty: float, inputs: Array, Y: Array, at: Array,
           weights: Array | None = None) -> Array:  # fmt: skip
    """Nyström ridge regression's predictions, by least squares in K_MM's eigenvectors."""
    centers, inputs, at = (np.asarray(a, dtype=float) for a in (centers, inputs, at))
    values, Q = eigh(kernel(centers))
    used = values > 1e-13 * values[-1]
    S = Q[:, used] / np.sqrt(values[used])
    w = np.ones(len(inputs)) if weights is None else weights
    A = (kernel(inputs, centers) @ S) * np.sqrt(w)[:, None]
    stacked = np.vstack((A, np.sqrt(penalty * w.sum()) * np.eye(A.shape[1])))
    right = np.concatenate((Y * np.sqrt(w).reshape((-1,) + (1,) * (Y.ndim - 1)),
                            np.zeros((A.shape[1], *Y.shape[1:]))))  # fmt: skip
    solution = np.linalg.lstsq(stacked, right, rcond=None)[0]
    result: Array = kernel(at, centers) @ S @ solution
    return result


def in_long_double(width: float, centers: Array, penalty: float, inputs: Array, targets: Array,
                   at: Array) -> Array:  # fmt: skip
    """The same by the normal equations, (K_nM' K_nM + penalty n K_MM) alpha = K_nM' y."""

    def kernel(A: Array, B: Array) -> Any:
        differences = A.astype(np.longdouble)[:, None] - B.astype(np.longdouble)
        return np.exp(-np.sum(differences**2, axis=2) / (2 * np.longdouble(width) ** 2))

    K = kernel(inputs, centers)
    H = K.T @ K + np.longdouble(penalty) * len(inputs) * kernel(centers, centers)
    result: Array = (kernel(at, centers) @ solved(H, K.T @ targets[:, None])[:, 0]).astype(float)
    return result


def solved(A: Any, B: Any) -> Any:
    """A^-1 B of a positive definite A, by Gauss-Jordan elimination in extended precision."""
    system = np.concatenate((A, B), axis=1).astype(np.longdouble)
    for i in range(len(A)):
        system[i] /= system[i, i]
        others = np.arange(len(A)) != i
        system[others] -= np.outer(system[others, i], system[i])
    return system[:, len(A) :]


def ridge(Z: Any, Y: Any, penalty: float) -> Any:
    """(Z'Z + penalty I)^-1 Z'Y in extended precision."""
    Z, Y = Z.astype(np.longdouble), Y.astype(np.longdouble)
    return solved(Z.T @ Z + np.longdouble(penalty) * np.eye(Z.shape[1]), Z.T @ Y)


def peak_memory(function: Callable[[], Any]) -> int:
    """The bytes that are in use at most while the function is called."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def relative(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
