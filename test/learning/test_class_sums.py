"""Classes that come and leave, recoding, and the buffer of held-out examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.class_heads import ClassSums
from semiparam_dynamics.learning.held_out import choose_recoding

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
        self.sums.learn(rows, np.repeat(self.sums.add([label]), k))
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
