"""How much better a cause explains the innovations of a stretch of time than nothing does.

For whitened innovations b = A theta + w, w of unit variance, and a normal prior on theta of mean mu
and covariance S, the logarithm of p(b | cause) / p(b | nothing) is, with G = A'A and g = A'b
(D. MacKay, "Bayesian interpolation", Neural Computation 4(3), 1992, eq. 2.9 ff.),

    mu'g - mu'G mu / 2 + h'(G + S^-1)^-1 h / 2 - log det(1 + S G) / 2,    h = g - G mu.

It pays for free parameters only where the motion shows them, and a payload known before, whose S is
small, wins over one that is made up to fit. It is a likelihood ratio: under nothing, it exceeds c
with a probability of at most exp(-c) (Ville's inequality), from which thresholds come.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array

# Standard deviations of innovations that come from anything: a contact, a motion that is not known.
ANYTHING = np.array([2.0, 4.0, 8.0, 16.0])


@dataclass(frozen=True, slots=True)
class Sums:
    """What whitened rows [A b] say of theta: sums over rows; of one stretch, or of several."""

    information: Array  # (..., n, n) A'A
    moment: Array  # (..., n) A'b
    square: Array  # (...) b'b
    rows: Array  # (...) how many

    def shifted(self, theta: Array) -> Sums:
        """The same for innovations from which A theta, theta (n,), is taken off."""
        part = self.information @ theta
        square = self.square - 2.0 * self.moment @ theta + part @ theta
        return Sums(self.information, self.moment - part, np.maximum(square, 0.0), self.rows)

    def of(self, columns: slice) -> Sums:
        """What they say where only these columns matter."""
        information = self.information[..., columns, columns]
        return Sums(information, self.moment[..., columns], self.square, self.rows)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.information + other.information,
            self.moment + other.moment,
            self.square + other.square,
            self.rows + other.rows,
        )


def sums_of(A: Array, b: Array) -> Sums:
    """The sums of rows A (k, n) and b (k,)."""
    return Sums(A.T @ A, A.T @ b, np.asarray(b @ b), np.asarray(float(len(b))))


def nothing(n: int) -> Sums:
    """The sums of no rows."""
    return Sums(np.zeros((n, n)), np.zeros(n), np.asarray(0.0), np.asarray(0.0))


def log_evidence(sums: Sums, root: Array, mean: Array | None = None) -> Array:
    """(...) the logarithm of p(b | cause) / p(b | nothing) for stretches (...).

    root: (n, r) of the prior's covariance S = root root'. mean: (n,) mu, None for 0.
    """
    moment = sums.moment
    value: Array = np.zeros(moment.shape[:-1])
    if mean is not None:
        part = sums.information @ mean
        value = moment @ mean - 0.5 * part @ mean
        moment = moment - part
    if not root.shape[1]:
        return value
    inner = np.eye(root.shape[1]) + root.T @ sums.information @ root
    factor = np.linalg.cholesky(inner)
    solved = np.linalg.solve(factor, (moment @ root)[..., None])[..., 0]
    logdet = np.sum(np.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    found: Array = value + 0.5 * np.sum(solved**2, axis=-1) - logdet
    return found


def log_evidence_of_anything(sums: Sums) -> Array:
    """(...) the same of innovations without any pattern: normal, of one of the sizes `ANYTHING`."""
    precision = 1.0 / ANYTHING**2
    terms = 0.5 * np.multiply.outer(sums.square, 1.0 - precision)
    terms -= np.multiply.outer(sums.rows, np.log(ANYTHING))
    largest = terms.max(axis=-1)
    value: Array = largest + np.log(np.mean(np.exp(terms - largest[..., None]), axis=-1))
    return value


class Windows:
    """The sums over the last `lengths` blocks, kept up as blocks come.

    A change that begins within a block and passes filters takes `RISE` blocks until it is all
    there. So a stretch that it is to begin with has a first row of its own, which compares the
    innovation with the last one before the rise (`entry`); all others compare with the one before
    (`row`).
    """

    RISE = 2

    def __init__(self, n_columns: int, lengths: tuple[int, ...]) -> None:
        self.lengths = np.array(lengths)
        self._n = n_columns
        self._entries: deque[Sums] = deque(maxlen=max(lengths))
        self._rows: deque[Sums] = deque(maxlen=max(lengths))

    def clear(self) -> None:
        """Begin anew, as after a pause."""
        self._entries.clear()
        self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)

    def push(self, entry: Sums, row: Sums) -> None:
        """The next block as a first row, and as a later one."""
        self._entries.append(entry)
        self._rows.append(row)

    def sums(self, *, begins: bool) -> tuple[Array, Sums]:
        """Lengths (w,) that there are blocks for, and the sums over each stretch.

        begins: whether the change begins with the stretch, or was there before.
        """
        lengths = self.lengths[self.lengths <= len(self._rows)]
        rows = list(self._rows)[::-1]
        found, total, done = [], nothing(self._n), 0
        for length in lengths:
            later = length - 1 if begins else length
            for row in rows[done:later]:
                total = total + row
            done = max(done, later)
            found.append(total + self._entries[-length] if begins else total)
        if not found:
            empty = nothing(self._n)
            return lengths, Sums(*(np.asarray(v)[None][:0] for v in _fields(empty)))
        stacked = (np.stack(values) for values in zip(*map(_fields, found), strict=True))
        return lengths, Sums(*stacked)


def _fields(sums: Sums) -> tuple[Array, Array, Array, Array]:
    return sums.information, sums.moment, sums.square, sums.rows
