"""The compiled inner loops of the stochastic gradient methods (see :mod:`compiled`)."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.learning.compiled import compiled

SQUARE, HINGE, LOGISTIC, ABSOLUTE, EPSILON_INSENSITIVE = range(5)


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

    F: (P, k), what the function predicts at the rows before the first step, for P columns; each
    row's entry is then kept up to date until its own step. G: (k, k), the rows' inner products.
    Y: (T, k); column p = s T + t has the target t and the step size s. steps: (k / batch, S).
    change: (P, k), what each row is multiplied by when it is added to the weights.
    """
    P, k = F.shape
    T = len(Y)
    for start in range(0, k, batch):
        end = start + batch
        for p in range(P):
            step = -steps[start // batch, p // T] / batch
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
