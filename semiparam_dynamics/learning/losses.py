"""Convex losses of a prediction f for a target y (thesis chapters 1 and 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError, LearningError, not_negative
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.learning.rows import Rows

# -------------------------------------------------------------------------------------------------
# The compiled inner loops of the stochastic gradient methods.

LOSSES = ("square", "hinge", "logistic", "absolute", "epsilon_insensitive", "exponential")
LOSSES_OF_LABELS = ("hinge", "logistic", "exponential")  # targets must be -1 and 1
SQUARE, HINGE, LOGISTIC, ABSOLUTE, EPSILON_INSENSITIVE, EXPONENTIAL = range(6)


@compiled
def slope(loss: int, epsilon: float, y: float, f: float) -> float:
    """The left-hand derivative at f of the loss of predicting f for y."""
    if loss == SQUARE:
        return f - y
    if loss == HINGE:
        # 1 - y f has its kink at y f = 1; from the left of it, f is smaller.
        inside = f <= 1.0 if y > 0.0 else f > -1.0
        return -y if inside else 0.0
    if loss == LOGISTIC:
        result: float = -y / (1.0 + np.exp(y * f))
        return result
    if loss == EXPONENTIAL:
        steep: float = -y * np.exp(-y * f)
        return steep
    if loss == ABSOLUTE:
        return -1.0 if f <= y else 1.0
    if f - y <= -epsilon:
        return -1.0
    return 1.0 if f - y > epsilon else 0.0


@compiled
def slopes(loss: int, epsilon: float, y: Array, f: Array, out: Array) -> None:
    """out_i = slope(y_i, f_i), all (k,)."""
    for i in range(y.size):
        out[i] = slope(loss, epsilon, y[i], f[i])


@compiled
def descend(
    F: Array,
    G: Array,
    Y: Array,
    steps: Array,
    batch: int,
    loss: int,
    epsilon: float,
    change: Array,
) -> None:
    """Gradient steps over k drawn rows, `batch` of them at a time, from inner products alone.

    The last batch has those that are left.

    F: (P, k), what the function predicts at the rows before the first step, for P columns; each
    row's entry is then kept up to date until its own step. G: (k, k), the rows' inner products.
    Y: (T, k); column p = s T + t has the target t and the step size s. steps: (batches, S).
    change: (P, k), what each row is multiplied by when it is added to the weights.
    """
    P, k = F.shape
    T = len(Y)
    for start in range(0, k, batch):
        end = min(start + batch, k)
        for p in range(P):
            step = -steps[start // batch, p // T] / (end - start)
            for i in range(start, end):
                change[p, i] = step * slope(loss, epsilon, Y[p % T, i], F[p, i])
            rest = F[p, end:]
            for i in range(start, end):
                amount = change[p, i]
                if amount != 0.0:
                    row = G[i, end:]
                    for j in range(rest.size):
                        rest[j] += amount * row[j]


@compiled
def scatter(change: Array, done: Array, drawn: Indices, T: int, coef: Array, moved: Array) -> None:
    """Add each draw's change (P, k) to its row of coef (n, P), and change times done to `moved`.

    done: (k, S), the sum of the step sizes up to and including each draw's.
    """
    P, k = change.shape
    for i in range(k):
        for p in range(P):
            coef[drawn[i], p] += change[p, i]
            moved[drawn[i], p] += change[p, i] * done[i, p // T]


@dataclass(frozen=True)
class Loss:
    """One of LOSSES and its left-hand derivative, elementwise over arrays of one shape.

    "square" is (f - y)^2 / 2, whose derivative is the residual; "hinge", the support vector
    machine's, max(0, 1 - y f) for y = -1 or 1; "logistic" log(1 + exp(-y f)) for such y;
    "absolute" |f - y|; "epsilon_insensitive", support vector regression's,
    max(0, |f - y| - epsilon); "exponential", boosting's, exp(-y f)
    for y = -1 or 1. The derivative at f is the one from below, which a convex loss has
    everywhere (thesis 6.2).
    """

    name: str
    epsilon: float = 0.0

    @property
    def code(self) -> int:
        """The loss' number in the compiled loops."""
        return LOSSES.index(self.name)

    def value(self, y: Array, f: Array) -> Array:
        """The loss of each prediction."""
        if self.name == "square":
            return np.asarray(0.5 * (f - y) ** 2)
        if self.name == "hinge":
            return np.maximum(1.0 - y * f, 0.0)
        if self.name == "logistic":  # never overflows
            return np.asarray(np.logaddexp(0.0, -y * f))
        if self.name == "exponential":
            return np.exp(-y * f)
        return np.maximum(np.abs(f - y) - (0.0 if self.name == "absolute" else self.epsilon), 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        """Its left-hand derivative with respect to f."""
        y, f = np.broadcast_arrays(np.asarray(y, float), np.asarray(f, float))
        result = np.empty(f.shape)
        flat = result.reshape(-1)
        slopes(self.code, self.epsilon, y.reshape(-1), f.reshape(-1), flat)
        return result

    def error(self, y: Array, f: Array) -> Array:
        """The loss, of which a validation error is the mean; for "square" the square itself."""
        return np.asarray((f - y) ** 2) if self.name == "square" else self.value(y, f)

    def check(self, rows: Rows) -> None:
        """Raise LearningError for rows with outputs that the loss has no meaning for."""
        if self.name in LOSSES_OF_LABELS and not np.isin(rows.outputs(), (-1.0, 1.0)).all():
            raise LearningError(
                f"With the {self.name} loss y must be -1 or 1: encode the labels so, or wrap the "
                f"estimator in a classifier."
            )


def as_loss(name: str, epsilon: float = 0.0) -> Loss:
    """The loss called `name`; `epsilon` matters to "epsilon_insensitive" only.

    Raises ConfigurationError for another name, and for a negative epsilon.
    """
    if name not in LOSSES:
        raise ConfigurationError(f"loss must be one of {', '.join(LOSSES)}, not {name!r}.")
    return Loss(name, not_negative(epsilon, "epsilon"))
