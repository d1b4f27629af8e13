"""Algorithm 2 of the thesis (7.5) with its model selection (7.6.3), for classes that are numbers.

An example is added to its class' sum and count, and its features are rotated into the factor of
each candidate ridge. Every so many-th is held out instead, and the candidates are compared by
those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.class_heads import (
    ClassSums,
    LeastSquaresHead,
    class_weights,
    exponent_weights,
    winners,
)
from semiparam_dynamics.learning.features import BLOCK_VALUES, FixedFeatures, GrowingFeatures
from semiparam_dynamics.learning.held_out import (
    EXPONENTS,
    TEMPERATURES,
    Acceptance,
    HeldOutExamples,
    choose_recoding,
    nearest_exponent,
)

# On image features of ten taught classes, the last from 1 to 10 examples: the best mean accuracy.
DEFAULT_EXPONENT = 0.7
DEFAULT_TEMPERATURE = 0.1  # until there are examples to choose by
MIN_QR_ROWS = 1024  # of a QR decomposition: of fewer its overhead counts


class Assessment(NamedTuple):
    """Inputs' probabilities of the classes (n, T), novelty (n,) and familiarity (n,).

    Of one input (T,) and two numbers.
    """

    probabilities: Array
    novelty: Array
    familiarity: Array


class ClassRecursion:
    """Sums of all classes, a head for each ridge, and the candidates in use.

    Parameters
    ----------
    front : features of inputs; `learn` gives those of examples to be learned.
    ridges : the candidates, ascending. validation_size : held-out examples kept.
    head : the kind of the heads.
    """

    def __init__(
        self,
        n_inputs: int,
        front: FixedFeatures | GrowingFeatures,
        ridges: Sequence[float],
        validation_size: int,
        head: type[LeastSquaresHead] = LeastSquaresHead,
    ) -> None:
        self.front = front
        self.n_features = front.transform(np.zeros((1, n_inputs))).shape[1]
        self.classes = ClassSums(self.n_features)
        self.heads = [head(self.n_features, ridge, self.classes) for ridge in ridges]
        self.n_inputs = n_inputs
        self.held_out = self.buffer(validation_size)
        self.changed_at = 0  # on the clock of the held-out examples
        # Until there is something to choose by.
        self.chosen_ridge = len(ridges) // 2
        self.chosen_exponent = nearest_exponent(DEFAULT_EXPONENT)
        self._temperature: int | None = None
        # The exponent that was asked for, the examples of a class and the tolerance at that.
        self.chosen_by: tuple[float | None, int, float] | None = None
        self._acceptance: tuple[tuple[int, int, int], Acceptance | None] | None = None

    @property
    def head(self) -> LeastSquaresHead:
        """The head of the ridge in use."""
        return self.heads[self.chosen_ridge]

    @property
    def temperature(self) -> float:
        """Divisor of scores before the softmax."""
        number = self._temperature
        return DEFAULT_TEMPERATURE if number is None else float(TEMPERATURES[number])

    def buffer(self, size: int) -> HeldOutExamples:
        """An empty buffer for held-out examples."""
        return HeldOutExamples(size, self.n_inputs, len(self.heads))

    def learn(self, X: Array, numbers: Indices) -> None:
        """Learn examples X (n, d) of the classes of these numbers (n,)."""
        if self.head.one_by_one and len(X) <= len(self.classes):
            for x, number in zip(X, numbers, strict=True):
                z = self.front.learn(x[None])
                for head in self.heads:
                    head.learn_one(z, int(number))
                self.classes.learn(z, np.array([number]))
        else:
            self._learn_blocks(X, numbers)
        self.note_change()

    def _learn_blocks(self, X: Array, numbers: Indices) -> None:
        D = self.n_features
        many = np.zeros((0, D))
        for part in _blocks(len(X), max(4 * D, MIN_QR_ROWS)):
            Z = self.front.learn(X[part])
            self.classes.learn(Z, numbers[part])
            if len(X) > D:
                # D rows with the same second moments, found once for all ridges.
                Z = many = np.asarray(np.linalg.qr(np.concatenate((many, Z)), mode="r"))
            if part.stop == len(X):
                for head in self.heads:
                    head.learn(Z)

    def renumber(self, new: Indices) -> None:
        """Follow the classes, which were given these numbers, new[old], -1 for one that left."""
        self.held_out.renumber(new)
        for head in self.heads:
            head.renumber(new)
        self._acceptance = None  # examples may have left, which the clock doesn't show
        self.note_change()

    def note_change(self) -> None:
        """Mark the results on held-out examples as out of date."""
        self.note_exponent()
        for head in self.heads:
            head.note_change()

    def note_exponent(self) -> None:
        """Mark the results as out of date that another exponent has changed: all."""
        self.changed_at = self.held_out.clock + 1

    def outdated(self) -> int:
        """The number of held-out examples whose results are older than the last change."""
        return self.held_out.older_than(self.changed_at)

    def scores(self, X: Array, recoding: float) -> Array:
        """Recoded scores (n, T) of inputs (n, d), the classes in the order of their coming."""
        scores = np.empty((len(X), len(self.classes)))
        for part in self._blocks(len(X)):
            scores[part] = self.head.judge(self.front.transform(X[part])).scores
        return self._recoded(scores, recoding)

    def softmax(self, scores: Array, recoding: float) -> Array:
        """Probabilities (n, T) of recoded scores (n, T), which the temperature divides."""
        tempered = scores / (self.head.level(recoding) * self.temperature)
        probabilities: Array = softmax(self.head.without_empty(tempered), axis=1)
        return probabilities

    def assess(self, X: Array, recoding: float) -> Assessment:
        """Probabilities, novelty and familiarity of inputs (n, d), with what they share done once.

        Novelty is the leverage x'A^-1 x in units of held-out examples' median: about 1 for more of
        what was taught, large for what lies in directions that no example had, of which scores say
        nothing. With the smallest ridge, where the two differ most. Zeros while there are too few
        held-out examples to compare with.
        """
        n, median = len(X), self.held_out.leverage()
        found = Assessment(np.empty((n, len(self.classes))), np.zeros(n), np.empty(n))
        for part in self._blocks(n):
            Z = self.front.transform(X[part])
            solved = self.head.factor.solve_rows(Z)
            judged = self.head.judge(Z, solved)
            recoded = self._recoded(judged.scores.copy(), recoding)
            found.probabilities[part] = self.softmax(recoded, recoding)
            familiarity = self.head.familiarity(judged, recoded, recoding)
            found.familiarity[part] = familiarity.max(axis=1)
            if median is not None:
                smallest = solved if self.chosen_ridge == 0 else self.heads[0].factor.solve_rows(Z)
                unit = 1.0 / max(median, np.finfo(float).tiny)
                found.novelty[part] = self._leverages(Z, smallest) * unit
        return found

    def acceptance(self) -> Acceptance | None:
        """Limits of familiarity by held-out examples; None while there are too few."""
        held = self.held_out
        of = held.clock, self.changed_at, self.chosen_ridge
        if self._acceptance is None or self._acceptance[0] != of:
            self._acceptance = of, held.acceptance(self.chosen_ridge)
        return self._acceptance[1]

    def _leverages(self, Z: Array, solved: Array) -> Array:
        """Leverages (k,) with the smallest ridge of features Z (k, D), solved = A^-1 z as rows.

        What growing features' centres leave of an input is orthogonal to all that was learned: A is
        the ridge there. Far from all centres features vanish, and this is the whole leverage.
        """
        leverages: Array = np.einsum("ij,ij->i", Z, solved)
        leverages += self.front.unexplained(Z) / self.heads[0].ridge
        return leverages

    def evaluate(self, held: HeldOutExamples, slots: Indices, recoding: float) -> None:
        """Find the results of each candidate on the held-out examples in these slots."""
        exponents = exponent_weights(self.classes.counts, EXPONENTS)
        for block in self._blocks(len(slots)):
            part = slots[block]
            Z, truth = self.front.transform(held.inputs[part]), held.numbers[part]
            hits, losses, leverages = held.hits[part], held.losses[part], held.leverages[part]
            familiarity = held.familiarity[part]
            for i, head in enumerate(self.heads):
                by_rows = i == 0 or len(Z) <= len(self.classes)
                solved = head.factor.solve_rows(Z) if by_rows else None
                if i == 0 and solved is not None:
                    leverages = self._leverages(Z, solved)
                judged = head.judge(Z, solved)
                won = winners(judged.scores, head.recoding_of(exponents), head.recode)
                hits[:, i] = won == truth[:, None]
                scores = self._recoded(judged.scores.copy(), recoding)
                losses[:, i] = _losses(scores / head.level(recoding), truth)
                familiar = head.familiarity(judged, scores, recoding)
                familiarity[:, i, 0] = familiar.max(axis=1)
                familiar[np.arange(len(truth)), truth] = -np.inf
                familiarity[:, i, 1] = familiar.max(axis=1) + head.withheld(judged, truth)
            held.record(
                part, hits=hits, losses=losses, leverages=leverages, familiarity=familiarity
            )

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
        self._temperature = held.temperature(self.chosen_ridge)

    def state(self) -> dict[str, Any]:
        """The arrays that :meth:`restore` needs in addition to the labels."""
        parts = self.front.state() | self.classes.state() | self.held_out.state()
        for i, head in enumerate(self.heads):
            parts |= {f"{name}{i}": array for name, array in head.state().items()}
        number = -1 if self._temperature is None else self._temperature
        chosen = np.array([self.chosen_ridge, self.chosen_exponent, number, self.changed_at])
        parts |= {"ridges": np.array([head.ridge for head in self.heads]), "chosen": chosen}
        if self.chosen_by is not None:
            recoding, least, tolerance = self.chosen_by
            asked = -1.0 if recoding is None else recoding
            parts["chosen_by"] = np.array([asked, least, tolerance], dtype=float)
        return parts

    def restore(self, labels: Sequence[Any], state: dict[str, Any]) -> bool:
        """Resume from a :meth:`state`. Raises LearningError where it is of another shape.

        Returns whether the results on held-out examples came along, and with them the choice.
        """
        mine, theirs = [head.ridge for head in self.heads], np.asarray(state["ridges"]).tolist()
        if mine != theirs:
            raise LearningError(f"The saved model has the ridges {theirs}, not {mine}.")
        if state["sums"].shape[1] != self.n_features:
            raise LearningError(
                f"The saved model has {state['sums'].shape[1]} features, not {self.n_features}."
            )
        try:
            self.front.restore(state)
            for i, head in enumerate(self.heads):
                head.restore({name: state[f"{name}{i}"] for name in head.arrays})
        except KeyError as error:
            raise LearningError(
                f"The saved model has no {error}: its features or its head are others."
            ) from None
        self.classes.restore(labels, state)
        known = self.held_out.restore(state)
        self.note_change()
        if known:
            chosen = [int(number) for number in state["chosen"]]
            self.chosen_ridge, self.chosen_exponent, number, self.changed_at = chosen
            self._temperature = None if number < 0 else number
            if "chosen_by" in state:
                asked, least, tolerance = (float(number) for number in state["chosen_by"])
                self.chosen_by = None if asked < 0.0 else asked, int(least), tolerance
        return known

    def _recoded(self, scores: Array, recoding: float) -> Array:
        """Scores (n, T), in their place, with the weights of `recoding`."""
        weights = self.head.recoding_of(class_weights(self.classes.counts, recoding))
        recoded: Array = self.head.recode(scores, weights, out=scores)
        return recoded

    def _blocks(self, n: int) -> list[slice]:
        return _blocks(n, BLOCK_VALUES // max(self.n_features, 16 * len(self.classes)) + 1)


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _losses(scores: Array, truth: Indices) -> Array:
    """-log softmax(scores / temperature) of the true classes (k,), (k, temperatures)."""
    rows = np.arange(len(scores))
    beyond = (scores - scores[rows, truth][:, None])[:, None, :] / TEMPERATURES[:, None]
    highest = beyond.max(axis=2)  # at least 0, the true class' own
    sums: Array = np.exp(beyond - highest[:, :, None]).sum(axis=2)
    losses: Array = highest + np.log(sums)
    return losses
