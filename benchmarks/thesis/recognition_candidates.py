"""What each candidate penalty and exponent makes of rows, and the rules that choose among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.learning.class_recursion import (
    EXPONENTS,
    choose_recoding,
    exponent_weights,
    nearest_exponent,
    winners,
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
        penalties=np.array([factor.penalty for factor in recursion.factors]),
        coefficients=[factor.solve(sums).T for factor in recursion.factors],
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
