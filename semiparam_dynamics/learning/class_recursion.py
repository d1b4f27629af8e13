"""Algorithm 2 of the thesis (7.5) with its model selection (7.6.3), for classes that are numbers.

An example is added to its class' sum and count, and its features are rotated into the factor of
each candidate ridge. Every so many-th is held out instead, and the candidates are compared by
those.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.discriminant import ClassMeans, ResidualScatter
from semiparam_dynamics.learning.features import FixedFeatures, GrowingFeatures
from semiparam_dynamics.learning.recursion.factor import CholeskyFactor
from semiparam_dynamics.learning.unknown import Acceptance

# -------------------------------------------------------------------------------------------------
# Each class alone: its label, its number of examples, and the sum of their features.


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


# -------------------------------------------------------------------------------------------------
# Examples that are never learned, and how each candidate does on them (thesis 7.6.3).

FREE = -1  # the number where there is no example
FOUND = ("hits", "losses", "leverages", "familiarity", "arrived", "checked")  # of each example


class HeldOutExamples:
    """A bounded buffer of V inputs, their classes' numbers, and the last results on each.

    When it is full the class with most examples gives up its oldest.
    """

    def __init__(
        self, size: int, n_inputs: int, ridges: int, exponents: int, temperatures: int
    ) -> None:
        self.inputs: Array = np.zeros((size, n_inputs))
        self.numbers: Indices = np.full(size, FREE)  # of classes
        # Whether each candidate was right; minus the logarithm of the true class' probability;
        # x'A^-1 x with the smallest ridge.
        self.hits = np.zeros((size, ridges, exponents), dtype=bool)
        self.losses: Array = np.zeros((size, ridges, temperatures))
        self.leverages: Array = np.zeros(size)
        # How familiar it is with its class, and without: see learning/unknown.py.
        self.familiarity: Array = np.zeros((size, ridges, 2))
        # When the example came, and was last looked at.
        self.arrived: Indices = np.zeros(size, dtype=np.intp)
        self.checked: Indices = np.zeros(size, dtype=np.intp)
        self.clock = 0

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

    def fill(self, inputs: Array, numbers: Indices) -> None:
        """Keep as many examples as there is room for, and no others; all are to be checked."""
        self.inputs[:], self.numbers[:] = inputs, numbers
        self.arrived[:] = self.clock + 1 + np.arange(len(numbers))
        self.checked[:] = 0
        self.clock += len(numbers)

    def note(
        self,
        slots: Indices,
        hits: npt.NDArray[np.bool_],
        losses: Array,
        leverages: Array,
        familiarity: Array,
    ) -> None:
        """Record the results of every candidate on the examples in these slots (k,)."""
        self.clock += 1
        self.familiarity[slots] = familiarity
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
        """Share of right answers (ridges, exponents) on classes with at least so many here.

        Not each class', but each example's counts the same. None where no class has enough.
        """
        looked_at = self._looked_at()
        sizes = np.bincount(self.numbers[looked_at], minlength=self.numbers.max() + 1)
        counted = looked_at & (sizes[self.numbers] >= least) if len(sizes) else looked_at
        if not counted.any():
            return None
        shares: Array = self.hits[counted].mean(axis=0)
        return shares

    def class_accuracy(self, n_classes: int, ridge: int, exponent: int) -> tuple[Array, Array]:
        """For each class the share of right answers, NaN without examples, and their number."""
        taken = self._looked_at()
        sizes = np.bincount(self.numbers[taken], minlength=n_classes).astype(float)
        right = np.bincount(
            self.numbers[taken], self.hits[taken, ridge, exponent], minlength=n_classes
        )
        return np.where(sizes > 0.0, right / np.maximum(sizes, 1.0), np.nan), sizes

    def temperature(self, ridge: int, least: int) -> int | None:
        """Number of the temperature with the smallest mean loss; None with too few examples."""
        taken = self._looked_at()
        if np.count_nonzero(taken) < least:
            return None
        return int(self.losses[taken, ridge].mean(axis=0).argmin())

    def leverage(self, least: int) -> float | None:
        """The median leverage; None with too few examples."""
        taken = self._looked_at()
        return float(np.median(self.leverages[taken])) if np.sum(taken) >= least else None

    def acceptance(self, ridge: int, least: int) -> Acceptance | None:
        """What tells known from unknown; None with too few examples, or of one class only."""
        pairs = self._pairs(ridge)
        return Acceptance(*pairs.T) if len(pairs) >= least else None

    def compared(self, ridge: int) -> tuple[int, int]:
        """How many examples :meth:`leverage` and :meth:`acceptance` rest on."""
        return int(np.count_nonzero(self._looked_at())), len(self._pairs(ridge))

    def _pairs(self, ridge: int) -> Array:
        """(k, 2): the familiarity of examples with their class and without, where it has both."""
        pairs: Array = self.familiarity[self._looked_at(), ridge]
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        return pairs

    def _looked_at(self) -> npt.NDArray[np.bool_]:
        """(V,): where there is an example and something was found on it."""
        looked_at: npt.NDArray[np.bool_] = (self.numbers != FREE) & (self.checked > 0)
        return looked_at

    def state(self) -> dict[str, Any]:
        """The arrays that :meth:`restore` needs."""
        taken = np.flatnonzero(self.numbers != FREE)
        taken = taken[np.argsort(self.arrived[taken])]
        parts = {f"held_{name}": getattr(self, name)[taken] for name in ("inputs", "numbers")}
        found = {f"held_{name}": getattr(self, name)[taken] for name in FOUND}
        # The slots, too: sums over them in another order would be rounded otherwise.
        about = {"held_slots": taken, "held_size": len(self.numbers), "held_clock": self.clock}
        return parts | found | {name: np.array(value) for name, value in about.items()}

    def restore(self, state: dict[str, Any]) -> bool:
        """Go on from a :meth:`state`, dropping the oldest where there is no room for all.

        Returns whether that has what was found on the examples, too. Otherwise it is to be found
        again: states of earlier versions, or of other candidates or another size, don't have it.
        """
        self.numbers[:] = FREE
        if self._knows(state):
            slots = state["held_slots"]
            for name in ("inputs", "numbers", *FOUND):
                getattr(self, name)[slots] = state[f"held_{name}"]
            self.clock = int(state["held_clock"])
            return True
        for x, number in zip(state["held_inputs"], state["held_numbers"], strict=True):
            self.add(x, int(number))
        return False

    def _knows(self, state: dict[str, Any]) -> bool:
        if "held_size" not in state or int(state["held_size"]) != len(self.numbers):
            return False
        k = len(state["held_slots"])
        return all(
            np.shape(state[f"held_{name}"]) == (k, *getattr(self, name).shape[1:]) for name in FOUND
        )


# -------------------------------------------------------------------------------------------------
# Recoding: what keeps a class of few examples from being ignored (thesis 7.5.2 and 7.6.3).


def class_weights(counts: Array, recoding: float) -> Array:
    """The diagonal of Gamma^recoding, (T,): (k / gamma_t)^recoding, k the sum of the counts gamma.

    recoding = 0 leaves scores as they are, 1 undoes the imbalance wholly. A class without examples
    has a score of zero whatever its weight, which is 1.
    """
    known = counts > 0.0
    weights: Array = np.where(known, counts.sum() / np.where(known, counts, 1.0), 1.0) ** recoding
    return weights


def choose_recoding(accuracy: Array, tolerance: float = 0.0) -> tuple[int, int]:
    """Which ridge and which exponent to use, from held-out accuracies (ridges, exponents).

    The rule of thesis 7.6.3: at each exponent the ridge with the best accuracy; of the
    exponents the largest whose accuracy is at least that of the first, which is 0. Exponents
    ascend. With a `tolerance` the accuracy may be lower by so much. Of equal ridges the last.
    """
    best = accuracy.max(axis=0)
    exponent = int(np.flatnonzero(best >= best[0] - tolerance - 1e-12)[-1])
    ridge = int(np.flatnonzero(accuracy[:, exponent] >= best[exponent])[-1])
    return ridge, exponent


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


EXPONENTS = np.round(np.linspace(0.0, 1.0, 21), 2)  # the exponents that are tried
TEMPERATURES = np.geomspace(0.02, 1.0, 9)
# On image features of ten taught classes, the last from 1 to 10 examples: the best mean accuracy.
USUAL_EXPONENT = 0.7
USUAL_TEMPERATURE = 0.1  # until there are examples to choose by
LEAST_FOR_TEMPERATURE = 10
LEAST_FOR_NOVELTY = 5
LEAST_FOR_ACCEPTANCE = 10
LOG_LEVEL = 50.0  # temperatures of discriminants, whose scores are logarithms, are from 1 to this
PROBES = 16  # random vectors by which the number of scattering directions is estimated
GROWN = 1.05  # times as many examples, and it is estimated again
BLOCK_VALUES = 2**21  # features or scores held at a time


class Look(NamedTuple):
    """One input: the classes' probabilities (T,), its novelty, and its familiarity."""

    probabilities: Array
    novelty: float
    familiarity: float


class Judged(NamedTuple):
    """Inputs (k, D) by one ridge: scores (k, T) before recoding.

    With a discriminant also how familiar each class is, (k, T), and what least squares predicts.
    """

    scores: Array
    familiarity: Array | None = None
    predicted: Array | None = None


class ClassRecursion:
    """Sums of all classes, factors of all ridges, and the candidates in use.

    Parameters
    ----------
    front : features of inputs; `learn` gives those of examples to be learned.
    ridges : the candidates, ascending. validation_size : held-out examples kept.
    discriminant : whether scores are those of :mod:`semiparam_dynamics.learning.discriminant`, to
        which recoding adds its logarithm; otherwise they are least squares'.
    """

    def __init__(
        self,
        n_inputs: int,
        front: FixedFeatures | GrowingFeatures,
        ridges: Sequence[float],
        validation_size: int,
        *,
        discriminant: bool = False,
    ) -> None:
        self.front = front
        D = front.transform(np.zeros((1, n_inputs))).shape[1]
        self.factors = [CholeskyFactor(D, ridge) for ridge in ridges]
        self.classes = ClassSums(D)
        self.n_inputs = n_inputs
        self.held_out = self.buffer(validation_size)
        self.changed_at = 0  # on the clock of the held-out examples
        # Until there is something to choose by.
        self.chosen_ridge = len(ridges) // 2
        self.chosen_exponent = nearest_exponent(USUAL_EXPONENT)
        self._temperature: int | None = None
        # The exponent that was asked for, the examples of a class and the tolerance at that.
        self.chosen_by: tuple[float | None, int, float] | None = None
        # Of each ridge, with a discriminant: the scatter, the means as they are now, and the number
        # of directions in which examples scatter, with how many examples there were then.
        self.scatters = [ResidualScatter() for _ in ridges] if discriminant else []
        self._means: dict[int, ClassMeans] = {}
        self._dimensions: dict[int, tuple[float, float]] = {}
        self._recode = np.add if discriminant else np.multiply
        self._acceptance: tuple[tuple[int, int, int], Acceptance | None] | None = None

    @property
    def factor(self) -> CholeskyFactor:
        """The factor of the ridge in use."""
        return self.factors[self.chosen_ridge]

    @property
    def temperature(self) -> float:
        """By which scores are divided before the softmax."""
        number = self._temperature
        return USUAL_TEMPERATURE if number is None else float(TEMPERATURES[number])

    def buffer(self, size: int) -> HeldOutExamples:
        """An empty buffer for held-out examples."""
        candidates = len(self.factors), len(EXPONENTS), len(TEMPERATURES)
        return HeldOutExamples(size, self.n_inputs, *candidates)

    def learn(self, X: Array, numbers: Indices) -> None:
        """Learn examples X (n, d) of the classes of these numbers (n,)."""
        if self.scatters and len(X) <= len(self.classes):
            for x, number in zip(X, numbers, strict=True):
                self._learn_row(self.front.learn(x[None]), int(number))
            self.note_change()
            return
        D = len(self.factor.R)
        many = np.zeros((0, D))
        for part in _blocks(len(X), max(4 * D, 1024)):
            Z = self.front.learn(X[part])
            self.classes.learn(Z, numbers[part])
            if len(X) > D:
                # D rows with the same second moments, found once for all ridges.
                Z = many = np.asarray(np.linalg.qr(np.concatenate((many, Z)), mode="r"))
            if part.stop == len(X):
                for factor in self.factors:
                    factor.update(Z)
        sums, counts = self.classes.sums, self.classes.counts
        for factor, scatter in zip(self.factors, self.scatters, strict=False):
            scatter.replace(np.diag(counts) - sums @ factor.solve(sums).T)
        self.note_change()

    def _learn_row(self, z: Array, number: int) -> None:
        for factor, scatter in zip(self.factors, self.scatters, strict=True):
            solved = factor.solve(z)[0]
            scatter.resize(len(self.classes))
            scatter.learn(self.classes.sums @ solved, float(z[0] @ solved), number)
            factor.update(z)
        self.classes.learn(z, np.array([number]))

    def renumber(self, new: Indices) -> None:
        """Follow the classes, which were given these numbers, new[old], -1 for one that left."""
        self.held_out.renumber(new)
        for scatter in self.scatters:
            scatter.resize(len(new))
            scatter.renumber(new)
        self._acceptance = None  # examples may have left, which the clock doesn't show
        self.note_change()

    def note_change(self) -> None:
        """Mark the results on held-out examples as out of date."""
        self.changed_at = self.held_out.clock + 1
        self._means.clear()

    def note_exponent(self) -> None:
        """Mark the results as out of date that another exponent has changed: all."""
        self.changed_at = self.held_out.clock + 1

    def outdated(self) -> int:
        """The number of held-out examples whose results are older than the last change."""
        held = self.held_out
        return int(np.count_nonzero(held.checked[held.stalest(len(held))] < self.changed_at))

    def scores(self, X: Array, recoding: float) -> Array:
        """Recoded scores (n, T) of inputs (n, d), the classes in the order of their coming."""
        scores = np.empty((len(X), len(self.classes)))
        for part in self._blocks(len(X)):
            scores[part] = self._plain_scores(self.chosen_ridge, self.front.transform(X[part]))
        return self._recoded(scores, recoding)

    def probabilities(self, X: Array, recoding: float) -> Array:
        """Softmax (n, T) of the recoded scores, divided by the temperature.

        And least squares' by T^recoding, which recoding multiplies the scores of balanced classes
        by, so that one temperature fits all T.
        """
        return self._softmax(self.scores(X, recoding), recoding)

    def novelty(self, X: Array) -> Array:
        """Leverages x'A^-1 x (n,) of inputs (n, d), in units of held-out examples' median.

        About 1 for more of what was taught, large for what lies in directions that no example had,
        of which scores say nothing. With the smallest ridge, where the two differ most. Zeros
        while there are too few held-out examples to compare with.
        """
        novelty = np.empty(len(X))
        for part in self._blocks(len(X)):
            Z = self.front.transform(X[part])
            novelty[part] = np.einsum("ij,ij->i", Z, self.factors[0].solve(Z)) + self._outside(Z)
        return novelty * self._novelty_unit()

    def familiarity(self, X: Array, recoding: float) -> Array:
        """How familiar inputs (n, d) are, (n,); see :mod:`semiparam_dynamics.learning.unknown`."""
        familiarity = np.empty(len(X))
        for part in self._blocks(len(X)):
            judged = self._judge(self.chosen_ridge, self.front.transform(X[part]))
            scores = self._recoded(judged.scores, recoding)
            familiarity[part] = self._familiarity(judged, scores, recoding).max(axis=1)
        return familiarity

    def look(self, x: Array, recoding: float) -> Look:
        """What there is to say of one input (d,), with what it shares done once."""
        z = self.front.transform(x[None])
        solved = self.factor.solve(z)
        smallest = solved if self.chosen_ridge == 0 else self.factors[0].solve(z)
        judged = self._judge(self.chosen_ridge, z, solved)
        scores = self._recoded(judged.scores, recoding)
        familiarity = float(self._familiarity(judged, scores, recoding).max())
        novelty = float(z[0] @ smallest[0] + self._outside(z)[0]) * self._novelty_unit()
        return Look(self._softmax(scores, recoding)[0], novelty, familiarity)

    def acceptance(self) -> Acceptance | None:
        """What tells known from unknown by held-out examples; None while there are too few."""
        held = self.held_out
        of = held.clock, self.changed_at, self.chosen_ridge
        if self._acceptance is None or self._acceptance[0] != of:
            self._acceptance = of, held.acceptance(self.chosen_ridge, LEAST_FOR_ACCEPTANCE)
        return self._acceptance[1]

    def _outside(self, Z: Array) -> Array:
        """What leverages (k,) with the smallest ridge have beside z'A^-1 z of features Z (k, D).

        What growing features' centres leave of an input is orthogonal to all that was learned: A is
        the ridge there. Far from all centres features vanish, and this is the whole leverage.
        """
        outside: Array = self.front.unexplained(Z) / self.factors[0].penalty
        return outside

    def _novelty_unit(self) -> float:
        usual = self.held_out.leverage(LEAST_FOR_NOVELTY)
        return 0.0 if usual is None else 1.0 / max(usual, np.finfo(float).tiny)

    def _softmax(self, scores: Array, recoding: float) -> Array:
        tempered = scores / (self._level(recoding) * self.temperature)
        probabilities: Array = softmax(self.without_empty(tempered), axis=1)
        return probabilities

    def without_empty(self, scores: Array) -> Array:
        """Scores (n, T), those of classes that no example was learned of below all others."""
        empty = self.classes.counts <= 0.0
        return np.where(empty, -np.inf, scores) if empty.any() and not empty.all() else scores

    def look_at(self, held: HeldOutExamples, slots: Indices, recoding: float) -> None:
        """Find what each candidate makes of the held-out examples in these slots."""
        weights = self._weights(exponent_weights(self.classes.counts, EXPONENTS))
        for block in self._blocks(len(slots)):
            part = slots[block]
            Z = self.front.transform(held.inputs[part])
            truth = held.numbers[part]
            hits, losses, leverages = held.hits[part], held.losses[part], held.leverages[part]
            familiarity = held.familiarity[part]
            for i, factor in enumerate(self.factors):
                by_rows = i == 0 or len(Z) <= len(self.classes)
                solved = factor.solve(Z) if by_rows else None
                if i == 0 and solved is not None:
                    leverages = np.einsum("ij,ij->i", Z, solved) + self._outside(Z)
                judged = self._judge(i, Z, solved)
                hits[:, i] = winners(judged.scores, weights, self._recode) == truth[:, None]
                scores = self._recoded(judged.scores, recoding)
                losses[:, i] = _losses(scores / self._level(recoding), truth)
                familiar = self._familiarity(judged, scores, recoding)
                familiarity[:, i, 0] = familiar.max(axis=1)
                familiar[np.arange(len(truth)), truth] = -np.inf
                familiarity[:, i, 1] = familiar.max(axis=1)
                if judged.predicted is not None:
                    withheld = self._class_means(i).withheld(judged.predicted, truth)
                    familiarity[:, i, 1] += withheld
            held.note(part, hits, losses, leverages, familiarity)

    def choose(
        self, held: HeldOutExamples, recoding: float | None, least: int, tolerance: float
    ) -> None:
        """Take the candidates that do best on classes with at least so many held-out examples.

        recoding : the exponent, or None to choose it too.
        """
        self.chosen_by = recoding, least, tolerance
        accuracy = held.accuracy(least)
        if accuracy is not None and recoding is None:
            self.chosen_ridge, self.chosen_exponent = choose_recoding(accuracy, tolerance)
        elif accuracy is not None and recoding is not None:
            self.chosen_ridge, _ = choose_recoding(accuracy[:, [nearest_exponent(recoding)]])
        self._temperature = held.temperature(self.chosen_ridge, LEAST_FOR_TEMPERATURE)

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays, but for the labels."""
        factors = {f"R{i}": factor.state() for i, factor in enumerate(self.factors)}
        ridges = np.array([factor.penalty for factor in self.factors])
        parts = factors | self.front.state() | self.classes.state() | self.held_out.state()
        scatters: dict[str, Any] = {}
        for i, scatter in enumerate(self.scatters):
            scatters |= {f"{name}{i}": array for name, array in scatter.state().items()}
        if self.scatters:
            known = [self._dimensions.get(i, (0.0, 0.0)) for i in range(len(ridges))]
            scatters["dimensions"] = np.array(known)
        number = -1 if self._temperature is None else self._temperature
        chosen = np.array([self.chosen_ridge, self.chosen_exponent, number, self.changed_at])
        parts |= scatters | {"ridges": ridges, "chosen": chosen}
        if self.chosen_by is not None:
            recoding, least, tolerance = self.chosen_by
            asked = -1.0 if recoding is None else recoding
            parts["chosen_by"] = np.array([asked, least, tolerance], dtype=float)
        if isinstance(self.front, GrowingFeatures):
            parts["whole_leverages"] = np.array(True)  # those of earlier versions lack `_outside`
        return parts

    def restore(self, labels: Sequence[Any], state: dict[str, Any]) -> bool:
        """Resume from a :meth:`state`. Raises LearningError where it is of another shape.

        Returns whether that has what was chosen, and what was found on held-out examples.
        """
        mine = [factor.penalty for factor in self.factors]
        if "ridges" not in state:
            raise LearningError("The saved model has no ridges: another version wrote it.")
        if not np.array_equal(mine, state["ridges"]):
            theirs = np.asarray(state["ridges"]).tolist()
            raise LearningError(f"The saved model has the ridges {theirs}, not {mine}.")
        if state["sums"].shape[1] != len(self.factor.R):
            raise LearningError(
                f"The saved model has {state['sums'].shape[1]} features, not {len(self.factor.R)}."
            )
        try:
            self.front.restore(state)
        except KeyError as error:
            raise LearningError(
                f"The saved model has no {error}: its features are others."
            ) from None
        if self.scatters and "E0" not in state:
            raise LearningError("The saved model has no scatter of classes: its head is another.")
        for i, factor in enumerate(self.factors):
            factor.restore(state[f"R{i}"])
        for i, scatter in enumerate(self.scatters):
            names = [name for name in ("E", "K", "updates") if f"{name}{i}" in state]
            scatter.restore({name: state[f"{name}{i}"] for name in names})
            self._dimensions[i] = tuple(state["dimensions"][i].tolist())
        self.classes.restore(labels, state)
        known = self.held_out.restore(state) and "chosen" in state
        known &= "whole_leverages" in state or not isinstance(self.front, GrowingFeatures)
        self.note_change()
        if known:
            chosen = [int(number) for number in state["chosen"]]
            self.chosen_ridge, self.chosen_exponent, number, self.changed_at = chosen
            self._temperature = None if number < 0 else number
            if "chosen_by" in state:
                asked, least, tolerance = (float(number) for number in state["chosen_by"])
                self.chosen_by = None if asked < 0.0 else asked, int(least), tolerance
        return known

    def _plain_scores(self, ridge: int, Z: Array, solved: Array | None = None) -> Array:
        return self._judge(ridge, Z, solved).scores

    def _judge(self, ridge: int, Z: Array, solved: Array | None = None) -> Judged:
        """Features (k, D) by one ridge, from `solved`, A^-1 x, where known.

        Least squares' scores are x'A^-1 b.
        """
        factor, sums = self.factors[ridge], self.classes.sums
        if solved is None and (self.scatters or len(Z) <= len(sums)):
            solved = factor.solve(Z)
        # Either k or T systems are solved, whichever are fewer.
        scores: Array = Z @ factor.solve(sums).T if solved is None else solved @ sums.T
        if not self.scatters or solved is None:
            return Judged(scores)
        means, leverages = self._class_means(ridge), np.einsum("ij,ij->i", Z, solved)
        distances = means.distances(scores, leverages)
        return Judged(means.scores(distances), means.familiarity(distances, leverages), scores)

    def _familiarity(self, judged: Judged, scores: Array, recoding: float) -> Array:
        """How familiar each class is (k, T), from its recoded scores with least squares."""
        found = judged.familiarity
        if found is None:
            found = scores / self._level(recoding)
        return np.array(self.without_empty(found))

    def _class_means(self, ridge: int) -> ClassMeans:
        if ridge not in self._means:
            scatter, counts = self.scatters[ridge], self.classes.counts
            scatter.resize(len(counts))
            self._means[ridge] = ClassMeans(scatter, counts, self._dimension(ridge))
        return self._means[ridge]

    def _dimension(self, ridge: int) -> float:
        """tr(S_w (S_w + ridge I)^-1), estimated by the traces of random vectors.

        M. Hutchinson: A stochastic estimator of the trace of the influence matrix, 1989.
        """
        known, then = self._dimensions.get(ridge, (0.0, 0.0))
        now = float(self.classes.counts.sum())
        if not then <= now <= GROWN * then:
            factor, D = self.factors[ridge], len(self.factor.R)
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, D))
            solved = factor.solve(signs)
            predicted = solved @ self.classes.sums.T
            crossed = self.scatters[ridge].solve(predicted)
            trace = (np.sum(signs * solved) + np.sum(predicted * crossed)) / PROBES
            known = max(D - factor.penalty * trace, 1.0)
            self._dimensions[ridge] = known, now
        return known

    def _weights(self, weights: Array) -> Array:
        """What recodes scores by such weights: they themselves, or their logarithms."""
        found: Array = np.log(weights) if self.scatters else weights
        return found

    def _recoded(self, scores: Array, recoding: float) -> Array:
        weights = self._weights(class_weights(self.classes.counts, recoding))
        found: Array = self._recode(scores, weights, out=scores)
        return found

    def _level(self, recoding: float) -> float:
        return LOG_LEVEL if self.scatters else float(max(len(self.classes), 1) ** recoding)

    def _blocks(self, n: int) -> list[slice]:
        return _blocks(n, BLOCK_VALUES // max(len(self.factor.R), 16 * len(self.classes)) + 1)


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def nearest_exponent(recoding: float) -> int:
    """The number of the exponent that was tried and is closest."""
    return int(np.abs(EXPONENTS - recoding).argmin())


def _losses(scores: Array, truth: Indices) -> Array:
    """-log softmax(scores / temperature) of the true classes (k,), (k, temperatures)."""
    rows = np.arange(len(scores))
    beyond = (scores - scores[rows, truth][:, None])[:, None, :] / TEMPERATURES[:, None]
    highest = beyond.max(axis=2)  # at least 0, the true class' own
    sums: Array = np.exp(beyond - highest[:, :, None]).sum(axis=2)
    losses: Array = highest + np.log(sums)
    return losses
