"""Errors on the way, many rows at once, are those of learning row by row."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.learning.prequential import prequential_errors
from semiparam_dynamics.learning.ridge import NestedRidge
from semiparam_dynamics.recursion.rls import RecursiveLeastSquares

RNG = np.random.default_rng(3)
Z, Y = RNG.standard_normal((520, 23)), RNG.standard_normal((520, 3))
Z[:150, 15:] = 0.0  # features that come later


def by_rows(edges: list[int], start: int, ridge: float, size: int) -> tuple[np.ndarray, ...]:
    rows = RecursiveLeastSquares(size, 3, ridge)
    rows.update_rows(np.ascontiguousarray(Z[:start, :size]), Y[:start])
    block, one_step = [], []
    for a, b in zip(edges[:-1], edges[1:], strict=True):
        inside = range(start + a, start + b)
        block += [Y[i] - rows.predict(np.ascontiguousarray(Z[i, :size])) for i in inside]
        for i in inside:
            row = np.ascontiguousarray(Z[i, :size])
            one_step.append(Y[i] - rows.predict(row))
            rows.update(row, Y[i])
    return np.array(block), np.array(one_step)


@pytest.mark.parametrize("start", [0, 60])
@pytest.mark.parametrize("step", [1, 7, 300])
def test_errors_are_those_of_the_recursion(step: int, start: int) -> None:
    n = len(Z) - start
    edges = [*range(0, n, step), n]
    system = NestedRidge(23, 3)
    system.add(Z[:start], Y[:start])
    found = prequential_errors(system, Z[start:], Y[start:], np.array(edges), [0.7, 9.0], [6, 23])
    assert set(found) == {(0.7, 6), (0.7, 23), (9.0, 6), (9.0, 23)}
    for (ridge, size), errors in found.items():
        block, one_step = by_rows(edges, start, ridge, size)
        assert np.allclose(errors.block, block, atol=1e-10)
        assert np.allclose(errors.one_step, one_step, atol=1e-10)
    # The system has learned all rows.
    assert np.allclose(system.second_moments()[0], Z.T @ Z)


def test_no_features_predict_nothing() -> None:
    system = NestedRidge(0, 3)
    found = prequential_errors(system, Z[:9, :0], Y[:9], np.array([0, 4, 9]), [1.0], [0])
    assert np.array_equal(found[1.0, 0].block, Y[:9])
