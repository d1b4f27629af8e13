"""Examples that are never learned, and how each candidate does on them (thesis 7.6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array, Indices

FREE = -1


@dataclass
class HeldOutExamples:
    """A bounded buffer of inputs, their classes' numbers, and what was last found on each.

    When it is full the class with most examples gives up its oldest. Built by :meth:`empty`.

    inputs : (V, d). numbers : (V,), of classes; -1 where there is no example.
    hits : (V, penalties, exponents), whether each candidate was right.
    losses : (V, penalties, temperatures), minus the logarithm of the true class' probability.
    leverages : (V,), x'A^-1 x with the smallest penalty.
    arrived, checked : (V,), when the example came, and was last looked at.
    """

    inputs: Array
    numbers: Indices
    hits: npt.NDArray[np.bool_]
    losses: Array
    leverages: Array
    arrived: Indices
    checked: Indices
    clock: int = 0

    @classmethod
    def empty(
        cls, size: int, n_inputs: int, penalties: int, exponents: int, temperatures: int
    ) -> HeldOutExamples:
        """A buffer for `size` examples."""
        return cls(
            inputs=np.zeros((size, n_inputs)),
            numbers=np.full(size, FREE),
            hits=np.zeros((size, penalties, exponents), dtype=bool),
            losses=np.zeros((size, penalties, temperatures)),
            leverages=np.zeros(size),
            arrived=np.zeros(size, dtype=np.intp),
            checked=np.zeros(size, dtype=np.intp),
        )

    def __len__(self) -> int:
        return int(np.count_nonzero(self.numbers != FREE))

    def add(self, x: Array, number: int) -> int:
        """Keep an example; returns its slot, which is still to be checked."""
        free = np.flatnonzero(self.numbers == FREE)
        if len(free):
            slot = int(free[0])
        else:
            largest = np.bincount(self.numbers).argmax()
            own = np.flatnonzero(self.numbers == largest)
            slot = int(own[np.argmin(self.arrived[own])])
        self.clock += 1
        self.inputs[slot], self.numbers[slot] = x, number
        self.arrived[slot], self.checked[slot] = self.clock, 0
        return slot

    def note(
        self, slots: Indices, hits: npt.NDArray[np.bool_], losses: Array, leverages: Array
    ) -> None:
        """What every candidate makes of the examples in these slots (k,), as of now."""
        self.clock += 1
        self.hits[slots], self.losses[slots], self.leverages[slots] = hits, losses, leverages
        self.checked[slots] = self.clock

    def stalest(self, k: int) -> Indices:
        """At most k slots, those that were looked at longest ago first."""
        taken = np.flatnonzero(self.numbers != FREE)
        return taken[np.argsort(self.checked[taken], kind="stable")[:k]]

    def renumber(self, new: Indices) -> None:
        """Give each class its new number, new[old]; where that is -1 its examples leave."""
        taken = self.numbers != FREE
        self.numbers[taken] = new[self.numbers[taken]]

    def accuracy(self, least: int) -> Array | None:
        """Share of right answers (penalties, exponents) on classes with at least so many here.

        Not each class', but each example's counts the same. None where no class has enough.
        """
        looked_at = self._looked_at()
        sizes = np.bincount(self.numbers[looked_at], minlength=self.numbers.max() + 1)
        counted = looked_at & (sizes[self.numbers] >= least) if len(sizes) else looked_at
        if not counted.any():
            return None
        shares: Array = self.hits[counted].mean(axis=0)
        return shares

    def class_accuracy(self, n_classes: int, penalty: int, exponent: int) -> tuple[Array, Array]:
        """For each class the share of right answers, NaN without examples, and their number."""
        taken = self._looked_at()
        sizes = np.bincount(self.numbers[taken], minlength=n_classes).astype(float)
        right = np.bincount(
            self.numbers[taken], self.hits[taken, penalty, exponent], minlength=n_classes
        )
        return np.where(sizes > 0.0, right / np.maximum(sizes, 1.0), np.nan), sizes

    def temperature(self, penalty: int, least: int) -> int | None:
        """Number of the temperature with the smallest mean loss; None with too few examples."""
        taken = self._looked_at()
        if np.count_nonzero(taken) < least:
            return None
        return int(self.losses[taken, penalty].mean(axis=0).argmin())

    def leverage(self, least: int) -> float | None:
        """The median leverage; None with too few examples."""
        taken = self._looked_at()
        return float(np.median(self.leverages[taken])) if np.sum(taken) >= least else None

    def _looked_at(self) -> npt.NDArray[np.bool_]:
        """(V,): where there is an example and something was found on it."""
        looked_at: npt.NDArray[np.bool_] = (self.numbers != FREE) & (self.checked > 0)
        return looked_at

    def state(self) -> dict[str, Any]:
        """The arrays that :meth:`restore` needs; what was found is found again after it."""
        taken = np.flatnonzero(self.numbers != FREE)
        taken = taken[np.argsort(self.arrived[taken])]
        return {"held_inputs": self.inputs[taken], "held_numbers": self.numbers[taken]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a :meth:`state`, dropping the oldest where there is no room for all."""
        self.numbers[:] = FREE
        for x, number in zip(state["held_inputs"], state["held_numbers"], strict=True):
            self.add(x, int(number))
