"""What is known of each class alone: its name, how often it was seen, and its inputs' sum."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.errors import LearningError


class ClassSums:
    """Columns of b = Z'Y (thesis 7.19) and counts gamma, a class at a time; classes come and go.

    A class' column is kept as a row of `sums`, so that an example touches D numbers that lie side
    by side. Numbers of classes, in the order of their coming, are what `sums`, `counts` and
    scores are indexed by; they close up when a class leaves.
    """

    def __init__(self, n_features: int) -> None:
        self.labels: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._sums: Array = np.zeros((8, n_features))
        self._counts: Array = np.zeros(8)
        self._shown: Array = np.zeros(8)
        self._order: Indices | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Hashable) -> bool:
        return label in self._numbers

    @property
    def order(self) -> Indices:
        """(T,): the classes' numbers, sorted by their labels."""
        if self._order is None:
            self._order = np.argsort(np.asarray(self.labels), kind="stable")
        return self._order

    @property
    def sums(self) -> Array:
        """(T, D): the sum of each class' inputs; a view."""
        return self._sums[: len(self.labels)]

    @property
    def counts(self) -> Array:
        """(T,): gamma, how many examples of each class were learned; a view."""
        return self._counts[: len(self.labels)]

    @property
    def shown(self) -> Array:
        """(T,): how many examples of each class came, learned or held out; a view."""
        return self._shown[: len(self.labels)]

    def number(self, label: Hashable) -> int:
        """The class' number. Raises LearningError, naming some that there are, for no class."""
        if label not in self._numbers:
            known = ", ".join(str(one) for one in self.labels[:5]) or "none yet"
            more = ", ..." if len(self.labels) > 5 else ""
            raise LearningError(f"There is no class {str(label)[:80]!r}; known: {known}{more}.")
        return self._numbers[label]

    def add(self, label: Hashable) -> int:
        """The class' number; a class never seen gets a column of zeros (thesis 7.20)."""
        if label in self._numbers:
            return self._numbers[label]
        number = len(self.labels)
        if number == len(self._counts):  # doubled: O(D) a class on the average
            self._sums = np.concatenate((self._sums, np.zeros_like(self._sums)))
            self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
            self._shown = np.concatenate((self._shown, np.zeros_like(self._shown)))
        self.labels.append(label)
        self._numbers[label], self._order = number, None
        return number

    def show(self, numbers: Indices, hold_out: int) -> npt.NDArray[np.bool_]:
        """Count that examples of these classes (n,) came; returns which are to be held out.

        Each class' every `hold_out`-th, none for 0: a class' first examples are learned.
        """
        held = np.zeros(len(numbers), dtype=bool)
        for i, number in enumerate(numbers):
            self._shown[number] += 1.0
            held[i] = hold_out > 0 and self._shown[number] % hold_out == 0
        return held

    def learn(self, rows: Array, numbers: Indices) -> None:
        """Add inputs (k, D) to the classes of these numbers (k,)."""
        if len(rows) == 1:
            self._sums[numbers[0]] += rows[0]
            self._counts[numbers[0]] += 1.0
            return
        for number in np.unique(numbers):
            own = numbers == number
            self._sums[number] += rows[own].sum(axis=0)
            self._counts[number] += np.count_nonzero(own)

    def rename(self, label: Hashable, new: Hashable) -> None:
        """Call a class otherwise. Raises LearningError if there is a class of the new name."""
        number = self.number(label)
        if new == label:
            return
        if new in self._numbers:
            raise LearningError(f"There is a class {new!r} already: merge the two instead.")
        del self._numbers[label]
        self.labels[number] = new
        self._numbers[new], self._order = number, None

    def merge(self, label: Hashable, into: Hashable) -> Indices:
        """Add a class' sum and count to another's, and let it leave; returns as :meth:`forget`."""
        source, target = self.number(label), self.number(into)
        if source == target:
            raise LearningError(f"The class {label!r} can't be merged with itself.")
        self._sums[target] += self._sums[source]
        self._counts[target] += self._counts[source]
        self._shown[target] += self._shown[source]
        numbers = self.forget(label)
        numbers[source] = numbers[target]
        return numbers

    def forget(self, label: Hashable) -> Indices:
        """Let a class' sum and count leave; returns the new number of each old one, or -1."""
        number, n = self.number(label), len(self.labels)
        for column in (self._sums, self._counts, self._shown):
            column[number : n - 1] = column[number + 1 : n]
            column[n - 1] = 0.0
        del self.labels[number]
        self._order = None
        self._numbers = {label: i for i, label in enumerate(self.labels)}
        old = np.arange(n)
        return np.where(old == number, -1, old - (old > number))

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs, without the labels."""
        return {"sums": self.sums.copy(), "counts": self.counts.copy(), "shown": self.shown.copy()}

    def restore(self, labels: Iterable[Hashable], state: dict[str, Array]) -> None:
        """Go on from labels and a :meth:`state`."""
        self.__init__(self._sums.shape[1])  # type: ignore[misc]
        for label in labels:
            self.add(label)
        self.sums[:], self.counts[:] = state["sums"], state["counts"]
        self.shown[:] = state["shown"]
