"""Rows, independent solutions and looks at a recursion's state that the tests here share."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.learning.recursion.factor import DeferredRotation
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares


def drawn(k: int, n: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, n)), rng.standard_normal((k, outputs))


def by_qr(Z: np.ndarray, Y: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """R and U by LAPACK's QR of all rows at once."""
    n = Z.shape[1]
    Q, R = np.linalg.qr(np.vstack((np.sqrt(ridge) * np.eye(n), Z)))
    sign = np.where(np.diag(R) < 0.0, -1.0, 1.0)
    return R * sign[:, None], (Q.T @ np.vstack((np.zeros((n, Y.shape[1])), Y))) * sign[:, None]


def learn(core: RecursiveLeastSquares | DeferredRotation, Z: np.ndarray, Y: np.ndarray) -> None:
    """Rows one by one."""
    for z, y in zip(Z, Y, strict=True):
        core.update(z, y)


def RU(core: RecursiveLeastSquares | DeferredRotation) -> tuple[np.ndarray, np.ndarray]:
    """R and U with everything learned in them."""
    core.apply_pending()
    return core.R, core.U


def information(core: RecursiveLeastSquares) -> np.ndarray:
    R, _ = RU(core)
    return R.T @ R


def same_bits(
    one: RecursiveLeastSquares | DeferredRotation, other: RecursiveLeastSquares | DeferredRotation
) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(RU(one), RU(other), strict=True))


def same_state(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


def triangular(core: RecursiveLeastSquares) -> bool:
    """Whether R has zeros below its diagonal, and a positive one."""
    R, _ = RU(core)
    return bool(np.all(np.tril(R, -1) == 0.0) and np.all(np.diagonal(R) > 0.0))
