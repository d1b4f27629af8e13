"""Weights that follow a recursion, against solves in higher precision."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.recursion.rls import PromptWeights, RecursiveLeastSquares


def rows(k: int, n: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, n)), rng.standard_normal((k, outputs))


def batch(Z: np.ndarray, Y: np.ndarray, ridge: float) -> np.ndarray:
    """The ridge solution by LAPACK, with a step of refinement in extended precision."""
    A, B = (Z.T @ Z + ridge * np.eye(Z.shape[1])), Z.T @ Y
    W = np.linalg.solve(A, B)
    wide = [a.astype(np.longdouble) for a in (Z, Y, W)]
    left = wide[0].T @ (wide[1] - wide[0] @ wide[2]) - ridge * wide[2]
    return W + np.linalg.solve(A, left.astype(float))


@pytest.mark.parametrize(("n", "outputs"), [(1, 1), (9, 6), (64, 7), (83, 1)])
@pytest.mark.parametrize("ridge", [1.0, 1e-6])
def test_they_are_the_batch_solution(n: int, outputs: int, ridge: float) -> None:
    Z, Y = rows(400, n, outputs)
    core = RecursiveLeastSquares(n, outputs, ridge)
    prompt = PromptWeights(core)
    for k, (z, y) in enumerate(zip(Z, Y, strict=True)):
        assert prompt.predict(z) == pytest.approx(core.predict(z), rel=1e-9, abs=1e-9), k
        prompt.update(z, y)
    W = batch(Z, Y, ridge)
    assert prompt.predict(np.eye(n)) == pytest.approx(W, rel=1e-10, abs=1e-11)


def test_the_recursion_learns_the_same_bits() -> None:
    Z, Y = rows(100, 24, 3)
    plain, followed = (RecursiveLeastSquares(24, 3, 0.1) for _ in range(2))
    prompt = PromptWeights(followed)
    for z, y in zip(Z, Y, strict=True):
        plain.predict(z)
        plain.update(z, y)
        prompt.predict(z)
        prompt.update(z, y)
    assert np.array_equal(plain.R, followed.R)
    assert np.array_equal(plain.U, followed.U)


def test_errors_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PromptWeights, "EXACT_EVERY", 50)
    Z, Y = rows(1000, 16, 2)
    core = RecursiveLeastSquares(16, 2, 1.0)
    prompt = PromptWeights(core)
    prompt._W += 1.0  # as rounding would do in a very long time
    for z, y in zip(Z[:50], Y[:50], strict=True):
        prompt.update(z, y)
    assert np.array_equal(prompt._W, core.weights())


def test_long_runs_stay_exact() -> None:
    """19 999 moves one upon the other, of rows that hardly say anything new."""
    Z, Y = rows(PromptWeights.EXACT_EVERY - 1, 12, 2)
    Z[:, 6:] *= 1e-4
    core = RecursiveLeastSquares(12, 2, 1.0)
    prompt = PromptWeights(core)
    for z, y in zip(Z, Y, strict=True):
        prompt.update(z, y)
    W = core.weights()
    assert prompt._W == pytest.approx(W, rel=1e-10, abs=1e-12 * np.abs(W).max())
