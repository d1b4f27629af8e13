"""Recoding's weights and the rule that chooses its exponent, on cases worked out by hand."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.learning.class_recursion import (
    choose_recoding,
    class_weights,
    exponent_weights,
    winners,
)


def test_weights_are_the_inverse_shares() -> None:
    counts = np.array([1.0, 4.0, 5.0])
    np.testing.assert_allclose(class_weights(counts, 1.0), [10.0, 2.5, 2.0])
    np.testing.assert_allclose(class_weights(counts, 0.5), np.sqrt([10.0, 2.5, 2.0]))
    np.testing.assert_array_equal(class_weights(counts, 0.0), 1.0)
    np.testing.assert_array_equal(class_weights(np.array([0.0, 4.0]), 1.0), [1.0, 1.0])
    np.testing.assert_array_equal(class_weights(np.zeros(2), 1.0), 1.0)


def test_the_largest_exponent_that_costs_nothing() -> None:
    accuracy = np.array([[0.80, 0.80, 0.79, 0.70], [0.78, 0.79, 0.80, 0.60]])
    assert choose_recoding(accuracy) == (1, 2)
    assert choose_recoding(accuracy[:1]) == (0, 1)
    assert choose_recoding(accuracy[:1], tolerance=0.01) == (0, 2)
    assert choose_recoding(accuracy[:1], tolerance=0.1) == (0, 3)
    # A larger one may be as good though one before it isn't.
    assert choose_recoding(np.array([[0.8, 0.7, 0.8, 0.1]])) == (0, 2)


def test_of_equal_penalties_the_largest() -> None:
    assert choose_recoding(np.array([[0.9], [0.9], [0.1]])) == (1, 0)


def test_winners_of_each_exponent() -> None:
    scores = np.array([[0.6, 0.3, 0.0], [0.1, 0.0, 5.0]])
    counts = np.array([8.0, 2.0, 0.0])
    found = winners(scores, exponent_weights(counts, np.array([0.0, 0.4, 1.0])))
    # 0.6 against 0.3 is turned round once (8 / 2)^alpha exceeds 2; the third class has no examples.
    assert found.tolist() == [[0, 0, 1], [0, 0, 0]]
