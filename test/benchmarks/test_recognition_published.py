"""Table 7.1 by its code's protocol, against the formulas with all rows at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import recognition_published
from recognition_data import read_features

from .recognition_files import one_part, two_parts

DRAWN, EXPONENTS = 50, [0.0, 0.6]


def independent(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, truth: np.ndarray, n: int
) -> dict[str, tuple[float, float, float]]:
    """Validation accuracies, averaged over the classes and of the new one, and the penalty."""
    Y = np.eye(4)[y]
    counts = Y.sum(axis=0)
    best: dict[str, tuple[float, float, float]] = {}
    for penalty in recognition_published.PENALTIES:
        for method, power in (("naive", 0.0), ("recoding, exponent 0.6", 0.6), ("rebalanced", 1.0)):
            weights = (len(y) / counts)[y] if method == "rebalanced" else np.ones(len(y))
            # The recursion's ridge stays as it was when the new class began.
            ridge = penalty * (len(y) if method == "rebalanced" else n) * np.eye(X.shape[1])
            W = np.linalg.solve((X.T * weights) @ X + ridge, (X.T * weights) @ Y)
            if method != "rebalanced":
                W = W * (1.0 / counts) ** power
            found = (V @ W).argmax(axis=1)
            shares = [np.mean(found[truth == c] == c) for c in range(4)]
            score = float(np.mean(shares)), float(shares[1]), penalty
            if method not in best or score[0] >= best[method][0]:
                best[method] = score
    return best


def test_each_method_is_its_formula_with_the_penalty_that_validates_best(tmp_path: Path) -> None:
    file = read_features(two_parts(tmp_path / "features.npz"))
    seen = {}
    draw = np.random.default_rng(3)
    for method, point, scores in recognition_published.one_trial(file, draw, 1, DRAWN, EXPONENTS):
        seen[method, point] = scores
    # The same draws: four fifths of each class learned, a fifth to validate on.
    draw, y = np.random.default_rng(3), file.train.numbers
    rows = [draw.permutation(np.flatnonzero(y == c))[:DRAWN] for c in range(4)]
    low, high = file.train.X.min(), file.train.X.max()
    X = 2.0 * (file.train.X - low) / (high - low) - 1.0
    old = np.concatenate([rows[c][:40] for c in (0, 2, 3)])
    held = np.concatenate([part[40:] for part in rows])
    assert {point for _, point in seen} == {1, 5, 10}
    for point in (1, 5, 10):
        learned = np.concatenate([old, rows[1][:point]])
        expected = independent(X[learned], y[learned], X[held], y[held], len(old))
        for method, (total, new, penalty) in expected.items():
            found = seen[method, point]
            np.testing.assert_allclose(found[:2], (total, new), atol=1e-12)
            factor = (len(learned) if method == "rebalanced" else len(old)) / len(old)
            np.testing.assert_allclose(found[4], penalty * factor, rtol=1e-9)
        assert seen["recoding, exponent 0", point] == seen["naive", point]


def test_the_table_is_printed(thesis, tmp_path: Path, capsys) -> None:
    path = one_part(tmp_path / "pets.npz")
    arguments = ["--drawn", "50", "--new-class", "dog", "--trials", "2", "--exponents", "0.5"]
    assert thesis(["published", str(path), *arguments]) == 0
    out = capsys.readouterr().out
    assert out.count("| recoding, exponent 0.5 |") == 3 and "nan" not in out
    assert out.count("| – | – |") == 9  # no rows to test on apart
    assert "New class dog. Of every other class 40 examples are learned; 10 of each" in out
