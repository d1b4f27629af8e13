"""Incremental RLS classification with new classes at any time and recoding (thesis chapter 7)."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    positive,
    positive_count,
)
from semiparam_dynamics.learning.class_heads import (
    ClassSums,
    DiscriminantHead,
    LeastSquaresHead,
    class_weights,
    exponent_weights,
    winners,
)
from semiparam_dynamics.learning.features import (
    BLOCK_VALUES,
    FixedFeatures,
    GrowingFeatures,
    feature_option,
    gaussian_width,
)
from semiparam_dynamics.learning.held_out import (
    EXPONENTS,
    TEMPERATURES,
    Acceptance,
    HeldOutExamples,
    choose_recoding,
    nearest_exponent,
)
from semiparam_dynamics.learning.rows import validate_data

# -------------------------------------------------------------------------------------------------
# Algorithm 2 of the thesis (7.5) with its model selection (7.6.3), for classes that are numbers.
#
# An example is added to its class' sum and count, and its features are rotated into the factor of
# each candidate ridge. Every so many-th is held out instead, and the candidates are compared by
# those.

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
        self.changed_at = self.held_out.clock + 1
        for head in self.heads:
            head.note_change()

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


# -------------------------------------------------------------------------------------------------
# The estimator.

REEVALUATED = 2  # held-out examples that are evaluated again whenever one comes
HEADS = {"least_squares": LeastSquaresHead, "discriminant": DiscriminantHead}
MIN_UNEXPLAINED = 1e-3  # what growing features' centres must leave of a row for it to become one


@dataclass(eq=False, repr=False)
class IncrementalRLSC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Regularised least squares classification, example by example, new classes included.

    Scores are f(x) = x'W Gamma^recoding with W = A^-1 b, A = Z'Z + ridge I and b = Z'Y over all
    examples learned, Y their classes' one-hot codes and Gamma = k diag(gamma)^-1 (thesis 7.5,
    algorithm 2). No intercept. An example that is learned costs O(D^2) for each ridge,
    whatever the numbers of examples and classes; a prediction O(D^2 + D T). One that is held out is
    evaluated with two others by each ridge, O(D^2 + D T), and all V held out are compared, O(V);
    with `refresh_later` that waits for a pause. W is never formed: the score is b'(A^-1 x),
    and recoding multiplies it at the end. So `recoding` may be changed at any moment
    (``model.recoding = 0.5``), and nothing is learned again; what was chosen by held-out examples,
    `ridge_`, `temperature_` and the limit of `false_accepts`, follows with :meth:`validate`.

    Parameters
    ----------
    ridge : one, or candidates that are learned side by side. Of the sum of squares, added once, as
        in :class:`RecursiveRLS`; it is not multiplied by the number of examples as a `penalty` is.
    recoding : the exponent from 0 (classes count by their examples) to 1 (all the same), or
        "auto": the largest that costs nothing on held-out examples (thesis 7.6.3).
    tolerance : by how much the held-out accuracy may be lower for a larger exponent; 0 in the
        thesis.
    hold_out : each class' every `hold_out`-th example is not learned but kept to choose by; 0: no
        example is.
    validation_size : how many of these are kept; the class with most gives up its oldest.
    min_validation : classes with fewer of these don't take part in the choice.
    refresh_later : what is held out is only kept, for :meth:`refresh` to evaluate in pauses.
    features : None (the inputs themselves), "random_fourier", "random_relu" (RanPAC's, see
        :class:`RandomReLUFeatures`), "nystrom" (centres are added while examples come, up to
        `n_features`), or a transformer; see :class:`RecursiveRLS`.
    kernel : of Fourier and Nyström features; None is the Gaussian of width 1, and no other kind is
        known here.
    n_features : of these features.
    threshold : a prediction less probable than this is `unknown`.
    max_novelty : an input of a larger :meth:`novelty` is `unknown`; 0: no limit. Probabilities
        are among the classes, and do not show that an input is like none of them.
    false_accepts : the share of inputs of no class that may pass for one that was taught, by
        their :meth:`familiarity`: what would pass beyond it is `unknown`. 0: no limit.
    unknown : the answer of :meth:`predict` then; with such a limit no class may be named so. If
        labels are numbers and this is none, or the other way round, `predict` returns an array of
        objects.
    random_state : seed of the features.
    head : "least_squares", the thesis' as above, or "discriminant": a Gaussian for each class with
        one covariance for all, from the same recursion, and for the means of classes with few
        examples a prior from all others' (see :mod:`semiparam_dynamics.learning.class_heads`).
        Scores are logarithms of probabilities then, and `recoding` goes from the classes' shares
        of the examples, 0, to equal ones, 1.

    Attributes
    ----------
    classes_ : (T,), sorted. class_count_ : (T,), examples of each that were learned.
    ridge_, recoding_ : those in use. temperature_ : of the probabilities.
    features_ : the fitted transformer, or None. n_features_in_ : d.
    """

    ridge: float | Sequence[float] = 1.0
    recoding: float | str = "auto"
    _: KW_ONLY
    tolerance: float = 0.0
    hold_out: int = 6
    validation_size: int = 600
    min_validation: int = 5
    refresh_later: bool = False
    features: Any = None
    kernel: Any = None
    n_features: int = 500
    threshold: float = 0.0
    max_novelty: float = 0.0
    false_accepts: float = 0.0
    unknown: Any = "unknown"
    random_state: Any = None
    head: str = "least_squares"

    def fit(self, X: Any, y: Any) -> IncrementalRLSC:
        """Forget everything, learn X (n, d) with labels y (n,) in their order, and validate."""
        return self._learn(X, y, None, first=True).validate()

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> IncrementalRLSC:
        """Learn more examples; a label never seen is a new class.

        classes : labels to make room for; not needed. One without examples is never predicted.

        Raises ValueError, and learns nothing, for another number of inputs, inputs that are not
        finite, labels that mix text and numbers, or the label `unknown` while there is a limit.
        """
        return self._learn(X, y, classes, first=not hasattr(self, "recursion_"))

    def decision_function(self, X: Any) -> Array:
        """Recoded scores (n, T) of inputs (n, d); for two classes (n,), positive for the second."""
        X = self._checked(X)
        scores: Array = self.recursion_.scores(X, self.recoding_)[:, self._order()]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, T) of the classes: softmax of the recoded scores.

        The temperature is the one with the smallest loss on held-out examples.
        """
        X = self._checked(X)
        recursion, recoding = self.recursion_, self.recoding_
        found = recursion.softmax(recursion.scores(X, recoding), recoding)
        return found[:, self._order()]

    def predict(self, X: Any) -> Any:
        """Labels (n,) of inputs (n, d), or `unknown`.

        See `threshold`, `max_novelty` and `false_accepts`. Raises LearningError, as all that is
        asked about inputs, where each class was forgotten.
        """
        X = self._checked(X)
        recursion = self.recursion_
        labels = np.asarray(recursion.classes.labels)
        if self.threshold <= 0.0 and self.max_novelty <= 0.0 and self.false_accepts == 0.0:
            scores = recursion.head.without_empty(recursion.scores(X, self.recoding_))
            return labels[scores.argmax(axis=1)]
        assessed = recursion.assess(X, self.recoding_)
        known = assessed.probabilities.max(axis=1) >= self.threshold
        if self.max_novelty > 0.0:
            known &= assessed.novelty <= self.max_novelty
        if (least := self.least_familiarity(self.false_accepts)) is not None:
            known &= assessed.familiarity > least
        found = labels[assessed.probabilities.argmax(axis=1)].tolist()
        answers = [label if ok else self.unknown for label, ok in zip(found, known, strict=True)]
        # NumPy's common kind of numbers and text is text: then no number equals its label.
        kind = str if labels.dtype.kind == "U" else Real
        return np.array(answers, dtype=None if isinstance(self.unknown, kind) else object)

    def novelty(self, X: Any) -> Array:
        """Distance of inputs (n, d) from all examples that were learned, (n,).

        Their leverages in units of held-out examples' median: about 1 for more of the same. Zeros
        until there are held-out examples. Of a transformer that was passed they are its features'
        leverages: where these vanish far from all examples, as those of :class:`NystromFeatures`
        do, it is small there; with "nystrom" what the centres leave of an input counts as new.
        """
        return self.recursion_.assess(self._checked(X), self.recoding_).novelty

    def familiarity(self, X: Any) -> Array:
        """Familiarity (n,): how much more inputs (n, d) are like one class than like all.

        Larger for inputs of classes that were taught; its unit depends on the head: the largest
        score of least squares, or a discriminant's relative Mahalanobis distance.
        """
        return self.recursion_.assess(self._checked(X), self.recoding_).familiarity

    def known_at(self, familiarity: Array) -> Array:
        """Probabilities (n,) that inputs of this :meth:`familiarity` (n,) are of a class taught.

        If every second input is. From held-out examples, once with their class and once as if it
        had not been taught. NaN until there are ten of two classes.
        """
        check_is_fitted(self, "recursion_")
        acceptance = self.recursion_.acceptance()
        if acceptance is None:
            return np.full(np.shape(familiarity), np.nan)
        return acceptance.probability(familiarity)

    def least_familiarity(self, false_accepts: float) -> float | None:
        """The familiarity that this share of inputs of no class exceeds.

        None for a share of 0, which stands for no limit, and until there are ten held-out examples
        of two classes. Raises ConfigurationError for a share that is not from 0 to below 1.
        """
        check_is_fitted(self, "recursion_")
        if not 0.0 <= false_accepts < 1.0:
            raise ConfigurationError(
                f"false_accepts must be at least 0 and less than 1, not {false_accepts}."
            )
        acceptance = self.recursion_.acceptance() if false_accepts else None
        return None if acceptance is None else acceptance.limit(false_accepts)

    def assess(self, x: Array) -> Assessment:
        """Results of :meth:`predict_proba`, :meth:`novelty` and :meth:`familiarity` for one input.

        For callers that ask frame by frame: what they share is done once, and x (d,), finite, isn't
        checked.
        """
        found = self.recursion_.assess(x[None], self.recoding_)
        probabilities = found.probabilities[0, self._order()]
        return Assessment(probabilities, found.novelty[0], found.familiarity[0])

    def validate(self, X: Any = None, y: Any = None) -> IncrementalRLSC:
        """Choose ridge and exponent by all held-out examples as of now, or by X (n, d), y (n,).

        Raises LearningError for a label in y that is no class.
        """
        check_is_fitted(self, "recursion_")
        held = self.recursion_.held_out
        if X is not None:
            X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
            held = self.recursion_.buffer(len(X))
            for x, label in zip(X, plain_labels(y), strict=True):
                held.add(x, self.recursion_.classes.number(label))
        self._choose(held, len(held))
        return self

    def refresh(self, k: int) -> int:
        """Evaluate k held-out examples again, then choose; returns how many are still out of date.

        For pauses: :meth:`validate` in small pieces.
        """
        check_is_fitted(self, "recursion_")
        self._choose(self.recursion_.held_out, k)
        return self.recursion_.outdated()

    def _choose(self, held: HeldOutExamples, k: int) -> None:
        """Evaluate the k of these examples that wait longest, then choose ridge and exponent.

        Accuracies don't depend on the exponent in use, but the temperature and familiarity do:
        where it is another one then, all examples are evaluated again, at once if all were now.
        """
        recursion, recoding = self.recursion_, self.recoding_
        slots = np.sort(held.stalest(k))  # in one order, so that again is the same to the last bit
        recursion.evaluate(held, slots, recoding)
        recursion.choose(held, *self._rule())
        if self.recoding_ == recoding:
            return
        recursion.note_change()
        if len(slots) == len(held):
            recursion.evaluate(held, slots, self.recoding_)
            recursion.choose(held, *self._rule())

    def class_accuracy(self) -> tuple[Array, Array]:
        """Held-out accuracy (T,) of each of `classes_`, NaN without examples, and their number."""
        check_is_fitted(self, "recursion_")
        recursion = self.recursion_
        shares, sizes = recursion.held_out.class_accuracy(
            len(recursion.classes), recursion.chosen_ridge, nearest_exponent(self.recoding_)
        )
        return shares[self._order()], sizes[self._order()]

    def rename_class(self, label: Hashable, new: Hashable) -> None:
        """Rename a class. Raises LearningError for no such class, or one of that name."""
        check_is_fitted(self, "recursion_")
        check_kind([new], self.recursion_.classes.labels)
        self._check_names([new])
        self.recursion_.classes.rename(label, new)

    def merge_classes(self, label: Hashable, into: Hashable) -> None:
        """Make one class' examples another's, exactly as if they had been taught so."""
        check_is_fitted(self, "recursion_")
        self.recursion_.renumber(self.recursion_.classes.merge(label, into))

    def forget_class(self, label: Hashable) -> None:
        """Remove a class: its column of b, its count and its held-out examples.

        A keeps its inputs' second moments, from which alone no input can be found. The classes that
        remain are exactly what they would be had those examples been taught as none of them, with
        a code of zeros: they still pull the others' scores to zero where they were. With the
        features "nystrom" those of its inputs that are centres stay as well, and are in each
        :meth:`state`: all classes' features are computed from them.
        """
        check_is_fitted(self, "recursion_")
        self.recursion_.renumber(self.recursion_.classes.forget(label))

    def state(self) -> dict[str, Any]:
        """The learned state as arrays; :meth:`restore` resumes from it.

        Of the features it has the random frequencies, or the centres; a transformer that was
        passed has to be passed again, fitted: `features_`.
        """
        check_is_fitted(self, "recursion_")
        labels = np.asarray(self.recursion_.classes.labels)
        about = {"labels": labels, "n_inputs": np.array(self.n_features_in_)}
        return self.recursion_.state() | about

    def restore(self, state: dict[str, Any]) -> IncrementalRLSC:
        """Resume from a :meth:`state` of a model with the same parameters.

        All answers are the same to the last bit. Those that rest on held-out examples are as
        :meth:`validate` makes them where the state is of a model with another `recoding`,
        `tolerance`, `min_validation` or `validation_size`. Where `features`
        is a transformer that isn't fitted, it is the one that this model was fitted with. Raises
        LearningError, and changes nothing, where there is none, or ridges or features are others.
        """
        fresh = copy.copy(self)
        fresh.n_features_in_ = int(state["n_inputs"])
        fresh._start(np.zeros((1, fresh.n_features_in_)), self._known_features())
        known = fresh.recursion_.restore(state["labels"].tolist(), state)
        by = fresh.recursion_.chosen_by
        if not known or by not in (None, self._rule()):
            fresh.validate()
        self.__dict__.update(fresh.__dict__)
        return self

    def _known_features(self) -> Any:
        """The parameter `features`, or what an earlier fit made of a transformer in it."""
        if self.features is None or isinstance(self.features, str):
            return self.features
        try:
            check_is_fitted(self.features)
        except NotFittedError:
            fitted = getattr(self, "features_", None)
            if type(fitted) is type(self.features):
                return fitted
            raise LearningError(
                "A saved model doesn't have its transformer: pass the one that it was learned "
                "with, fitted (its features_)."
            ) from None
        return self.features

    def _rule(self) -> tuple[float | None, int, float]:
        """Settings by which ridge, exponent and temperature are chosen."""
        return self._fixed_recoding(), self.min_validation, self.tolerance

    @property
    def classes_(self) -> Any:
        """(T,): all labels, sorted."""
        return np.asarray(self.recursion_.classes.labels)[self._order()]

    @property
    def class_count_(self) -> Array:
        """(T,): gamma, how many examples of each class were learned."""
        counts: Array = self.recursion_.classes.counts[self._order()]
        return counts

    @property
    def coef_(self) -> Array:
        """(D, T): W Gamma^recoding; computed when asked, no prediction needs it.

        Raises LearningError for the head "discriminant", whose scores are not linear.
        """
        classes = self.recursion_.classes
        if isinstance(self.recursion_.head, DiscriminantHead):
            raise LearningError("The head 'discriminant' has no coefficients.")
        W: Array = self.recursion_.head.factor.solve_rows(classes.sums).T
        return (W * class_weights(classes.counts, self.recoding_))[:, self._order()]

    @property
    def recoding_(self) -> float:
        """The recoding exponent in use."""
        fixed = self._fixed_recoding()
        return float(EXPONENTS[self.recursion_.chosen_exponent]) if fixed is None else fixed

    @property
    def ridge_(self) -> float:
        """The ridge in use."""
        return self.recursion_.head.ridge

    @property
    def temperature_(self) -> float:
        """Divisor of scores before the softmax."""
        return self.recursion_.temperature

    def _learn(self, X: Any, y: Any, classes: Any, first: bool) -> IncrementalRLSC:
        for given in (y, classes):
            # Before they are an array, in which numbers among text are text.
            if given is not None and str(getattr(given, "dtype", "object")) == "object":
                check_kind(np.asarray(given, dtype=object).ravel().tolist(), [])
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        labels = plain_labels(y)
        announced = [] if classes is None else plain_labels(classes)
        check_kind([*labels, *announced], [] if first else self.recursion_.classes.labels)
        self._check_names([*labels, *announced])
        if first:
            self._start(X, self.features)
        recursion = self.recursion_
        recursion.classes.add(announced)
        numbers = recursion.classes.add(labels)
        kept = recursion.classes.show(numbers, self.hold_out)
        recursion.learn(X[~kept], numbers[~kept])
        for x, number in zip(X[kept], numbers[kept], strict=True):
            recursion.held_out.add(x, int(number))
        if kept.any() and not self.refresh_later:
            self.refresh(int(np.count_nonzero(kept)) * (1 + REEVALUATED))
        return self

    def _check_names(self, labels: Sequence[Hashable]) -> None:
        """Raise LearningError for a class named as what is none would be."""
        limited = self.threshold > 0.0 or self.max_novelty > 0.0 or self.false_accepts > 0.0
        if limited and self.unknown in labels:
            raise LearningError(
                f"A class can't be named {self.unknown!r}, the answer for inputs of no class: "
                "name it otherwise, or set `unknown` to something else."
            )

    def _start(self, X: Array, features: Any) -> None:
        given = self.ridge if np.iterable(self.ridge) else [self.ridge]
        ridges = sorted({positive(one, "ridge") for one in given})
        if not ridges:
            raise ConfigurationError("ridge names no candidate.")
        size = positive_count(self.validation_size, "validation_size")
        if self.hold_out < 0 or self.hold_out == 1:
            raise ConfigurationError(
                f"hold_out must be 0, none, or 2 or more, not {self.hold_out}."
            )
        front: FixedFeatures | GrowingFeatures
        if isinstance(features, str) and features == "nystrom":
            width = gaussian_width(self.kernel, "Growing features", X)
            front = self.features_ = GrowingFeatures(
                X.shape[1], width, self.n_features, MIN_UNEXPLAINED
            )
        else:
            self.features_ = feature_option(
                features, self.kernel, self.n_features, self.random_state, X
            )
            front = FixedFeatures(self.features_, own=isinstance(features, str))
        if self.head not in HEADS:
            raise ConfigurationError(f"head must be one of {tuple(HEADS)}, not {self.head!r}.")
        self.recursion_ = ClassRecursion(X.shape[1], front, ridges, size, HEADS[self.head])

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "recursion_")
        if not len(self.recursion_.classes):
            raise LearningError("All classes were forgotten: teach examples with partial_fit.")
        checked: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return checked

    def _fixed_recoding(self) -> float | None:
        """The exponent that was asked for; None to choose one."""
        if isinstance(self.recoding, str):
            if self.recoding != "auto":
                raise ConfigurationError(
                    f'recoding must be "auto" or a number, not {self.recoding!r}.'
                )
            return None
        if not 0.0 <= self.recoding <= 1.0:
            raise ConfigurationError(f"recoding must lie between 0 and 1, not {self.recoding}.")
        return float(self.recoding)

    def _order(self) -> Any:
        return self.recursion_.classes.order


def plain_labels(labels: Any) -> list[Hashable]:
    """Labels as Python's own objects, equal and hashed alike whatever array they come from."""
    plain: list[Hashable] = np.asarray(labels).tolist()
    return plain


def check_kind(labels: Sequence[Hashable], known: Sequence[Hashable]) -> None:
    """Raise LearningError for labels that couldn't be sorted, or saved, with those known."""
    kinds = {"text" if isinstance(label, str) else "numbers" for label in [*labels, *known[:1]]}
    if len(kinds) > 1:
        raise LearningError("Labels must be all text or all numbers.")
