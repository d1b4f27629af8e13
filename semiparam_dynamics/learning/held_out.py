"""Held-out examples of an incremental classifier, and what is chosen by them (thesis 7.6.3).

The ridge and the recoding exponent by accuracy, the temperature by the loss of probabilities, and
the limits beyond which an input belongs to no class that was taught.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from semiparam_dynamics.base.arrays import Array, Indices

EXPONENTS = np.round(np.linspace(0.0, 1.0, 21), 2)  # candidates of recoding
TEMPERATURES = np.geomspace(0.02, 1.0, 9)  # candidates, of scores whose classes are one-hot codes
MIN_FOR_TEMPERATURE = 10  # examples: of fewer the mean loss is that of one of them
MIN_FOR_NOVELTY = 5  # examples: the fewest whose median leverage two outliers leave alone
MIN_FOR_ACCEPTANCE = 10  # examples: of fewer no share below a tenth can be kept to
FREE = -1  # the number where there is no example
RESULTS = ("hits", "losses", "leverages", "familiarity", "arrived", "checked")  # of each example


class HeldOutExamples:
    """A bounded buffer of V inputs, their classes' numbers, and the last results on each.

    When it is full the class with most examples gives up its oldest.

    Parameters
    ----------
    size : V. n_inputs : of each example. n_ridges : the candidates that results are kept of.
    """

    def __init__(self, size: int, n_inputs: int, n_ridges: int) -> None:
        self.inputs: Array = np.zeros((size, n_inputs))
        self.numbers: Indices = np.full(size, FREE)  # of classes
        # Whether each candidate was right; minus the logarithm of the true class' probability;
        # x'A^-1 x with the smallest ridge.
        self.hits = np.zeros((size, n_ridges, len(EXPONENTS)), dtype=bool)
        self.losses: Array = np.zeros((size, n_ridges, len(TEMPERATURES)))
        self.leverages: Array = np.zeros(size)
        # The familiarity with the example's class among the taught ones, and without it.
        self.familiarity: Array = np.zeros((size, n_ridges, 2))
        # When the example came, and was last evaluated.
        self.arrived: Indices = np.zeros(size, dtype=np.intp)
        self.checked: Indices = np.zeros(size, dtype=np.intp)
        self.clock = 0

    def __len__(self) -> int:
        return int(np.count_nonzero(self.numbers != FREE))

    def add(self, x: Array, number: int) -> int:
        """Keep an example; returns its slot, which is still to be evaluated."""
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

    def record(self, slots: Indices, **results: npt.NDArray[Any]) -> None:
        """Keep the results of every candidate, by their names, on the examples in slots (k,)."""
        self.clock += 1
        for name, values in results.items():
            getattr(self, name)[slots] = values
        self.checked[slots] = self.clock

    def stalest(self, k: int) -> Indices:
        """At most k slots, those that were evaluated longest ago first."""
        taken = np.flatnonzero(self.numbers != FREE)
        return taken[np.argsort(self.checked[taken], kind="stable")[:k]]

    def older_than(self, time: int) -> int:
        """The number of examples whose results are older than this `clock`."""
        return int(np.count_nonzero((self.numbers != FREE) & (self.checked < time)))

    def renumber(self, new: Indices) -> None:
        """Give each class its new number, new[old]; where that is -1 its examples leave."""
        taken = self.numbers != FREE
        self.numbers[taken] = new[self.numbers[taken]]

    def accuracy(self, least: int) -> Array | None:
        """Share of right answers (ridges, exponents) on classes with at least so many here.

        Not each class', but each example's counts the same. None where no class has enough.
        """
        counted = self._evaluated()
        if counted.any():
            sizes = np.bincount(self.numbers[counted], minlength=self.numbers.max() + 1)
            counted &= sizes[self.numbers] >= least
        if not counted.any():
            return None
        shares: Array = self.hits[counted].mean(axis=0)
        return shares

    def class_accuracy(self, n_classes: int, ridge: int, exponent: int) -> tuple[Array, Array]:
        """For each class the share of right answers, NaN without examples, and their number."""
        taken = self._evaluated()
        sizes = np.bincount(self.numbers[taken], minlength=n_classes).astype(float)
        right = np.bincount(
            self.numbers[taken], self.hits[taken, ridge, exponent], minlength=n_classes
        )
        return np.where(sizes > 0.0, right / np.maximum(sizes, 1.0), np.nan), sizes

    def temperature(self, ridge: int) -> int | None:
        """Number of the temperature with the smallest mean loss; None with too few examples."""
        taken = self._evaluated()
        if np.count_nonzero(taken) < MIN_FOR_TEMPERATURE:
            return None
        return int(self.losses[taken, ridge].mean(axis=0).argmin())

    def leverage(self) -> float | None:
        """The median leverage; None with too few examples."""
        leverages = self.leverages[self._evaluated()]
        return float(np.median(leverages)) if len(leverages) >= MIN_FOR_NOVELTY else None

    def acceptance(self, ridge: int) -> Acceptance | None:
        """The limits of familiarity; None with too few examples, or of one class only."""
        pairs = self._pairs(ridge)
        return Acceptance(*pairs.T) if len(pairs) >= MIN_FOR_ACCEPTANCE else None

    def compared(self, ridge: int) -> tuple[int, int]:
        """The number of examples :meth:`leverage` and :meth:`acceptance` rest on."""
        return int(np.count_nonzero(self._evaluated())), len(self._pairs(ridge))

    def _pairs(self, ridge: int) -> Array:
        """(k, 2): the familiarity of examples with their class and without, where it has both."""
        pairs: Array = self.familiarity[self._evaluated(), ridge]
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        return pairs

    def _evaluated(self) -> npt.NDArray[np.bool_]:
        """(V,): where there is an example with results."""
        evaluated: npt.NDArray[np.bool_] = (self.numbers != FREE) & (self.checked > 0)
        return evaluated

    def state(self) -> dict[str, Any]:
        """The arrays that :meth:`restore` needs."""
        taken = np.flatnonzero(self.numbers != FREE)
        taken = taken[np.argsort(self.arrived[taken])]
        names = ("inputs", "numbers", *RESULTS)
        # The slots, too: sums over them in another order would be rounded otherwise.
        about = {"slots": taken, "size": len(self.numbers), "clock": self.clock}
        kept = {name: getattr(self, name)[taken] for name in names} | about
        return {f"held_{name}": np.asarray(value) for name, value in kept.items()}

    def restore(self, state: dict[str, Any]) -> bool:
        """Resume from a :meth:`state`, dropping the oldest where there is no room for all.

        Returns whether the results came along: not to a buffer of another size.
        """
        self.numbers[:] = FREE
        if int(state["held_size"]) == len(self.numbers):
            for name in ("inputs", "numbers", *RESULTS):
                getattr(self, name)[state["held_slots"]] = state[f"held_{name}"]
            self.clock = int(state["held_clock"])
            return True
        for x, number in zip(state["held_inputs"], state["held_numbers"], strict=True):
            self.add(x, int(number))
        return False


def choose_recoding(accuracy: Array, tolerance: float = 0.0) -> tuple[int, int]:
    """The ridge and the exponent to use, from held-out accuracies (ridges, exponents).

    The rule of thesis 7.6.3: at each exponent the ridge with the best accuracy; of the
    exponents the largest whose accuracy is at least that of the first, which is 0. Exponents
    ascend. With a `tolerance` the accuracy may be lower by so much. Of equal ridges the last.
    """
    best = accuracy.max(axis=0)
    exponent = int(np.flatnonzero(best >= best[0] - tolerance - 1e-12)[-1])
    ridge = int(np.flatnonzero(accuracy[:, exponent] >= best[exponent])[-1])
    return ridge, exponent


def nearest_exponent(recoding: float) -> int:
    """The number of the candidate that is closest."""
    return int(np.abs(EXPONENTS - recoding).argmin())


NEWTON_STEPS = 30  # at most; a logistic function of one variable takes less than ten


class Acceptance:
    """Limits of familiarity that separate inputs of the taught classes from others.

    What an input of an unknown class looks like can't be known; but each held-out example is one
    if its own class is left out, where a class is as unlike the others as a new one will be.

    Parameters
    ----------
    familiar, strange : (k,) familiarity of held-out examples with their own class, and without;
        see :meth:`~.class_heads.LeastSquaresHead.familiarity`.
    """

    def __init__(self, familiar: Array, strange: Array) -> None:
        self._strange = np.sort(strange)
        self._centre = float(np.median(np.concatenate((familiar, strange))))
        spread = float(np.std(familiar) + np.std(strange)) / 2.0
        self._unit = spread or 1.0
        self._slope, self._offset = _platt(self._scaled(familiar), self._scaled(strange))

    def limit(self, false_accepts: float) -> float:
        """The familiarity that at most this share, below 1, of unknown examples exceeds.

        The value of one of them: of the largest, where the share is less than one of them is.
        """
        k = int(np.ceil(len(self._strange) * (1.0 - false_accepts) - 1e-9))
        return float(self._strange[k - 1])

    def probability(self, familiarity: Array) -> Array:
        """Probability that inputs (n,) are of a taught class, if every second input is.

        J. Platt: Probabilistic outputs for support vector machines, 1999.
        """
        found: Array = expit(self._slope * self._scaled(familiarity) + self._offset)
        return found

    def _scaled(self, values: Array) -> Array:
        return (np.asarray(values) - self._centre) / self._unit


def _platt(familiar: Array, strange: Array) -> tuple[float, float]:
    """Slope and offset of the logistic function that fits best, Platt's targets keeping it finite.

    The slope is at least zero: more familiar is never less known.
    """
    values = np.concatenate((familiar, strange))
    k = len(familiar)
    high = (k + 1.0) / (k + 2.0)
    targets = np.where(np.arange(len(values)) < k, high, 1.0 - high)
    design = np.column_stack((values, np.ones(len(values))))
    found = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        p = expit(design @ found)
        gradient = design.T @ (targets - p) - np.array([1e-6 * found[0], 0.0])
        hessian = (design * (p * (1.0 - p))[:, None]).T @ design + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        found += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    return (float(found[0]), float(found[1])) if found[0] > 0.0 else (0.0, 0.0)
