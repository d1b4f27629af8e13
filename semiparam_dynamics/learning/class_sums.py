"""The classes of an incremental classifier: labels, sums of features, counts, and recoding.

Recoding keeps a class of few examples from being ignored (thesis 7.5.2 and 7.6.3).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError


class ClassSums:
    """Columns of b = Z'Y (thesis 7.19) and counts gamma, a class at a time; classes come and go.

    A class' column is kept as a row of `sums`, so that an example touches D numbers that lie side
    by side. Numbers of classes, in the order of their coming, are what `sums`, `counts` and
    scores are indexed by; they close up when a class leaves.
    """

    def __init__(self, n_features: int) -> None:
        self.labels: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._order: Indices | None = None
        # With room for more classes.
        self._arrays = {
            "sums": np.zeros((8, n_features)),
            "counts": np.zeros(8),
            "shown": np.zeros(8),
        }

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
        return self._arrays["sums"][: len(self.labels)]

    @property
    def counts(self) -> Array:
        """(T,): gamma, how many examples of each class were learned; a view."""
        return self._arrays["counts"][: len(self.labels)]

    @property
    def shown(self) -> Array:
        """(T,): how many examples of each class came, learned or held out; a view."""
        return self._arrays["shown"][: len(self.labels)]

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
        for name, array in self._arrays.items():
            if number == len(array):  # doubled: O(D) a class on the average
                self._arrays[name] = np.concatenate((array, np.zeros_like(array)))
        self.labels.append(label)
        self._numbers[label], self._order = number, None
        return number

    def show(self, numbers: Indices, hold_out: int) -> npt.NDArray[np.bool_]:
        """Count that examples of these classes (n,) came; returns which are to be held out.

        Each class' every `hold_out`-th, none for 0: a class' first examples are learned.
        """
        held = np.zeros(len(numbers), dtype=bool)
        for i, number in enumerate(numbers):
            self.shown[number] += 1.0
            held[i] = hold_out > 0 and self.shown[number] % hold_out == 0
        return held

    def learn(self, rows: Array, numbers: Indices) -> None:
        """Add inputs (k, D) to the classes of these numbers (k,)."""
        if len(rows) == 1:
            self.sums[numbers[0]] += rows[0]
            self.counts[numbers[0]] += 1.0
            return
        for number in np.unique(numbers):
            own = numbers == number
            self.sums[number] += rows[own].sum(axis=0)
            self.counts[number] += np.count_nonzero(own)

    def rename(self, label: Hashable, new: Hashable) -> None:
        """Rename a class. Raises LearningError if there is a class of the new name."""
        number = self.number(label)
        if new == label:
            return
        if new in self._numbers:
            raise LearningError(f"There is a class {new!r} already: merge the two instead.")
        del self._numbers[label]
        self.labels[number] = new
        self._numbers[new], self._order = number, None

    def merge(self, label: Hashable, into: Hashable) -> Indices:
        """Add a class' sum and count to another's, and remove it; returns as :meth:`forget`."""
        source, target = self.number(label), self.number(into)
        if source == target:
            raise LearningError(f"The class {label!r} can't be merged with itself.")
        for array in self._arrays.values():
            array[target] += array[source]
        numbers = self.forget(label)
        numbers[source] = numbers[target]
        return numbers

    def forget(self, label: Hashable) -> Indices:
        """Remove a class' sum and count; returns the new number of each old one, or -1."""
        number, n = self.number(label), len(self.labels)
        for array in self._arrays.values():
            array[number : n - 1] = array[number + 1 : n]
            array[n - 1] = 0.0
        del self.labels[number]
        self._order = None
        self._numbers = {label: i for i, label in enumerate(self.labels)}
        old = np.arange(n)
        return np.where(old == number, -1, old - (old > number))

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs, without the labels."""
        return {name: array[: len(self)].copy() for name, array in self._arrays.items()}

    def restore(self, labels: Iterable[Hashable], state: dict[str, Array]) -> None:
        """Resume from labels and a :meth:`state`."""
        self.__init__(self.sums.shape[1])  # type: ignore[misc]
        for label in labels:
            self.add(label)
        for name, array in self._arrays.items():
            array[: len(self)] = state[name]


def class_weights(counts: Array, recoding: float) -> Array:
    """The diagonal of Gamma^recoding, (T,): (k / gamma_t)^recoding, k the sum of the counts gamma.

    recoding = 0 leaves scores as they are, 1 undoes the imbalance wholly. A class without examples
    has a score of zero whatever its weight, which is 1.
    """
    seen = counts > 0.0
    weights: Array = np.where(seen, counts.sum() / np.where(seen, counts, 1.0), 1.0) ** recoding
    return weights


def exponent_weights(counts: Array, exponents: Array) -> Array:
    """:func:`class_weights` for each exponent, (exponents, T); NaN for classes without examples.

    These can't win.
    """
    weights = np.array([class_weights(counts, recoding) for recoding in exponents])
    weights[:, counts <= 0.0] = np.nan
    return weights


def winners(scores: Array, weights: Array, recode: np.ufunc = np.multiply) -> Indices:
    """The winning class for each exponent, (n, exponents), from scores (n, T) without recoding.

    weights : (exponents, T), see :func:`exponent_weights`, with which `recode` recodes scores.
    """
    impossible = np.isnan(weights[0])
    found = np.empty((len(scores), len(weights)), dtype=np.intp)
    for j, weight in enumerate(weights):
        recoded = recode(scores, weight)
        if impossible.any():
            recoded[:, impossible] = -np.inf
        found[:, j] = recoded.argmax(axis=1)
    return found
