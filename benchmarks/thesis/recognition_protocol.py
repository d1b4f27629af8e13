"""Table 7.1's protocol (thesis 7.6.1): a class joins others that were learned before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from recognition_data import FeatureFile, Sizes, Split, draw_split
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.learning.class_heads import exponent_weights, winners
from semiparam_dynamics.learning.held_out import (
    EXPONENTS,
    choose_recoding,
    nearest_exponent,
)

SCALES = ("max", "unit", "none")
CURVE_ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)  # figure 7.2's
STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # in each decade of the figures' numbers of examples
LOAD, LEARN = 0.05, 0.4  # shares of a trial's time, for the progress


@dataclass(frozen=True)
class Protocol:
    """The settings of the protocol.

    penalties : candidates, plain ridges. tolerance : the validation accuracy that recoding may
    give up in a row of its own; 0: no such row. scale : inputs are divided by the greatest that
    was learned ("max"), each by its norm ("unit"), or by nothing ("none").
    new_class : its number, or None: another at random in each trial.

    Raises ConfigurationError for what can't be.
    """

    sizes: Sizes
    trials: int = 10
    penalties: tuple[float, ...] = tuple(10.0**i for i in range(-2, 6))
    tolerance: float = 0.005
    scale: str = "max"
    new_class: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.trials < 1:
            raise ConfigurationError(f"there must be at least one trial, not {self.trials}")
        if not self.penalties or not all(0.0 < one < math.inf for one in self.penalties):
            raise ConfigurationError(f"penalties must be positive, not {list(self.penalties)}")
        if not 0.0 <= self.tolerance < 1.0:
            raise ConfigurationError(f"the tolerance must lie in [0, 1), not {self.tolerance}")
        if self.scale not in SCALES:
            raise ConfigurationError(f"scale must be one of {SCALES}, not {self.scale!r}")
        if self.seed < 0:
            raise ConfigurationError(f"the seed must not be negative, but is {self.seed}")


@dataclass(frozen=True)
class Score:
    """One method's accuracies in one trial after `new` examples of the new class.

    method : "naive", "rebalanced", "recoding", "recoding_tolerance", or "alpha_0.5" and the like:
    recoding with a fixed exponent. total, new_class, balanced : shares of right answers on all
    test rows, those of the new class, and the others. alpha, penalty : those chosen.
    validation : the share of right answers on the validation set.
    """

    trial: int
    new: int
    method: str
    total: float
    new_class: float
    balanced: float
    alpha: float
    penalty: float
    validation: float


@dataclass(frozen=True)
class ProtocolResult:
    """All that was measured. new_classes : each trial's, by number."""

    file: FeatureFile
    protocol: Protocol
    scores: list[Score] = field(default_factory=list)
    new_classes: list[int] = field(default_factory=list)

    def values(self, method: str, new: int, quantity: str) -> Array:
        """A quantity of :class:`Score` in each trial, (trials,)."""
        found = [s for s in self.scores if s.method == method and s.new == new]
        return np.array([getattr(score, quantity) for score in found], dtype=np.float64)


def run_protocol(
    file: FeatureFile,
    protocol: Protocol,
    progress: Callable[[float], None] = lambda share: None,
) -> ProtocolResult:
    """Run all trials. In each, methods learn, choose by and are tested on the same rows.

    Rebalancing, which starts from scratch each time, is measured at the sizes' numbers of new
    examples; the others at those of the figures too.
    """
    result = ProtocolResult(file, protocol)
    for trial in range(protocol.trials):
        split = draw_split(file, protocol.sizes, protocol.seed, trial, protocol.new_class)
        result.new_classes.append(split.new_class)

        def report(share: float, trial: int = trial) -> None:
            progress((trial + share) / protocol.trials)

        # Most products are too small to be spread over threads, and so a trial's numbers don't
        # depend on how many there are.
        with threadpool_limits(limits=1):
            result.scores.extend(_run_trial(file, protocol, split, trial, report))
    return result


def figure_points(last: int) -> list[int]:
    """Numbers of examples from 1 to the last, about evenly spread on a logarithmic axis."""
    decades = range(int(math.log10(last)) + 1)
    points = {int(step * 10**decade) for decade in decades for step in STEPS}
    return sorted({point for point in points if point < last} | {last})


def _run_trial(
    file: FeatureFile,
    protocol: Protocol,
    split: Split,
    trial: int,
    progress: Callable[[float], None],
) -> list[Score]:
    learned, validation, stream, test = _rows(file, split, protocol.scale)
    progress(LOAD)
    model = IncrementalRLSC(protocol.penalties, recoding=0.0, hold_out=0)
    model.partial_fit(learned.X, learned.y)
    rebalanced = RebalancedRidge(learned, len(file.names), protocol.penalties)
    progress(LEARN)
    scores = []
    asked = protocol.sizes.new
    points = sorted({*asked, *figure_points(asked[-1])})
    reached = 0
    for i, point in enumerate(points):
        for x in stream.X[reached:point]:
            model.partial_fit(x[None], [split.new_class])
        reached = point
        candidates = incremental_candidates(model, validation)
        choices = {"naive": candidates.best(0), "recoding": candidates.recoded()}
        if protocol.tolerance > 0.0:
            choices["recoding_tolerance"] = candidates.recoded(protocol.tolerance)
        for alpha in CURVE_ALPHAS:
            choices[f"alpha_{alpha:g}"] = candidates.best(exponent_number(alpha))
        found = list(_scored(candidates, choices, test, split.new_class))
        if point in asked:
            new = Rows(stream.X[:point], stream.y[:point])
            scratch = rebalanced.candidates(new, validation)
            choices = {"rebalanced": scratch.best(0)}
            found += _scored(scratch, choices, test, split.new_class)
        scores += [Score(trial, point, **one) for one in found]
        progress(LEARN + (1.0 - LEARN) * (i + 1) / len(points))
    return scores


def _scored(
    candidates: Candidates, choices: Mapping[str, tuple[int, int]], test: Rows, new_class: int
) -> Iterator[dict[str, Any]]:
    """The fields of a Score that are the method's own, for each choice."""
    new = test.y == new_class
    found = candidates.predict(test.X, choices.values())
    for (method, choice), classes in zip(choices.items(), found, strict=True):
        right = classes == test.y
        yield {
            "method": method,
            "total": float(right.mean()),
            "new_class": float(right[new].mean()),
            "balanced": float(right[~new].mean()),
            "alpha": float(candidates.alphas[choice[1]]),
            "penalty": float(candidates.penalties[choice[0]]),
            "validation": float(candidates.accuracy[choice]),
        }


def _rows(file: FeatureFile, split: Split, scale: str) -> tuple[Rows, Rows, Rows, Rows]:
    """Rows to learn, to choose by, of the new class, and to test on, scaled."""
    train, test = file.train, file.test or file.train
    largest = 1.0
    if scale == "max":
        largest = float(np.abs(train.X[split.learned].astype(np.float64)).max()) or 1.0

    def scaled(X: npt.NDArray[Any], numbers: Indices, rows: Indices) -> Rows:
        inputs = X[rows].astype(np.float64)
        if scale == "unit":
            norms = np.linalg.norm(inputs, axis=1, keepdims=True)
            inputs /= np.where(norms > 0.0, norms, 1.0)
        return Rows(inputs / largest, numbers[rows])

    return (
        scaled(train.X, train.numbers, split.learned),
        scaled(train.X, train.numbers, split.validation),
        scaled(train.X, train.numbers, split.stream),
        scaled(test.X, test.numbers, split.test),
    )


@dataclass(frozen=True)
class Rows:
    """Inputs X (n, d) and the numbers of their classes (n,)."""

    X: Array
    y: Indices


class Candidates:
    """Linear classifiers, one a penalty and exponent, with their accuracy on a validation set.

    Parameters
    ----------
    penalties : (p,), ascending. coefficients : p of (d, T), without recoding.
    counts : (T,), gamma of recoding. alphas : the exponents, ascending, the first 0.
    validation : the rows to choose by.
    """

    def __init__(
        self,
        penalties: Array,
        coefficients: Sequence[Array],
        counts: Array,
        alphas: Array,
        validation: Rows,
    ) -> None:
        self.penalties, self.alphas = penalties, alphas
        self._coefficients = np.concatenate(coefficients, axis=1)  # (d, p T)
        self._counts = counts
        right = [
            winners(scores, exponent_weights(counts, alphas)) == validation.y[:, None]
            for scores in self._scores(validation.X)
        ]
        self.accuracy = np.array([np.mean(one, axis=0) for one in right])  # (p, exponents)

    def best(self, exponent: int) -> tuple[int, int]:
        """The best penalty at one exponent; the largest of equals."""
        penalty, _ = choose_recoding(self.accuracy[:, [exponent]])
        return penalty, exponent

    def recoded(self, tolerance: float = 0.0) -> tuple[int, int]:
        """Penalty and exponent by the rule of thesis 7.6.3, or with something given up."""
        return choose_recoding(self.accuracy, tolerance)

    def predict(self, X: Array, choices: Iterable[tuple[int, int]]) -> list[Indices]:
        """The class numbers (n,) that each choice of penalty and exponent finds."""
        scores = self._scores(X)
        return [
            winners(scores[penalty], exponent_weights(self._counts, self.alphas[[exponent]]))[:, 0]
            for penalty, exponent in choices
        ]

    def _scores(self, X: Array) -> list[Array]:
        """(n, T) of each penalty."""
        return np.split(X @ self._coefficients, len(self.penalties), axis=1)


def incremental_candidates(model: IncrementalRLSC, validation: Rows) -> Candidates:
    """The candidates of a classifier that learned all classes, numbers 0 to T - 1.

    Its own :meth:`~IncrementalRLSC.validate` chooses the same; it solves for each row to be looked
    at, which pays where examples come one by one, but not for hundreds of rows and few classes.
    """
    recursion = model.recursion_
    order = recursion.classes.order
    sums = recursion.classes.sums[order]
    return Candidates(
        penalties=np.array([head.ridge for head in recursion.heads]),
        coefficients=[head.factor.solve_rows(sums).T for head in recursion.heads],
        counts=recursion.classes.counts[order],
        alphas=EXPONENTS,
        validation=validation,
    )


def exponent_number(alpha: float) -> int:
    """The number, among the incremental candidates' exponents, of the one closest to alpha."""
    return nearest_exponent(alpha)


class RebalancedRidge:
    """W = (X'SX + penalty I)^-1 X'SY, S_ii = k / gamma of row i's class (thesis 7.22).

    Retrained from scratch at each number of examples; the balanced classes' second moments, which
    have all the same weight, are summed once. No recursion can do this.

    Parameters
    ----------
    balanced : rows of all classes but one, as many of each. n_classes : T, with the new one.
    """

    def __init__(self, balanced: Rows, n_classes: int, penalties: Sequence[float]) -> None:
        self._moments = balanced.X.T @ balanced.X
        self._codes = np.eye(n_classes)
        self._sums = balanced.X.T @ self._codes[balanced.y]
        self._counts = np.bincount(balanced.y, minlength=n_classes).astype(float)
        self._penalties = np.array(sorted(penalties))

    def candidates(self, new: Rows, validation: Rows) -> Candidates:
        """The candidates, one a penalty, that learned rows of the new class too."""
        counts: Array = self._counts + np.bincount(new.y, minlength=len(self._counts))
        weights = counts.sum() / counts
        old = weights[self._counts > 0.0][0]
        fresh = weights[new.y[0]]
        A = old * self._moments + fresh * (new.X.T @ new.X)
        b = old * self._sums + fresh * (new.X.T @ self._codes[new.y])
        coefficients = []
        for penalty in self._penalties:
            factor = scipy.linalg.cho_factor(A + penalty * np.eye(len(A)), overwrite_a=True)
            coefficients.append(scipy.linalg.cho_solve(factor, b))
        return Candidates(
            penalties=self._penalties,
            coefficients=coefficients,
            counts=counts,
            alphas=np.zeros(1),
            validation=validation,
        )
