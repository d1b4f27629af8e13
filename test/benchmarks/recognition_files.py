"""Small feature files for the tests of table 7.1's protocol."""

from __future__ import annotations

from pathlib import Path

import numpy as np

CLASSES = ("ant", "bee", "cat", "dog")


def blobs(rows: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (4 rows, 6) of four classes that overlap, shuffled, and their labels 0 to 3."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.repeat(np.arange(4), rows))
    centers = np.abs(np.random.default_rng(7).normal(size=(4, 6))) * 3.0
    return centers[y] + random.normal(size=(len(y), 6)) * 1.2, y


def one_part(path: Path, rows: int = 90) -> Path:
    """A file with X, y and classes."""
    X, y = blobs(rows)
    np.savez(path, X=X.astype(np.float32), y=y, classes=np.array(CLASSES))
    return path


def two_parts(path: Path, rows: int = 90, test: int = 30) -> Path:
    """A file with a part to learn and a part to test on."""
    (X, y), (X_test, y_test) = blobs(rows), blobs(test, seed=1)
    np.savez(path, X_train=X, y_train=y, X_test=X_test, y_test=y_test)
    return path
