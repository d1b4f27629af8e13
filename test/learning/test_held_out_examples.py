"""The bounded buffer of held-out examples."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.learning.class_recursion import HeldOutExamples


def buffer(size: int) -> HeldOutExamples:
    return HeldOutExamples.empty(size, 1, penalties=2, exponents=3, temperatures=2)


def kept(held: HeldOutExamples) -> list[tuple[int, float]]:
    taken = held.numbers >= 0
    return sorted(zip(held.numbers[taken].tolist(), held.inputs[taken, 0].tolist(), strict=True))


def test_when_full_the_largest_class_gives_up_its_oldest() -> None:
    held = buffer(4)
    for k, number in enumerate([0, 0, 1, 0, 1, 2, 2]):
        held.add(np.array([float(k)]), number)
    # 4 took the place of 0, 5 that of 1; then classes 1 and 2 follow 0, the first of the largest.
    assert len(held) == 4
    assert kept(held) == [(0, 3.0), (1, 4.0), (2, 5.0), (2, 6.0)]


def test_those_looked_at_longest_ago_come_first() -> None:
    held = buffer(3)
    slots = [held.add(np.zeros(1), 0) for _ in range(3)]
    found = np.zeros((1, 2, 3), dtype=bool), np.zeros((1, 2, 2)), np.zeros(1)
    held.note(np.array([slots[0]]), *found)
    assert held.stalest(2).tolist() == [slots[1], slots[2]]
    held.note(np.array([slots[2]]), *found)
    assert held.stalest(5).tolist() == [slots[1], slots[0], slots[2]]


def test_accuracy_counts_classes_with_enough_examples() -> None:
    held = buffer(6)
    assert held.accuracy(1) is None
    slots = np.array([held.add(np.zeros(1), number) for number in (0, 0, 0, 1, 1)])
    hits = np.zeros((5, 2, 3), dtype=bool)
    hits[:2, 0, 0] = hits[3:, 1, 2] = True
    held.note(slots, hits, np.zeros((5, 2, 2)), np.zeros(5))
    accuracy = held.accuracy(3)
    assert accuracy is not None
    np.testing.assert_allclose(accuracy, [[2 / 3, 0, 0], [0, 0, 0]])
    both = held.accuracy(2)
    assert both is not None and both[1, 2] == 2 / 5
    assert held.accuracy(4) is None
    shares, sizes = held.class_accuracy(3, 0, 0)
    np.testing.assert_array_equal(shares, [2 / 3, 0.0, np.nan])
    assert sizes.tolist() == [3.0, 2.0, 0.0]


def test_what_was_not_looked_at_yet_counts_for_nothing() -> None:
    held = buffer(3)
    slots = np.array([held.add(np.zeros(1), 0) for _ in range(3)])
    hits = np.ones((2, 2, 3), dtype=bool)
    held.note(slots[:2], hits, np.zeros((2, 2, 2)), np.ones(2))
    accuracy = held.accuracy(2)
    assert accuracy is not None and np.all(accuracy == 1.0)
    assert held.accuracy(3) is None
    assert held.class_accuracy(1, 0, 0)[1].tolist() == [2.0]
    assert held.leverage(3) is None and held.temperature(0, 3) is None
    # One that takes a slot over is not what was there before.
    held.add(np.zeros(1), 0)
    assert held.class_accuracy(1, 0, 0)[1].tolist() == [1.0]


def test_classes_that_leave_take_their_examples_along() -> None:
    held = buffer(5)
    for k, number in enumerate([0, 1, 2, 1]):
        held.add(np.array([float(k)]), number)
    held.renumber(np.array([0, -1, 1]))
    assert kept(held) == [(0, 0.0), (1, 2.0)]
    held.add(np.array([9.0]), 1)
    assert kept(held) == [(0, 0.0), (1, 2.0), (1, 9.0)]


def test_saved_and_restored_into_a_smaller_buffer() -> None:
    held, small = buffer(5), buffer(2)
    for k, number in enumerate([0, 0, 0, 1]):
        held.add(np.array([float(k)]), number)
    small.restore(held.state())
    assert kept(small) == [(0, 2.0), (1, 3.0)]
    copy = buffer(5)
    copy.restore(held.state())
    assert kept(copy) == kept(held)


def test_the_temperature_with_the_smallest_loss() -> None:
    held = buffer(3)
    slots = np.array([held.add(np.zeros(1), 0) for _ in range(2)])
    losses = np.array([[[1.0, 2.0], [5.0, 1.0]], [[1.0, 0.5], [1.0, 2.0]]])
    held.note(slots, np.zeros((2, 2, 3), dtype=bool), losses, np.zeros(2))
    assert held.temperature(0, 2) == 0
    assert held.temperature(1, 2) == 1
    assert held.temperature(0, 3) is None


def test_the_median_leverage() -> None:
    held = buffer(4)
    slots = np.array([held.add(np.zeros(1), 0) for _ in range(3)])
    hits, losses = np.zeros((3, 2, 3), dtype=bool), np.zeros((3, 2, 2))
    held.note(slots, hits, losses, np.array([5.0, 1.0, 2.0]))
    assert held.leverage(3) == 2.0
    assert held.leverage(4) is None
