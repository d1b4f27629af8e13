"""Algorithm 2 of the thesis (7.5) with its model selection (7.6.3), for classes that are numbers.

What an example does: its class' sum and count grow, and its features are rotated into the factor
of each candidate penalty. Every so many-th is held out instead, and by those the candidates are
judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.errors import LearningError
from semiparam_dynamics.learning.cholesky_factor import CholeskyFactor
from semiparam_dynamics.learning.class_sums import ClassSums
from semiparam_dynamics.learning.front_features import FixedFeatures, GrowingFeatures
from semiparam_dynamics.learning.held_out_examples import HeldOutExamples
from semiparam_dynamics.learning.recoding import (
    choose_recoding,
    class_weights,
    exponent_weights,
    winners,
)

ALPHAS = np.round(np.linspace(0.0, 1.0, 21), 2)  # the exponents that are tried
TEMPERATURES = np.geomspace(0.02, 1.0, 9)
# On image features of ten taught classes, the last from 1 to 10 examples: the best mean accuracy.
USUAL_ALPHA = 0.7
USUAL_TEMPERATURE = 0.1  # until there are examples to choose by
LEAST_FOR_TEMPERATURE = 10
LEAST_FOR_NOVELTY = 5
BLOCK_VALUES = 2**21  # features or scores held at a time


class ClassRecursion:
    """What was learned of all classes, and which candidates are in use.

    Parameters
    ----------
    front : features of inputs; `learn` gives those of examples to be learned.
    penalties : the candidates, ascending. validation_size : held-out examples kept.
    """

    def __init__(
        self,
        n_inputs: int,
        front: FixedFeatures | GrowingFeatures,
        penalties: Sequence[float],
        validation_size: int,
    ) -> None:
        self.front = front
        D = front.transform(np.zeros((1, n_inputs))).shape[1]
        self.factors = [CholeskyFactor(D, penalty) for penalty in penalties]
        self.classes = ClassSums(D)
        self.n_inputs = n_inputs
        self.held_out = self.buffer(validation_size)
        self.changed_at = 0  # on the clock of the held-out examples
        # Until there is something to choose by.
        self.chosen_penalty = len(penalties) // 2
        self.chosen_exponent = nearest_exponent(USUAL_ALPHA)
        self._temperature: int | None = None

    @property
    def factor(self) -> CholeskyFactor:
        """The factor of the penalty in use."""
        return self.factors[self.chosen_penalty]

    @property
    def temperature(self) -> float:
        """By which scores are divided before the softmax."""
        number = self._temperature
        return USUAL_TEMPERATURE if number is None else float(TEMPERATURES[number])

    def buffer(self, size: int) -> HeldOutExamples:
        """An empty buffer for held-out examples."""
        candidates = len(self.factors), len(ALPHAS), len(TEMPERATURES)
        return HeldOutExamples.empty(size, self.n_inputs, *candidates)

    def learn(self, X: Array, numbers: Indices) -> None:
        """Learn examples X (n, d) of the classes of these numbers (n,)."""
        D = len(self.factor.R)
        many = np.zeros((0, D))
        for part in _blocks(len(X), max(4 * D, 1024)):
            Z = self.front.learn(X[part])
            self.classes.learn(Z, numbers[part])
            if len(X) > D:
                # D rows with the same second moments, found once for all penalties.
                Z = many = np.asarray(np.linalg.qr(np.concatenate((many, Z)), mode="r"))
            if part.stop == len(X):
                for factor in self.factors:
                    factor.update(Z)
        self.note_change()

    def note_change(self) -> None:
        """From now on what was found on held-out examples is out of date."""
        self.changed_at = self.held_out.clock + 1

    def outdated(self) -> int:
        """How many held-out examples were last looked at before something changed."""
        held = self.held_out
        return int(np.count_nonzero(held.checked[held.stalest(len(held))] < self.changed_at))

    def scores(self, X: Array, alpha: float) -> Array:
        """Recoded scores (n, T) of inputs (n, d), the classes in the order of their coming."""
        scores = np.empty((len(X), len(self.classes)))
        for part in self._blocks(len(X)):
            scores[part] = self._plain_scores(self.factor, self.front.transform(X[part]))
        scores *= class_weights(self.classes.counts, alpha)
        return scores

    def probabilities(self, X: Array, alpha: float) -> Array:
        """Softmax (n, T) of the recoded scores, divided by the temperature.

        And by T^alpha, which recoding multiplies the scores of balanced classes by, so that one
        temperature fits all T.
        """
        return self._softmax(self.scores(X, alpha), alpha)

    def novelty(self, X: Array) -> Array:
        """Leverages x'A^-1 x (n,) of inputs (n, d), in units of held-out examples' median.

        About 1 for more of what was taught, large for what lies in directions that no example had,
        of which scores say nothing. With the smallest penalty, where the two differ most. Zeros
        while there are too few held-out examples to compare with.
        """
        novelty = np.empty(len(X))
        for part in self._blocks(len(X)):
            Z = self.front.transform(X[part])
            novelty[part] = np.einsum("ij,ij->i", Z, self.factors[0].solve(Z))
        return novelty * self._novelty_unit()

    def look(self, x: Array, alpha: float) -> tuple[Array, float]:
        """Probabilities (T,) and novelty of one input (d,), with what they share done once."""
        z = self.front.transform(x[None])
        solved = self.factor.solve(z)
        smallest = solved if self.chosen_penalty == 0 else self.factors[0].solve(z)
        scores = self._plain_scores(self.factor, z, solved)
        scores *= class_weights(self.classes.counts, alpha)
        return self._softmax(scores, alpha)[0], float(z[0] @ smallest[0]) * self._novelty_unit()

    def _novelty_unit(self) -> float:
        usual = self.held_out.leverage(LEAST_FOR_NOVELTY)
        return 0.0 if usual is None else 1.0 / max(usual, np.finfo(float).tiny)

    def _softmax(self, scores: Array, alpha: float) -> Array:
        tempered = scores / (self._level(alpha) * self.temperature)
        probabilities: Array = softmax(self.without_empty(tempered), axis=1)
        return probabilities

    def without_empty(self, scores: Array) -> Array:
        """Scores (n, T), those of classes that no example was learned of below all others."""
        empty = self.classes.counts <= 0.0
        return np.where(empty, -np.inf, scores) if empty.any() and not empty.all() else scores

    def look_at(self, held: HeldOutExamples, slots: Indices, alpha: float) -> None:
        """Find what each candidate makes of the held-out examples in these slots."""
        counts = self.classes.counts
        balance = class_weights(counts, alpha) / self._level(alpha)
        weights = exponent_weights(counts, ALPHAS)
        for block in self._blocks(len(slots)):
            part = slots[block]
            Z = self.front.transform(held.inputs[part])
            truth = held.numbers[part]
            hits, losses, leverages = held.hits[part], held.losses[part], held.leverages[part]
            for i, factor in enumerate(self.factors):
                solved = factor.solve(Z) if i == 0 or len(Z) <= len(self.classes) else None
                if i == 0 and solved is not None:
                    leverages = np.einsum("ij,ij->i", Z, solved)
                scores = self._plain_scores(factor, Z, solved)
                hits[:, i] = winners(scores, weights) == truth[:, None]
                scores *= balance
                losses[:, i] = _losses(scores, truth)
            held.note(part, hits, losses, leverages)

    def choose(
        self, held: HeldOutExamples, alpha: float | None, least: int, tolerance: float
    ) -> None:
        """Take the candidates that do best on classes with at least so many held-out examples.

        alpha : the exponent, or None to choose it too.
        """
        accuracy = held.accuracy(least)
        if accuracy is not None and alpha is None:
            self.chosen_penalty, self.chosen_exponent = choose_recoding(accuracy, tolerance)
        elif accuracy is not None and alpha is not None:
            self.chosen_penalty, _ = choose_recoding(accuracy[:, [nearest_exponent(alpha)]])
        self._temperature = held.temperature(self.chosen_penalty, LEAST_FOR_TEMPERATURE)

    def state(self) -> dict[str, Any]:
        """All that was learned, as arrays, but for the labels."""
        factors = {f"R{i}": factor.state() for i, factor in enumerate(self.factors)}
        penalties = np.array([factor.penalty for factor in self.factors])
        parts = factors | self.front.state() | self.classes.state() | self.held_out.state()
        return parts | {"penalties": penalties}

    def restore(self, labels: Sequence[Any], state: dict[str, Any]) -> None:
        """Go on from a :meth:`state`. Raises LearningError where it is of another shape."""
        mine = [factor.penalty for factor in self.factors]
        if not np.array_equal(mine, state["penalties"]):
            theirs = np.asarray(state["penalties"]).tolist()
            raise LearningError(f"The saved model has the penalties {theirs}, not {mine}.")
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
        for i, factor in enumerate(self.factors):
            factor.restore(state[f"R{i}"])
        self.classes.restore(labels, state)
        self.held_out.restore(state)
        self.note_change()

    def _plain_scores(self, factor: CholeskyFactor, Z: Array, solved: Array | None = None) -> Array:
        """x'A^-1 b, (k, T), of features (k, D), from `solved`, A^-1 x, where it is known."""
        sums = self.classes.sums
        if solved is None and len(Z) <= len(sums):
            solved = factor.solve(Z)
        # Either k or T systems are solved, whichever are fewer.
        scores: Array = Z @ factor.solve(sums).T if solved is None else solved @ sums.T
        return scores

    def _level(self, alpha: float) -> float:
        return float(max(len(self.classes), 1) ** alpha)

    def _blocks(self, n: int) -> list[slice]:
        return _blocks(n, BLOCK_VALUES // max(len(self.factor.R), 16 * len(self.classes)) + 1)


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def nearest_exponent(alpha: float) -> int:
    """The number of the exponent that was tried and is closest."""
    return int(np.abs(ALPHAS - alpha).argmin())


def _losses(scores: Array, truth: Indices) -> Array:
    """-log softmax(scores / temperature) of the true classes (k,), (k, temperatures)."""
    rows = np.arange(len(scores))
    beyond = (scores - scores[rows, truth][:, None])[:, None, :] / TEMPERATURES[:, None]
    highest = beyond.max(axis=2)  # at least 0, the true class' own
    sums: Array = np.exp(beyond - highest[:, :, None]).sum(axis=2)
    losses: Array = highest + np.log(sums)
    return losses
