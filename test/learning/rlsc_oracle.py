"""Examples, and the batch solution, by which the incremental classifier is judged."""

from __future__ import annotations

from typing import Any

import numpy as np

NAMES = np.array(["mug", "book", "ball", "pen"])


def examples(
    n: int = 200, d: int = 7, classes: int = 3, seed: int = 0, spread: float = 1.0
) -> tuple[Any, Any]:
    """Clusters around random centres, of sizes that differ, in random order."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    numbers = rng.choice(classes, n, p=shares)
    centers = 2.0 * np.random.default_rng(99).normal(size=(classes, d))
    return centers[numbers] + spread * rng.normal(size=(n, d)), NAMES[numbers]


def solution(X: Any, y: Any, classes: Any, ridge: float, recoding: float) -> Any:
    """W Gamma^recoding of thesis (7.15) and algorithm 2, in extended precision."""
    X = X.astype(np.longdouble)
    Y = (y[:, None] == classes).astype(np.longdouble)
    A, B = X.T @ X + ridge * np.eye(X.shape[1]), X.T @ Y
    for i in range(len(A)):  # Gauss-Jordan: LAPACK knows no extended precision
        pivot = i + int(np.argmax(np.abs(A[i:, i])))
        A[[i, pivot]], B[[i, pivot]] = A[[pivot, i]], B[[pivot, i]]
        B[i], A[i] = B[i] / A[i, i], A[i] / A[i, i]
        for j in range(len(A)):
            if j != i:
                B[j], A[j] = B[j] - A[j, i] * B[i], A[j] - A[j, i] * A[i]
    return np.asarray(B * (len(X) / Y.sum(axis=0)) ** recoding, dtype=float)


def learned(X: Any, y: Any, every: int = 6) -> Any:
    """Which examples are learned: of each class all but every so many-th."""
    seen: dict[str, int] = {}
    kept = []
    for label in y:
        seen[label] = seen.get(label, 0) + 1
        kept.append(seen[label] % every != 0)
    return np.array(kept)


def unchanged(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return before.keys() == after.keys() and all(
        np.array_equal(before[name], after[name]) for name in before
    )
