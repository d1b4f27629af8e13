"""What a classifier with a `recursion_` has learned, as scikit-learn's names have it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.class_recursion import (
    ALPHAS,
    ClassRecursion,
    nearest_exponent,
)
from semiparam_dynamics.learning.recoding import class_weights


class FittedClasses:
    """Part of a classifier: classes in the order of their labels, and the candidates in use."""

    recursion_: ClassRecursion
    alpha: float | str

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
        """(D, T): W Gamma^alpha; computed when asked, no prediction needs it."""
        classes = self.recursion_.classes
        W: Array = self.recursion_.factor.solve(classes.sums).T
        return (W * class_weights(classes.counts, self.alpha_))[:, self._order()]

    @property
    def alpha_(self) -> float:
        """The recoding exponent in use."""
        fixed = self._fixed_alpha()
        return float(ALPHAS[self.recursion_.chosen_exponent]) if fixed is None else fixed

    @property
    def penalty_(self) -> float:
        """The penalty in use."""
        return self.recursion_.factor.penalty

    @property
    def temperature_(self) -> float:
        """By which scores are divided before the softmax."""
        return self.recursion_.temperature

    def class_accuracy(self) -> tuple[Array, Array]:
        """Held-out accuracy (T,) of each of `classes_`, NaN without examples, and their number."""
        check_is_fitted(self, "recursion_")
        recursion = self.recursion_
        shares, sizes = recursion.held_out.class_accuracy(
            len(recursion.classes), recursion.chosen_penalty, nearest_exponent(self.alpha_)
        )
        return shares[self._order()], sizes[self._order()]

    def _fixed_alpha(self) -> float | None:
        """The exponent that was asked for; None to choose one."""
        if isinstance(self.alpha, str):
            if self.alpha != "auto":
                raise ConfigurationError(f'alpha must be "auto" or a number, not {self.alpha!r}.')
            return None
        if not 0.0 <= self.alpha <= 1.0:
            raise ConfigurationError(f"alpha must lie between 0 and 1, not {self.alpha}.")
        return float(self.alpha)

    def _order(self) -> Any:
        return self.recursion_.classes.order
