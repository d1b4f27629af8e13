"""Convex losses of a prediction f for a target y (thesis chapters 1 and 6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning import compiled_sgm


@dataclass(frozen=True)
class Loss(ABC):
    """A loss and its left-hand derivative, elementwise over arrays of one shape.

    The derivative at f is the one from below, which a convex loss has everywhere (thesis 6.2).

    Attributes
    ----------
    code : the loss' number in the compiled loops.
    labels : whether targets must be -1 and 1.
    """

    epsilon: float = 0.0
    code: ClassVar[int]
    labels: ClassVar[bool] = False

    @abstractmethod
    def value(self, y: Array, f: Array) -> Array:
        """The loss of each prediction."""

    def derivative(self, y: Array, f: Array) -> Array:
        """Its left-hand derivative with respect to f."""
        y, f = np.broadcast_arrays(np.asarray(y, float), np.asarray(f, float))
        result = np.empty(f.shape)
        flat = result.reshape(-1)
        compiled_sgm.slopes(self.code, self.epsilon, y.reshape(-1), f.reshape(-1), flat)
        return result

    def error(self, y: Array, f: Array) -> Array:
        """What a validation error is the mean of: the loss."""
        return self.value(y, f)

    def check(self, Y: Array) -> None:
        """Raise LearningError for targets that the loss has no meaning for."""
        if self.labels and not np.isin(Y, (-1.0, 1.0)).all():
            raise LearningError(
                f"With the {type(self).__name__.lower()} loss y must be -1 or 1: encode the "
                f"labels so, or wrap the estimator in a classifier."
            )


class Square(Loss):
    """(f - y)^2 / 2, whose derivative is the residual; validation errors are mean squares."""

    code = compiled_sgm.SQUARE

    def value(self, y: Array, f: Array) -> Array:
        """See :class:`Loss`."""
        half: Array = 0.5 * (f - y) ** 2
        return half

    def error(self, y: Array, f: Array) -> Array:
        """(f - y)^2."""
        square: Array = (f - y) ** 2
        return square


class Hinge(Loss):
    """max(0, 1 - y f) for y = -1 or 1: the support vector machine's."""

    code = compiled_sgm.HINGE
    labels = True

    def value(self, y: Array, f: Array) -> Array:
        """See :class:`Loss`."""
        return np.maximum(1.0 - y * f, 0.0)


class Logistic(Loss):
    """log(1 + exp(-y f)) for y = -1 or 1."""

    code = compiled_sgm.LOGISTIC
    labels = True

    def value(self, y: Array, f: Array) -> Array:
        """See :class:`Loss`; never overflows."""
        result: Array = np.logaddexp(0.0, -y * f)
        return result


class Absolute(Loss):
    """|f - y|."""

    code = compiled_sgm.ABSOLUTE

    def value(self, y: Array, f: Array) -> Array:
        """See :class:`Loss`."""
        return np.abs(f - y)


class EpsilonInsensitive(Loss):
    """max(0, |f - y| - epsilon): support vector regression's."""

    code = compiled_sgm.EPSILON_INSENSITIVE

    def value(self, y: Array, f: Array) -> Array:
        """See :class:`Loss`."""
        return np.maximum(np.abs(f - y) - self.epsilon, 0.0)


LOSSES: dict[str, type[Loss]] = {
    "square": Square,
    "hinge": Hinge,
    "logistic": Logistic,
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
}


def as_loss(name: str, epsilon: float = 0.0) -> Loss:
    """The loss called `name`; `epsilon` matters to "epsilon_insensitive" only.

    Raises ConfigurationError for another name, and for a negative epsilon.
    """
    if name not in LOSSES:
        raise ConfigurationError(f"loss must be one of {', '.join(LOSSES)}, not {name!r}.")
    if not (np.isfinite(epsilon) and epsilon >= 0.0):
        raise ConfigurationError(f"epsilon must not be negative, not {epsilon}.")
    return LOSSES[name](float(epsilon))
