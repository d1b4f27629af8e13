"""Classes that come and leave, recoding, and the buffer of held-out examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.class_recursion import (
    ClassSums,
    HeldOutExamples,
    choose_recoding,
    class_weights,
    exponent_weights,
    winners,
)

LABELS = st.sampled_from([f"class {i:02d}" for i in range(12)])


class Dictionary(RuleBasedStateMachine):
    """The same steps on sums and on a dictionary from label to (sum, count)."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = ClassSums(3)
        self.known: dict[str, tuple[np.ndarray, int]] = {}
        self.rng = np.random.default_rng(0)

    @rule(label=LABELS, k=st.integers(1, 3))
    def learn(self, label: str, k: int) -> None:
        rows = self.rng.normal(size=(k, 3))
        self.sums.learn(rows, np.full(k, self.sums.add(label)))
        total, count = self.known.get(label, (np.zeros(3), 0))
        self.known[label] = total + rows.sum(axis=0), count + k

    @rule(label=LABELS, other=LABELS)
    @precondition(lambda self: self.known)
    def merge(self, label: str, other: str) -> None:
        if label not in self.known or other not in self.known or label == other:
            with pytest.raises(LearningError):
                self.sums.merge(label, other)
            return
        old = list(self.sums.labels)
        numbers = self.sums.merge(label, other)
        total, count = self.known.pop(label)
        self.known[other] = self.known[other][0] + total, self.known[other][1] + count
        for k, name in enumerate(old):
            assert self.sums.labels[numbers[k]] == (other if name == label else name)

    @rule(label=LABELS)
    def forget(self, label: str) -> None:
        if label not in self.known:
            with pytest.raises(LearningError):
                self.sums.forget(label)
            return
        old = list(self.sums.labels)
        numbers = self.sums.forget(label)
        del self.known[label]
        for k, name in enumerate(old):
            assert numbers[k] == -1 if name == label else self.sums.labels[numbers[k]] == name

    @rule(label=LABELS, new=LABELS)
    def rename(self, label: str, new: str) -> None:
        if label not in self.known or (new in self.known and new != label):
            with pytest.raises(LearningError):
                self.sums.rename(label, new)
            return
        self.sums.rename(label, new)
        self.known[new] = self.known.pop(label)

    @rule()
    def save_and_restore(self) -> None:
        fresh = ClassSums(3)
        fresh.restore(list(self.sums.labels), self.sums.state())
        self.sums = fresh

    @invariant()
    def agree(self) -> None:
        assert sorted(self.sums.labels) == sorted(self.known)
        assert [self.sums.labels[k] for k in self.sums.order] == sorted(self.known)
        for label, (total, count) in self.known.items():
            number = self.sums.number(label)
            np.testing.assert_allclose(self.sums.sums[number], total, atol=1e-12)
            assert self.sums.counts[number] == count


Dictionary.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
test_classes_come_and_go = Dictionary.TestCase


def test_every_so_many_th_of_each_class_is_held_out() -> None:
    sums = ClassSums(2)
    a, b = sums.add("a"), sums.add("b")
    held = sums.show(np.array([a, b, a, a, b, b, a, a, a]), 3)
    assert held.tolist() == [False, False, False, True, False, True, False, False, True]
    assert sums.shown.tolist() == [6.0, 3.0]
    assert not sums.show(np.full(20, a), 0).any()


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
    # Of equal ridges the largest.
    assert choose_recoding(np.array([[0.9], [0.9], [0.1]])) == (1, 0)


def test_winners_of_each_exponent() -> None:
    scores = np.array([[0.6, 0.3, 0.0], [0.1, 0.0, 5.0]])
    counts = np.array([8.0, 2.0, 0.0])
    found = winners(scores, exponent_weights(counts, np.array([0.0, 0.4, 1.0])))
    # 0.6 against 0.3 is turned round once 4^recoding exceeds 2; the third class has no examples.
    assert found.tolist() == [[0, 0, 1], [0, 0, 0]]


def buffer(size: int) -> HeldOutExamples:
    return HeldOutExamples(size, 1, ridges=2, exponents=3, temperatures=2)


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


def test_filled_at_once_it_is_as_if_one_by_one() -> None:
    inputs, numbers = np.arange(4.0)[:, None], np.array([1, 0, 0, 2])
    filled, one_by_one = buffer(4), buffer(4)
    filled.fill(inputs, numbers)
    for x, number in zip(inputs, numbers, strict=True):
        one_by_one.add(x, int(number))
    for name, expected in vars(one_by_one).items():
        np.testing.assert_array_equal(getattr(filled, name), expected)


def test_those_looked_at_longest_ago_come_first() -> None:
    held = buffer(3)
    slots = [held.add(np.zeros(1), 0) for _ in range(3)]
    found = np.zeros((1, 2, 3), dtype=bool), np.zeros((1, 2, 2)), np.zeros(1), np.zeros((1, 2, 2))
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
    held.note(slots, hits, np.zeros((5, 2, 2)), np.zeros(5), np.zeros((5, 2, 2)))
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
    held.note(slots[:2], hits, np.zeros((2, 2, 2)), np.ones(2), np.zeros((2, 2, 2)))
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
    assert not small.restore(held.state())
    assert kept(small) == [(0, 2.0), (1, 3.0)]
    copy = buffer(5)
    assert copy.restore(held.state())
    assert kept(copy) == kept(held)


def test_the_temperature_with_the_smallest_loss() -> None:
    held = buffer(3)
    slots = np.array([held.add(np.zeros(1), 0) for _ in range(2)])
    losses = np.array([[[1.0, 2.0], [5.0, 1.0]], [[1.0, 0.5], [1.0, 2.0]]])
    held.note(slots, np.zeros((2, 2, 3), dtype=bool), losses, np.zeros(2), np.zeros((2, 2, 2)))
    assert held.temperature(0, 2) == 0
    assert held.temperature(1, 2) == 1
    assert held.temperature(0, 3) is None


def test_the_median_leverage() -> None:
    held = buffer(4)
    slots = np.array([held.add(np.zeros(1), 0) for _ in range(3)])
    hits, losses = np.zeros((3, 2, 3), dtype=bool), np.zeros((3, 2, 2))
    held.note(slots, hits, losses, np.array([5.0, 1.0, 2.0]), np.zeros((3, 2, 2)))
    assert held.leverage(3) == 2.0
    assert held.leverage(4) is None
